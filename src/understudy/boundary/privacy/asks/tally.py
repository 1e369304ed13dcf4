"""Noisy sums by group: the question behind a metered query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import (
    Arrays,
    Description,
    NoisyCounts,
    Price,
    Question,
    check_cells,
    check_scale,
)
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.grouped_sums import GroupedSums, Summand, SumNeighbours
from understudy.boundary.tables.table import Table


@dataclass(frozen=True)
class Tally(NoisyCounts[list[Measurement]]):
    """Noisy totals of some summands by group, in one pass; what no neighbour can move is exact and free.

    Each summand proves its own sensitivity (`schema.grouped_sums`).
    """

    domain: Domain
    sums: GroupedSums
    amount: Amount
    weights: Sequence[float] | None = None

    name = "tally"
    description = Description(
        "counts, counts of persons and sums of a column, by group",
        "L1 and L2 of a sum, from the bounds of its values",
        "integer noise in every cell",
        "[sums](../mechanisms/sums.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        check_cells(self.sums.by, self.domain.cells(self.sums.by))
        summands = self.sums.summands
        parts = self.amount.split(self.weights or [1.0] * len(summands))
        return [self.spend(facts, summand, part) for summand, part in zip(summands, parts, strict=True)]

    def spend(self, facts: PublicFacts, summand: Summand, amount: Amount) -> Spend:
        """Of one summand."""
        cells = self.domain.cells(self.sums.by)
        # With a unit a replacement may have no row that counts, as where it does not satisfy a condition.
        filtered = self.sums.where is not None or facts.schema.unit is not None
        neighbours = SumNeighbours(facts.rows, facts.replaced, cells, filtered)
        sensitivity = summand.sensitivity(neighbours)[0 if amount.pure else 1]
        asked = " ".join(["sum of", *filter(None, [summand.describe()["add"], summand.looked_at])])
        if sensitivity == 0:
            return Spend("public", f"{asked}, public under replace-one", 0.0, 0.0)
        scale = amount.noise_scale(sensitivity)
        check_scale(asked, scale)
        return Spend(amount.mechanism, asked, sensitivity, scale, cells=cells)

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **self.sums.describe(), **summand.describe(), "scale": spend.scale}
            for summand, spend in zip(self.sums.summands, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> list[NDArray[np.int64]]:
        return table.count_tally(self.domain, self.sums)

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [Measurement(self.sums.by, n, s.mechanism, s.scale) for n, s in zip(values, price.spends, strict=True)]
