"""Methods that train: too slow for thousands of games, so that their training is looked at from inside.

Five looks. How far one row moves what is summed or voted; whether the noise is as large as declared; whether rows join
batches by independent coins; whether one-way counts got the noise that was paid for; and one run with many canaries
(`canaries`), each of which has numbers of the noisy sums to itself. A mutant makes one mistake, which one of the looks
must find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import ASKS, Ask, Marginals, Train, kind_of
from understudy.boundary.privacy.asks.ask import Result
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.gates import Payer, RowGate
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.subsampling import GRID_SCALE, Course, check_trainable
from understudy.boundary.privacy.mechanisms.training import (
    Deep,
    GradientShape,
    GradientSums,
    Groups,
    Keep,
    Noisy,
    Training,
    pair_counts,
)
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import ADD_REMOVE, REPLACE_ONE, Schema
from understudy.errors import MethodError
from understudy.inference.generators.adversarial_training import TrainingConfig
from understudy.lab.audits.audit_plan import AuditPlan
from understudy.lab.audits.checks.boundary import Boundary
from understudy.lab.audits.checks.canaries import Canaries, Coins, GradientListener, OneRun, guessed, judged, tossed
from understudy.lab.audits.checks.curator_checks import BOUNDARY, CONFORMANCE, SENSITIVITY, TAINT
from understudy.lab.audits.checks.paired_gate import PairedExchange
from understudy.lab.audits.games.bounds import least_epsilon
from understudy.lab.audits.games.games import cut
from understudy.lab.audits.harness import Harness, opened
from understudy.lab.audits.mutants.mutants import OF_TRAINING, harness_of, revealed_by
from understudy.lab.audits.result import FAILED, AuditCheck, AuditStep
from understudy.lab.audits.subjects import applies, subject_of
from understudy.methods.method import Options
from understudy.methods.parts.networks import TRAINED_DELTA, TRAINED_EPSILON, Network
from understudy.methods.pate_gan import PateGan
from understudy.methods.registry import METHODS
from understudy.progress import Progress

LEVEL, SIDE = 0.05, 1e-10
COLUMNS, VALUES = 8, 6
# Each run of canaries is judged in three ways, which share one level (`CanaryOutcome`): a union bound.
PROOFS = 3
CANARIES = Canaries(values=160, units=256)
# The share of canaries that is guessed where nothing is known of what ties them: the surest of them.
GUESSED = 0.05
# Rows that lift each value, in deviations of the noise on counts; those with fewer than three share a group.
COMPANY, MOST_COMPANY = 6.5, 1_000
TRIALS = 40
# The steps of the methods themselves. The generator learns nothing: the canaries' adversary sees the noisy sums.
CANARY_TRAINING = TrainingConfig(steps=100, lessons=0, batch=100, hidden=CANARIES.units, deep_share=0.02)

MOVED = ("sensitivity of gradients", "sensitivity of votes")
DRAWN = ("noise of gradients", "sizes of batches", "noise of the law of conditions")
ONE_RUN = "one run with canaries"
TRAINED_BEFORE = "what is asked before the training is asked by other methods, too, and looked at there"
IN_OR_OUT = "canaries are in or out, and the claim is about rows that are replaced"
VOTES_ALONE = "its rows are only voted on, and votes have the noise of other counts"

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class TrainingTerms:
    """How a training is looked at: the claimed relation, how often, and how rarely an honest one may be refuted."""

    neighbours: str = ADD_REMOVE
    runs: int = 1
    """Trainings with canaries, and as many times the trials of the other looks."""
    level: float | None = None

    @property
    def replaced(self) -> bool:
        return self.neighbours == REPLACE_ONE

    @property
    def each(self) -> float:
        """The level of one training."""
        return (self.level or LEVEL) / self.runs


QUICK = TrainingTerms()


@dataclass(frozen=True)
class TrainingChecks:
    """A method that trains, in its harness: the same steps as `CuratorChecks`, found by looking at its training."""

    plan: AuditPlan
    progress: Progress

    @cached_property
    def harness(self) -> Harness:
        return harness_of(self.plan.mutant)

    @cached_property
    def boundary(self) -> Boundary:
        plan = self.plan
        subject = subject_of(plan.method or "", plan.budget)
        return Boundary(subject, self.harness, plan.budget, plan.neighbours, wide=False, trains=True)

    @cached_property
    def looks(self) -> list[AuditCheck]:
        self.progress("training")
        return list(self._looks())

    def steps(self) -> list[AuditStep]:
        drawn = tuple(c for c in self.looks if c.name in DRAWN)
        moved = tuple(c for c in self.looks if c.name in MOVED)
        conformance = AuditStep(*CONFORMANCE, drawn)
        if not drawn:
            conformance = AuditStep(*CONFORMANCE, reason=VOTES_ALONE)
        self.progress("boundary")
        return [
            AuditStep(*SENSITIVITY, moved),
            conformance,
            AuditStep(*TAINT, reason=TRAINED_BEFORE),
            AuditStep(*BOUNDARY, tuple(self.boundary.checks())),
        ]

    def canaries(self) -> tuple[list[AuditCheck], str]:
        """What was found by them, or why they were not looked for."""
        heard = [c for c in self.looks if c.name == ONE_RUN]
        if heard:
            return heard, ""
        if applies("no-clipping", self.plan.method or ""):
            return [], IN_OR_OUT
        return [], VOTES_ALONE

    @property
    def exchanges(self) -> list[PairedExchange]:
        """None: a gate that holds two tables doesn't train."""
        return []

    def power(self) -> None:
        """Nothing is known of it."""

    def first_violation(self) -> str:
        """What catches a mutant first, in a few words. A mistake beside the training is looked for without one."""
        title, checks = "training", self._looks()
        if self.plan.mutant not in OF_TRAINING:
            title, checks = BOUNDARY[1].lower(), self.boundary.checks(revealed_by(self.plan.mutant))
        return next((f"{title}: {c.name}" for c in checks if c.outcome == FAILED), "")

    def _looks(self) -> Iterator[AuditCheck]:
        terms = TrainingTerms(self.plan.neighbours, self.plan.setting.learners, self.plan.level)
        return looks_at(self.plan.method or "", self.plan.budget, self.harness, terms)


