"""Noisy histograms over public partitions."""

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
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Partition
from understudy.boundary.tables.table import Table


@dataclass(frozen=True)
class Partitions(NoisyCounts[list[Measurement]]):
    """Noisy histograms over public partitions (a tree's leaves, a merged marginal), in one pass.

    A partition puts every row into one cell, by public rules: its sensitivities are those of a marginal.
    """

    domain: Domain
    partitions: Sequence[Partition]
    amount: Amount
    weights: Sequence[float] | None = None

    name = "partition"
    description = Description(
        "histograms over public partitions (a grid, a tree's leaves)",
        "L1 and L2 of a histogram",
        "integer noise in every cell",
        "[Gaussian](../mechanisms/discrete-gaussian.md), [Laplace](../mechanisms/discrete-laplace.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        for part in self.partitions:
            check_cells(part.columns, part.cells)
        counted = [(f"counts of {p.cells} cells over {', '.join(p.columns)}", p.cells) for p in self.partitions]
        return count_spends(facts, self.amount, self.weights, counted)

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **p.describe(), "scale": s.scale}
            for p, s in zip(self.partitions, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> list[NDArray[np.int64]]:
        return table.count_cells(self.domain, self.partitions)

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [
            Measurement(p.columns, n, s.mechanism, s.scale, p)
            for p, n, s in zip(self.partitions, values, price.spends, strict=True)
        ]
