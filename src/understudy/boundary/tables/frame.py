"""Data frames in, data frames out: any kind that narwhals knows comes in, and the same kind goes out."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.column import Boolean, Categorical, Column, Datetime, Integer, Number
from understudy.boundary.schema.expression import Values
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import EXACT, NANOSECONDS, spell, spell_span
from understudy.boundary.tables.duck import rounded_ids
from understudy.boundary.tables.file import connect
from understudy.errors import TableError, without_cells

if TYPE_CHECKING:
    import pyarrow as pa

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


@without_cells
def to_arrow(source: Any, name: str, *, unit: str | None = None) -> pa.Table:
    """The frame as an Arrow table of plain columns, in which each value is what it would be in any other type.

    Python objects are read one by one, as their texts (`schema.spelling`); the ids of people, in the column `unit`,
    with all their digits.
    """
    import narwhals as nw
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return _plain_table(source, unit)
    frame = nw.from_native(source)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    native = frame.to_native()
    if kind_of(native) != "pandas":
        return _plain_table(_polars_table(native, unit) if kind_of(native) == "polars" else frame.to_arrow(), unit)
    if not all(isinstance(c, str) for c in native.columns):
        odd = next(c for c in native.columns if not isinstance(c, str))
        raise TableError(f"{name}: column names must be texts; rename {odd!r}", list(native.columns))
    arrays = [_pandas_array(native[c], exactly=c == unit) for c in native.columns]
    return _plain_table(pa.Table.from_arrays(arrays, names=list(native.columns)), unit)


def _polars_table(frame: Any, unit: str | None) -> pa.Table:
    """Column by column, since one of objects, or of a type that Arrow lacks, stops the whole frame."""
    import pyarrow as pa

    return pa.table({c: _polars_array(frame.get_column(c), exactly=c == unit) for c in frame.columns})


def _polars_array(series: Any, exactly: bool) -> pa.Array:
    import pyarrow as pa

    try:
        if str(series.dtype) != "Object":
            return series.to_arrow()
    except pa.ArrowException:
        pass  # 128 bits, for one
    if exactly:
        _check_ids(series.to_list(), series.name)
    return _spelled(series.to_list(), exactly)


def _pandas_array(series: Any, exactly: bool) -> pa.Array | pa.ChunkedArray:
    import pyarrow as pa

    if hasattr(series.dtype, "categories"):
        return _pandas_categories(series, exactly)
    if series.dtype != object and not type(series.dtype).__name__.startswith(("Period", "Interval")):
        try:
            return pa.Array.from_pandas(series)
        except (pa.ArrowException, TypeError, ValueError):
            pass  # complex numbers, for one
    if exactly:
        _check_ids(series, str(series.name))
    return _spelled(series.astype(object).array, exactly)


def _pandas_categories(series: Any, exactly: bool) -> pa.Array:
    """Each category is read once, however many rows have it."""
    import pyarrow as pa

    codes = series.cat.codes.to_numpy()
    places = pa.array(codes, mask=codes < 0)
    if exactly:
        _check_ids(series.cat.categories, str(series.name))
    return _spelled(list(series.cat.categories), exactly).take(places)


def _check_ids(values: Iterable[Any], column: str) -> None:
    """Refuses ids that are doubles of which one may stand for several."""
    if any(isinstance(v, float) and EXACT <= abs(v) < math.inf for v in values):
        raise rounded_ids("the frame", column)


def _spelled(values: Iterable[Any], exactly: bool) -> pa.Array:
    import pyarrow as pa

    return pa.array([spell(v, exactly=exactly) for v in values], type=pa.string())


def _plain_table(table: pa.Table, unit: str | None) -> pa.Table:
    """The same values, in types that the engine reads; what has no such type is spelled here."""
    import pyarrow as pa

    columns = [_plain_column(c, n == unit) for n, c in zip(table.column_names, table.columns, strict=True)]
    if all(new is old for new, old in zip(columns, table.columns, strict=True)):
        return table
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain_column(column: pa.ChunkedArray, exactly: bool) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_column(pa.chunked_array([c.storage for c in column.chunks], type=kind.storage_type), exactly)
    if pa.types.is_dictionary(kind):
        return _plain_column(column.cast(kind.value_type), exactly)
    if pa.types.is_run_end_encoded(kind):
        return _plain_column(pc.run_end_decode(column), exactly)
    if pa.types.is_timestamp(kind):
        # In UTC first: a local time need not be one moment when clocks are put back.
        moments = column.cast(pa.timestamp(kind.unit)) if kind.tz else column
        whole = pc.floor_temporal(moments, unit="microsecond") if kind.unit == "ns" else moments
        return whole if whole.type == pa.timestamp("us") else whole.cast(pa.timestamp("us"), safe=False)
    if pa.types.is_float16(kind):
        return column.cast(pa.float32()).cast(pa.float64())
    if pa.types.is_null(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    if pa.types.is_date64(kind):
        return column.cast(pa.date32(), safe=False)
    if pa.types.is_duration(kind):
        return _spelled_spans(column)
    if pa.types.is_time(kind) or _is_bytes(kind):
        return _spelled_column(column)
    if pa.types.is_decimal256(kind) or pa.types.is_union(kind):
        return pa.chunked_array([_spelled(column.to_pylist(), exactly)])
    return column


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    fixed = pa.types.is_fixed_size_binary(kind)
    return fixed or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "binary_view"


def _spelled_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of values that come in few different ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_time64(column.type) and column.type.unit == "ns":  # Python knows microseconds
        column = pc.floor_temporal(column, unit="microsecond").cast(pa.time64("us"))
    encoded = column.combine_chunks().dictionary_encode()
    texts = _spelled(encoded.dictionary.to_pylist(), exactly=False)
    return pa.chunked_array([texts.take(encoded.indices)])


def _spelled_spans(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """By whole numbers, since Python's own spans end earlier."""
    import pyarrow as pa

    nanoseconds = NANOSECONDS[column.type.unit]
    encoded = column.cast(pa.int64()).combine_chunks().dictionary_encode()
    texts = [spell_span(n * nanoseconds // 1000) for n in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(texts, type=pa.string()).take(encoded.indices)])


def from_values(values: Mapping[str, Values], schema: Schema) -> pa.Table:
    """Decoded columns as an Arrow table. Types follow from the schema alone, so they say nothing about the rows."""
    import pyarrow as pa

    columns = schema.released
    arrays = [_array(values[c.name], _arrow_type(c)) for c in columns]
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


def _array(values: Values, kind: Any) -> Any:
    import pyarrow as pa

    data = values.data
    if pa.types.is_date32(kind):
        data = data.astype("datetime64[D]")
    return pa.array(data, type=kind, mask=values.missing)


def _arrow_type(column: Column) -> Any:
    import pyarrow as pa

    match column:
        case Integer():
            return pa.int64()
        case Number():
            return pa.float64()
        case Datetime():
            return pa.date32() if column.resolution == "day" else pa.timestamp("s")
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
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def csv_bytes(table: pa.Table, schema: Schema) -> bytes:
    """The table as CSV text; a missing value is written as the first of the schema's `missing_values`, or as nothing.

    Quotes stand only where a text of the table needs them, as in most originals.
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv

    table = _with_formats(table, schema)
    options = pacsv.WriteOptions(
        null_string=schema.missing_values[0] if schema.missing_values else "",
        quoting_style="needed" if _needs_quotes(table) else "none",
        include_header=False,
    )
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(table.column_names)
    sink = pa.BufferOutputStream()
    sink.write(header.getvalue().encode())
    pacsv.write_csv(table, sink, options)
    return sink.getvalue().to_pybytes()


def _with_formats(table: pa.Table, schema: Schema) -> pa.Table:
    """Dates as texts in the column's declared format, written by the engine that will read them back."""
    formats = {
        c.name: c.format for c in schema if isinstance(c, Datetime) and c.format and c.name in table.column_names
    }
    for name, form in formats.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, _formatted(table.column(place), form))
    return table


def _formatted(moments: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
    import pyarrow as pa

    with connect() as connection:
        connection.register("moments", pa.table({"moment": moments}))
        query = "SELECT strftime(CAST(moment AS TIMESTAMP), $form) AS written FROM moments"
        return connection.sql(query, params={"form": form}).to_arrow_table().column("written")


def _needs_quotes(table: pa.Table) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [c for c in table.columns if pa.types.is_string(c.type)]
    return any(pc.any(pc.match_substring_regex(c, r'[",\r\n]|^$|^\s|\s$')).as_py() for c in texts)


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()
