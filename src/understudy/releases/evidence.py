"""Values that rows are to have, stated by a person: the code of each for the model, and the value itself to be kept.

Unlike a private row's value, which is mapped into the domain by a fixed rule and can never raise, a stated value is the
user's own. One that lies outside of the domain is refused with a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import SPACES, Boolean, Categorical, Datetime, Integer, Number, as_datetime
from understudy.boundary.schema.domain import Coding, Domain, units_between
from understudy.boundary.schema.expression import Values
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.parameters import close_names

MOST_LISTED = 8

Plain: TypeAlias = str | int | float | bool | None
"""A value as JSON can hold it; a date is its ISO text, and None a missing value."""


@dataclass(frozen=True)
class Evidence:
    """What is known of some columns in each of some rows; nothing, if not said otherwise."""

    rows: int = 1
    codes: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    values: Mapping[str, Values] = field(default_factory=dict)

    @classmethod
    def stated(cls, given: Mapping[str, object], domain: Domain) -> Evidence:
        """One row, from a value per column."""
        place = np.zeros(1, dtype=np.intp)
        return cls._of({name: ([value], place) for name, value in given.items()}, 1, domain)

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, tuple[Sequence[object], NDArray[np.integer]]], rows: int, domain: Domain
    ) -> Evidence:
        """Rows of a frame, from the distinct values of each column and the place among them of each row's."""
        try:
            return cls._of(columns, rows, domain)
        except _StatedError as refused:  # which repeats the value: here it was not stated, but stands in a cell
            raise InputError(
                f"column {refused.column!r}: a value of the frame {refused.problem}", refused.column
            ) from None

    @classmethod
    def _of(
        cls, columns: Mapping[str, tuple[Sequence[object], NDArray[np.integer]]], rows: int, domain: Domain
    ) -> Evidence:
        codes, values = {}, {}
        for name, (distinct, places) in columns.items():
            coding = domain[name]
            read = [_read(coding, value, domain.schema.missing_texts) for value in distinct]
            codes[name] = np.array([code for code, _ in read], dtype=np.int32)[places]
            values[name] = _take(_values(coding, [value for _, value in read]), places)
        return cls(rows, codes, values)

    def at(self, rows: NDArray[np.integer]) -> Evidence:
        """Some of the rows, in the order asked for, and as often."""
        return Evidence(
            len(rows),
            {name: codes[rows] for name, codes in self.codes.items()},
            {name: _take(values, rows) for name, values in self.values.items()},
        )

    def repeated(self, rows: int) -> Evidence:
        """The first row, that many times."""
        return self.at(np.zeros(rows, dtype=np.intp))


def check_stated(given: Mapping[str, object], schema: Schema) -> dict[str, Plain]:
    """The values as they are recorded; refuses a column that is not modelled, and a value outside of its domain."""
    if not isinstance(given, Mapping):
        raise InputError('given must map columns to values, such as {"sex": "Female"}', given)
    for name in given:
        schema[name]  # raises where there is no such column
    return {name: _plain(name, given[name], schema) for name in schema.names if name in given}


def _plain(name: str, value: object, schema: Schema) -> Plain:
    column = schema[name]
    if column.private:
        raise InputError(
            f"column {name!r} is private until it is bought, so a given value can't be checked; declare it first", name
        )
    if not column.modelled:
        raise InputError(f"column {name!r} is an identifier, which is never modelled; leave it out of given", name)
    coding = Domain.of(Schema((column,)))[name]
    read: Plain | datetime = _read(coding, value, schema.missing_texts)[1]
    if isinstance(read, datetime):
        return read.isoformat().removesuffix("T00:00:00")
    return read


def _read(coding: Coding, value: object, missing_values: Sequence[str]) -> tuple[int, Any]:
    """The code of a value, and the value as the type of its column; None where it is missing."""
    column = coding.column
    value = _python(value)
    if _is_missing(value, missing_values):
        if not column.missing:
            raise _refusal(coding, value, "must not be missing, since the column has no missing values")
        return coding.levels, None
    match column:
        case Boolean():
            return _read_boolean(coding, value)
        case Categorical():
            return _read_label(coding, column, value)
        case Integer():
            return _read_integer(coding, column, value)
        case Datetime():
            return _read_moment(coding, column, value)
        case Number():
            return _read_number(coding, column, value)
    raise _refusal(coding, value, f"can't be read as {column.type}")


