"""A synthetic table in the form that was asked for: the kind of frame that came in, CSV text or a Parquet file.

It is made of drawn values and of the schema alone; no row of anybody is near.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.column import Boolean, Categorical, Column, Datetime, Integer, Line, Number
from understudy.boundary.schema.file_format import FileFormat
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import special_name
from understudy.boundary.tables.connection import written_moments
from understudy.inference.values import Values

if TYPE_CHECKING:
    import pyarrow as pa


def from_values(values: Mapping[str, Values], schema: Schema) -> pa.Table:
    """Decoded columns as an Arrow table. Types follow from the schema alone, so they say nothing about the rows."""
    import pyarrow as pa

    columns = schema.released
    arrays = [_column_array(c, values) for c in columns]
    # Nullable where the schema says so, and not where a value happens to be missing: two draws have one type.
    fields = [pa.field(c.name, _arrow_type(c), nullable=c.missing) for c in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_native(table: pa.Table, kind: str) -> Any:
    """The Arrow table as the kind of frame that came in; files and databases get a pyarrow table."""
    if kind == "pandas":
        return _to_pandas(table)
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def _column_array(column: Column, values: Mapping[str, Values]) -> Any:
    """One column; special values stand among its numbers, as texts where one of them is a text."""
    if not isinstance(column, Line) or not column.special:
        return _array(values[column.name], _arrow_type(column))
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = _array(values[column.name], _plain_type(column))
    texts = values[special_name(column.name)]
    special = pa.array(texts.data, type=pa.string(), mask=texts.absent() | (texts.data == ""))
    if _has_special_texts(column):
        return pc.coalesce(special, _written(column, numbers))
    return pc.coalesce(special.cast(_plain_type(column)), numbers)


def without_special(column: Column, values: Any) -> Any:
    """A released column as its numbers or dates, null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(column, Line) or not column.special:
        return values
    special = pa.array(column.special_texts if _has_special_texts(column) else column.special).cast(values.type)
    values = pc.if_else(pc.is_in(values, special), pa.scalar(None, values.type), values)
    if isinstance(column, Datetime) and column.format:
        values = pc.strptime(values, column.format, unit="s")
    return values.cast(_plain_type(column))


def _has_special_texts(column: Column) -> bool:
    return isinstance(column, Line) and any(isinstance(v, str) for v in column.special)


def _written(column: Column, values: Any) -> Any:
    """Numbers and dates as the texts that a CSV file would have."""
    import pyarrow as pa

    if isinstance(column, Datetime) and column.format:
        return written_moments(values, column.format)
    return values.cast(pa.string())


def _array(values: Values, kind: Any) -> Any:
    import pyarrow as pa

    data = values.data
    if pa.types.is_date32(kind):
        data = data.astype("datetime64[D]")
    return pa.array(data, type=kind, mask=values.missing)


def _arrow_type(column: Column) -> Any:
    import pyarrow as pa

    return pa.string() if _has_special_texts(column) else _plain_type(column)


def _plain_type(column: Column) -> Any:
    import pyarrow as pa

    match column:
        case Integer():
            return pa.int64()
        case Number():
            return pa.float64()
        case Datetime(resolution="day"):
            return pa.date32()
        case Datetime():
            return pa.timestamp("s")
        case Boolean():
            return pa.bool_()
        case Categorical() if column.numeric:
            return pa.int64()
    return pa.string()


def _to_pandas(table: pa.Table) -> Any:
    import pandas as pd
    import pyarrow as pa

    # Nullable integers and booleans would otherwise turn to floats and objects whenever a value happens to be missing.
    nullable = {f.name: t for f in table.schema if f.nullable and (t := _nullable_pandas(pa, pd, f.type))}
    frame = table.to_pandas(date_as_object=False)
    for name, kind in nullable.items():
        frame[name] = pd.array(table.column(name).to_pylist(), dtype=kind)
    return frame


def _nullable_pandas(pa: Any, pd: Any, kind: Any) -> Any:
    if pa.types.is_integer(kind):
        return pd.Int64Dtype()
    if pa.types.is_boolean(kind):
        return pd.BooleanDtype()
    return None


def csv_bytes(table: pa.Table, schema: Schema) -> bytes:
    """The table as CSV text; a missing value is written as the first of the schema's `missing_values`, or as nothing.

    Quotes stand only where a text of the table needs them, as in most originals. Where the schema declares how the
    file is written, the synthetic one is written so too, without marks between thousands.
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv

    file = schema.file or FileFormat()
    delimiter = file.delimiter or ","
    table = _with_marks(_with_formats(table, schema), schema, file)
    options = pacsv.WriteOptions(
        null_string=schema.missing_values[0] if schema.missing_values else "",
        quoting_style="needed" if _needs_quotes(table, delimiter) else "none",
        include_header=False,
        delimiter=delimiter,
    )
    # pyarrow always quotes the names of columns; Python's writer does so only where they need it.
    header = io.StringIO()
    csv.writer(header, lineterminator="\n", delimiter=delimiter, quotechar=file.quote).writerow(table.column_names)
    sink = pa.BufferOutputStream()
    sink.write(header.getvalue().encode())
    if file.quote == '"':
        pacsv.write_csv(table, sink, options)
    else:  # pyarrow knows the usual quotes only
        sink.write(_quoted_rows(table, options.null_string, delimiter, file.quote).encode())
    written = sink.getvalue().to_pybytes()
    return written if file.is_utf8 else written.decode().encode(file.encoding)


def as_texts(table: pa.Table, schema: Schema) -> list[list[str | None]]:
    """The values of each column as the file has them, None where one is missing."""
    import pyarrow as pa

    table = _with_marks(_with_formats(table, schema), schema, schema.file or FileFormat())
    return [column.cast(pa.string()).to_pylist() for column in table.columns]


def _quoted_rows(table: pa.Table, missing: str, delimiter: str, quote: str) -> str:
    import pyarrow as pa

    columns = [c.cast(pa.string()).fill_null(missing).to_pylist() for c in table.columns]
    body = io.StringIO()
    csv.writer(body, lineterminator="\n", delimiter=delimiter, quotechar=quote).writerows(zip(*columns, strict=True))
    return body.getvalue()


def _with_marks(table: pa.Table, schema: Schema, file: FileFormat) -> pa.Table:
    """Numbers as texts with a decimal comma, where the file has one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in schema:
        if isinstance(column, Number) and column.name in table.column_names:
            mark, place = file.marks_of(column.name).decimal, table.column_names.index(column.name)
            if mark != ".":
                texts = pc.replace_substring(table.column(place).cast(pa.string()), ".", mark)
                table = table.set_column(place, column.name, texts)
    return table


def _with_formats(table: pa.Table, schema: Schema) -> pa.Table:
    """Dates as texts in the column's declared format, written by the engine that will read them back."""
    formats = {
        c.name: c.format
        for c in schema
        if isinstance(c, Datetime) and c.format and c.name in table.column_names and not _has_special_texts(c)
    }
    for name, form in formats.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, written_moments(table.column(place), form))
    return table


def _needs_quotes(table: pa.Table, delimiter: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [c for c in table.columns if pa.types.is_string(c.type)]
    # Also an empty text, which would be read as missing, and spaces at the ends, which would be trimmed.
    pattern = rf'[",\r\n]|{re.escape(delimiter)}|^$|^\s|\s$'
    return any(pc.any(pc.match_substring_regex(c, pattern)).as_py() for c in texts)


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()
