"""Frames in memory: plain columns are encoded here, without an engine, which is started only when it is needed.

The rule is that of `tables.sql`, to the last bit. What is not plain (dates, decimals, a cap on rows per person, missing
values that are written as numbers) is left to the engine, and then so is the whole table: rows stay in one order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import SPACES, Boolean, Categorical, Datetime, Integer, Number
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counting import CodeBatch, code_type
from understudy.boundary.tables.duck import DuckTable, check_case, check_columns, stored_as
from understudy.boundary.tables.file import connect
from understudy.boundary.tables.spelling import may_be_number
from understudy.boundary.tables.sql import Source
from understudy.boundary.tables.tally import EvenCoding
from understudy.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.unsignedinteger]


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
        missing = self.schema.missing_texts
        quick = {} if self._capped else {c: quick_codes(domain[c], self._rows.column(c), missing) for c in columns}
        found = {c: codes for c, codes in quick.items() if codes is not None}
        if len(found) < len(columns):
            yield from super()._codes(domain, columns)
        elif self._rows.num_rows:
            yield found


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


def quick_codes(coding: Coding, column: pa.ChunkedArray, missing_values: Sequence[str]) -> Codes | None:
    """The code of each row, or None where the column is not plain enough to be read without an engine."""
    import pyarrow as pa

    kind = column.type
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if isinstance(coding, EvenCoding):
        return None
    if textual and (isinstance(coding.column, Boolean) or _is_texts(coding)):
        return _text_codes(coding, column, frozenset(("", *missing_values)))
    if pa.types.is_boolean(kind) and isinstance(coding.column, Boolean):
        return None if {"1", "0"} & set(missing_values) else _truth_codes(coding, column)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or pa.types.is_float16(kind):
        return None
    if any(map(may_be_number, missing_values)):
        return None
    return _number_codes(coding, column.to_numpy().astype(np.float64, copy=False))


def _is_texts(coding: Coding) -> bool:
    return isinstance(coding.column, Categorical) and not coding.column.numeric


def _text_codes(coding: Coding, column: pa.ChunkedArray, missing: frozenset[str]) -> Codes | None:
    """By a look-up of the distinct texts, which are few."""
    encoded = column.combine_chunks().dictionary_encode()
    try:
        distinct = encoded.dictionary.to_pylist()
    except UnicodeDecodeError:
        return None
    places = encoded.indices
    if encoded.null_count:
        places = places.fill_null(len(distinct))
    labels = _labels(coding)
    codes = [_text_code(coding, labels, text, missing) for text in distinct] + [coding.null_code]
    return np.array(codes, dtype=code_type(coding.size)).take(places.to_numpy(zero_copy_only=False))


def _truth_codes(coding: Coding, column: pa.ChunkedArray) -> Codes:
    codes = column.combine_chunks().cast("uint8").fill_null(coding.null_code).to_numpy(zero_copy_only=False)
    return codes.astype(code_type(coding.size), copy=False)


def _labels(coding: Coding) -> dict[str, int]:
    if isinstance(coding.column, Boolean):
        return dict.fromkeys(Boolean.FALSE, 0) | dict.fromkeys(Boolean.TRUE, 1)
    return dict(coding.spellings)


def _text_code(coding: Coding, labels: dict[str, int], text: str, missing: frozenset[str]) -> int:
    stripped = text.strip(SPACES)
    if stripped in missing:
        return coding.null_code
    said = stripped.lower() if isinstance(coding.column, Boolean) else stripped
    return labels.get(said, coding.stray_code)


def _number_codes(coding: Coding, values: NDArray[np.float64]) -> Codes | None:
    """Of numbers, NaN where there is none."""
    if isinstance(coding.column, Integer | Number):
        places = _bins(coding, values)
    elif isinstance(coding.column, Categorical) and coding.column.numeric:
        places = _places_of_labels(coding, values)
    else:
        return None
    absent = np.isnan(values)
    if absent.any():
        places[absent] = coding.null_code
    return places.astype(code_type(coding.size))


def _bins(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bin of each number; whole numbers are rounded first."""
    edges = np.array(coding.edges)
    whole = isinstance(coding.column, Integer)
    if not (whole and _even(edges)):
        return np.searchsorted(edges[1:-1] - 0.5 * whole, values, side="right").astype(np.float64)
    places = np.floor(values + 0.5)
    np.clip(places, edges[0], edges[-1] - 1, out=places)
    places -= edges[0]
    width = edges[1] - edges[0]
    return places if width == 1 else np.floor(places / width)


def _places_of_labels(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.float64]:
    labels = np.array(coding.labels, dtype=np.float64)
    order = np.argsort(labels)
    found = order[np.searchsorted(labels[order], values).clip(max=len(labels) - 1)]
    return np.where(labels[found] == values, found, coding.stray_code).astype(np.float64)


def _even(edges: NDArray[np.float64]) -> bool:
    """Whether all bins of whole numbers have one width; the last may be shorter."""
    widths = [b - a for a, b in itertools.pairwise(edges.tolist())]
    return len(set(widths[:-1])) <= 1 and widths[-1] <= widths[0]
