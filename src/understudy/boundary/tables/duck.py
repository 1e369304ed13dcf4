"""Rows that DuckDB can scan: data frames in memory, CSV and Parquet files, and tables of a DuckDB database."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime, Identifier
from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.late_imports import duckdb, exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counted_here import CountedHere
from understudy.boundary.tables.counting import CodeBatch
from understudy.boundary.tables.sql import (
    Source,
    Storage,
    Stored,
    capped,
    select_codes,
    select_rounded_ids,
    select_values,
)
from understudy.boundary.tables.sums_sql import dense, select_sums
from understudy.errors import TableError
from understudy.parameters import close_names

BATCH = 1 << 17
"""Rows of codes that are fetched at a time: two blocks of `counting`."""
_TYPE_NAMES = {np.uint8: "UTINYINT", np.uint16: "USMALLINT", np.uint32: "UINT"}


Stamp = tuple[int, int, int]


class DuckTable(CountedHere):
    """A table behind a DuckDB connection; implements `tables.table.Table`."""

    identity: str | None = None
    source: str | None = None
    """See `tables.table.identity_of` and `source_of`."""
    path: Path | None = None
    """The file that is read at each scan."""
    _stamp: Stamp | None = None
    """Of the file, at the first question of a release."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, relation: Any, schema: Schema, *, kind: str, name: str
    ) -> None:
        self.schema, self.kind, self.name = schema, kind, name
        self._connection = connection
        self._read: set[str] = set()
        check_case(schema)
        types = self._describe(relation)
        check_columns(schema, list(types), name)
        # A person declared the types of a database; those of a file may follow from the rows that were written.
        if kind == "duckdb":
            check_types(schema, types)
        self._source = Source(relation, {name: stored_as(name, stored) for name, stored in types.items()})
        self._check_ids()

    def snapshot(self) -> Self:
        """The same table for one release, which a change of its file ends before anything more is drawn."""
        taken = copy.copy(self)
        taken._stamp, taken._read = stamp_of(self.path), set()
        return taken

    def version(self) -> str | None:
        """The size of the file, and when it was written last."""
        return None if self._stamp is None else f"{self._stamp[0]} {self._stamp[1]}"

    def _check_unchanged(self) -> None:
        """After a scan and before its answer: what was read is of the one file that the release began with."""
        if self._stamp is not None and stamp_of(self.path) != self._stamp:
            raise TableError(
                f"{self.name} was changed while it was released, and one release must be of one state of it; copy it "
                "to where nobody writes, and begin anew",
                self.name,
            )

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        found = self._fetch(select_sums(self._source, self.schema, domain, tally, "UINT"))
        return dense(found, domain.shape(tally.by), len(tally.summands))

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        pairs = self._fetch(select_values(self._source, self.schema.unit, column, self.schema.missing_texts_of(column)))
        return [value for value, _ in pairs], np.array([rows for _, rows in pairs], dtype=np.int64)

    def count_rows(self) -> int:
        rows = capped(self._source, self.schema.unit, self.schema.missing_texts).subquery("counted")
        return self._fetch(exp.select("count(*)").from_(rows))[0][0]

    def check_readable(self) -> None:
        # Counting a column makes the engine decode it to its end, which `count(*)` does not.
        left = [c.name for c in self.schema.in_table if not isinstance(c, Identifier) and c.name not in self._read]
        if left:
            self._fetch(
                exp.select(*[exp.Count(this=exp.column(c, quoted=True)) for c in left]).from_(self._source.relation)
            )
            self._read.update(left)

    def has_rows(self, at_least: int) -> bool:
        # With the limit inside, so that the engine may stop at that many rows.
        rows = capped(self._source, self.schema.unit, self.schema.missing_texts).limit(at_least).subquery("counted")
        return bool(self._fetch(exp.select("count(*)").from_(rows))[0][0] >= at_least)

    def _check_ids(self) -> None:
        """Refuses ids that were rounded before they came here: they would make one person of several."""
        if self.schema.unit is None:
            return
        query = select_rounded_ids(self._source, self.schema.unit)
        if query is not None and self._fetch(query)[0][0]:
            raise rounded_ids(self.name, self.schema.unit.column)

    def _codes(self, domain: Domain, columns: ColumnSet) -> Iterator[CodeBatch]:
        """The rows as codes, a batch at a time; at no time are more than a few batches in memory."""
        codings = [domain[c] for c in columns]
        types = [_TYPE_NAMES[code_type(c.size).type] for c in codings]
        query = select_codes(self._source, self.schema.unit, codings, self.schema.missing_texts, types)
        try:
            for batch in self._connection.sql(query.sql(dialect="duckdb")).to_arrow_reader(BATCH):
                yield {c: batch.column(i).to_numpy() for i, c in enumerate(columns)}
            self._check_unchanged()
            self._read.update(columns)  # not before the last batch: a file may be damaged at its end
        except (
            duckdb.Error,
            OSError,
            RuntimeError,
            UnicodeError,
            MemoryError,
        ) as error:  # Arrow wraps the engine's error while streaming
            self._check_unchanged()
            if isinstance(error, MemoryError) or _ran_out(error):
                raise out_of_memory(self.name, len(columns)) from None
            raise unreadable(self.name, error) from None

    def _describe(self, relation: Any) -> Mapping[str, str]:
        found = self._run(exp.select("*").from_(relation).limit(0))
        return dict(zip(found.columns, map(str, found.types), strict=True))

    def _fetch(self, query: Any) -> list[tuple[Any, ...]]:
        try:
            found = list(self._run(query).fetchall())
        except duckdb.Error as error:
            self._check_unchanged()  # the better reason, where the file is half written
            raise unreadable(self.name, error) from None
        self._check_unchanged()
        return found

    def _run(self, query: Any) -> duckdb.DuckDBPyRelation:
        try:
            return self._connection.sql(query.sql(dialect="duckdb"))
        except (duckdb.Error, RuntimeError, UnicodeError) as error:  # a damaged file's names may be no UTF-8
            raise unreadable(self.name, error) from None


