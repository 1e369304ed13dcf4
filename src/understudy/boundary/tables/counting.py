"""Counting many marginals in one pass over blocks of codes. This is where rows cost time.

Few rows are counted by numpy. Blocks are small enough that the widened codes of one block stay in the cache while every
set is counted over them, and flat cell numbers are formed in 16 bits where they fit. Many rows are counted by a
compiled loop where numba is installed (the extra `fast`), and sets that share columns together: the counts of (a, b, c)
add up to those of (a, b), (a, c) and (b, c), for little more than one of them takes. `benchmarks/counting.py` measures
it against pandas and DuckDB, `benchmarks/scale.py` against the bandwidth of memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.partition import Bundle, Grid, Partition, Refinement, cell_numbers
from understudy.errors import InternalError

BLOCK = 1 << 16
"""Rows that are counted at a time."""
MOST_JOINED_CELLS = 1 << 13
"""Of sets that are counted together: 64 KB of counts, which the second cache holds beside the codes."""
MOST_JOINED_SETS = 1 << 10
"""Among more sets nobody looks for those that share columns: it takes time that grows with their square."""
MOST_COPIED = 1 << 24
"""Codes that are laid side by side at a time for the compiled loop: so thousands of columns take no more memory."""

CodeBatch = Mapping[str, NDArray[np.integer]]


def count_marginals(domain: Domain, sets: Sequence[ColumnSet], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
    """The contingency table of each set of columns, over all batches."""
    many, batches = _peeked(batches)
    if not many:
        return _count_few(domain, sets, batches)
    names = tuple(dict.fromkeys(c for s in sets for c in s)) or domain.names[:1]
    sizes = domain.shape(names)
    joined = joined_sets(tuple(map(tuple, sets)), names, sizes)
    found = _Histograms(sizes, [[names.index(c) for c in s] for s in joined])
    for batch in batches:
        found.add([batch[c] for c in names])
    tables = dict(zip(joined, found.split(), strict=True))
    return [_margin(tables, tuple(s), domain) for s in sets]


def _peeked(batches: Iterable[CodeBatch]) -> tuple[bool, Iterable[CodeBatch]]:
    """Whether there are rows enough for the compiled loop, and the same batches."""
    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        return False, ()
    return _rows(first) >= BLOCK and _loops() is not None, itertools.chain([first], rest)


@cache
def _loops() -> Any:
    """Loaded when first needed: numba takes a third of a second."""
    try:
        from understudy.boundary.tables import compiled
    except ImportError:
        return None
    return compiled


@lru_cache(maxsize=16)
def joined_sets(sets: tuple[ColumnSet, ...], names: ColumnSet, sizes: tuple[int, ...]) -> tuple[ColumnSet, ...]:
    """Sets of columns of which each one of `sets` is a part, fewer and larger ones where their cells are few.

    >>> joined_sets((("a", "b"), ("b", "c"), ("a", "c")), ("a", "b", "c"), (2, 3, 4))
    (('a', 'b', 'c'),)
    """
    size, found = dict(zip(names, sizes, strict=True)), dict[ColumnSet, None]()
    repeating = [s for s in sets if len(set(s)) < len(s)]
    if len(sets) > MOST_JOINED_SETS or repeating:
        return tuple(dict.fromkeys(sets))
    left = dict.fromkeys(frozenset(s) for s in sorted(sets, key=len, reverse=True))  # the largest have the others
    while left:
        joined = set(next(iter(left)))
        cells = math.prod(size[c] for c in joined)
        while True:
            left = {s: None for s in left if not s <= joined}
            gains: dict[str, int] = {}  # how many more sets a column would take in
            for rest in (s - joined for s in left):
                if len(rest) == 1 and cells * size[column := next(iter(rest))] <= MOST_JOINED_CELLS:
                    gains[column] = gains.get(column, 0) + 1
            if not gains:
                break
            # In a settled order, though it is only time that depends on it.
            best = max(gains, key=lambda c: (gains[c], -size[c], -names.index(c)))
            joined.add(best)
            cells *= size[best]
        found[tuple(c for c in names if c in joined)] = None
    return tuple(found)


def _margin(tables: Mapping[ColumnSet, NDArray[np.int64]], columns: ColumnSet, domain: Domain) -> NDArray[np.int64]:
    """The counts of some columns, from those of a set that has them."""
    if columns in tables:
        return tables[columns].reshape(domain.shape(columns))
    joined = min((j for j in tables if set(columns) <= set(j)), key=domain.cells)
    others = tuple(i for i, c in enumerate(joined) if c not in columns)
    kept = [c for c in joined if c in columns]
    counts = np.asarray(tables[joined].reshape(domain.shape(joined)).sum(axis=others))
    return counts.transpose([kept.index(c) for c in columns]).copy()


class _Histograms:
    """The counts of some sets of columns, each by their places, and how many codes each column has."""

    def __init__(self, sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> None:
        cells = [math.prod(sizes[c] for c in s) for s in sets]
        self._sizes, self._kind = np.array(sizes, dtype=np.uint32), code_type(max(sizes))
        self._lengths = np.array([len(s) for s in sets])
        self._members = np.zeros((len(sets), max(map(len, sets))), dtype=np.int64)
        for row, places in zip(self._members, sets, strict=True):
            row[: len(places)] = places
        self._starts = np.cumsum([0, *cells])
        self._counts = np.zeros(self._starts[-1], dtype=np.int64)

    def add(self, columns: Sequence[NDArray[np.integer]]) -> None:
        step = min(2 * BLOCK, MOST_COPIED // len(columns))
        for first in range(0, len(columns[0]), step):
            parts = [c[first : first + step] for c in columns]
            codes = np.stack(parts, dtype=self._kind, casting="unsafe")
            if (codes.max(axis=1) >= self._sizes).any():
                raise InternalError("a code is beyond the codes of its column", None)
            _loops().count_codes(codes, self._sizes, self._members, self._lengths, self._starts, self._counts)

    def split(self) -> list[NDArray[np.int64]]:
        return [self._counts[a:b] for a, b in itertools.pairwise(self._starts)]


def _count_few(domain: Domain, sets: Sequence[ColumnSet], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
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
    many, batches = _peeked(batches)
    grids = [i for i, p in enumerate(partitions) if many and isinstance(p, Grid) and p.columns]
    if not grids:
        return _count_each(partitions, batches)
    others = [p for i, p in enumerate(partitions) if i not in set(grids)]
    merged = _MergedGrids([cast(Grid, partitions[i]) for i in grids])
    rest = iter(_count_each(others, map(merged.passed, batches)))
    found = dict(zip(grids, merged.found.split(), strict=True))
    return [found[i] if i in found else next(rest) for i in range(len(partitions))]


class _MergedGrids:
    """Counts grids by the compiled loop: a column in one grouping is a column of its own there."""

    def __init__(self, grids: Sequence[Grid]) -> None:
        sides = [tuple(zip(g.columns, g.groups, strict=True)) for g in grids]
        self._sides = tuple(dict.fromkeys(side for each in sides for side in each))
        places = {side: i for i, side in enumerate(self._sides)}
        sizes = [max(groups) + 1 for _, groups in self._sides]
        self.found = _Histograms(sizes, [[places[side] for side in each] for each in sides])

    def passed(self, batch: CodeBatch) -> CodeBatch:
        """The same batch, once it was counted."""
        for block in _blocks(batch):
            shared = _Shared(block)
            self.found.add([shared.merged(column, groups) for column, groups in self._sides])
        return batch


def _count_each(partitions: Sequence[Partition], batches: Iterable[CodeBatch]) -> list[NDArray[np.int64]]:
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
            columns = {c: self.merged(c, g) for c, g in zip(partition.columns, partition.groups, strict=True)}
            return _cells(columns, partition.columns, partition.shape)
        if hasattr(partition, "within"):  # as `isinstance(…, Refinement)`, which is slow
            refinement = cast(Refinement, partition)
            return refinement.within(self._assigned(refinement.base), self._block)
        return partition.assign(self._block)

    def merged(self, column: str, groups: tuple[int, ...]) -> NDArray[np.integer]:
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
    rows = _rows(batch)
    if 0 < rows <= BLOCK:
        return [batch]
    return ({name: codes[i : i + BLOCK] for name, codes in batch.items()} for i in range(0, rows, BLOCK))


def _rows(batch: CodeBatch) -> int:
    return len(next(iter(batch.values()))) if batch else 0


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
