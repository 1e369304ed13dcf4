"""What a learner makes of the noisy votes of teachers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question, check_scale
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.gradient import Groups
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.subsampling import check_trainable
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes, Teachers, votes_sensitivity
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.boundary.tables.table import Table, read_codes


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
        scale = self.amount.noise_scale(votes_sensitivity(self.votes))
        check_scale(f"{self.votes:,} votes", scale)
        return [votes_spend(self.votes, scale, self.teachers)]

    def questions(self, price: Price) -> list[Question]:
        public = {**self.question, **self.grid.describe(), "teachers": self.teachers, "votes": self.votes}
        asked = {"ask": self.name, **public, "scale": price.spends[0].scale}
        return [asked | {"part": part} for part in self.parts]

    def exact(self, table: Table) -> NDArray[np.integer[Any]]:
        return read_codes(table, self.domain, self.grid)

    def draw(
        self, hidden: NDArray[np.integer[Any]], price: Price, randomness: Randomness, keep: Keep = at_once
    ) -> Arrays:
        exact = ExactVotes(hidden, Groups(self.grid.shape), self.teachers, randomness)
        return self.learn(Teachers(exact, self.votes, price.spends[0].scale, keep))

    def answer(self, values: Arrays, price: Price) -> Arrays:
        return values


def votes_spend(votes: int, scale: float, teachers: int) -> Spend:
    """Noisy votes, never pure (`check_trainable`): each is a count that one row moves by one."""
    asked = f"{votes:,} votes of {teachers:,} teachers"
    return Spend("discrete-gaussian", asked, votes_sensitivity(votes), scale, cells=votes)
