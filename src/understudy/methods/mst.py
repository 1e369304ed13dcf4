"""`mst`: a private maximum spanning tree of pairs (McKenna, Miklau & Sheldon 2021).

One-way marginals first; then the exponential mechanism picks pairs of columns that the independent model gets most
wrong, never one that closes a cycle; then these pairs are measured, and a graphical model is fitted to everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.errors import MethodError
from understudy.inference.model import Model
from understudy.methods.forecast.spending import Public, Spending, after_columns, spend_equally
from understudy.methods.method import CHOOSES_SEVERAL, Method, Traits, Variant
from understudy.methods.parts.select_measure import SelectMeasureState, select_tree
from understudy.methods.parts.workload import PAIRS, TRIPLES, Stated, Workload

SELECTION_SHARE = 0.15
"""Of what single columns left. The paper spends a third each on columns, selection and pairs."""


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
        state = SelectMeasureState.begin(self.domain, curator, self.amount)
        if len(self.domain.names) > 1:
            select, measure = curator.remaining().split([SELECTION_SHARE, 1 - SELECTION_SHARE])
            # Nothing is selected by the model after this, so that fitting it is left to `finish`.
            state.measure(select_tree(state, select, self.workload.weight), measure, sweeps=0)
        return state.finish()


def spending(public: Public) -> Spending:
    first, left = after_columns(public)
    return spend_equally(public, first, left.part(1 - SELECTION_SHARE), len(public.domain.names) - 1)


METHOD = Method(
    name="mst",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="a fast model of the strongest pairs, one tree over all columns",
    limits="knows one pair per column; relations beyond the tree are inferred",
    build=lambda options, params: Mst(options.targets, options.weights, options.workload),
    traits=Traits(general=True, weighs=True, buys_bins=True),
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