def looks_at(method: str, budget: Budget, harness: Harness, terms: TrainingTerms = QUICK) -> Iterator[AuditCheck]:
    """Every look at a method by its name, the quickest first; of one whose rows are voted on, how far votes move."""
    check_trainable(budget.pure, canary_schema())
    recipe = METHODS[method].recipe(Options())
    if isinstance(recipe, Network):
        return training_checks(recipe, budget, harness, terms)
    if isinstance(recipe, PateGan):
        return iter([votes_check(harness, np.random.Generator(np.random.PCG64()), terms)])
    raise MethodError(f"method {method} trains in a way of its own, which no audit knows how to look at", method)


def audit_training(recipe: Network, budget: Budget, mutant: str | None = None) -> list[AuditCheck]:
    """Every look at one method; `recipe` decides whether the generator is conditional."""
    return list(training_checks(recipe, budget, harness_of(mutant), QUICK))


def training_checks(recipe: Network, budget: Budget, harness: Harness, terms: TrainingTerms) -> Iterator[AuditCheck]:
    # This generator makes rows and critics up; what hides rows is drawn from the harness's own randomness.
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence().entropy))
    yield sensitivity_check(harness, rng, terms)
    yield votes_check(harness, rng, terms)
    yield noise_check(harness, rng)
    yield batch_check(harness, rng)
    for _ in range(terms.runs):
        law, found = played(recipe, budget, harness, rng, terms.neighbours)
        yield law
        if not terms.replaced:  # canaries are in or out, of which a claim about replaced rows says nothing
            yield _one_run(found, terms.each)


def _shape() -> GradientShape:
    return GradientShape((VALUES,) * COLUMNS, 6, 0.2)


def _codes(rows: int, rng: np.random.Generator) -> Codes:
    return rng.integers(0, VALUES, (rows, COLUMNS))


def _critic(shape: GradientShape, size: float, rng: np.random.Generator) -> Deep:
    return Deep.of(
        size * rng.standard_normal(shape.hidden * (shape.groups.width + 2)), shape.groups.width, shape.hidden
    )


def sensitivity_check(harness: Harness, rng: np.random.Generator, terms: TrainingTerms = QUICK) -> AuditCheck:
    """One row more or less, critics small and large: the sums move by one length at most; by two for another row."""
    shape, worst, allowed = _shape(), 0.0, 1 + terms.replaced
    course = Course(0.1, 1.0, 1, replace_one=terms.replaced)
    summed = harness.sums(_codes(0, rng), shape, course, harness.randomness())
    for trial in range(TRIALS * terms.runs):
        # From tiny to large weights: gradients grow with them, and clipping matters to long ones only.
        rows, critic = _codes(2 + trial % TRIALS, rng), _critic(shape, 10.0 ** rng.uniform(-2, 1.2), rng)
        other = np.concatenate([_codes(int(terms.replaced), rng), rows[1:]])
        change = summed.sums(rows, critic) - summed.sums(other, critic)
        worst = max(worst, float(np.linalg.norm(change.astype(np.float64))) / GRID_SCALE)
    return AuditCheck.of(
        MOVED[0], worst <= allowed, f"one row moves the sums by {worst:.6f} lengths, {allowed} allowed"
    )