def stamp_of(path: Path | None) -> Stamp | None:
    """What nearly every way to write a file changes: its size, its time, or that it is the same file at all."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return (-1, 0, 0)  # it is gone
    return (found.st_size, found.st_mtime_ns, found.st_ino)


# By the beginning of the type's name: ENUM(…), DECIMAL(18,3), TIMESTAMP_NS, TIMESTAMP WITH TIME ZONE.
_STORED: Mapping[str, Storage] = {
    "VARCHAR": "text",
    "ENUM": "text",
    "BOOLEAN": "truth",
    "FLOAT": "real",
    "DOUBLE": "real",
    "DECIMAL": "decimal",
    "DATE": "moment",
    "TIMESTAMP": "moment",
}
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WHOLE_NAMES = (*_WHOLE, *(f"U{name}" for name in _WHOLE))


def stored_as(name: str, kind: str) -> Stored:
    """How a column of this type of DuckDB's is stored; one of lists or records is spelled by the engine."""
    kind = kind.upper()
    # INTEGER[] and INTEGER[3]: by its beginning, a list of numbers would pass for a number.
    if kind.endswith("]"):
        return Stored(name)
    if kind in _WHOLE_NAMES:
        return Stored(name, "whole")
    # Single precision holds whole numbers up to 2^24: from there on one id may stand for several people.
    if kind == "FLOAT":
        return Stored(name, "real", exact_below=2**24)
    return Stored(name, next((stored for sign, stored in _STORED.items() if kind.startswith(sign)), "other"))


