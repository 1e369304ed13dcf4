"""Asks of a learner that meets the rows through noise alone: by noisy gradients, or by noisy votes of teachers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Codes, Description, Price, Question
from understudy.boundary.privacy.asks.checks import check_fit, check_scale
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.subsampling import Course, check_trainable
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes, Teachers, votes_sensitivity
from understudy.boundary.privacy.mechanisms.training import (
    GradientShape,
    GradientSums,
    Groups,
    Keep,
    Training,
    at_once,
    check_rows,
)
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.boundary.tables.table import Table, read_codes
from understudy.errors import InternalError, MethodError


@dataclass(frozen=True, eq=False)
class Train(Ask[Arrays]):
    """What `learn` makes of the noisy gradients of a training: one array per named part, which are the answers.

    `learn` meets the rows, by group of the grid, through `Training.gradients` alone. The question is public, and
    whatever `learn` does with the noisy sums is post-processing; so thousands of sums need not be recorded. (A gate
    with a journal keeps each of them until the release is made: `gates.JournalGate`.)
    """

    domain: Domain
    grid: Grid
    shape: GradientShape
    course: Course
    question: Question
    parts: Sequence[str]
    learn: Callable[[Training], Arrays]

    name = "train"
    description = Description(
        "what a learner makes of noisy gradients",
        "L2 of clipped gradients: 1 for a row, 2 for a replaced one",
        "Gaussian noise on sums over random batches",
        "[noisy gradients](../mechanisms/gradients.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        if facts.training is None:
            raise MethodError("a training needs a part of the budget; reserve it before anything is asked", self)
        if self.course.replace_one != facts.replaced or self.shape.sizes != self.grid.shape:
            raise InternalError(
                "a training must be of the schema's own neighbours, and of the grid's own groups.", self.grid
            )
        check_fit(self.domain, self.grid)  # of any size: the cells of all columns together are never counted
        return [gradients_spend(self.course, facts.training.delta, self.shape.cells, self.grid.columns)]

    def questions(self, price: Price) -> list[Question]:
        public = {**self.question, **self.grid.describe(), **asdict(self.course), **asdict(self.shape)}
        asked = {"ask": self.name, **public, "sizes": list(self.shape.sizes)}
        return [asked | {"part": part} for part in self.parts]

    def exact(self, table: Table) -> Codes:
        codes = read_codes(table, self.domain, self.grid)
        check_rows(len(codes))  # before the debit; `Training` would refuse them after it
        return codes

    def draw(self, hidden: Codes, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return self.learn(self.training(GradientSums(hidden, self.shape, self.course, randomness), keep))

    def training(self, sums: GradientSums, keep: Keep) -> Training:
        """What `learn` is handed."""
        return Training(sums, keep)


def gradients_spend(course: Course, delta: float, cells: int, columns: ColumnSet) -> Spend:
    """The noisy gradients of a training, as far as the course goes."""
    # All of the reserved δ is paid, however few steps the course has.
    return Spend(
        "sampled-gaussian",
        f"{course.steps:,} noisy gradients over {', '.join(columns)}",
        2.0 if course.replace_one else 1.0,
        course.noise,
        delta,
        cells,
        rate=course.rate,
        steps=course.steps,
    )


@dataclass(frozen=True, eq=False)
class Consult(Ask[Arrays]):
    """What `learn` makes of the noisy votes of teachers who share the rows, each row having one teacher.

    One row moves one teacher, and so each count of votes by one (`mechanisms.teachers`).
    """

    domain: Domain
    grid: Grid
    teachers: int
    votes: int
    amount: Amount
    question: Question
    parts: Sequence[str]
    learn: Callable[[Teachers], Arrays]

    name = "consult"
    description = Description(
        "what a learner makes of noisy votes",
        "L2 of all counts of votes: √votes for a row",
        "Gaussian noise on counts of teachers",
        "[votes of teachers](../mechanisms/votes.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        check_trainable(self.amount.pure, facts.schema)
        check_fit(self.domain, self.grid)  # of any size: the cells of all columns together are never counted
        scale = self.amount.noise_scale(votes_sensitivity(self.votes))
        check_scale(f"{self.votes:,} votes", scale)
        return [votes_spend(self.votes, scale, self.teachers, self.amount.mechanism)]

    def questions(self, price: Price) -> list[Question]:
        public = {**self.question, **self.grid.describe(), "teachers": self.teachers, "votes": self.votes}
        asked = {"ask": self.name, **public, "scale": price.spends[0].scale}
        return [asked | {"part": part} for part in self.parts]

    def exact(self, table: Table) -> Codes:
        return read_codes(table, self.domain, self.grid)

    def draw(self, hidden: Codes, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        mechanism = price.spends[0].mechanism
        exact = ExactVotes(hidden, Groups(self.grid.shape), self.teachers, randomness, mechanism)
        return self.learn(Teachers(exact, self.votes, price.spends[0].scale, keep))


def votes_spend(votes: int, scale: float, teachers: int, mechanism: str) -> Spend:
    """Noisy votes, never pure (`check_trainable`): each is a count that one row moves by one."""
    asked = f"{votes:,} votes of {teachers:,} teachers"
    return Spend(mechanism, asked, votes_sensitivity(votes), scale, cells=votes)