def votes_check(harness: Harness, rng: np.random.Generator, terms: TrainingTerms = QUICK) -> AuditCheck:
    """The same coins, one row replaced: no count of votes moves by more than one."""
    groups, worst = Groups((VALUES,) * COLUMNS), 0
    made = groups.one_hot(_codes(60, rng))
    shares = np.maximum(pair_counts(groups, made) / len(made), 1e-3)
    for _ in range(TRIALS * terms.runs):
        rows, coins = _codes(30, rng), int(rng.integers(2**32))
        other = rows.copy()
        other[0] = _codes(1, rng)[0]
        heard = [harness.votes(r, groups, 10, ExactRandomness.seeded(coins)).count(made, shares) for r in (rows, other)]
        worst = max(worst, int(np.abs(heard[0] - heard[1]).max()))
    return AuditCheck.of(MOVED[1], worst <= 1, f"one row moves a count of votes by {worst}, 1 allowed")


def noise_check(harness: Harness, rng: np.random.Generator) -> AuditCheck:
    """Of no rows, noise is all there is to see."""
    shape, steps = _shape(), 20
    summed = harness.sums(_codes(0, rng), shape, Course(0.1, 1.0, steps), harness.randomness())
    training, critic = Training(summed), _critic(shape, 1.0, rng)
    noise = np.concatenate([training.gradients(critic).pairs * summed.wide_steps for _ in range(steps)])
    return _spread(DRAWN[0], noise / GRID_SCALE)


def batch_check(harness: Harness, rng: np.random.Generator) -> AuditCheck:
    """Batches of independent coins have sizes that vary as a binomial number does; neither more nor less."""
    rows, steps, rate = 4_000, 60, 0.1
    summed = harness.sums(_codes(rows, rng), _shape(), Course(rate, 1.0, steps), harness.randomness())
    sizes = np.array([len(summed.batch()) for _ in range(steps)])
    return _spread(DRAWN[1], (sizes - rate * rows) / np.sqrt(rows * rate * (1 - rate)))


def _spread(name: str, normal: NDArray[np.float64]) -> AuditCheck:
    """χ² of what should be standard normal, two-sided."""
    from scipy.stats import chi2

    total, count = float((normal**2).sum()), normal.size
    # Too even is as wrong as too small: shuffled batches give themselves away by sizes that don't vary.
    side = float(min(chi2.cdf(total, count), chi2.sf(total, count)))
    return AuditCheck.of(name, side > SIDE, f"variance {total / count:.4f} of what was declared, over {count:,} draws")


def played(
    recipe: Network, budget: Budget, harness: Harness, rng: np.random.Generator, neighbours: str = ADD_REMOVE
) -> tuple[AuditCheck, CanaryOutcome | None]:
    """Each canary in by its coin, beside rows that are always in."""
    coins = tossed(len(CANARIES.rows))
    # So many rows of each value that the noisy counts, of two columns (√2), give it a group of its own.
    divided = PublicFacts(canary_schema(), budget).divided(TRAINED_EPSILON, TRAINED_DELTA)
    company = math.ceil(COMPANY * divided.counting.capacity.noise_scale(math.sqrt(2)))
    rows = np.concatenate([CANARIES.rows[coins], CANARIES.company(min(MOST_COMPANY, company))])
    watched = run(replace(recipe, config=CANARY_TRAINING), budget, harness, rows, rng, neighbours)
    return watched.law_check(rows), watched.outcome(coins)


@dataclass(frozen=True)
class CanaryOutcome:
    """What the guesses of one run were, and what they prove of its training, at one level in all."""

    course: Course
    paid: Budget
    surest: OneRun
    every: OneRun
    unclipped: OneRun

    def tied(self, level: float | None = None) -> float:
        """The proved ε, whatever ties the canaries together."""
        each, runs = (level or LEVEL) / PROOFS, (self.surest, self.unclipped)
        return least_epsilon(lambda c: any(r.refutes(c, each) for r in runs), self.course, self.paid.delta)

    def apart(self, level: float | None = None) -> float:
        """The proved ε where canaries are seen through coins and noise of their own, as they should be."""
        each = (level or LEVEL) / PROOFS
        return least_epsilon(lambda c: self.every.refutes_apart(c, each), self.course, self.paid.delta)


