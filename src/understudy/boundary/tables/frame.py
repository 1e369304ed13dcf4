"""Frames in memory, of any kind that narwhals knows: as Arrow tables of plain columns, and as tables that count.

Plain columns are encoded by `schema.encoding`, and an engine is started only when it is needed. What is not plain
(dates, decimals, a cap on rows per person, missing values that are written as numbers) is left to the engine, and then
so is the whole table: rows stay in one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from understudy.boundary.schema.column import Boolean, Categorical, Datetime
from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain, EvenCoding
from understudy.boundary.schema.encoding import codes_of_column, reads_numbers
from understudy.boundary.schema.late_imports import exp, pa
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import EXACT, NANOSECONDS, may_be_number, spell, spell_span
from understudy.boundary.tables.connection import connect
from understudy.boundary.tables.counting import CodeBatch
from understudy.boundary.tables.duck import DuckTable, check_case, check_columns, rounded_ids, stored_as
from understudy.boundary.tables.sql import Source
from understudy.errors import TableError, without_cells

KINDS = ("pandas", "polars", "pyarrow")


def kind_of(source: Any) -> str | None:
    """ "pandas", "polars" or "pyarrow" for such a frame, and None for anything else."""
    import narwhals as nw

    try:
        frame = nw.from_native(source)
    except TypeError:
        return None
    except nw.exceptions.DuplicateError:
        raise TableError("the frame has two columns of one name; rename one of them", source) from None
    kind = str(frame.implementation)
    return kind if kind in KINDS else None


# Whatever a library says about a value that it can't convert may quote it.
@without_cells
def to_arrow(source: Any, name: str, *, unit: str | None = None) -> pa.Table:
    """The frame as an Arrow table of plain columns, in which each value is what it would be in any other type.

    Python objects are read one by one, as their texts (`schema.spelling`); the ids of people, in the column `unit`,
    with all their digits.
    """
    import narwhals as nw

    if isinstance(source, pa.Table):
        return _plain_table(source, unit)
    frame = nw.from_native(source)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    native = frame.to_native()
    if kind_of(native) == "polars":  # column by column: one of objects, or of a type that Arrow lacks, stops the frame
        columns = {c: _polars_array(native.get_column(c), exactly=c == unit) for c in native.columns}
        return _plain_table(pa.table(columns), unit)
    if kind_of(native) != "pandas":
        return _plain_table(frame.to_arrow(), unit)
    if not all(isinstance(c, str) for c in native.columns):
        odd = next(c for c in native.columns if not isinstance(c, str))
        raise TableError(f"{name}: column names must be texts; rename {odd!r}", list(native.columns))
    arrays = [_pandas_array(native[c], exactly=c == unit) for c in native.columns]
    return _plain_table(pa.Table.from_arrays(arrays, names=list(native.columns)), unit)


def _polars_array(series: Any, exactly: bool) -> pa.Array:
    try:
        if str(series.dtype) != "Object":
            return series.to_arrow()
    except pa.ArrowException:
        pass  # 128 bits, for one
    if exactly:
        _check_ids(series.to_list(), series.name)
    return _spelled(series.to_list(), exactly)


def _pandas_array(series: Any, exactly: bool) -> pa.Array | pa.ChunkedArray:
    if hasattr(series.dtype, "categories"):  # each category is read once, however many rows have it
        codes = series.cat.codes.to_numpy()
        if exactly:
            _check_ids(series.cat.categories, str(series.name))
        return _spelled(list(series.cat.categories), exactly).take(pa.array(codes, mask=codes < 0))
    # Arrow would guess one type for the objects of all rows; each is spelled by itself below.
    if series.dtype != object and not type(series.dtype).__name__.startswith(("Period", "Interval")):
        try:
            return pa.Array.from_pandas(series)
        except (pa.ArrowException, TypeError, ValueError):
            pass  # complex numbers, for one
    if exactly:
        _check_ids(series, str(series.name))
    return _spelled(series.astype(object).array, exactly)


def _check_ids(values: Iterable[Any], column: str) -> None:
    """Refuses ids that are doubles of which one may stand for several."""
    if any(isinstance(v, float) and EXACT <= abs(v) < math.inf for v in values):
        raise rounded_ids("the frame", column)


def _spelled(values: Iterable[Any], exactly: bool) -> pa.Array:
    return pa.array([spell(v, exactly=exactly) for v in values], type=pa.string())


def _plain_table(table: pa.Table, unit: str | None) -> pa.Table:
    """The same values, in types that the engine reads; what has no such type is spelled here."""
    columns = [_plain_column(c, n == unit) for n, c in zip(table.column_names, table.columns, strict=True)]
    if all(new is old for new, old in zip(columns, table.columns, strict=True)):
        return table
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain_column(column: pa.ChunkedArray, exactly: bool) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_column(pa.chunked_array([c.storage for c in column.chunks], type=kind.storage_type), exactly)
    if pa.types.is_dictionary(kind):  # its categories follow from the rows; its values do not
        return _plain_column(column.cast(kind.value_type), exactly)
    if pa.types.is_run_end_encoded(kind):
        return _plain_column(pc.run_end_decode(column), exactly)
    if pa.types.is_timestamp(kind):
        # In UTC first: a local time need not be one moment when clocks are put back.
        if kind.tz:
            column = column.cast(pa.timestamp(kind.unit))
        if kind.unit == "ns":  # rounded down, as `spelling` does; a cast would round towards 1970
            column = pc.floor_temporal(column, unit="microsecond")
        if column.type == pa.timestamp("us"):
            return column
        return column.cast(pa.timestamp("us"), safe=False)
    if pa.types.is_float16(kind):  # DuckDB refuses such a column
        return column.cast(pa.float32()).cast(pa.float64())
    if pa.types.is_null(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    if pa.types.is_date64(kind):  # milliseconds that need not be those of midnight
        return column.cast(pa.date32(), safe=False)
    if pa.types.is_duration(kind):
        return _spelled_spans(column)
    if pa.types.is_time(kind) or _is_bytes(kind):
        return _spelled_column(column)
    if pa.types.is_decimal256(kind) or pa.types.is_union(kind):
        return pa.chunked_array([_spelled(column.to_pylist(), exactly)])
    return column


def _is_bytes(kind: pa.DataType) -> bool:
    fixed = pa.types.is_fixed_size_binary(kind)
    return fixed or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "binary_view"


def _spelled_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of values that come in few different ones."""
    import pyarrow.compute as pc

    if pa.types.is_time64(column.type) and column.type.unit == "ns":  # Python knows microseconds
        column = pc.floor_temporal(column, unit="microsecond").cast(pa.time64("us"))
    encoded = column.combine_chunks().dictionary_encode()
    texts = _spelled(encoded.dictionary.to_pylist(), exactly=False)
    return pa.chunked_array([texts.take(encoded.indices)])


