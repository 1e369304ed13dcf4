"""Counting many marginals in one pass over blocks of codes. This is where rows cost time.

Blocks are small enough that the widened codes of one block stay in the cache while every set is counted over
them. Flat cell numbers are formed in 16 bits where they fit: a quarter of the memory traffic of 64.
`benchmarks/counting.py` measures it against pandas and DuckDB.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.partition import Bundle, Grid, Partition, Refinement, cell_numbers

BLOCK = 1 << 16
"""Rows that are counted at a time."""

CodeBatch = Mapping[str, NDArray[np.integer]]


def count_marginals(domain: Domain, sets: Sequence[ColumnSet], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
    """The contingency table of each set of columns, over all batches."""
    shapes = [domain.shape(s) for s in sets]
    counts = [np.zeros(domain.cells(s), dtype=np.int64) for s in sets]
    for batch in batches:
        for block in _blocks(batch):
            for columns, shape, total in zip(sets, shapes, counts, strict=True):
                # Whole rows in 64-bit counts: exact, in whichever order the batches come.
                total += np.bincount(_cells(block, columns, shape), minlength=len(total))
    return [c.reshape(s) for c, s in zip(counts, shapes, strict=True)]


def count_partitions(partitions: Sequence[Partition], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
    """The histogram of each public partition, over all batches."""
    counts = [np.zeros(p.cells, dtype=np.int64) for p in partitions]
    for batch in batches:
        for block in _blocks(batch):
            shared = _Shared(block)
            # One histogram at a time is made and added, so that only the totals are in memory.
            for total, partition in zip(counts, partitions, strict=True):
                found = np.bincount(shared.cells(partition), minlength=len(total))
                total += found[: len(total)]
                total[-1] += found[len(total) :].sum()  # how many cells are shown must not depend on the rows
    return counts


class _Shared:
    """What the partitions of one block share: columns by group, each merged once, and bases, each assigned once."""

    def __init__(self, block: CodeBatch) -> None:
        self._block = block
        self._known: dict[tuple[str, tuple[int, ...]], NDArray[np.integer]] = {}
        self._bases: dict[int, NDArray[np.integer]] = {}

    def cells(self, partition: Partition) -> NDArray[np.integer]:
        if isinstance(partition, Grid):
            columns = {c: self._merged(c, g) for c, g in zip(partition.columns, partition.groups, strict=True)}
            return _cells(columns, partition.columns, partition.shape)
        if hasattr(partition, "within"):  # as `isinstance(…, Refinement)`, which is slow
            refinement = cast(Refinement, partition)
            return refinement.within(self._assigned(refinement.base), self._block)
        return partition.assign(self._block)

    def _merged(self, column: str, groups: tuple[int, ...]) -> NDArray[np.integer]:
        key = (column, groups)
        if key not in self._known:
            lookup = np.array(groups, dtype=code_type(max(groups) + 1))
            self._known[key] = lookup.take(self._block[column], mode="clip")
        return self._known[key]

    def _assigned(self, base: Partition) -> NDArray[np.integer]:
        """By identity: equal trees are rarely two, and comparing large ones takes long."""
        if id(base) not in self._bases:
            self._bases[id(base)] = base.assign(self._block)
        return self._bases[id(base)]


def count_bundle(bundle: Bundle, codes: CodeBatch) -> Iterator[NDArray[np.int64]]:
    """The counts of each part by value, class and cell of the base, one after the other.

    Only cells that hold rows are there: the shape is private, and stays behind the boundary like the counts.
    """
    cells, kept = _held(bundle.base.assign(codes), bundle.base.cells)
    classes = bundle.domain.size(bundle.target)
    within = cell_numbers((codes[bundle.target], cells), (classes, kept))  # the same for every column
    for part in bundle.parts:
        shape = (part.size, classes * kept)
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        for block in _blocks({"value": codes[part.column], "within": within}):
            counts += np.bincount(cell_numbers((block["value"], block["within"]), shape), minlength=len(counts))
        yield counts.reshape(part.size, classes, kept)


def _held(cells: NDArray[np.integer], count: int) -> tuple[NDArray[np.integer], int]:
    """Cells by their place among those that hold rows, and how many these are."""
    # Cells without rows would only cost time and memory, in every part of the bundle.
    held = np.bincount(cells, minlength=count) > 0
    kept = int(held.sum())
    if kept == count:
        return cells, count
    return (np.cumsum(held) - 1).astype(cells.dtype).take(cells), kept


def _blocks(batch: CodeBatch) -> Iterable[CodeBatch]:
    rows = len(next(iter(batch.values()))) if batch else 0
    if 0 < rows <= BLOCK:
        return [batch]
    return ({name: codes[i : i + BLOCK] for name, codes in batch.items()} for i in range(0, rows, BLOCK))


def _cells(block: CodeBatch, columns: ColumnSet, shape: tuple[int, ...]) -> NDArray[np.integer]:
    if not columns:  # the total: every row is in the one cell
        return np.zeros(len(next(iter(block.values()))), dtype=np.uint16)
    return cell_numbers([block[c] for c in columns], shape)


def group_rows(grid: Grid, batches: Iterable[CodeBatch]) -> NDArray[np.integer[Any]]:
    """The group of every row in every column of the grid, in the narrowest type that holds them."""
    lookups = [np.array(g, dtype=code_type(max(g) + 1)) for g in grid.groups]
    kind = np.result_type(*lookups)
    parts = [np.zeros((0, len(lookups)), dtype=kind)]
    for batch in batches:
        merged = [k.take(batch[c], mode="clip") for c, k in zip(grid.columns, lookups, strict=True)]
        parts.append(np.stack(merged, axis=1).astype(kind, copy=False))
    return np.concatenate(parts)
