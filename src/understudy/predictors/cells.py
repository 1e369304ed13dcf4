"""What a tree is counted by: its leaves by class, or its leaves by class and by the values of a column.

Each is a partition: every row is in exactly one cell, by that row's codes alone. So all nodes of a level are counted
for the price of one (parallel composition), whereas the histograms of two columns are two partitions of the same rows,
and both are paid for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.tables.counting import BLOCK, cell_type
from understudy.predictors.decision_tree import DecisionTree

Codes = Mapping[str, NDArray[np.integer]]


@dataclass(frozen=True)
class LeafClasses:
    """Leaf × class."""

    tree: DecisionTree
    target: str
    classes: int

    @property
    def columns(self) -> ColumnSet:
        return (*self.tree.columns, self.target)

    @property
    def cells(self) -> int:
        return self.tree.leaves * self.classes

    @property
    def shape(self) -> tuple[int, int]:
        return (self.tree.leaves, self.classes)

    def assign(self, codes: Codes) -> NDArray[np.intp]:
        return self.tree.leaf_of(codes) * self.classes + codes[self.target]

    def describe(self) -> dict[str, Any]:
        return {"kind": "tree", "columns": list(self.columns), "classes": self.classes, **self._tree}

    @cached_property
    def _tree(self) -> dict[str, Any]:
        return self.tree.describe()


@dataclass(frozen=True)
class BranchClasses:
    """Value of a column × class × leaf: what a split of each leaf by this column would give."""

    tree: DecisionTree
    column: str
    size: int
    target: str
    classes: int

    @cached_property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.tree.columns, self.column, self.target)))

    @cached_property
    def cells(self) -> int:
        return self.size * self.classes * self.tree.leaves

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.size, self.classes, self.tree.leaves)

    def assign(self, codes: Codes) -> NDArray[np.intp]:
        return self.within(self.tree.assign(codes), codes).astype(np.intp)

    def within(self, leaves: NDArray[np.integer], codes: Codes) -> NDArray[np.integer]:
        """The cell of each row whose leaf is known: all columns share the walk through the tree."""
        return _flat((codes[self.column], codes[self.target], leaves), self.shape)

    def describe(self) -> dict[str, Any]:
        own = {"kind": "column and tree", "columns": list(self.columns), "column": self.column, "size": self.size}
        return own | {"classes": self.classes, **self.tree.describe()}


@dataclass(frozen=True)
class Branches:
    """What splits by each of several columns would give: the `BranchClasses` of each.

    It is no partition, since a row is in one cell of every column: it may be scored, but not be measured as one.
    """

    tree: DecisionTree
    splitting: ColumnSet
    domain: Domain
    target: str

    @cached_property
    def parts(self) -> tuple[BranchClasses, ...]:
        size, classes = self.domain.size, self.domain.size(self.target)
        return tuple(BranchClasses(self.tree, c, size(c), self.target, classes) for c in self.splitting)

    @property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.tree.columns, *self.splitting, self.target)))

    def count(self, codes: Codes) -> Iterator[NDArray[np.int64]]:
        """The counts of each column by value, class and leaf, from codes.

        Only leaves that hold rows are there: the shape is private, and stays behind the boundary like the counts.
        """
        leaves, kept = _renumbered(self.tree.assign(codes), self.tree.leaves)
        classes = self.domain.size(self.target)
        within = _flat((codes[self.target], leaves), (classes, kept))  # the same for every column
        for part in self.parts:
            counts = _histogram((codes[part.column], within), (part.size, classes * kept))
            yield counts.reshape(part.size, classes, kept)

    def joined(self, counts: Sequence[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """The same from the counts of the parts; leaves without rows are there as well, and matter to no score."""
        return (n.reshape(part.shape) for n, part in zip(counts, self.parts, strict=True))


def _renumbered(leaves: NDArray[np.integer], count: int) -> tuple[NDArray[np.integer], int]:
    """Leaves by their place among those that hold rows, and how many these are."""
    held = np.bincount(leaves, minlength=count) > 0
    kept = int(held.sum())
    return (leaves, count) if kept == count else ((np.cumsum(held) - 1).astype(leaves.dtype).take(leaves), kept)


def _histogram(digits: Sequence[NDArray[np.integer]], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """A block of rows at a time, which stays in the cache."""
    blocks = range(0, max(1, len(digits[0])), BLOCK)
    counted = (
        np.bincount(_flat([d[at : at + BLOCK] for d in digits], shape), minlength=math.prod(shape)) for at in blocks
    )
    counts: NDArray[np.int64] = reduce(lambda a, b: np.add(a, b, out=a), counted)
    return counts.reshape(shape)


def _flat(digits: Sequence[NDArray[np.integer]], shape: tuple[int, ...]) -> NDArray[np.integer]:
    """Row-major cell numbers; each is below their product, which fits its type."""
    cells: NDArray[np.integer] = digits[0].astype(cell_type(math.prod(shape)))
    for digit, size in zip(digits[1:], shape[1:], strict=True):
        cells *= cells.dtype.type(size)
        np.add(cells, digit, out=cells, casting="unsafe")
    return cells
