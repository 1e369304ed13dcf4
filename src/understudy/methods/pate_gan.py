"""`pate-gan`: a generator against a student who learns from noisy votes of teachers, after Jordon et al. (2019).

Teachers share the rows, each row having one teacher. The student meets made rows only, with the noisy number of
teachers who took each for real. The votes are priced as noisy counts are, whatever they are: no price
tells anything of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Consult
from understudy.boundary.privacy.asks.learning import votes_spend
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.subsampling import check_trainable
from understudy.boundary.privacy.mechanisms.teachers import Teachers
from understudy.boundary.privacy.mechanisms.training import Floats, Groups, symmetric
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.errors import MethodError
from understudy.inference.generators.adversarial_training import GanTrainer, TrainingConfig
from understudy.inference.generators.generator import GeneratedModel, Generator, GeneratorLayout
from understudy.inference.model import Model
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import estimate_total
from understudy.methods.method import Method, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.compression import Compression, OpenedModel
from understudy.methods.parts.networks import TRAITS, Report, Watch, grouped
from understudy.methods.parts.one_ways import measure_each, public_rows
from understudy.methods.rake import rake

COUNTED = 0.15
"""The share of the budget that buys one-way counts."""
MOST_VOTES = 10_000
"""Of all rounds together: the student fits a kernel with as many rows and columns, of 800 MB then."""
ROWS_PER_TEACHER, FEWEST_TEACHERS, MOST_TEACHERS = 60.0, 10, 1_000

TRAINING = TrainingConfig(hidden=0, deep_share=0.0, pace=2e-3)


@dataclass(frozen=True)
class PateConfig:
    """The public rules: in each round some made rows are voted on, the student learns, and then the generator does."""

    rounds: int = 10
    votes: int = 100
    lessons: int = 60
    ridge: float = 30.0
    """How many votes it takes until the student believes them half."""

    def describe(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PateParams(Params):
    """The options of `pate-gan`."""

    rounds: int = parameter(PateConfig.rounds, "rounds of votes, lessons and learning", low=1, high=1_000)
    votes: int = parameter(PateConfig.votes, "made rows that are voted on in each round", low=2, high=10_000)
    lessons: int = parameter(PateConfig.lessons, "steps of the generator in each round", low=1, high=10_000)
    ridge: float = parameter(PateConfig.ridge, "votes until the student believes them half", low=0.001, high=1e6)
    batch: int = parameter(TRAINING.batch, "rows that the generator makes in a step", low=1, high=20_000)
    pace: float = parameter(TRAINING.pace, "how fast the generator learns", low=1e-6, high=1.0)

    def check(self) -> None:
        """The student compares every two rows that were voted on."""
        if self.rounds * self.votes > MOST_VOTES:
            raise MethodError(
                f"rounds times votes ({self.rounds} times {self.votes}) must be at most {MOST_VOTES:,}", self
            )

    def recipe(self) -> PateGan:
        config = PateConfig(self.rounds, self.votes, self.lessons, self.ridge)
        return PateGan(config, replace(TRAINING, batch=self.batch, pace=self.pace))


@dataclass(frozen=True)
class PateGan:
    """The recipe."""

    config: PateConfig = PateConfig()
    training: TrainingConfig = TRAINING
    report: Report | None = field(default=None, compare=False)

    def reporting(self, watch: Watch) -> PateGan:
        """The same recipe, which tells how many votes were cast."""
        return replace(self, report=partial(watch, "vote"))

    def prepare(self, curator: Queryable) -> None:
        """Refuses, before anything is spent, a table that has no rows to vote on."""
        curator.demand_codes()

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedPateGan:
        check_trainable(amount.pure, domain.schema)
        return CalibratedPateGan(self, domain)


@dataclass(frozen=True)
class CalibratedPateGan:
    recipe: PateGan
    domain: Domain

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows, left = public_rows(curator), curator.remaining()
        single = len(self.domain.names) == 1
        one_ways = measure_each(self.domain, curator, left if single else left.part(COUNTED))
        if single:
            return IndependentModel.fit(rows + one_ways)
        total = estimate_total(rows + one_ways)
        compression = grouped(self.domain, one_ways, total)
        return OpenedModel(self._consult(curator, compression, total, rng), compression)

    def _consult(
        self, curator: Queryable, compression: Compression, total: float, rng: np.random.Generator
    ) -> GeneratedModel:
        config, grid = self.recipe.config, compression.grid(self.domain.names)
        laws = tuple(law / law.sum() for law in compression.base().values())
        teachers = int(np.clip(total / ROWS_PER_TEACHER, FEWEST_TEACHERS, MOST_TEACHERS))
        seed, plan = int(rng.integers(2**63)), GeneratorLayout(grid.shape)
        even = (1.0 / len(laws),) * len(laws)
        tell = self._telling(curator)

        def learn(asked: Teachers) -> list[NDArray[np.float32]]:
            trainer = GanTrainer(
                self.recipe.training, plan, laws=laws, choices=even, batch=total, seed=seed, tell=lambda step: None
            )
            return trainer.taught(lambda maker: _teach_student(maker, asked, config, tell))

        # The keys are those of the first releases: a question has to be asked in the very words of the record.
        question = {"seed": seed, "seminar": config.describe(), "school": self.recipe.training.describe()}
        # All votes are paid before the first is cast, at the price of any answer. The data-dependent bounds of PATE
        # (Papernot et al. 2018) are smaller where teachers agree, but that they agree is itself private.
        votes = config.rounds * config.votes
        (vector,) = curator.ask(
            Consult(
                self.domain,
                grid,
                teachers=teachers,
                votes=votes,
                amount=curator.remaining(),
                question=question,
                parts=("generator",),
                learn=learn,
            )
        )
        return GeneratedModel(Generator(plan, vector), self.domain.names, laws, even, total)

    def _telling(self, curator: Queryable) -> Callable[[int, Teachers], None]:
        report, epsilon, config = self.recipe.report, curator.ahead(), self.recipe.config

        def tell(votes: int, asked: Teachers) -> None:
            if report is not None:
                so_far = votes_spend(votes, asked.scale, asked.teachers, asked.mechanism)
                report(votes, config.rounds * config.votes, epsilon(so_far))

        return tell


def _teach_student(maker: Any, teachers: Teachers, config: PateConfig, tell: Callable[[int, Teachers], None]) -> None:
    groups = teachers.groups
    seen, said = np.zeros((0, groups.width)), np.zeros(0)
    for _ in range(config.rounds):
        rows = maker.rows(config.votes)
        heard = teachers.votes(rows, maker.shares()[groups.upper]) / teachers.teachers - 0.5
        seen, said = np.concatenate([seen, rows]), np.concatenate([said, heard])
        wishes = student(groups, seen, said, config.ridge)
        for _ in range(config.lessons):
            maker.please(wishes)
        tell(len(said), teachers)


def student(groups: Groups, rows: Floats, votes: Floats, ridge: float) -> Floats:
    """What the student would rather see: a weight for each pair of groups, by ridge regression of the votes.

    With kernel K = number of shared pairs, the fit is Σ αᵢ·(pairs of row i) for (K + ridge·J)·α = votes.
    """
    pairs = len(groups.sizes) * (len(groups.sizes) - 1) / 2
    # Rows are few and pairs of groups many: the dual form solves a system as large as the votes, not as the pairs.
    shared = rows @ rows.T
    kernel = shared * (shared - 1) / 2 / pairs
    alpha = np.linalg.solve(kernel + ridge * np.eye(len(rows)), votes - votes.mean())
    return symmetric(groups, (rows.T @ (alpha[:, None] * rows))[groups.upper]) / pairs


METHOD = Method(
    name="pate-gan",
    guarantee="Gaussian differential privacy of the votes",
    good_for="the classic of teachers and a student, as a baseline",
    limits="needs the extra gan, a delta above 0, and many rows for its teachers",
    build=lambda options, params: params.recipe(),
    params=PateParams,
    traits=TRAITS,
    spending=rake.spending,
    variants=(Variant(mutants=("shared-teachers",)),),
)