def check_case(schema: Schema) -> None:
    """DuckDB's names know no upper and lower case."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if (twin := seen.setdefault(name.lower(), name)) != name:
            raise TableError(f"columns {twin!r} and {name!r} differ in case only; rename one of them", schema)


def check_columns(schema: Schema, names: Sequence[str], table: str) -> None:
    """Column names are the public shape of a table: they must be those of the schema, each once."""
    known = Counter(names)
    twice = next((n for n, times in known.items() if times > 1), None)
    if twice is not None:
        raise TableError(f"{table}: column {twice!r} stands twice in the table; rename one of them", names)
    stored = [c.name for c in schema.in_table]
    absent = [c for c in stored if c not in known]
    if absent:
        near = close_names(absent[0], names, most=1)
        meant = f"; the table has {near[0]!r}" if near else ""
        raise TableError(f"{table}: column {absent[0]!r} of the schema is not in the table{meant}", absent)
    derived = next((n for n in names if n in schema and n not in stored), None)
    if derived is not None:
        raise TableError(
            f"{table}: column {derived!r} is derived in the schema, but stands in the table; give one of them another "
            f"name, or set rebuilds = {derived!r} where it is the sum in every row",
            derived,
        )
    extra = [n for n in names if n not in schema]
    if extra:
        raise TableError(
            f'{table}: column {extra[0]!r} is not in the schema; declare it (type = "identifier" leaves it out)', extra
        )


def check_types(schema: Schema, types: Mapping[str, str]) -> None:
    """The declared types of a database's columns are public too; refuse what no fixed rule can read."""
    for column in schema.in_table:
        if isinstance(column, Identifier):
            continue
        kind = types[column.name].upper()
        unusable = kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB"))
        if isinstance(column, Datetime) and stored_as(column.name, kind).kind not in ("moment", "text"):
            unusable = True
        if unusable:
            raise TableError(
                f"column {column.name!r} holds {kind} values, which can't be read as {column.type}", column
            )


def rounded_ids(table: str, column: str) -> TableError:
    """Of a unit whose ids are floating-point numbers that may stand for several."""
    return TableError(
        f"{table}: the ids in {column!r} are stored as floating-point numbers and reach 2^53 (2^24 in single "
        "precision), where several are one number; store them as texts or as whole numbers (pandas: read them with "
        "dtype=str, or as Int64)",
        column,
    )


def _ran_out(error: Exception) -> bool:
    return "out of memory" in str(error).lower() or "bad_alloc" in str(error)


def unreadable(name: str, error: Exception) -> TableError:
    """One sentence for an engine's error, without the row that it may quote."""
    line = re.search(r"CSV Error on Line: (\d+)", str(error))
    where = f" at line {int(line.group(1)):,}" if line else ""
    reasons = (reason for sign, reason in _REASONS.items() if sign.lower() in str(error).lower())
    return TableError(f"{name} can't be read{where}: {next(reasons, 'the file is damaged or not of its kind')}", name)


def out_of_memory(name: str, columns: int) -> TableError:
    """Where a table is not damaged but too wide."""
    return TableError(
        f"memory ran out while counting {columns:,} columns of {name}; declare those that are not needed identifiers, "
        "or use a machine with more memory",
        name,
    )


# By signs in the engine's messages. No part of a message itself is passed on, since it may quote a cell.
_REASONS = {
    "disabled by configuration": "it reads another file, which is not allowed; copy those rows into a table of it",
    "Out of Memory": "memory ran out",
    "std::bad_alloc": "memory ran out",
    "Expected Number of Columns": "the line has another number of fields than the header",
    "utf": "it is not UTF-8 text",
    "unicode": "it is not UTF-8 text",
    "conversion error!": "the name of a column is not UTF-8 text",
    "quote": "a quoted value is not closed",
    "No magic bytes": "it is not a Parquet file",
    "too small to be a Parquet": "it is not a Parquet file",
    "Maximum line size": "a line is longer than the reader takes",
    "No such file": "the file does not exist",
    "Permission denied": "permission denied",
    "not a valid DuckDB": "it is not a DuckDB database",
    "lock on file": "another process has the database open for writing",
    "does not exist": "there is no table of that name in it",
}
