"""What dp-gan and dp-ctgan share: one-way counts, groups, and a generator trained against a private critic.

The budget is divided in two. A counting part buys noisy one-way counts: they say which values share a group, where the
generator begins, and in the end what its columns must look like on their own. A training part buys noisy gradients of
the critic; the generator meets the critic, and never a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Train
from understudy.boundary.privacy.asks.learning import gradients_spend
from understudy.boundary.privacy.budget import Amount, Budget
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.subsampling import HIGHEST_RATE, Course, check_trainable, noise_for
from understudy.boundary.privacy.mechanisms.training import GradientShape, Training
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.inference.generators.adversarial_training import GanTrainer, TrainingConfig
from understudy.inference.generators.generator import GeneratedModel, Generator, GeneratorLayout
from understudy.inference.grouping import Grouping
from understudy.inference.model import Model
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import estimate_total, project_to_simplex
from understudy.methods.method import MODEL_FIRST, Traits
from understudy.methods.params import Params, parameter
from understudy.methods.parts.compression import Compression, OpenedModel
from understudy.methods.parts.one_ways import denoised, measure_each, public_rows

TRAINED_EPSILON, TRAINED_DELTA = 0.85, 0.9
"""The training's shares of ε and δ."""
LINE_GROUPS, MOST_WIDTH = 20, 1_200
"""Groups of a column along a line, fewer where there are many columns."""
RAREST = 0.002
"""A category below this share of the rows shares a group with others, as does one that noise could have made."""
STANDS_OUT = 3.0
RATE, LARGEST_BATCH = 0.1, 20_000.0

USUAL = TrainingConfig()
TRAITS = Traits(family=MODEL_FIRST, trains=True, pure=False, extra="gan")
MUTANTS = ("no-clipping", "half-gradient-noise", "shuffled-batches", "raw-condition-law")
"""The mistakes of a training by gradients, which the auditor must catch in it."""

Report = Callable[[int, int, float], None]
"""Of the step, of all steps, and of the ε that the release would have if it ended there, the counting part included."""
Watch = Callable[[str, int, int, float], None]
"""A report that is told what is counted: "step", "vote" or "round"."""


@dataclass(frozen=True)
class NetworkParams(Params):
    """The options of dp-gan and dp-ctgan. All of them are public: the noise is calibrated to steps and rate."""

    steps: int = parameter(USUAL.steps, "noisy gradients that the critic learns by", low=1, high=2_000)
    rate: float = parameter(RATE, "the share of the rows that joins a batch", low=0.001, high=HIGHEST_RATE)
    hidden: int = parameter(USUAL.hidden, "hidden units of the critic; 0 leaves it pairs of values", low=0, high=256)
    lessons: int = parameter(USUAL.lessons, "steps of the generator after each of the critic", low=1, high=1_000)
    batch: int = parameter(USUAL.batch, "rows that the generator makes in a step", low=1, high=20_000)
    pace: float = parameter(USUAL.pace, "how fast the generator learns", low=1e-6, high=1.0)

    def training(self) -> TrainingConfig:
        """The rules of a training; without hidden units there is nothing for the deep part to share."""
        deep_share = USUAL.deep_share if self.hidden else 0.0
        return TrainingConfig(
            steps=self.steps,
            lessons=self.lessons,
            batch=self.batch,
            pace=self.pace,
            hidden=self.hidden,
            deep_share=deep_share,
        )


@dataclass(frozen=True)
class Network:
    """The recipe. `conditions` names the columns whose values a conditional generator is asked for most."""

    config: TrainingConfig
    targets: ColumnSet = ()
    conditional: bool = False
    report: Report | None = field(default=None, compare=False)
    rate: float = RATE
    """The share of the rows that joins a batch, of a table that is not too large for that."""

    def reporting(self, watch: Watch) -> Network:
        """The same recipe, which tells how far its training is."""
        return replace(self, report=partial(watch, "step"))

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedNetwork:
        check_trainable(amount.pure, domain.schema)
        return CalibratedNetwork(self, domain)

    def prepare(self, curator: Queryable) -> None:
        """Divides the budget, before anything is bought: also before the values of private columns are."""
        # Gradients are composed by their privacy loss distribution, counts as those of any method: two accounts, whose
        # shares have to be settled before either is drawn on.
        curator.reserve(TRAINED_EPSILON, TRAINED_DELTA)


