"""Public ways to cut the domain into cells, which the curator may apply to the rows behind the boundary.

A partition puts every row into exactly one cell, by that row's codes alone. So adding or removing one row
changes one cell by one, whatever the partition is: its histogram has L1 and L2 sensitivity 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain


@runtime_checkable
class Partition(Protocol):
    """Anything that maps the codes of a row to one cell; a tree's leaves, a grid, a merged marginal.

    A partition is a fact: hashable, and equal to another that cuts the same way.
    """

    @property
    def columns(self) -> ColumnSet: ...

    @property
    def cells(self) -> int: ...

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.integer]:
        """The cell of each row, from 0 to cells−1."""

    def fits(self, domain: Domain) -> bool:
        """Whether it has, by its public structure, a cell for each of the domain's codes; a base is asked by itself."""
        # A code without a cell would show, unpaid, as an error or as one cell more: `asks` refuses such a partition.

    def describe(self) -> dict[str, Any]:
        """Plain values that determine the partition, for the certificate and for replay."""


class Refinement(Partition, Protocol):
    """A partition that cuts the cells of another further. Many of them share one base, whose cells are found once."""

    @property
    def base(self) -> Partition: ...

    def within(self, cells: NDArray[np.integer], codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.integer]:
        """The cell of each row whose cell of the base is known."""


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

    # Kept, as the next ones: a selection asks for them again for each of thousands of grids, in every round.
    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.columns, self.groups))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(max(g) + 1 for g in self.groups)

    @cached_property
    def cells(self) -> int:
        return math.prod(self.shape)

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        merged = [np.take(g, codes[c], mode="clip") for c, g in zip(self.columns, self.groups, strict=True)]
        return np.ravel_multi_index(merged, self.shape)

    def fits(self, domain: Domain) -> bool:
        return self._sizes == domain.shape(self.columns)

    @cached_property
    def _sizes(self) -> tuple[int, ...] | None:
        """How many codes each column has; none where a group is numbered below 0."""
        return tuple(map(len, self.groups)) if all(min(g) >= 0 for g in self.groups) else None

    def describe(self) -> dict[str, Any]:
        return {"kind": "grid", "columns": list(self.columns), "groups": [list(g) for g in self.groups]}


class Split(NamedTuple):
    """A node of a tree: codes whose bit is set in `right` go right. A child below 0 is the leaf −1−child."""

    column: int
    right: int
    low: int
    high: int


