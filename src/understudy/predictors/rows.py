"""Rows to predict for, as codes. They are the analyst's own: nothing protects them, and nothing is learned from them.

The rule is that of private rows (`tables.sql`): what lies outside the bounds is clamped, what is not on the list is
`other`, what can't be read counts as missing. So a row falls into the leaf in which it would have been counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import SPACES, Boolean, Categorical, Datetime, Integer, as_datetime
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.tables.arrow import quick_codes
from understudy.boundary.tables.frame import kind_of, to_arrow
from understudy.boundary.tables.spelling import spell
from understudy.errors import TableError

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
    missing = frozenset(("", *domain.schema.missing_texts))
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
    text = spell(value)
    text = None if text is None else text.strip(SPACES)
    if text is None or text in missing:
        return coding.null_code
    match coding.column:
        case Boolean():
            said = text.lower()
            return int(said in Boolean.TRUE) if said in Boolean.TRUE + Boolean.FALSE else coding.stray_code
        case Categorical(numeric=True):
            number = _number(text)
            return coding.null_code if np.isnan(number) else _place(coding, number)
        case Categorical():
            return coding.spellings.get(text, coding.stray_code)
        case Datetime() as column:
            moment = value if isinstance(value, date) else text
            return int(_bins(coding, np.array([_units(column, moment)]))[0])
    return int(_bins(coding, np.array([_number(text)]))[0])


def _place(coding: Coding, label: object) -> int:
    labels: Mapping[object, int] = {v: i for i, v in enumerate(coding.labels or ())}
    return labels.get(label, coding.stray_code)


def _bins(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.int32]:
    """The bin of each number; whole numbers are rounded first, and NaN is no number."""
    edges = np.array(coding.edges)
    inside = np.floor(values + 0.5) if isinstance(coding.column, Integer) else values
    place = np.searchsorted(edges[1:-1], inside, side="right")
    return np.where(np.isnan(values), coding.null_code, place).astype(np.int32)


def _number(text: str) -> float:
    """NaN for what is no number; a truth value is one."""
    said = {"true": 1.0, "false": 0.0}.get(text.lower())
    if said is not None:
        return said
    try:
        return float(text) if text.isascii() else float("nan")
    except ValueError:
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
