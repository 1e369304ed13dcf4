"""Draws from the posterior of a public partition's cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question, check_cells
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.posterior import Prior, check_leaves
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Partition
from understudy.boundary.tables.table import Table


@dataclass(frozen=True)
class Draws(Ask[list[NDArray[np.int64]]]):
    """For each public partition, how many of `draws` draws from the posterior of its cells fall into each cell.

    The cells are the leaves of a tree with these pseudo-counts per level. Its price is exact, and pure, for one row;
    those of a person are changed one after the other.
    """

    domain: Domain
    partitions: Sequence[Partition]
    priors: Sequence[Prior]
    draws: int

    name = "draws"
    description = Description(
        "how many draws from a posterior fall into each cell",
        "the rows of a person",
        "none: sampling is the mechanism",
        "[draws from a posterior](../mechanisms/posterior-draws.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        pairs = list(zip(self.partitions, self.priors, strict=True))
        for part, prior in pairs:
            check_cells(part.columns, part.cells)
            check_leaves(part.cells, prior)
        moved = float(facts.rows)
        return [
            Spend(
                "posterior-draws",
                f"{self.draws} draws over {', '.join(part.columns)}",
                moved,
                self.draws,
                cells=part.cells,
                prior=prior,
            )
            for part, prior in pairs
        ]

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **part.describe(), "prior": list(prior), "draws": self.draws}
            for part, prior in zip(self.partitions, self.priors, strict=True)
        ]

    def exact(self, table: Table) -> list[NDArray[np.int64]]:
        return table.count_cells(self.domain, self.partitions)

    def draw(
        self, hidden: list[NDArray[np.int64]], price: Price, randomness: Randomness, keep: Keep = at_once
    ) -> Arrays:
        return [randomness.draw(n, prior, self.draws) for n, prior in zip(hidden, self.priors, strict=True)]

    def answer(self, values: Arrays, price: Price) -> list[NDArray[np.int64]]:
        return values
