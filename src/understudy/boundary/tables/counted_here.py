"""What tables have in common whose rows come here as codes, a batch at a time, and are counted here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid, Partition
from understudy.boundary.tables.counting import CodeBatch, count_marginals, count_partitions, group_rows
from understudy.boundary.tables.table import TableCard


class CountedHere(TableCard):
    """The part of `tables.table.CodedTable` that needs codes alone."""

    @abstractmethod
    def _codes(self, domain: Domain, columns: ColumnSet) -> Iterator[CodeBatch]:
        """The rows as codes, a batch at a time."""

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        if not sets:
            return []
        # For the total alone some column is read too: without one, a batch would not tell how many rows it has.
        columns = tuple(dict.fromkeys(c for s in sets for c in s)) or domain.names[:1]
        return count_marginals(domain, sets, self._codes(domain, columns))

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        if not partitions:
            return []
        columns = tuple(dict.fromkeys(c for p in partitions for c in p.columns))
        return count_partitions(partitions, self._codes(domain, columns))

    def read_codes(self, domain: Domain, grid: Grid) -> NDArray[np.integer[Any]]:
        return group_rows(grid, self._codes(domain, grid.columns))
