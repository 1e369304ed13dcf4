"""Rows that were encoded once, for thousands of strategies that count them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counting import CodeBatch, count_marginals, count_partitions
from understudy.boundary.tables.tally import GroupedSums
from understudy.errors import InputError


@dataclass(frozen=True)
class EncodedTable:
    """Codes of every modelled column, in the domain of the schema; implements `tables.table.Table`."""

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
