"""`mst`: a private maximum spanning tree of pairs (McKenna, Miklau & Sheldon 2021).

One-way marginals first; then the exponential mechanism picks pairs of columns that the independent model gets most
wrong, never one that closes a cycle; then these pairs are measured, and a graphical model is fitted to everything.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.errors import MethodError
from understudy.inference.model import Model
from understudy.methods.forecast.spending import Public, Spending, after_columns, spend_equally
from understudy.methods.method import CHOOSES_SEVERAL, Method, Traits, Variant
from understudy.methods.parts.groundwork import Groundwork
from understudy.methods.parts.workload import PAIRS, TRIPLES, Stated, Workload

SELECTION_SHARE = 0.15


@dataclass(frozen=True)
class Mst:
    """The recipe. Pairs with a target weigh more in the selection; stated weights come before that."""

    targets: ColumnSet = ()
    weights: Stated = ()
    workload: str = PAIRS

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedMst:
        if self.workload == TRIPLES or any(len(columns) == 3 for columns, _ in self.weights):
            raise MethodError("method mst measures pairs only; for sets of three columns use aim or mwem", self)
        return CalibratedMst(domain, amount, Workload.of(domain, self.targets, self.weights, self.workload))


@dataclass(frozen=True)
class CalibratedMst:
    domain: Domain
    amount: Amount
    workload: Workload

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        ground = Groundwork.lay(self.domain, curator, self.amount)
        if len(self.domain.names) > 1:
            select, measure = curator.remaining().split([SELECTION_SHARE, 1 - SELECTION_SHARE])
            ground.measure(self._select(ground, curator, select), measure, sweeps=0)
        return ground.finish()

    def _select(self, ground: Groundwork, curator: Queryable, amount: Amount) -> list[ColumnSet]:
        pairs = list(itertools.combinations(self.domain.names, 2))
        single = {c: ground.one_way(c) for c in self.domain.names}
        candidates = [
            Candidate(
                p,
                np.outer(single[p[0]], single[p[1]]) / ground.total,
                self.workload.weight(p),
                grid=ground.compression.grid(p),
            )
            for p in pairs
        ]
        chosen = curator.ask(Select(self.domain, candidates, amount, k=len(self.domain.names) - 1, rule=Acyclic(pairs)))
        return [pairs[i] for i in chosen]


@dataclass(frozen=True)
class Acyclic:
    """The rule that no pair closes a cycle with those picked before.

    What is admissible only shrinks: a pick joins two parts into one, so two columns of one part stay in one part.

    >>> Acyclic([("a", "b"), ("b", "c"), ("a", "c")]).after(0).after(1).admits(2)
    False
    """

    pairs: Sequence[ColumnSet]
    part: Mapping[str, str] = field(default_factory=dict)
    """Of each column that was picked: the name of its part, which is that of one column in it."""

    def admits(self, candidate: int) -> bool:
        one, other = self._parts(candidate)
        return one != other

    def after(self, picked: int) -> Acyclic:
        gone, kept = self._parts(picked)
        joined = {c: kept if p == gone else p for c, p in self.part.items()}
        return replace(self, part=joined | {gone: kept, kept: kept})

    def _parts(self, candidate: int) -> tuple[str, str]:
        one, other = self.pairs[candidate]
        return self.part.get(one, one), self.part.get(other, other)


def spending(public: Public) -> Spending:
    first, left = after_columns(public)
    return spend_equally(public, first, left.part(1 - SELECTION_SHARE), len(public.domain.names) - 1)


METHOD = Method(
    name="mst",
    guarantee="pure ε with delta = 0, else zCDP",
    good_for="a fast model of the strongest pairs, one tree over all columns",
    limits="knows one pair per column; relations beyond the tree are inferred",
    build=lambda options, params: Mst(options.targets, options.weights, options.workload),
    traits=Traits(general=True, weighs=True, buys_bins=True),
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