@dataclass(frozen=True)
class Tree:
    """The leaves of a tree of two-way splits, the first of which is the root; there is one leaf more than splits.

    >>> tree = Tree(("age", "sex"), (3, 2), (Split(0, 0b110, -1, 1), Split(1, 0b10, -2, -3)))
    >>> tree.assign({"age": np.array([0, 2, 1]), "sex": np.array([1, 0, 1])})
    array([0, 1, 2])
    """

    columns: ColumnSet
    sizes: tuple[int, ...]
    """How many codes each column has."""
    splits: tuple[Split, ...]

    @property
    def cells(self) -> int:
        return len(self.splits) + 1

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        column, start, child = self._steps
        # Any code has a leaf. And by row: what one row needs lies together in memory.
        inside = [np.minimum(codes[c], n - 1) for c, n in zip(self.columns, self.sizes, strict=True)]
        values = np.stack(inside, axis=1).astype(np.int32, copy=False)
        width, flat = values.shape[1], values.ravel()
        at = np.zeros(len(values), dtype=np.int32)
        rows = np.arange(len(values), dtype=np.int32)
        # Level by level, all rows at once; a row that has reached its leaf is not looked at again.
        while rows.size:
            here = at.take(rows, mode="clip")  # all places are inside; "clip" spares numpy the check of each of them
            code = flat.take(rows * width + column.take(here, mode="clip"), mode="clip")
            here = child.take(start.take(here, mode="clip") + code, mode="clip")
            at[rows] = here
            rows = rows[here >= 0]
        return (-1 - at).astype(np.intp)

    def fits(self, domain: Domain) -> bool:
        return tuple(self.sizes) == domain.shape(self.columns) and self._complete

    @cached_property
    def _complete(self) -> bool:
        """Whether every leaf, and every split but the root, is the child of one split: every row comes to a leaf."""
        children = sorted(child for s in self.splits for child in (s.low, s.high))
        inside = (0 <= s.column < len(self.sizes) and 0 <= s.right < 1 << self.sizes[s.column] for s in self.splits)
        return children == [*range(-self.cells, 0), *range(1, len(self.splits))] and all(inside)

    def describe(self) -> dict[str, Any]:
        splits = [[s.column, f"{s.right:x}", s.low, s.high] for s in self.splits]
        return {"kind": "tree", "columns": list(self.columns), "sizes": list(self.sizes), "splits": splits}

    @cached_property
    def _steps(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """The column of each split, where its codes begin in the last array, and the child that each code goes to."""
        column = np.array([s.column for s in self.splits], dtype=np.int32)
        sizes = np.array(self.sizes, dtype=np.int32)[column]
        child = np.concatenate(
            [np.where(code_bits(s.right, self.sizes[s.column]), s.high, s.low) for s in self.splits]
        ).astype(np.int32)
        return column, (np.cumsum(sizes) - sizes).astype(np.int32), child


def code_bits(mask: int, size: int) -> NDArray[np.bool_]:
    """Which of `size` codes have their bit set."""
    # The lowest bit is code 0: masks stand in recorded asks (`Tree.describe`), so this order can't change.
    octets = np.frombuffer(mask.to_bytes(-(-size // 8), "little"), dtype=np.uint8)
    return np.unpackbits(octets, count=size, bitorder="little").astype(np.bool_)


def code_mask(bits: NDArray[np.bool_]) -> int:
    """The inverse of `code_bits`."""
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


@dataclass(frozen=True)
class Crossed:
    """The leaves of a tree, each by the groups of one column: cell = leaf × groups + group."""

    tree: Tree
    column: str
    groups: tuple[int, ...]

    @property
    def base(self) -> Tree:
        return self.tree

    @property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.tree.columns, self.column)))

    @property
    def shape(self) -> tuple[int, int]:
        return self.tree.cells, max(self.groups) + 1

    @property
    def cells(self) -> int:
        return self.shape[0] * self.shape[1]

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        return self.within(self.tree.assign(codes), codes)

    def within(self, cells: NDArray[np.integer], codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        return cells * self.shape[1] + np.asarray(self.groups, dtype=np.intp).take(codes[self.column], mode="clip")

    def fits(self, domain: Domain) -> bool:
        return len(self.groups) == domain.size(self.column) and min(self.groups) >= 0

    def describe(self) -> dict[str, Any]:
        return {**self.tree.describe(), "kind": "crossed tree", "by": self.column, "groups": list(self.groups)}


@dataclass(frozen=True)
class CrossTable:
    """Value of a column × class × cell of a base: what cutting every cell of the base by this column would give."""

    base: Partition
    column: str
    size: int
    target: str
    """The column of classes."""
    classes: int

    @cached_property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.base.columns, self.column, self.target)))

    @cached_property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.size, self.classes, self.base.cells)

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.integer]:
        return self.within(self.base.assign(codes), codes)

    def within(self, cells: NDArray[np.integer], codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.integer]:
        return cell_numbers((codes[self.column], codes[self.target], cells), self.shape)

    def fits(self, domain: Domain) -> bool:
        return (self.size, self.classes) == domain.shape((self.column, self.target))

    def describe(self) -> dict[str, Any]:
        own = {"kind": "column and tree", "columns": list(self.columns), "column": self.column, "size": self.size}
        return own | {"classes": self.classes, **self.base.describe()}


@dataclass(frozen=True)
class Bundle:
    """The `CrossTable` of one base by each of several columns, which are counted faster together.

    It is no partition, since a row is in one cell of every column: it may be scored, but not be measured as one.
    """

    base: Partition
    crossed: ColumnSet
    domain: Domain
    target: str

    @cached_property
    def parts(self) -> tuple[CrossTable, ...]:
        size, classes = self.domain.size, self.domain.size(self.target)
        return tuple(CrossTable(self.base, c, size(c), self.target, classes) for c in self.crossed)

    @property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.base.columns, *self.crossed, self.target)))

    def fits(self, domain: Domain) -> bool:
        return self.domain.shape(self.columns) == domain.shape(self.columns)


def shape_of(partition: Partition) -> tuple[int, ...]:
    """How counts of its cells are laid out: along the columns of a grid, by leaf and group, or in one line."""
    if isinstance(partition, Grid | Crossed):
        return partition.shape
    return (partition.cells,)


def cell_type(cells: int) -> np.dtype[np.integer]:
    """The narrowest type in which cell numbers can be formed: a quarter of the memory traffic of 64 bits, mostly."""
    if cells <= 1 << 16:
        return np.dtype(np.uint16)
    if cells <= 1 << 32:
        return np.dtype(np.uint32)
    return np.dtype(np.int64)


def cell_numbers(digits: Sequence[NDArray[np.integer]], shape: Sequence[int]) -> NDArray[np.integer]:
    """Row-major cell number of each row, from its place along each axis, in the narrowest type that can't overflow.

    A place is below its axis's length, so that no number on the way exceeds the product of all, which fits the type.
    """
    wide = cell_type(math.prod(shape))
    cells: NDArray[Any] = digits[0].astype(wide, copy=False)
    for digit, size in zip(digits[1:], shape[1:], strict=True):
        cells = cells * wide.type(size)
        np.add(cells, digit, out=cells, casting="unsafe")
    return cells