def _one_run(found: CanaryOutcome | None, level: float) -> AuditCheck:
    if found is None:
        return AuditCheck.of(
            ONE_RUN, True, "nothing is proved: values share groups at so small an epsilon, as do canaries"
        )
    tied, apart = found.tied(level), found.apart(level)
    said = (
        f"{found.surest.right:,} of the {found.surest.guesses:,} surest guesses right, {found.every.right:,} of all "
        f"{found.every.guesses:,}: epsilon of at least {cut(apart)} if canaries are seen independently, {cut(tied)} "
        f"whatever ties them; {found.paid.epsilon:g} was paid for the training"
    )
    return AuditCheck.of(ONE_RUN, max(tied, apart) <= found.paid.epsilon, said)


def canary_schema(neighbours: str = ADD_REMOVE) -> Schema:
    """Two columns, so that a row has one pair of values."""
    values = tuple(f"v{i}" for i in range(CANARIES.values))
    return Schema(tuple(Categorical(name, values=values) for name in ("first", "second")), neighbours=neighbours)


@dataclass(frozen=True, eq=False)
class WatchedTrain(Train):
    """A training whose parts may be broken, and which is listened to where canaries have numbers of their own."""

    observer: ObservedCurator | None = None

    def training(self, sums: GradientSums, keep: Keep) -> Training:
        assert self.observer is not None
        watched = self.observer.harness.sums(sums.codes, sums.shape, sums.course, sums.randomness)
        if self.shape.sizes != (CANARIES.values,) * 2:  # noisy counts merged values: canaries share their numbers
            return Training(watched, keep)
        self.observer.listener = GradientListener(CANARIES, self.course.rate, watched.deep_steps / watched.wide_steps)
        return ListenedTraining(watched, self.observer.listener, CANARIES.critic(self.shape.groups.width))


class ObservedCurator(Curator):
    """A curator whose trainings are asked by the canaries' own critic, and listened to."""

    kinds = (*ASKS, WatchedTrain)

    harness = Harness()
    listener: GradientListener | None = None
    course: Course | None = None

    def ask(self, ask: Ask[Result]) -> Result:
        watched: Ask[Any] = ask
        if isinstance(ask, Train):
            self.course = ask.course
            parts = {f.name: getattr(ask, f.name) for f in fields(Train)}
            watched = WatchedTrain(**parts, observer=self)
        answer: Result = super().ask(watched)
        return answer

    def outcome(self, coins: Coins) -> CanaryOutcome | None:
        """None where noisy counts made values share a group, so that canaries share their numbers."""
        listener, paid = self.listener, self.facts.training
        if listener is None or paid is None or self.course is None:
            return None
        every = judged(coins, listener.wide)
        unclipped = judged(coins[: CANARIES.units], listener.deep)
        return CanaryOutcome(self.course, paid, guessed(coins, listener.wide, GUESSED), every, unclipped)

    def law_check(self, rows: Codes) -> AuditCheck:
        """The answers to one-way counts, less the truth, in units of the noise that was declared for them."""
        noise = [
            (a.value - np.bincount(rows[:, i], minlength=CANARIES.values)) / a.question["scale"]
            for i, a in enumerate([a for a in self.record if kind_of(a.question) is Marginals])
        ]
        return _spread(DRAWN[2], np.concatenate(noise))


class ListenedTraining(Training):
    """Sums for a critic of the canaries' own, whichever is asked for."""

    def __init__(self, sums: GradientSums, listener: GradientListener, chosen: Deep) -> None:
        super().__init__(sums)
        self._listener, self._chosen = listener, chosen

    def gradients(self, critic: Deep | None = None) -> Noisy:
        # The accounting holds for every critic, so that an adversary may choose the one that hears the most.
        noisy = super().gradients(self._chosen)
        self._listener.hear(noisy)
        return noisy


def run(
    recipe: Network,
    budget: Budget,
    harness: Harness,
    rows: Codes,
    rng: np.random.Generator,
    neighbours: str = ADD_REMOVE,
) -> ObservedCurator:
    """One training on these rows, watched from inside."""
    import pyarrow as pa

    schema = canary_schema(neighbours)
    names = np.array([f"v{i}" for i in range(CANARIES.values)])
    table = opened(pa.table({c.name: names[rows[:, i]] for i, c in enumerate(schema)}), schema)
    curator = ObservedCurator(schema, budget, RowGate(table, Payer(budget), harness.randomness()))
    curator.harness = harness
    recipe.calibrate(Domain.of(schema), curator.remaining()).fit(curator, rng)
    return curator
