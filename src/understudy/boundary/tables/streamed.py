"""Tables of a PostgreSQL server whose codes are computed there, and counted here.

What crosses the connection is one or two numbers for each row, in which its codes are packed. A hundred pairs of
columns are then counted in one pass over bytes, where the server would make a hundred rows of each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.tables.dialect import bound_query
from understudy.boundary.tables.packing import PackedTable
from understudy.boundary.tables.postgres import PostgresTable
from understudy.boundary.tables.sql import Expression


class StreamedTable(PackedTable, PostgresTable):
    """A table or view on a server, counted here; implements `tables.table.Table` and `CodedTable`."""

    def snapshot(self) -> Self:
        taken = super().snapshot()
        taken._keeps = True
        return taken

    def _words(self, query: Expression, words: int) -> Iterator[NDArray[np.int64]]:
        # `int8send` gives the 8 bytes as they cross the connection anyway, so that no number is made of each.
        sent = " || ".join(f"int8send(word_{i})" for i in range(words))
        return self._server.words(bound_query(query).within(f"SELECT {sent} FROM ({{}}) AS packed"), words)
