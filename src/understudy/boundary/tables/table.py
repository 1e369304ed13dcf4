"""The one protocol at which rows meet everything else: counting.

Only the curator may call it. Whatever comes back is exact and private until noise is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.partition import Grid, Partition
from understudy.boundary.schema.schema import Schema
from understudy.card import Card, shortened
from understudy.errors import MethodError, TableError


@runtime_checkable
class Table(Protocol):
    """Private rows with their schema, on whichever engine. No row ever leaves it; exact counts do, to the curator.

    Every answer counts at most `schema.rows_per_unit` rows of one person, and every row counts in exactly one cell.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def kind(self) -> str:
        """The kind of table ("pandas", "polars", "pyarrow", "csv", "parquet", "duckdb", "postgresql", "spark").

        A synthetic one copies it.
        """

    @property
    def name(self) -> str:
        """A public name, for ledgers and reports."""

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        """For each set of columns, its exact contingency table, of shape `domain.shape(set)`, in one pass."""

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        """For each public partition, its exact histogram, in one pass."""

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        """For each summand of the tally, its exact total by group, of shape `domain.shape(tally.by)`, in one pass."""

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        """The distinct texts of a column, and how often each occurs (missing values left out)."""

    def count_rows(self) -> int:
        """The exact number of rows that count."""

    def check_readable(self) -> None:
        """Reads whatever of the modelled columns was not read yet, and refuses a table that can't be read to its end.

        Called before the first debit, so that a damaged file costs nothing.
        """

    def has_rows(self, at_least: int) -> bool:
        """Whether there are that many rows; cheap where `count_rows` would scan."""


@runtime_checkable
class CodedTable(Protocol):
    """A table that can also hand its rows to the curator as codes, which training by gradients needs."""

    def read_codes(self, domain: Domain, grid: Grid) -> NDArray[np.integer[Any]]:
        """One line per row, one column per column of the grid: the group that the row's value is in."""


class TableCard(Card):
    """How a table shows itself: by public facts, and by no row."""

    def card(self: Any) -> tuple[str, list[tuple[str, str]]]:
        unit = self.schema.unit
        whose = f"one {unit.column!r}, at most {unit.max_rows} rows" if unit else "each row by itself"
        facts = [("name", self.name), ("kind", self.kind), ("columns", shortened(self.schema.names)), ("unit", whose)]
        return "Table", [*facts, ("rows", "private, behind the boundary")]


def opened(source: object) -> Table:
    """The table, if it is open; else a refusal that says what to do first."""
    if not is_table(source):
        raise TableError(
            f"a {type(source).__name__} is no open table; open it with its schema first: us.open(table, schema), and "
            "us.draft_schema(table) drafts a schema for a person to check",
            type(source),
        )
    return source


def identity_of(table: Table) -> str | None:
    """The full name by which a ledger knows the table; None for one that nobody named, such as a frame in memory.

    It says where the rows are (a path, or a server with its database), so it is for ledgers alone.
    """
    return getattr(table, "identity", None)


def source_of(table: Table) -> str | None:
    """The file (or the server) that the table was opened from; None for rows in memory."""
    return getattr(table, "source", None)


def snapshot_of(table: Table) -> Table:
    """The table as it is now, whatever others write; itself where nobody else can, or where a change is refused."""
    # Of the class: a wrapper that passes on whatever it is asked for is the table, and not what is inside of it.
    taken = getattr(type(table), "snapshot", None)
    return table if taken is None else taken(table)


def version_of(table: Table) -> str | None:
    """What is the same as long as the rows are, and another text when any of them changed; None where nothing tells.

    It follows from the rows, so it is private: nobody but the user's own machine may keep it, and not as it is.
    """
    found = getattr(type(table), "version", None)
    return None if found is None else found(table)


def is_table(source: object) -> TypeGuard[Table]:
    """By what no frame has: `isinstance` alone asks for all attributes in any order, and a lazy frame warns of one."""
    # A frame of Spark's takes any name for that of a column.
    named = type(source).__module__.startswith("pyspark.")
    return not named and hasattr(source, "count_cells") and isinstance(source, Table)


def read_codes(table: Table, domain: Domain, grid: Grid) -> NDArray[np.integer[Any]]:
    """The rows by group, where the engine hands them out."""
    return checked_codes(table).read_codes(domain, grid)


def checked_codes(table: Table) -> CodedTable:
    """The table, unless it hands out counts only."""
    if not isinstance(table, CodedTable):
        raise MethodError(
            f"{table.name} is a {table.kind} table, which hands out counts only; export it to a file to train on it",
            table.name,
        )
    return table
