"""What a learner makes of noisy gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.subsampling import Course
from understudy.boundary.privacy.mechanisms.training import (
    GradientShape,
    GradientSums,
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
        return [gradients_spend(self.course, facts.training.delta, self.shape.cells, self.grid.columns)]

    def questions(self, price: Price) -> list[Question]:
        public = {**self.question, **self.grid.describe(), **asdict(self.course), **asdict(self.shape)}
        asked = {"ask": self.name, **public, "sizes": list(self.shape.sizes)}
        return [asked | {"part": part} for part in self.parts]

    def exact(self, table: Table) -> NDArray[np.integer[Any]]:
        codes = read_codes(table, self.domain, self.grid)
        check_rows(len(codes))  # before the debit; `Training` would refuse them after it
        return codes

    def draw(
        self, hidden: NDArray[np.integer[Any]], price: Price, randomness: Randomness, keep: Keep = at_once
    ) -> Arrays:
        return self.learn(self.training(GradientSums(hidden, self.shape, self.course, randomness), keep))

    def training(self, sums: GradientSums, keep: Keep) -> Training:
        """What `learn` is handed."""
        return Training(sums, keep)

    def answer(self, values: Arrays, price: Price) -> Arrays:
        return values


def gradients_spend(course: Course, delta: float, cells: int, columns: ColumnSet) -> Spend:
    """The noisy gradients of a training, as far as the course goes."""
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
