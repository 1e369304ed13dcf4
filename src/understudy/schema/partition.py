"""Public ways to cut the domain into cells, which the curator may apply to the rows behind the boundary.

A partition puts every row into exactly one cell, by that row's codes alone. So adding or removing one row
changes one cell by one, whatever the partition is: its histogram has L1 and L2 sensitivity 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy.schema.domain import ColumnSet


@runtime_checkable
class Partition(Protocol):
    """Anything that maps the codes of a row to one cell; a tree's leaves, a grid, a merged marginal.

    A partition is a fact: hashable, and equal to another that cuts the same way.
    """

    @property
    def columns(self) -> ColumnSet: ...

    @property
    def cells(self) -> int: ...

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        """The cell of each row, from 0 to cells−1."""
        ...

    def describe(self) -> dict[str, Any]:
        """Plain values that determine the partition, for the certificate and for replay."""
        ...


@dataclass(frozen=True)
class Grid:
    """A marginal at coarser resolution: `groups[i][code]` is the group of a code of column i.

    >>> grid = Grid(("age", "sex"), ((0, 0, 1), (0, 1)))
    >>> grid.cells
    4
    >>> grid.assign({"age": np.array([0, 2]), "sex": np.array([1, 0])})
    array([1, 2])
    """

    columns: ColumnSet
    groups: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(max(g) + 1 for g in self.groups)

    @property
    def cells(self) -> int:
        return int(np.prod(self.shape))

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        merged = [np.asarray(g, dtype=np.intp)[codes[c]] for c, g in zip(self.columns, self.groups, strict=True)]
        return np.ravel_multi_index(merged, self.shape)

    def describe(self) -> dict[str, Any]:
        return {"kind": "grid", "columns": list(self.columns), "groups": [list(g) for g in self.groups]}
