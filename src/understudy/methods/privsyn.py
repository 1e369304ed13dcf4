"""`privsyn`: many pairs of columns, chosen by how far they are from independent, and rows changed until they hold them.

After Zhang et al. (2021). As printed: noisy single columns; the distance of each pair from independence (InDif) under
noise; pairs for which it outweighs what their own noise would do (DenSel); all of them measured, made to agree, and
put into rows by gradual update (GUM).

Two steps differ, so that the guarantee is that of the curator's asks. In print each InDif is published with noise: it
takes the exact margins, and one row moves it by 4. Here a pair is compared with what the *noisy* margins expect, which
a row moves by 1, and the exponential mechanism puts the pairs in order, less what noise would do to each. A candidate
of one cell stands for measuring nothing: pairs behind it are not worth their noise. And cliques of chosen pairs are not
merged into larger tables.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.gradual_update import GraduallyUpdated
from understudy.inference.model import Model
from understudy.inference.noisy_table import NoisyTable
from understudy.methods.forecast.spending import SHARE_OF_NOISE, Public, Spending, after_columns, spend_equally
from understudy.methods.method import CHOOSES_SEVERAL, Method, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.compression import OpenedModel
from understudy.methods.parts.one_ways import error_weights
from understudy.methods.parts.select_measure import SelectMeasureState

SELECTION_SHARE = 0.15
"""Of what single columns left; in print a ninth."""
MOST_NOISE = 0.3
"""Of the rows: what noise may do to a pair of middling size, if all that may be drawn are measured. In print the number
of pairs follows from their distances alone; but each draw of a selection is paid, used or not."""
MEAN_NOISE = math.sqrt(2 / math.pi)
"""The mean absolute value of a standard normal."""


@dataclass(frozen=True)
class PrivSynParams(Params):
    """The options of `privsyn`."""

    pairs: int | None = parameter(
        None,
        "pairs of columns that are measured, at most; by default as many as noise allows",
        kind=int,
        low=1,
        high=10_000,
    )


@dataclass(frozen=True)
class PrivSyn:
    """The recipe."""

    params: PrivSynParams = PrivSynParams()

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedPrivSyn:
        return CalibratedPrivSyn(domain, amount, self.params.pairs)


@dataclass(frozen=True)
class BeforeNothing:
    """The rule that no pair is picked after the candidate that stands for nothing; so what it admits only shrinks."""

    nothing: int
    ended: bool = False

    def admits(self, candidate: int) -> bool:
        return not self.ended

    def after(self, picked: int) -> BeforeNothing:
        return BeforeNothing(self.nothing, ended=self.ended or picked == self.nothing)


@dataclass(frozen=True)
class CalibratedPrivSyn:
    domain: Domain
    amount: Amount
    pairs: int | None

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        state = SelectMeasureState.begin(self.domain, curator, self.amount)
        tables = list(state.estimator.observations.values())
        if len(self.domain.names) > 1:
            select, measure = curator.remaining().split([SELECTION_SHARE, 1 - SELECTION_SHARE])
            grids = [state.compression.grid(pair) for pair in self._chosen(state, select, measure)]
            if grids:
                weights = error_weights([g.cells for g in grids], measure.pure)
                asked = Partitions(self.domain, grids, curator.remaining(), weights)
                tables += [NoisyTable.of(m) for m in curator.ask(asked)]
        return OpenedModel(GraduallyUpdated.fit(state.sizes, tables, state.total), state.compression)

    def _chosen(self, state: SelectMeasureState, select: Amount, measure: Amount) -> list[ColumnSet]:
        """The pairs that stand before the candidate of one cell, in the noisy order."""
        pairs = list(itertools.combinations(self.domain.names, 2))
        one = measure.noise_scale(state.curator.count_sensitivity(measure)) * (1.0 if measure.pure else MEAN_NOISE)
        cells = float(np.median([state.compression.grid(pair).cells for pair in pairs]))
        most = min(len(pairs), self.pairs or affordable(MOST_NOISE * state.total / (one * cells), measure.pure))
        noise = one * (most if measure.pure else math.sqrt(most))
        candidates = [self._candidate(state, pair, noise) for pair in pairs]
        name = self.domain.names[0]
        nothing = Grid((name,), ((0,) * self.domain.size(name),))
        candidates.append(Candidate((name,), np.array([state.total]), grid=nothing))
        rule = BeforeNothing(len(pairs))
        found = state.curator.ask(Select(self.domain, candidates, select, k=most, rule=rule))
        return [pairs[i] for i in itertools.takewhile(lambda i: i < len(pairs), found)]

    def _candidate(self, state: SelectMeasureState, pair: ColumnSet, noise: float) -> Candidate:
        base, grid = state.compression.base(), state.compression.grid(pair)
        expected = np.outer(base[pair[0]], base[pair[1]]) / state.total
        # Independent columns differ from their expectation, too, by chance.
        chance = MEAN_NOISE * float(np.sqrt(expected).sum())
        return Candidate(pair, expected, offset=-chance - noise * grid.cells, grid=grid)


def affordable(times: float, pure: bool) -> int:
    """How many tables may share a budget that would make the noise of one so many times too small."""
    # Equal parts of it: with k of them noise grows by k, if it is Laplace, or by √k.
    return max(1, int(times if pure else times**2))


def spending(public: Public) -> Spending:
    """As if each column had a value in a group of its own, and every pair that is affordable were worth its noise."""
    first, left = after_columns(public)
    measuring = left.part(1 - SELECTION_SHARE)
    pairs = math.comb(len(public.domain.names), 2)
    cells = float(np.median([a * b for a, b in itertools.combinations(public.sizes, 2)]))
    times = MOST_NOISE * public.rows / (SHARE_OF_NOISE * 2 * float(public.deviation(measuring)) * cells)
    return spend_equally(public, first, measuring, min(pairs, affordable(times, measuring.pure)))


METHOD = Method(
    name="privsyn",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="a baseline: many pairs that may overlap in any way, put into rows without a model",
    limits="relations of three columns only as far as pairs imply them; rows can only be drawn, not weighed",
    build=lambda options, params: PrivSyn(params),
    params=PrivSynParams,
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
