"""`mwem`: multiplicative weights with the exponential mechanism (Hardt, Ligett & McSherry 2012), on a factored domain.

A fixed number of equal rounds; each picks the pair of columns with the largest error and measures it. The weights are
those of a graphical model fitted to all measurements, which is where repeated multiplicative updates over the whole
history end, and which never writes down the full domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.model import Model
from understudy.methods.forecast.spending import Public, Spending, after_columns, spend_equally
from understudy.methods.method import CHOOSES, Method, Traits, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.select_measure import SelectMeasureState, find_worst
from understudy.methods.parts.workload import PAIRS, Stated, Workload

SELECTION_SHARE = 0.2
SWEEPS = 5
MODEL_CELLS = 2_000_000
"""16 MB of doubles: as much as `aim` allows its model by default."""


@dataclass(frozen=True)
class MwemParams(Params):
    """The options of `mwem`."""

    rounds: int | None = parameter(
        None, "pairs that are measured, by default as many as columns", kind=int, low=1, high=10_000
    )


@dataclass(frozen=True)
class Mwem:
    """The recipe; by default there are as many rounds as columns."""

    targets: ColumnSet = ()
    weights: Stated = ()
    workload: str = PAIRS
    rounds: int | None = None

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedMwem:
        rounds = self.rounds or max(3, len(domain.names))
        return CalibratedMwem(domain, amount, Workload.of(domain, self.targets, self.weights, self.workload), rounds)


@dataclass(frozen=True)
class CalibratedMwem:
    domain: Domain
    amount: Amount
    workload: Workload
    rounds: int

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        state = SelectMeasureState.begin(self.domain, curator, self.amount)
        if len(self.domain.names) == 1:
            return state.finish()
        for amount in curator.remaining().split([1.0] * self.rounds):
            select, measure = amount.split([SELECTION_SHARE, 1 - SELECTION_SHARE])
            # As printed, a score is the error alone: what noise will cost is not taken off, unlike in `aim`.
            worst = find_worst(state, self.workload, select, noise=0.0, cells=MODEL_CELLS)
            state.measure(worst, measure, SWEEPS)
        return state.finish()


def spending(public: Public) -> Spending:
    first, left = after_columns(public)
    rounds = Mwem().calibrate(public.domain, public.amount).rounds
    return spend_equally(public, first, left.part(1 - SELECTION_SHARE), rounds)


METHOD = Method(
    name="mwem",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="the classic, as a baseline: pairs chosen where the model is worst, in equal rounds",
    limits="as many pairs as columns; aim spends the same budget better",
    build=lambda options, params: Mwem(options.targets, options.weights, options.workload, params.rounds),
    params=MwemParams,
    traits=Traits(weighs=True),
    spending=spending,
    variants=(Variant(mutants=CHOOSES),),
)