@dataclass(frozen=True)
class CalibratedNetwork:
    recipe: Network
    domain: Domain

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        trained = curator.facts.training or curator.reserve(TRAINED_EPSILON, TRAINED_DELTA)
        rows = public_rows(curator)
        one_ways = measure_each(self.domain, curator, curator.remaining())
        total = estimate_total(rows + one_ways)
        if len(self.domain.names) == 1:
            return IndependentModel.fit(rows + one_ways)
        compression = grouped(self.domain, one_ways, total)
        return OpenedModel(self._train(curator, trained, compression, total, rng), compression)

    def _train(
        self, curator: Queryable, budget: Budget, compression: Compression, total: float, rng: np.random.Generator
    ) -> GeneratedModel:
        config, grid = self.recipe.config, compression.grid(self.domain.names)
        laws = tuple(law / law.sum() for law in compression.base().values())
        shape = GradientShape(grid.shape, config.hidden, config.deep_share)
        # `total` is noisy, so that the rate is public. The noise is that of all steps together, by their privacy loss
        # distribution: it is settled before the first of them.
        rate = min(self.recipe.rate, LARGEST_BATCH / total)
        noise = noise_for(rate, config.steps, budget.epsilon, budget.delta, curator.replaced, shape.cells)
        course = Course(rate, noise, config.steps, curator.replaced)
        plan = GeneratorLayout(grid.shape, conditional=self.recipe.conditional)
        choices = self._choices(plan)
        seed, tell = int(rng.integers(2**63)), self._telling(curator, budget, course, shape.cells)

        def learn(training: Training) -> list[NDArray[np.float32]]:
            trainer = GanTrainer(config, plan, laws=laws, choices=choices, batch=total * rate, seed=seed, tell=tell)
            return trainer.learn(training)

        # The keys are those of the first releases: a question has to be asked in the very words of the record.
        question = {"seed": seed, "school": config.describe(), "conditional": plan.conditional, "targets": [*choices]}
        vector, _ = curator.ask(
            Train(
                self.domain,
                grid,
                shape=shape,
                course=course,
                question=question,
                parts=("generator", "curve"),
                learn=learn,
            )
        )
        return GeneratedModel(Generator(plan, vector), self.domain.names, laws, choices, total)

    def _choices(self, plan: GeneratorLayout) -> tuple[float, ...]:
        """How often each column is the condition: targets half of the time, else all columns alike."""
        names = self.domain.names
        even, targets = 1.0 / len(names), [n for n in names if n in self.recipe.targets]
        if not targets:
            return (even,) * len(names)
        # The other half of the time any column, targets too: a generator must be able to make all of them.
        return tuple(even / 2 + (n in targets) / len(targets) / 2 for n in names)

    def _telling(self, curator: Queryable, budget: Budget, course: Course, cells: int) -> Callable[[int], None]:
        report, epsilon = self.recipe.report, curator.ahead()

        def tell(step: int) -> None:
            if report is not None:
                so_far = gradients_spend(replace(course, steps=step), budget.delta, cells, self.domain.names)
                report(step, course.steps, epsilon(so_far))

        return tell


def grouped(domain: Domain, one_ways: list[Measurement], total: float) -> Compression:
    """Values by group: about evenly filled ones along a line; of categories the frequent ones, and the rest as one."""
    lines = sum(c.edges is not None for c in domain)
    others = sum(c.size for c in domain if c.edges is None)
    # The critic sees every pair of groups: their number is the square of the width, and so is what noise is added to.
    most = max(4, min(LINE_GROUPS, (MOST_WIDTH - others) // max(1, lines)))
    rarest = total * max(RAREST, len(domain.names) / (8 * MOST_WIDTH))
    weights, groups = {}, {}
    for measured, coding in zip(one_ways, domain, strict=True):
        counts = denoised(measured.counts.astype(np.float64), measured.variance, coding)
        weights[coding.name] = project_to_simplex(counts, total)
        groups[coding.name] = _groups(coding, weights[coding.name], max(rarest, STANDS_OUT * measured.deviation), most)
    return Compression(groups, weights)


def _groups(coding: Coding, weights: NDArray[np.float64], least: float, most: int) -> Grouping:
    # Categories have no neighbours that they could be merged with: the rare ones share one group.
    if coding.edges is None:
        return Grouping.keeping(weights >= least)
    if coding.levels <= most:
        line = Grouping.each(coding.levels)
    else:
        line = Grouping.equal_mass(weights[: coding.levels], most, least_sum=1e-9)
    return line.followed_by(coding.apart)
