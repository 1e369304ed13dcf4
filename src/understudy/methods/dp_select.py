"""`dp-select`: rows selected out of another method's pool, by marginals that are measured with noise.

A part of the budget buys the pool: any method's model, of which many more rows are drawn than are wanted. With the rest
the exponential mechanism picks, round by round, sets of columns whose counts the pool gets most wrong, net of the noise
that measuring them would bring; they are measured. The selection itself is post-processing: the pool is reweighted so
that it has the measured counts and is otherwise as it was (an entropy projection), and rows are chosen from it.

The printed form draws one exponential mechanism for each row that it selects (`specimens.published_select`), which
leaves each of them next to no budget; it is no more private for that.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np

from understudy.boundary.privacy.budget import Amount, Budget
from understudy.boundary.privacy.queryable import Queryable, Wrapper
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.errors import BudgetExhausted, MethodError
from understudy.inference.model import CodeColumns, Model
from understudy.inference.row_selection import DISTANCES, PooledModel
from understudy.methods.forecast.spending import Public, Spending, after_columns
from understudy.methods.method import CHOOSES_SEVERAL, Calibrated, Method, Recipe, Traits, Variant
from understudy.methods.mst import Mst
from understudy.methods.params import Params, parameter
from understudy.methods.parts.networks import Report, Watch
from understudy.methods.parts.one_ways import measure_columns, public_rows
from understudy.methods.rake import rake
from understudy.methods.rake.rake import CalibratedRake, Rake, RakeState
from understudy.methods.rake.schedule import Schedule
from understudy.methods.rake.tuning import FEW_COLUMNS, Tuning

POOL_SHARE = 0.3
"""Settled in advance, like all that follows, by a sweep on public tables: `docs/concepts/selection`."""
FACTOR = 10.0
ENTROPY = "entropy"
"""The pool reweighted; any other distance chooses row by row."""
MOST_TRAINED_DELTA = 0.5
"""A pool that is trained leaves half of δ to what is counted: ε depends on its logarithm alone."""


@dataclass(frozen=True)
class SelectTuning:
    """Constants of the method, which no user sets; `rake` is what it measures by."""

    rake: Tuning = FEW_COLUMNS
    fewest_pool_rows: int = 20_000
    """A pool of a small table is larger than it, since its rows must do for every cell."""
    most_pool_rows: int = 2_000_000
    """What fits into memory."""
    rows_of_rounds: int = 50_000
    """So many rows of the pool are raked in every round; all of them at the end."""
    most_rounds: int = 6
    """More of them are slower, and were no better: a pool knows much already."""
    final_passes: int = 12
    """Raking passes over the whole pool."""
    column_passes: int = 3
    """And over single columns after that: they are known best, and to have them right costs few rows."""

    def pool_size(self, total: float, factor: float) -> int:
        """How many rows a pool has, by the noisy number of private ones."""
        return round(min(max(factor * total, self.fewest_pool_rows), self.most_pool_rows))


TUNING = SelectTuning()


@dataclass(frozen=True)
class SelectParams(Params):
    """The options of `dp-select`."""

    pool_share: float = parameter(
        POOL_SHARE, "the pool's share of the budget", low=0.0, high=1.0, open_low=True, open_high=True
    )
    candidates_factor: float = parameter(FACTOR, "rows of the pool for each selected one", low=1.0, high=100.0)
    distance: str = parameter(
        ENTROPY,
        "what the selected rows are near by: entropy reweights the pool, the others choose row by row",
        choices=(ENTROPY, *DISTANCES),
    )
    sections: int = parameter(1, "parts in which rows are chosen one by one, in parallel", low=1, high=1_000)

    def check(self) -> None:
        if self.sections > 1 and self.distance == ENTROPY:
            raise MethodError(
                f"sections ({self.sections}) are for rows that are chosen one by one; "
                f"set distance to one of {', '.join(DISTANCES)}, or sections to 1",
                self,
            )


@dataclass(frozen=True)
class DpSelect:
    """The recipe: that of the pool, and what `SelectParams` says."""

    pool: Recipe
    pool_share: float = POOL_SHARE
    candidates_factor: float = FACTOR
    distance: str = ENTROPY
    sections: int = 1
    targets: ColumnSet = ()
    report: Report | None = field(default=None, compare=False)
    tuning: SelectTuning = TUNING

    def over(self, pool: Recipe) -> DpSelect:
        """The same recipe with the pool of another method."""
        return replace(self, pool=pool)

    def reporting(self, watch: Watch) -> DpSelect:
        """The same recipe, which tells how far the pool is, where that can tell it, and then its own rounds."""
        pool = self.pool
        if hasattr(pool, "reporting"):
            pool = pool.reporting(watch)
        return replace(self, pool=pool, report=partial(watch, "round"))

    def prepare(self, curator: Queryable) -> None:
        """Refuses, before anything is spent, to buy values or bounds before a training has its part of the budget."""
        private = curator.schema.private
        if not hasattr(self.pool, "prepare"):
            return
        curator.demand_codes()
        if private:
            raise MethodError(
                f"the values or bounds of {private[0].name!r} are private, and a pool that is trained can't wait for "
                "them; state them in the schema, or use another pool",
                private,
            )

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedSelect:
        SelectParams(self.pool_share, self.candidates_factor, self.distance, self.sections)
        parts = amount.split([self.pool_share, 1.0 - self.pool_share])
        plan = Rake(self.targets, tuning=self.tuning.rake).calibrate(domain, parts[1])
        return CalibratedSelect(self, plan, self.pool.calibrate(domain, parts[0]))


@dataclass(frozen=True)
class CalibratedSelect:
    recipe: DpSelect
    plan: CalibratedRake
    """What is measured with the part for selecting: as `rake` measures."""
    pool: Calibrated

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        # A method may take all that is left: it is shown its own part only.
        source = self.pool.fit(Allowance(curator, self.recipe.pool_share), rng)
        rows = public_rows(curator)
        one_ways = measure_columns(self.plan.domain, curator, curator.remaining(), rows)
        tuning = self.recipe.tuning
        state = SelectState.begin(self.plan, curator, rows, one_ways, rng)
        state.open(draw_pool(source, tuning.pool_size(source.total, self.recipe.candidates_factor), rng), tuning)
        if len(self.plan.domain.names) > 1:
            schedule = rounds_of(state.total, curator, len(self.plan.domain.names), tuning)
            for number, amount in enumerate(schedule.rounds):
                state.run_round(schedule, amount, triples=number >= tuning.rake.first_triple_round)
                if self.recipe.report is not None:
                    self.recipe.report(number + 1, len(schedule.rounds), curator.guarantee[0])
        state.close(tuning)
        distance = None if self.recipe.distance == ENTROPY else self.recipe.distance
        return PooledModel(state.particles, source, distance, self.recipe.sections, tuning.rake.exchange_rounds)


class Allowance(Wrapper):
    """A curator that speaks of a part of its budget only, so that a method that takes all that is left leaves some."""

    def __init__(self, curator: Queryable, share: float) -> None:
        super().__init__(curator)
        self._share = share
        self._keep(share)

    def remaining(self) -> Amount:
        """What is left, less what is kept for later."""
        left = self._wrapped.remaining()
        if left.value <= self._kept.value:
            raise BudgetExhausted(
                f"{left.currency} ({float(left.value):.4g}) that is left is kept for the selection of rows; "
                "give the pool a larger share",
                self,
            )
        return replace(left, value=left.value - self._kept.value)

    def reserve(self, epsilon_share: float, delta_share: float) -> Budget:
        """Shares of the pool's part are smaller shares of the whole; and of what is left to count with, it has less."""
        trained = self._share * epsilon_share
        budget = self._wrapped.reserve(trained, min(delta_share, MOST_TRAINED_DELTA))
        self._keep((self._share - trained) / (1.0 - trained))
        return budget

    def _keep(self, share: float) -> None:
        """All but this share of what is left now."""
        self._kept = self._wrapped.remaining().split([share, 1.0 - share])[1]


