"""Exact counts and codes kept behind the boundary, so that a strategy of many rounds scans the rows once."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.partition import Bundle, Grid, Partition
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counting import CodeBatch, count_bundle, count_marginals, count_partitions
from understudy.boundary.tables.duck import DuckTable
from understudy.boundary.tables.kept import KeptCodes
from understudy.boundary.tables.packing import PackedTable
from understudy.boundary.tables.table import Table, read_codes
from understudy.errors import InputError

MOST_CELLS = 1 << 26
"""Half a gigabyte of counts; beyond that, counts are made again when they are asked for again."""

MOST_GRID_CELLS = 1 << 21
"""Grids over columns with more cells than that are counted from the rows."""

MOST_GRID_COLUMNS = 3
"""The same for grids of more columns, and their counts are not remembered: such sets are seldom asked for twice."""

MOST_CODE_BYTES = 1 << 27
"""Codes of more rows than that are never laid side by side, but counted a batch at a time."""

Key = TypeVar("Key", ColumnSet, Partition)


@dataclass(frozen=True)
class EncodedTable:
    """Rows that were encoded once, for thousands of strategies that count them; implements `tables.table.Table`."""

    schema: Schema
    codes: Mapping[str, NDArray[np.integer]]
    kind: str = "pyarrow"
    name: str = "a table of codes"

    @classmethod
    def of(cls, domain: Domain, codes: Mapping[str, NDArray[np.integer]]) -> EncodedTable:
        """Codes in the narrowest types that hold them: the less there is to read, the faster it is counted."""
        return cls(domain.schema, {c: codes[c].astype(code_type(domain.size(c)), copy=False) for c in domain.names})

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        return count_marginals(domain, sets, [self.codes])

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        return count_partitions(partitions, [self.codes])

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        raise InputError("sums need the values of rows, and this table has only their codes", tally)

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        raise InputError(f"the values of {column!r} must be declared: this table has only codes", column)

    def count_rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def has_rows(self, at_least: int) -> bool:
        return self.count_rows() >= at_least

    def check_readable(self) -> None:
        """Codes are in memory."""

    def _codes(self, domain: Domain, columns: ColumnSet) -> Iterator[CodeBatch]:
        yield {c: self.codes[c] for c in columns}


class CachedTable:
    """A table that counts each set of columns and each partition once; implements `tables.table.Table`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._domain: Domain | None = None
        self._counts: dict[Any, NDArray[np.int64]] = {}
        self._cells = 0
        self._codes = _Codes(table)

    @property
    def schema(self) -> Schema:
        return self._table.schema

    @property
    def kind(self) -> str:
        return self._table.kind

    @property
    def name(self) -> str:
        return self._table.name

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        return self._recall(domain, sets, self._count_by)

    def _count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        batches = self._codes.scanned(domain, tuple(dict.fromkeys(c for s in sets for c in s)))
        if batches is None:
            return self._table.count_by(domain, sets)
        return count_marginals(domain, sets, batches)

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        return self._recall(domain, partitions, self._count_cells)

    def _count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        """Grids are summed up from the counts of their columns, which many resolutions share; others are counted."""
        grids = [p for p in partitions if isinstance(p, Grid) and _is_shared(domain, p)]
        whole = dict(zip([g.columns for g in grids], self.count_by(domain, [g.columns for g in grids]), strict=True))
        # By identity, while `partitions` holds them: to compare large trees takes long.
        counted = {id(g): _merged(whole[g.columns], g) for g in grids}
        others = [p for p in partitions if id(p) not in counted]
        if others:
            counted |= zip(map(id, others), self._count_others(domain, others), strict=True)
        return [counted[id(p)] for p in partitions]

    def _count_others(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        """From remembered codes; a server counts by itself."""
        batches = self._codes.scanned(domain, tuple(dict.fromkeys(c for p in partitions for c in p.columns)))
        if batches is None:
            return self._table.count_cells(domain, partitions)
        return count_partitions(partitions, batches)

    def count_bundle(self, domain: Domain, bundle: Bundle) -> Iterator[NDArray[np.int64]]:
        """Every part of the bundle, one after the other; from remembered codes where there are any."""
        codes = self._codes.of(domain, bundle.columns)
        if codes is not None:
            return count_bundle(bundle, codes)  # faster by far: what the parts share is found once
        counts = self._count_others(domain, bundle.parts)
        return (n.reshape(part.shape) for n, part in zip(counts, bundle.parts, strict=True))

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        return self._table.count_tally(domain, tally)

    @property
    def uncached(self) -> Table:
        return self._table

    def read_codes(self, domain: Domain, grid: Grid) -> NDArray[np.integer[Any]]:
        return read_codes(self._table, domain, grid)

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        return self._table.count_values(column)

    def count_rows(self) -> int:
        return self._table.count_rows()

    def has_rows(self, at_least: int) -> bool:
        return self._table.has_rows(at_least)

    def check_readable(self) -> None:
        self._table.check_readable()

    def _recall(
        self, domain: Domain, keys: Sequence[Key], count: Callable[[Domain, Sequence[Key]], list[NDArray[np.int64]]]
    ) -> list[NDArray[np.int64]]:
        if domain is not self._domain and domain != self._domain:  # codes mean something else now
            self._domain, self._counts, self._cells = domain, {}, 0
        unknown = [k for k in dict.fromkeys(keys) if k not in self._counts]
        new: dict[Any, NDArray[np.int64]] = {}
        if unknown:
            new = dict(zip(unknown, count(domain, unknown), strict=True))
        for key, counts in new.items():
            if self._cells + counts.size <= MOST_CELLS:
                self._counts[key] = counts
                self._cells += counts.size
        known = ChainMap(self._counts, new)  # what there was no room for is in `new` alone
        return [known[k] for k in keys]


class _Codes:
    """The codes of the rows, read once for a strategy that asks for many trees, one after the other."""

    def __init__(self, table: Table) -> None:
        # A server that counts by itself hands over counts, and never the codes of a row.
        self._table = table if isinstance(table, DuckTable | PackedTable | EncodedTable) else None
        self._domain: Domain | None = None
        self._kept: KeptCodes | None = None
        self._whole: dict[str, NDArray[np.integer]] = {}

    def of(self, domain: Domain, columns: ColumnSet) -> CodeBatch | None:
        """The codes of these columns, all rows of each; None where there are too many of them, or none to be had."""
        batches = self.scanned(domain, columns)
        if batches is None:
            return None
        if not self._holds(columns):
            for _ in batches:
                if self._table is None:
                    return None
        if self._kept is None or self._kept.bytes > MOST_CODE_BYTES:
            return None
        absent = tuple(c for c in columns if c not in self._whole)
        if absent:
            parts = list(self._kept.batches(absent))
            if not parts:
                return None
            # One batch need not be copied.
            self._whole |= parts[0] if len(parts) == 1 else {c: np.concatenate([p[c] for p in parts]) for c in absent}
        return {c: self._whole[c] for c in columns}

    def scanned(self, domain: Domain, columns: ColumnSet) -> Iterator[CodeBatch] | None:
        """The same in batches, of any number of rows."""
        # Mostly it is the same object, which needs no comparison of all codings.
        if domain is not self._domain and domain != self._domain:
            self._domain, self._kept, self._whole = domain, None, {}
        if not columns:
            return None  # without a column there is nothing to tell how many rows there are
        if self._kept is not None and self._holds(columns):
            return self._kept.batches(columns)
        # All of them in one scan: two scans might give the rows in two orders.
        asked = tuple(dict.fromkeys((*(self._kept.columns if self._kept else ()), *columns)))
        if self._table is None:
            return None
        return self._scan(self._table, domain, asked)

    def _holds(self, columns: ColumnSet) -> bool:
        return self._kept is not None and set(columns) <= set(self._kept.columns)

    def _scan(
        self, table: DuckTable | PackedTable | EncodedTable, domain: Domain, columns: ColumnSet
    ) -> Iterator[CodeBatch]:
        # What is in memory already, or kept by the table itself, need not be written to disk.
        most, kept = (math.inf if isinstance(table, DuckTable) else MOST_CODE_BYTES), KeptCodes(columns)
        for batch in table._codes(domain, columns):  # of the same package
            if self._table is not None:
                try:
                    kept.add(batch)
                except OSError:  # the disk is full
                    most = -1
                if kept.bytes > most:  # never tried again: the table would be scanned in vain
                    self._table, self._kept, self._whole, kept = None, None, {}, KeptCodes(())
            yield batch
        if self._table is not None:
            self._kept, self._whole = kept, {}


def _is_shared(domain: Domain, grid: Grid) -> bool:
    """Whether it is summed up from the counts of its columns, which are remembered."""
    return len(grid.columns) <= MOST_GRID_COLUMNS and domain.cells(grid.columns) <= MOST_GRID_CELLS


def _merged(counts: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """Counts by code, summed by group; a group that no code is in counts nothing."""
    for axis, groups in enumerate(map(np.asarray, grid.groups)):
        # Codes of one group next to each other, so that each group is one slice to sum.
        order = np.argsort(groups, kind="stable")
        present, starts = np.unique(groups[order], return_index=True)
        # Only groups that are there: of an empty slice `reduceat` gives an element, and not 0.
        summed = np.add.reduceat(np.take(counts, order, axis=axis), starts, axis=axis)
        counts = np.zeros((*summed.shape[:axis], grid.shape[axis], *summed.shape[axis + 1 :]), dtype=np.int64)
        counts[(slice(None),) * axis + (present,)] = summed
    return counts.ravel()
