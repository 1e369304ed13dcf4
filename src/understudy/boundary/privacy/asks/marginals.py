"""Noisy contingency tables."""

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
    count_spends,
)
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.tables.table import Table


@dataclass(frozen=True)
class Marginals(NoisyCounts[list[Measurement]]):
    """Noisy contingency tables of sets of columns, in one pass; `amount` is split by `weights`, else evenly.

    Every row is in one cell of each table, so one person moves each by their rows in L1 and L2, and a replaced one by
    2 and √2 (`PublicFacts.l1`, `l2`).
    """

    domain: Domain
    sets: Sequence[ColumnSet]
    amount: Amount
    weights: Sequence[float] | None = None

    name = "marginal"
    description = Description(
        "contingency tables of sets of columns",
        "L1 and L2 of a histogram",
        "integer noise in every cell",
        "[Gaussian](../mechanisms/discrete-gaussian.md), [Laplace](../mechanisms/discrete-laplace.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        for columns in self.sets:
            check_cells(columns, self.domain.cells(columns))
        counted = [(self.words(c), self.domain.cells(c)) for c in self.sets]
        return count_spends(facts, self.amount, self.weights, counted)

    @staticmethod
    def words(columns: ColumnSet) -> str:
        """How a spend says that these were counted together."""
        return f"counts by {', '.join(columns)}"

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, "columns": list(c), "scale": s.scale}
            for c, s in zip(self.sets, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> list[NDArray[np.int64]]:
        return table.count_by(self.domain, self.sets)

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [
            Measurement(tuple(c), n, s.mechanism, s.scale)
            for c, n, s in zip(self.sets, values, price.spends, strict=True)
        ]
