"""A moment: whole numbers, one for each cell of a public grid, added up over the rows.

Each row is in one cell, by its own codes, and adds that cell's number to one total. So how far one person moves the
totals follows from the largest of the numbers alone, whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.grouped_sums import SumNeighbours, ValueSum
from understudy.boundary.schema.partition import Grid, Partition
from understudy.errors import InternalError

MOST_VALUE = 1 << 20
"""With it, sums over 2^42 rows fit into 64 bits."""


class CellSums(Protocol):
    """Sums over the rows, of whole numbers that public cells give to their rows."""

    @property
    def grid(self) -> Partition: ...

    @property
    def totals(self) -> int: ...

    def sums(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The totals, from the counts of the cells."""

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        """L1 and L2 of all totals together."""

    def describe(self) -> dict[str, Any]:
        """Plain values that determine it, for the record."""


@dataclass(frozen=True)
class Moment:
    """What each cell of a grid adds: to the total of its group of the last column, or to the one total there is.

    >>> moment = Moment(Grid(("age", "pay"), ((0, 1), (0, 1, 1))), (4, -4, -4, 4))
    >>> moment.sums(np.array([3, 1, 0, 2]))
    array([16])
    """

    grid: Grid
    values: tuple[int, ...]
    """In row-major order."""
    by_last: bool = False

    def __post_init__(self) -> None:
        whole = all(type(v) is int and abs(v) <= MOST_VALUE for v in self.values)
        if not whole or len(self.values) != self.grid.cells:
            raise InternalError(f"a moment must have a whole number of at most {MOST_VALUE:,} for each cell.", self)

    @property
    def totals(self) -> int:
        return self.grid.shape[-1] if self.by_last else 1

    def sums(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The totals, from the counts of the cells."""
        added = counts.ravel() * np.array(self.values, dtype=np.int64)
        # The last column runs fastest: cells of one of its groups are one column of this table.
        return added.reshape(-1, self.totals).sum(axis=0)

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        """L1 and L2 of all totals together: those of a sum of bounded values by group."""
        return ValueSum.bounded(min(self.values), max(self.values), neighbours, may_add_nothing=False)

    def describe(self) -> dict[str, Any]:
        """Plain values that determine it, for the record."""
        return {**self.grid.describe(), "values": list(self.values), "by last": self.by_last}