def draw_pool(model: Model, rows: int, rng: np.random.Generator) -> CodeColumns:
    """So many rows of the model, in random order; what it was fitted to is all that they depend on."""
    drawn = model.sample(rows, rng)
    order = rng.permutation(len(next(iter(drawn.values()))))
    return {c: np.asarray(v, dtype=np.int32)[order] for c, v in drawn.items()}


def rounds_of(total: float, curator: Queryable, columns: int, tuning: SelectTuning = TUNING) -> Schedule:
    """As many picks as `rake` makes, all of them in rounds: the pool stands for its forest of pairs."""
    # The pool was paid for before: what it left is what `remaining` tells.
    usual, left = Schedule.of(total, curator, columns, tuning=tuning.rake), curator.remaining()
    picks = usual.edges + usual.per_round * len(usual.rounds)
    rounds = min(max(1, round(picks / usual.per_round)), tuning.most_rounds)
    per_round, parts = math.ceil(picks / rounds), left.split([1.0] * rounds)
    return Schedule(0, per_round, left, rounds=parts, noise=usual.noise, selection=usual.selection)


@dataclass
class SelectState(RakeState):
    """The state of the method: that of `rake`, but its particles are rows of the pool, and stay where they are."""

    pool: CodeColumns = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return False

    def open(self, pool: CodeColumns, tuning: SelectTuning) -> None:
        """Takes the pool in, and what is known of single columns."""
        self.pool = pool
        self._hold(tuning.rows_of_rounds)
        self.forbid()
        for coding in self.plan.domain:
            self.learn_column(coding.name)
        self.particles.rake(tuning.rake.passes)

    def close(self, tuning: SelectTuning) -> None:
        """All rows of the pool, by what was learned from some of them."""
        self._hold(len(next(iter(self.pool.values()))))
        logs = np.zeros(self.particles.count)
        for block in self.particles.blocks.values():
            logs += np.take(block.theta(), block.cells(self.particles.codes))
        # The entropy projection onto measured counts is p(x) ∝ pool(x)·exp(Σ θ) (Csiszár 1975): what was learned on
        # some rows holds for all.
        weights = np.exp(logs - logs.max())
        self.particles.weights = weights * (self.total / weights.sum())
        self.particles.rake(tuning.final_passes)
        for _ in range(tuning.column_passes):
            for columns, block in self.particles.blocks.items():
                if len(columns) == 1:
                    block.rake(self.particles.codes, self.particles.weights, 0.0)
        self.particles.weights *= self.total / self.particles.weights.sum()

    def _hold(self, rows: int) -> None:
        """The first rows of the pool, all of the same weight."""
        self.particles.move({c: v[:rows] for c, v in self.pool.items()})
        count = len(next(iter(self.particles.codes.values())))
        self.particles.weights = np.full(count, self.total / count)

    def refresh(self, count: int, passes: int) -> None:
        """Rows of a pool are weighed, never changed."""


def spending(public: Public) -> Spending:
    """As `rake` does with what the pool leaves."""
    first, left = after_columns(public)
    return rake.spend_by_schedule(public, first, left.part(1 - POOL_SHARE), keen=False)


METHOD = Method(
    name="dp-select",
    guarantee="that of its pool, and Gaussian differential privacy, or pure ε with delta = 0",
    good_for="a weak generator: rows are selected out of its pool by measured marginals",
    limits="can't make what its pool lacks",
    build=lambda options, params: DpSelect(Mst(options.targets), targets=options.targets, **asdict(params)),
    params=SelectParams,
    traits=Traits(selects=True),
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
