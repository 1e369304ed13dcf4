"""By group, the bin that holds the row of a wanted rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question, check_cells, choose
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.rank import Rank
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.tables.table import Table


@dataclass(frozen=True)
class Ranks(Ask[list[NDArray[np.int64]]]):
    """For each wanted rank and each group, the bin of the last column of `sums` that holds the row of that rank.

    Bins count from 1; 0 and one past the last stand for ranks beyond the rows. Groups are disjoint: a person moves
    the scores of a group in proportion to the rows that they have there, so that by parallel composition the losses
    of all groups add up to those of one group that holds all rows (add-remove), or two with half of it each
    (replace-one).
    """

    domain: Domain
    sums: GroupedSums
    ranks: Sequence[Rank]
    amount: Amount
    weights: Sequence[float]

    name = "rank"
    description = Description(
        "by group, the bin that holds the row of a rank",
        "L∞ of the scores, added up over groups",
        "exponential mechanism",
        "[ranks by group](../mechanisms/quantiles-and-bounds.md#ranks-by-group)",
    )

    @property
    def _coding(self) -> Coding:
        return self.domain[self.sums.by[-1]]

    def spends(self, facts: PublicFacts) -> list[Spend]:
        *groups, column = self.sums.by
        moved = [facts.rank_sensitivity(rank.probability, grouped=bool(groups)) for rank in self.ranks]
        check_cells(self.sums.by, self.domain.cells(self.sums.by))
        epsilons = [part.selection_epsilon() for part in self.amount.split(self.weights)]
        return [
            Spend("exponential", f"rank {r.probability:g} of {column}", m, e, cells=self._coding.levels + 2)
            for r, m, e in zip(self.ranks, moved, epsilons, strict=True)
        ]

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **self.sums.describe(), **rank.describe(), "epsilon": spend.scale}
            for rank, spend in zip(self.ranks, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> NDArray[np.int64]:
        (counts,) = table.count_tally(self.domain, self.sums)
        return counts.reshape(-1, self._coding.size)[:, : self._coding.levels]

    def draw(self, hidden: NDArray[np.int64], price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return [
            np.array([choose(rank.scores(counts), spend, 1, randomness)[0] for counts in hidden])
            for rank, spend in zip(self.ranks, price.spends, strict=True)
        ]

    def answer(self, values: Arrays, price: Price) -> list[NDArray[np.int64]]:
        return values
