"""`aim`: an adaptive, iterative mechanism (after McKenna, Mullins, Sheldon & Miklau 2022).

Round by round, the exponential mechanism picks the set of columns that the model gets most wrong, net of the noise
that measuring it would bring; it is measured and fitted. Sets that would make the model too large are passed over.
The number of rounds is settled from the noisy row count and the budget, not annealed: `docs/decisions/0007`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.graphical.graphical_model import JunctionTree
from understudy.inference.model import Model
from understudy.methods.forecast.spending import Public, Spending, after_columns, spend_equally
from understudy.methods.method import CHOOSES_SEVERAL, Method, Traits, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.one_ways import FIRST_SHARE
from understudy.methods.parts.select_measure import SelectMeasureState, find_worst
from understudy.methods.parts.workload import MOST_TRIPLES, PAIRS, Stated, Workload, check_target_triples

# Of each round a tenth for choosing and the rest for measuring, as in the paper.
TARGET_SHARE, SELECTION_SHARE = 0.2, 0.1
TARGET_SHARE_OF_REST = TARGET_SHARE / (1 - FIRST_SHARE)
"""Of what single columns left: a fifth of all, or less where they took more."""
PENALTY = 0.6
"""The share of its noise that a measurement really costs: estimation shrinks the rest away. Decision 7."""
SWEEPS = 5
MEGABYTE = 1_000_000 // 8
"""Cells of eight bytes."""


@dataclass(frozen=True)
class AimTuning:
    """How many sets are picked, and how many in a round; no user's options, but tests and benchmarks set them."""

    rounds_per_signal: float = 0.4
    """Decision 7, chosen on the five tables that it names."""
    most_rounds_per_column: float = 16
    """As in the paper."""
    columns_per_pick: int = 50
    """With so many columns more, a round picks one set more: few of them concern each other."""
    rounds_per_column: int = 4
    """With more rounds for each column, a round picks several sets, too."""

    def count_picks(self, signal: float, columns: int) -> int:
        """As many picks as the signal can feed, but at least one and at most sixteen for each column."""
        return round(
            min(max(self.rounds_per_signal * math.sqrt(signal), columns), self.most_rounds_per_column * columns)
        )

    def picks_per_round(self, picks: int, columns: int) -> int:
        """More than one where there are many columns, or many picks for each of them; never for a few columns."""
        wanted = max(1 + columns // self.columns_per_pick, math.ceil(picks / (self.rounds_per_column * columns)))
        return min(wanted, 1 + columns // 8)


TUNING = AimTuning()


@dataclass(frozen=True)
class AimParams(Params):
    """The options of `aim`."""

    model_megabytes: float = parameter(16.0, "how large the model may become", low=0.1, high=10_000.0)


@dataclass(frozen=True)
class Aim:
    """The recipe. Every pair with a target is measured first, and triples with a target are candidates."""

    targets: ColumnSet = ()
    weights: Stated = ()
    workload: str = PAIRS
    model_megabytes: float = AimParams.model_megabytes
    tuning: AimTuning = TUNING

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedAim:
        AimParams(self.model_megabytes)
        workload = Workload.of(domain, self.targets, self.weights, self.workload)
        check_target_triples(len(domain.names), len(self.targets), MOST_TRIPLES)
        return CalibratedAim(domain, amount, self, workload)


@dataclass(frozen=True)
class CalibratedAim:
    domain: Domain
    amount: Amount
    recipe: Aim
    workload: Workload

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        state = SelectMeasureState.begin(self.domain, curator, self.amount)
        if len(self.domain.names) == 1:
            return state.finish()
        # Not in the paper, which scores by weights alone: a table that is made to predict a column must have its pairs.
        if self.recipe.targets:
            state.measure(self._pairs_with_targets(state), curator.remaining().part(TARGET_SHARE_OF_REST), SWEEPS)
        self._rounds(state, curator)
        return state.finish()

    def _pairs_with_targets(self, state: SelectMeasureState) -> list[ColumnSet]:
        """Every pair with the first target, and with each other one for which the model has room.

        All columns then share cliques with all these targets, so that each of them multiplies the size of the model.
        It may grow as the budget is spent; the pairs with a target that would take more are left to the rounds.
        """
        pairs: list[ColumnSet] = []
        for target in self.recipe.targets:
            more = [(c, target) for c in self.domain.names if c != target and (target, c) not in pairs]
            tree = JunctionTree.over([*state.estimator.sets, *pairs, *more], state.sizes)
            # The pairs of one target are a star, whose cliques are no larger than pairs: those of the first all fit.
            if not pairs or tree.cells(state.sizes) <= TARGET_SHARE * self.recipe.model_megabytes * MEGABYTE:
                pairs += more
        return pairs

    def _rounds(self, state: SelectMeasureState, curator: Queryable) -> None:
        # Counted in advance and not annealed as in the paper: to an estimator that shrinks noise every round on a small
        # table seems to have taught little, and the budget was gone after a few of them (decision 7).
        tuning, columns = self.recipe.tuning, len(self.domain.names)
        picks = tuning.count_picks(state.signal, columns)
        at_once = tuning.picks_per_round(picks, columns)
        rounds = math.ceil(picks / at_once)
        for i, amount in enumerate(curator.remaining().split([1.0] * rounds)):
            select, measure = amount.split([SELECTION_SHARE, 1 - SELECTION_SHARE])
            # The allowance of size grows with the budget spent, as in the paper: early rounds keep the model small.
            cells = self.recipe.model_megabytes * MEGABYTE * (i + 1) / rounds
            noise = PENALTY * self._noise(curator, measure.split([1.0] * at_once)[0])
            worst = find_worst(
                state, self.workload, select, noise=noise, cells=cells, targets=self.recipe.targets, count=at_once
            )
            state.measure(worst, measure, SWEEPS)

    def _noise(self, curator: Queryable, amount: Amount) -> float:
        """The expected absolute noise of one cell: √(2/π)·σ for Gaussian noise, about b for Laplace."""
        scale = amount.noise_scale(curator.count_sensitivity(amount))
        if amount.pure:
            return scale
        return math.sqrt(2 / math.pi) * scale


def spending(public: Public) -> Spending:
    first, left = after_columns(public)
    picks = TUNING.count_picks(public.rows / left.noise_scale(public.change), len(public.domain.names))
    return spend_equally(public, first, left.part(1 - SELECTION_SHARE), picks)


METHOD = Method(
    name="aim",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="a good general table in seconds: pairs chosen where the model is worst, round by round",
    limits="a minute for a hundred columns; at most 16 MB of model",
    build=lambda options, params: Aim(options.targets, options.weights, options.workload, params.model_megabytes),
    params=AimParams,
    traits=Traits(general=True, weighs=True, buys_bins=True),
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL, selects_wide=True),),
)