def _spelled_spans(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """By whole numbers, since Python's own spans end earlier."""
    nanoseconds = NANOSECONDS[column.type.unit]
    encoded = column.cast(pa.int64()).combine_chunks().dictionary_encode()
    texts = [spell_span(n * nanoseconds // 1000) for n in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(texts, type=pa.string()).take(encoded.indices)])


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
        self._check_ids()

    def snapshot(self) -> Self:
        """Itself: nobody writes into rows in memory but whoever holds them."""
        return self

    @cached_property
    def _types(self) -> dict[str, str]:
        """The engine's names of the types: known for plain ones, and asked for where one is not."""
        plain = {f.name: _engine_type(f.type) for f in self._rows.schema}
        found = {name: kind for name, kind in plain.items() if kind is not None}
        if len(found) == len(plain):
            return found
        return dict(self._describe(exp.to_table("frame")))

    @cached_property
    def _connection(self) -> Any:
        connection = connect()
        connection.register("frame", self._rows)
        return connection

    @cached_property
    def _source(self) -> Source:  # type: ignore[override]
        return Source(exp.to_table("frame"), {name: stored_as(name, kind) for name, kind in self._types.items()})

    def count_rows(self) -> int:
        if self.schema.unit is not None:  # then the engine caps each person's rows
            return super().count_rows()
        return int(self._rows.num_rows)

    def has_rows(self, at_least: int) -> bool:
        if self.schema.unit is not None:
            return super().has_rows(at_least)
        return bool(self._rows.num_rows >= at_least)

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
        missing = self.schema.missing_texts
        if self.schema.unit is not None or not all(self._is_plain(domain[c]) for c in columns):
            return None
        try:
            return {c: codes_of_column(domain[c], self._rows.column(c), missing) for c in columns}
        except UnicodeDecodeError:  # a text that is none: the engine says so in its own words
            return None

    def _is_plain(self, coding: Coding) -> bool:
        if isinstance(coding.column, Derived):  # of several columns, which the engine reads
            return False
        return is_plain(coding, self._rows.schema.field(coding.name).type, self.schema.missing_texts)


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
    plain = {pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT"}
    plain |= {pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER", pa.uint64(): "UBIGINT"}
    plain |= {pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
    return (plain | {pa.string(): "VARCHAR", pa.large_string(): "VARCHAR"}).get(kind)


def is_plain(coding: Coding, kind: pa.DataType, missing_texts: Sequence[str]) -> bool:
    """Whether a column of this type is read here; an engine reads the others."""
    column = coding.column
    missing_texts = (*missing_texts, *column.missing_texts)
    # Why these types and no others: docs/decisions/0002. What is added here must pass `test_frame_table.py` to the bit.
    if isinstance(coding, EvenCoding):  # the engine finds such bins by a division, and so must every other way
        return False
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return isinstance(column, Boolean) or (isinstance(column, Categorical) and not column.numeric)
    if pa.types.is_boolean(kind):
        # A truth value is spelled 1 or 0, so that such a missing text may mean it.
        return isinstance(column, Boolean) and not {"1", "0"} & set(missing_texts)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or pa.types.is_float16(kind):
        return False
    return reads_numbers(column) and not any(map(may_be_number, missing_texts))
