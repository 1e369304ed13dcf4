"""Rows to predict for, as codes. They are the analyst's own: nothing protects them, and nothing is learned from them.

The rule is that of private rows (`tables.sql`): what lies outside the bounds is clamped, what is not on the list is
`other`, what can't be read counts as missing. So a row falls into the leaf in which it would have been counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import TableError
from understudy.schema.column import SPACES, Boolean, Categorical, Datetime, Integer, as_datetime
from understudy.schema.domain import Coding, Domain
from understudy.tables.arrow import quick_codes
from understudy.tables.frame import kind_of, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

Codes = dict[str, NDArray[np.int32]]


def codes_of(frame: Any, domain: Domain, columns: Sequence[str]) -> Codes:
    """The codes of these columns, row by row. The frame may lack the others, and have more."""
    if kind_of(frame) is None:
        raise TableError(
            f"a {type(frame).__name__} can't be predicted for; give a pandas, polars or pyarrow frame", frame
        )
    table = to_arrow(frame, "the frame")
    absent = next((c for c in columns if c not in table.column_names), None)
    if absent is not None:
        raise TableError(f"the frame lacks the column {absent!r}, which the predictor was trained with", absent)
    missing = frozenset(("", *domain.schema.missing_values))
    return {c: _codes(domain[c], table.column(c), missing) for c in columns}


def _codes(coding: Coding, column: pa.ChunkedArray, missing: frozenset[str]) -> NDArray[np.int32]:
    quick = quick_codes(coding, column, tuple(missing - {""}))
    if quick is not None:
        return quick.astype(np.int32)
    distinct, places = _distinct(column)
    return np.array([_code(coding, value, missing) for value in distinct], dtype=np.int32)[places]


def _distinct(column: pa.ChunkedArray) -> tuple[list[object], NDArray[np.integer]]:
    import pyarrow as pa

    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    encoded = plain.combine_chunks().dictionary_encode()
    places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    return [*encoded.dictionary.to_pylist(), None], places


def _code(coding: Coding, value: object, missing: frozenset[str]) -> int:
    value = value.strip(SPACES) if isinstance(value, str) else value
    if value is None or _text(value) in missing or value != value:
        return coding.null_code
    match coding.column:
        case Boolean():
            text = str(value).lower()
            return int(text in Boolean.TRUE) if text in Boolean.TRUE + Boolean.FALSE else coding.stray_code
        case Categorical(numeric=True):
            number = _number(value)
            return coding.null_code if np.isnan(number) else _place(coding, number)
        case Categorical():
            return _place(coding, _text(value))
        case Datetime() as column:
            return int(_bins(coding, np.array([_units(column, value)]))[0])
    return int(_bins(coding, np.array([_number(value)]))[0])


def _place(coding: Coding, label: object) -> int:
    labels: Mapping[object, int] = {v: i for i, v in enumerate(coding.labels or ())}
    return labels.get(label, coding.stray_code)


def _bins(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.int32]:
    """The bin of each number; whole numbers are rounded first, and NaN is no number."""
    edges = np.array(coding.edges)
    inside = np.floor(values + 0.5) if isinstance(coding.column, Integer) else values
    place = np.searchsorted(edges[1:-1], inside, side="right")
    return np.where(np.isnan(values), coding.null_code, place).astype(np.int32)


def _text(value: object) -> str:
    """A whole number reads the same however it is stored: 1, not 1.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _units(column: Datetime, value: object) -> float:
    """Units of the column's resolution since its start; NaN for what is no date."""
    moment = _moment(column, value)
    return (moment - column.start).total_seconds() / column.unit_seconds if moment else float("nan")


def _moment(column: Datetime, value: object) -> datetime | None:
    if isinstance(value, str) and column.format:
        try:
            return datetime.strptime(value, column.format)
        except ValueError:
            pass  # an ISO date is understood whatever the format
    moment = as_datetime(value)
    return moment if isinstance(moment, datetime) else None
