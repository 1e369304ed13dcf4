"""Frames in memory: plain columns are encoded by `schema.encoding`, and an engine is started only when it is needed.

What is not plain (dates, decimals, a cap on rows per person, missing
values that are written as numbers) is left to the engine, and then so is the whole table: rows stay in one order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.column import Boolean, Categorical, Datetime
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain, EvenCoding
from understudy.boundary.schema.encoding import codes_of_column, reads_numbers
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import may_be_number
from understudy.boundary.tables.counting import CodeBatch
from understudy.boundary.tables.duck import DuckTable, check_case, check_columns, stored_as
from understudy.boundary.tables.file import connect
from understudy.boundary.tables.sql import Source
from understudy.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa


class FrameTable(DuckTable):
    """A frame as an Arrow table; implements `tables.table.Table`."""

    def __init__(self, rows: pa.Table, schema: Schema, *, kind: str, name: str) -> None:
        self.schema, self.kind, self.name = schema, kind, name
        self._rows = rows
        self._read: set[str] = set()
        check_case(schema)
        check_columns(schema, rows.column_names, name)
        for column in schema:
            if isinstance(column, Datetime):
                _check_format(column)
        if schema.unit is not None:
            self._check_ids()

    @cached_property
    def _types(self) -> dict[str, str]:
        """The engine's names of the types: known for plain ones, and asked for where one is not."""
        from sqlglot import exp

        plain = {f.name: _engine_type(f.type) for f in self._rows.schema}
        found = {name: kind for name, kind in plain.items() if kind is not None}
        return found if len(found) == len(plain) else dict(self._describe(exp.to_table("frame")))

    @cached_property
    def _connection(self) -> Any:
        connection = connect()
        connection.register("frame", self._rows)
        return connection

    @cached_property
    def _source(self) -> Source:  # type: ignore[override]
        from sqlglot import exp

        return Source(exp.to_table("frame"), {name: stored_as(name, kind) for name, kind in self._types.items()})

    @property
    def _capped(self) -> bool:
        return self.schema.unit is not None

    def count_rows(self) -> int:
        return super().count_rows() if self._capped else int(self._rows.num_rows)

    def has_rows(self, at_least: int) -> bool:
        return super().has_rows(at_least) if self._capped else bool(self._rows.num_rows >= at_least)

    def check_readable(self) -> None:
        """What is plain and in memory can be read to its end."""
        if any(_engine_type(f.type) is None for f in self._rows.schema):
            super().check_readable()

    def _codes(self, domain: Domain, columns: ColumnSet) -> Iterator[CodeBatch]:
        found = self._encoded(domain, columns)
        if found is None:
            yield from super()._codes(domain, columns)
        elif self._rows.num_rows:
            yield found

    def _encoded(self, domain: Domain, columns: ColumnSet) -> CodeBatch | None:
        """The codes of all rows; None where an engine must read them."""
        missing, types = self.schema.missing_texts, self._rows.schema
        if self._capped or not all(is_plain(domain[c], types.field(c).type, missing) for c in columns):
            return None
        try:
            return {c: codes_of_column(domain[c], self._rows.column(c), missing) for c in columns}
        except UnicodeDecodeError:  # a text that is none: the engine says so in its own words
            return None


def _check_format(column: Datetime) -> None:
    """Dates that a frame holds as objects are written in ISO form; a format must not read another day out of that."""
    for text in ("2003-02-01", "2003-02-01 04:05:06"):
        try:
            read = datetime.strptime(text, column.format or "")
        except ValueError:
            continue
        if read != datetime.fromisoformat(text):
            raise TableError(
                f"column {column.name!r}: format ({column.format}) reads ISO dates as other days, so it can't be told "
                "which of the two a frame holds; turn the column into dates, and leave the format out",
                column,
            )


def _engine_type(kind: pa.DataType) -> str | None:
    """The engine's name of a plain type."""
    import pyarrow as pa

    plain = {pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT"}
    plain |= {pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER", pa.uint64(): "UBIGINT"}
    plain |= {pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
    return (plain | {pa.string(): "VARCHAR", pa.large_string(): "VARCHAR"}).get(kind)


def is_plain(coding: Coding, kind: pa.DataType, missing_texts: Sequence[str]) -> bool:
    """Whether a column of this type is read here; an engine reads the others."""
    import pyarrow as pa

    column = coding.column
    if isinstance(coding, EvenCoding):
        return False
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return isinstance(column, Boolean) or (isinstance(column, Categorical) and not column.numeric)
    if pa.types.is_boolean(kind):
        return isinstance(column, Boolean) and not {"1", "0"} & set(missing_texts)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or pa.types.is_float16(kind):
        return False
    return reads_numbers(column) and not any(map(may_be_number, missing_texts))
