"""Tables of a SQLite file: its SQL computes the codes, with functions of ours, and they are counted here.

A snapshot is one read transaction of a connection of its own: what others write meanwhile it does not see, or they have
to wait until it ends.
"""

from __future__ import annotations

import copy
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import EXACT
from understudy.boundary.tables.dialect import check_format
from understudy.boundary.tables.duck import check_case, check_columns, rounded_ids, stamp_of
from understudy.boundary.tables.packing import BATCH, PackedTable
from understudy.boundary.tables.sql import Expression, Source, Stored, capped, select_values, whole
from understudy.boundary.tables.sqlite_dialect import TEXT, bound_query, prepare
from understudy.boundary.tables.sums_sql import dense, select_sums
from understudy.errors import TableError

ENDINGS = (".sqlite", ".sqlite3", ".db")
PLACE = "understudy_rowid"
_SECONDS = 5.0
"""That a writer is waited for."""
_ROW_IDS = ("rowid", "_rowid_", "oid")
"""Names of a row's place; a column of the same name hides one."""


class SqliteTable(PackedTable):
    """A table or view of a SQLite file; implements `tables.table.Table` and `CodedTable`."""

    kind = "sqlite"
    identity: str | None
    source: str | None

    def __init__(self, path: Path, inside: str, schema: Schema, name: str | None = None) -> None:
        self.schema, self.name, self._path = schema, name or inside, path.absolute()
        # Made absolute now: the working directory may be another one when the table is asked.
        self.source, self.identity = f"{self._path}::{inside}", f"{path.resolve()}::{inside.lower()}"
        check_case(schema)
        self._connection = self._connected()
        columns = self._columns(inside)
        check_columns(schema, columns, self.name)
        for column in schema.in_table:
            if isinstance(column, Datetime):
                check_format(column)
        self._source = self._plain(inside, columns)
        self._check_ids(inside)

    def snapshot(self) -> Self:
        """The same table, as it is now and stays for all questions of one release."""
        taken = copy.copy(self)
        taken._connection, taken._keeps, taken._kept = taken._connected(), True, None
        taken._run("BEGIN", ())  # it lasts until the connection is closed
        return taken

    def version(self) -> str | None:
        """Sizes and times of the file, and of the log of what is not in it yet."""
        stamps = (stamp_of(self._path), stamp_of(self._path.with_name(f"{self._path.name}-wal")))
        return " ".join(f"{s[0]} {s[1]}" for s in stamps if s is not None)

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        found = self._fetch(select_sums(self._source, self.schema, domain, tally, "INT"))
        return dense(found, domain.shape(tally.by), len(tally.summands))

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        missing = self.schema.missing_texts_of(column)
        pairs = sorted(self._fetch(select_values(self._source, self.schema.unit, column, missing)))
        return [value for value, _ in pairs], np.array([rows for _, rows in pairs], dtype=np.int64)

    def count_rows(self) -> int:
        rows = capped(self._source, self.schema.unit, self.schema.missing_texts).subquery("counted")
        return int(self._fetch(exp.select("count(*)").from_(rows))[0][0])

    def has_rows(self, at_least: int) -> bool:
        rows = capped(self._source, self.schema.unit, self.schema.missing_texts).limit(at_least).subquery("counted")
        return bool(self._fetch(exp.select("count(*)").from_(rows))[0][0] >= at_least)

    def check_readable(self) -> None:
        """The first question has read the table to its end."""

    def _words(self, query: Expression, words: int) -> Iterator[NDArray[np.int64]]:
        bound = bound_query(query)
        cursor = self._run(bound.text, bound.values)
        try:
            while rows := cursor.fetchmany(BATCH):
                yield np.array(rows, dtype=np.int64).reshape(-1, words)
        except sqlite3.Error as error:
            raise unreadable(self.name, error) from None

    def _fetch(self, query: Expression) -> list[tuple[Any, ...]]:
        bound = bound_query(query)
        try:
            return self._run(bound.text, bound.values).fetchall()
        except sqlite3.Error as error:
            raise unreadable(self.name, error) from None

    def _run(self, text: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(text, values)
        except sqlite3.Error as error:
            raise unreadable(self.name, error) from None

    def _connected(self) -> sqlite3.Connection:
        """A connection that lives as long as the table; a snapshot has one of its own."""
        try:
            # Others may hold the table in another thread; a curator is asked by one at a time.
            connection = sqlite3.connect(
                f"file:{quote(str(self._path))}?mode=ro",
                uri=True,
                timeout=_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA query_only = on")
            connection.execute("PRAGMA trusted_schema = off")  # a view may call nothing that isn't SQLite's own
            connection.execute("PRAGMA temp_store = memory")  # no row is written to a disk
            prepare(connection)
        except sqlite3.Error as error:
            raise unreadable(self._path.name, error) from None
        weakref.finalize(self, connection.close)
        return connection

    def _columns(self, inside: str) -> list[str]:
        """The names of the columns, in their order; of a table that is not there there are none."""
        found = self._run("SELECT name FROM pragma_table_info(?)", (inside,)).fetchall()
        if not found:
            raise TableError(f"{self._path.name} can't be read: there is no table of that name in it", inside)
        return [name for (name,) in found]

    def _plain(self, inside: str, columns: list[str]) -> Source:
        """The table with the text of every value: in SQLite any column may hold values of any type."""
        ids = self.schema.unit.column if self.schema.unit else None
        plain = [exp.alias_(_text(c, exactly=c == ids), c, quoted=True) for c in columns]
        order = None
        if ids is not None:
            plain.append(exp.alias_(exp.column(self._row_id(inside, columns)), PLACE))
            order = exp.column(PLACE)
        table = exp.select(*plain).from_(exp.to_identifier(inside, quoted=True)).subquery("understudy_table")
        return Source(table, {c: Stored(c, "text") for c in columns}, order)

    def _row_id(self, inside: str, columns: list[str]) -> str:
        """Which rows of a person count must be the same at every scan: only a plain table has places for its rows."""
        taken = {c.lower() for c in columns}
        for name in _ROW_IDS:
            if name not in taken:
                with suppress(TableError):
                    quoted = exp.to_identifier(inside, quoted=True).sql(dialect="sqlite")
                    self._run(f"SELECT {name} FROM {quoted} LIMIT 0", ())
                    # A view answers too, with nulls.
                    if self._run("SELECT type FROM sqlite_schema WHERE name = ?", (inside,)).fetchone() == ("table",):
                        return name
        raise TableError(
            f"{self.name} is a view, or a table without row ids, whose rows have no order to cap a person's rows by; "
            "copy it into a table, or declare no unit",
            self.name,
        )

    def _check_ids(self, inside: str) -> None:
        """Refuses ids that are doubles of which one may stand for several."""
        if self.schema.unit is None:
            return
        column = exp.column(self.schema.unit.column, quoted=True).sql(dialect="sqlite")
        quoted = exp.to_identifier(inside, quoted=True).sql(dialect="sqlite")
        rounded = f"typeof({column}) = 'real' AND abs({column}) >= {EXACT} AND abs({column}) < 9e999"
        if self._run(f"SELECT 1 FROM {quoted} WHERE {rounded} LIMIT 1", ()).fetchone():
            raise rounded_ids(self.name, self.schema.unit.column)


def _text(column: str, exactly: bool) -> Expression:
    """The text of a value; one that is stored as a text comes as its bytes (`sqlite_dialect.prepare`)."""
    raw = exp.column(column, quoted=True)
    is_text = exp.Paren(this=exp.func("typeof", raw.copy()).eq("text"))
    given = exp.Case(
        ifs=[exp.If(this=is_text, true=exp.Cast(this=raw, to=exp.DataType.build("blob")))], default=raw.copy()
    )
    return exp.Anonymous(this=TEXT, expressions=[given, is_text.copy(), whole(int(exactly))])


def unreadable(name: str, error: Exception) -> TableError:
    """One sentence for SQLite's error, without what it may quote."""
    reasons = (reason for sign, reason in _REASONS.items() if sign in str(error))
    return TableError(f"{name} can't be read: {next(reasons, 'the file is damaged or not of its kind')}", name)


_REASONS = {
    "no such table": "there is no table of that name in it",
    "no such column": "a column of the table is not there any more",
    "unable to open": "permission denied",
    "unsafe use": "a view in it calls a function, which is not allowed",
    "locked": "another process has the file open for writing",
    "too many SQL variables": "its columns have more bins and labels than SQLite takes in one question; declare fewer",
    "out of memory": "memory ran out",
    "interrupted": "it was interrupted",
    "no such function": "this SQLite lacks a function; use version 3.38 or newer",
}
