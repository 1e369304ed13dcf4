"""Counting many marginals in one pass over blocks of codes. This is where rows cost time.

Blocks are small enough that the widened codes of one block stay in the cache while every set is counted over
them. Flat cell numbers are formed in 16 bits where they fit: a quarter of the memory traffic of 64.
`benchmarks/counting.py` measures it against pandas and DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.partition import Grid, Partition

BLOCK = 1 << 16

CodeBatch = Mapping[str, NDArray[np.integer]]


class Leafed(Protocol):
    """Puts every row into a leaf."""

    def assign(self, codes: CodeBatch) -> NDArray[np.integer]: ...


class Rooted(Protocol):
    """A partition that cuts the leaves of a tree further; many of them share one tree, which is walked once."""

    @property
    def tree(self) -> Leafed: ...

    def within(self, leaves: NDArray[Any], codes: CodeBatch) -> NDArray[np.integer]: ...


class Bundle(Protocol):
    """Several partitions of the same rows, which are counted faster together."""

    @property
    def columns(self) -> ColumnSet: ...

    @property
    def parts(self) -> Sequence[Partition]: ...

    def count(self, codes: CodeBatch) -> Iterator[NDArray[np.int64]]:
        """The counts of each part from codes, in a layout of its own."""
        ...

    def joined(self, counts: Sequence[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """In the same layout, from the histograms of its parts."""
        ...


def is_bundle(asked: object) -> TypeGuard[Bundle]:
    return hasattr(asked, "parts")


def cell_type(cells: int) -> np.dtype[np.integer]:
    """The narrowest type in which flat cell numbers can be formed; none of them overflows on the way."""
    return np.dtype(np.uint16 if cells <= 1 << 16 else np.uint32 if cells <= 1 << 32 else np.int64)


def count_marginals(domain: Domain, sets: Sequence[ColumnSet], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
    """The contingency table of each set of columns, over all batches."""
    shapes = [domain.shape(s) for s in sets]
    counts = [np.zeros(domain.cells(s), dtype=np.int64) for s in sets]
    for batch in batches:
        for block in _blocks(batch):
            for columns, shape, total in zip(sets, shapes, counts, strict=True):
                total += np.bincount(_cells(block, columns, shape), minlength=len(total))
    return [c.reshape(s) for c, s in zip(counts, shapes, strict=True)]


def count_partitions(partitions: Sequence[Partition], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
    """The histogram of each public partition, over all batches."""
    counts: list[NDArray[np.int64]] = []
    for batch in batches:
        for block in _blocks(batch):
            shared = _Shared(block)
            new = (np.bincount(shared.cells(p), minlength=p.cells) for p in partitions)
            counts = [np.add(c, n, out=c) for c, n in zip(counts, new, strict=True)] if counts else list(new)
    return counts or [np.zeros(p.cells, dtype=np.int64) for p in partitions]


class _Shared:
    """What the partitions of one block share: columns by group, each merged once, and leaves, each tree walked once."""

    def __init__(self, block: CodeBatch) -> None:
        self._block = block
        self._known: dict[tuple[str, tuple[int, ...]], NDArray[np.integer]] = {}
        self._leaves: dict[int, NDArray[np.integer]] = {}

    def cells(self, partition: Partition) -> NDArray[np.integer]:
        if isinstance(partition, Grid):
            columns = {c: self._merged(c, g) for c, g in zip(partition.columns, partition.groups, strict=True)}
            return _cells(columns, partition.columns, partition.shape)
        if hasattr(partition, "within"):  # as `isinstance(…, Rooted)`, which is slow
            rooted = cast(Rooted, partition)
            return rooted.within(self._walked(rooted.tree), self._block)
        return partition.assign(self._block)

    def _merged(self, column: str, groups: tuple[int, ...]) -> NDArray[np.integer]:
        key = (column, groups)
        if key not in self._known:
            lookup = np.array(groups, dtype=code_type(max(groups) + 1))
            self._known[key] = lookup[self._block[column]]
        return self._known[key]

    def _walked(self, tree: Leafed) -> NDArray[np.integer]:
        """By identity: equal trees are rarely two, and comparing large ones takes long."""
        if id(tree) not in self._leaves:
            self._leaves[id(tree)] = tree.assign(self._block)
        return self._leaves[id(tree)]


def _blocks(batch: CodeBatch) -> Iterable[CodeBatch]:
    rows = len(next(iter(batch.values()))) if batch else 0
    if rows <= BLOCK:
        return [batch] if rows else []
    return ({name: codes[i : i + BLOCK] for name, codes in batch.items()} for i in range(0, rows, BLOCK))


def _cells(block: CodeBatch, columns: ColumnSet, shape: tuple[int, ...]) -> NDArray[np.integer]:
    """Row-major cell number of each row, in the narrowest type that can't overflow."""
    cells = int(np.prod(shape))
    wide = cell_type(cells)
    if not columns:
        return np.zeros(len(next(iter(block.values()))), dtype=wide)
    flat: NDArray[Any] = block[columns[0]].astype(wide, copy=False)
    for column, size in zip(columns[1:], shape[1:], strict=True):
        flat = flat * wide.type(size)
        np.add(flat, block[column], out=flat, casting="unsafe")  # a code is below its size, so the sum fits
    return flat


def group_rows(grid: Grid, batches: Iterable[CodeBatch]) -> NDArray[np.integer[Any]]:
    """The group of every row in every column of the grid, in the narrowest type that holds them."""
    lookups = [np.array(g, dtype=code_type(max(g) + 1)) for g in grid.groups]
    kind = np.result_type(*lookups)
    parts = [
        np.stack([k[batch[c]] for c, k in zip(grid.columns, lookups, strict=True)], axis=1).astype(kind, copy=False)
        for batch in batches
    ]
    return np.concatenate([np.zeros((0, len(lookups)), dtype=kind), *parts])