def _python(value: object) -> object:
    """A value of numpy as one of Python, and a text without the spaces around it."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    value = value.item() if isinstance(value, np.generic) else value
    return value.strip(SPACES) if isinstance(value, str) else value


def _is_missing(value: object, missing_values: Sequence[str]) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # those of pandas
        return True
    if isinstance(value, float) and math.isnan(value):
        return True
    return _text(value) in ("", *missing_values)


def _text(value: object) -> str:
    """A whole number reads the same however it is stored: 1, not 1.0."""
    whole = None if isinstance(value, str) else _whole(value)
    return str(value if whole is None else whole)


def _read_boolean(coding: Coding, value: object) -> tuple[int, bool]:
    text = str(value).lower()
    if text not in Boolean.TRUE + Boolean.FALSE:
        raise _refusal(coding, value, "must be true or false")
    return int(text in Boolean.TRUE), text in Boolean.TRUE


def _read_label(coding: Coding, column: Categorical, value: object) -> tuple[int, str | int]:
    labels = list(coding.labels or ())
    stated: Any = _whole(value) if column.numeric else column.spellings.get(_text(value))
    if stated is None or stated not in labels:
        raise _refusal(coding, value, f"must be one of {_near(str(value), [str(v) for v in labels])}")
    return labels.index(stated), stated


def _read_integer(coding: Coding, column: Integer, value: object) -> tuple[int, int]:
    whole = _whole(value)
    assert column.minimum is not None and column.maximum is not None
    if whole is None or not column.minimum <= whole <= column.maximum:
        raise _refusal(coding, value, f"must be a whole number from {column.minimum} to {column.maximum}")
    return _bin(coding, whole), whole


def _read_number(coding: Coding, column: Number, value: object) -> tuple[int, float]:
    number = _number(value)
    assert column.minimum is not None and column.maximum is not None
    if number is None or not column.minimum <= number <= column.maximum:
        raise _refusal(coding, value, f"must be a number from {column.minimum} to {column.maximum}")
    return _bin(coding, number), number


def _read_moment(coding: Coding, column: Datetime, value: object) -> tuple[int, datetime]:
    """What is finer than the column's resolution is left out, as it is of every value."""
    moment = _moment(column, value)
    units = units_between(column, moment) if moment is not None else -1
    if not 0 <= units <= units_between(column, column.maximum):
        raise _refusal(coding, value, f"must be a date from {column.minimum} to {column.maximum}")
    return _bin(coding, units), column.start + units * timedelta(seconds=column.unit_seconds)


def _moment(column: Datetime, value: object) -> datetime | None:
    if isinstance(value, str) and column.format:
        try:
            return datetime.strptime(value, column.format)
        except ValueError:
            pass  # an ISO date is understood whatever the format
    moment = as_datetime(value)
    return moment if isinstance(moment, datetime) else None


def _bin(coding: Coding, value: float) -> int:
    return min(int(np.searchsorted(np.array(coding.edges), value, side="right")) - 1, coding.levels - 1)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _near(text: str, labels: Sequence[str]) -> str:
    """All labels of a short list; of a long one, those that look most like the text."""
    if len(labels) <= MOST_LISTED:
        return ", ".join(labels)
    near = close_names(text, labels, cutoff=0.5) or labels[:3]
    return f"the {len(labels)} values of the schema, such as {', '.join(near)}"


class _StatedError(InputError):
    """A stated value that lies outside of its column's domain."""

    def __init__(self, column: str, value: object, problem: str) -> None:
        super().__init__(f"column {column!r}: given value ({value!r}) {problem}", value)
        self.column, self.problem = column, problem


def _refusal(coding: Coding, value: object, problem: str) -> InputError:
    return _StatedError(coding.name, value, problem)


def _values(coding: Coding, read: Sequence[Any]) -> Values:
    """The values as one array of the type that decoding gives."""
    column = coding.column
    absent = np.array([v is None for v in read], dtype=bool)
    kind = _dtype(coding)
    filler = np.zeros(1, dtype=kind)[0] if kind != "O" else ""
    data = np.array([filler if v is None else v for v in read], dtype=kind)
    return Values(data, absent if column.missing else None)


def _dtype(coding: Coding) -> str:
    match coding.column:
        case Boolean():
            return "bool"
        case Datetime():
            return "datetime64[s]"
        case Number():
            return "float64"
        case Categorical(numeric=False):
            return "O"
    return "int64"


def _take(values: Values, rows: NDArray[np.integer]) -> Values:
    return Values(values.data[rows], None if values.missing is None else values.missing[rows])
