"""A quantile of one column, among the public edges of its bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question, choose
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import rank_scores
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.table import Table
from understudy.errors import MethodError


@dataclass(frozen=True)
class Quantile(Ask[float]):
    """A cut point of the column's public bins that has about this share of its (not missing) values below it.

    The score of a cut is minus the rows by which it misses the share (Smith 2011); `mechanisms.rank.rank_sensitivity`
    proves how far a person moves it.
    """

    domain: Domain
    column: str
    probability: float
    amount: Amount

    name = "quantile"
    description = Description(
        "a cut point of a column's public bins",
        "L∞ of the scores: max(p, 1 − p) for each row of a person, 1 for a replaced one",
        "exponential mechanism",
        "[quantiles](../mechanisms/quantiles-and-bounds.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        edges = self.domain[self.column].edges
        if edges is None or not 0 <= self.probability <= 1:
            raise MethodError(
                f"a quantile ({self.probability}) of {self.column!r} needs a column of numbers and a share from 0 to 1",
                self.column,
            )
        asked = f"quantile {self.probability:g} of {self.column}"
        moved = facts.rank_sensitivity(self.probability)
        return [Spend("exponential", asked, moved, self.amount.selection_epsilon(), cells=len(edges))]

    def questions(self, price: Price) -> list[Question]:
        epsilon = price.spends[0].scale
        return [{"ask": self.name, "column": self.column, "probability": self.probability, "epsilon": epsilon}]

    def exact(self, table: Table) -> NDArray[np.float64]:
        (counts,) = table.count_by(self.domain, [(self.column,)])
        return rank_scores(counts[: self.domain[self.column].levels], self.probability)

    def draw(self, hidden: NDArray[np.float64], price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return [np.array(choose(hidden, price.spends[0], 1, randomness), dtype=np.int64)]

    def answer(self, values: Arrays, price: Price) -> float:
        edges = self.domain[self.column].edges
        assert edges is not None  # `spends` refused it
        return float(edges[int(values[0][0])])
