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

from understudy.boundary.schema.column import SPACES, Boolean, Categorical, Datetime, Integer, Line, Number
from understudy.boundary.schema.domain import Coding, Domain, coding_of, units_between
from understudy.boundary.schema.encoding import code_of, read_value, reads_numbers
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import special_name, spell
from understudy.errors import InputError
from understudy.inference.values import Values, special_values
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
            of_value = np.array([code for code, _ in read], dtype=np.int32)
            codes[name] = of_value[places]
            own = [None if code >= coding.levels else value for code, value in read]
            values[name] = take_rows(_values(coding, own), places)
            if coding.special:
                values[special_name(name)] = take_rows(special_values(coding, of_value), places)
        return cls(rows, codes, values)

    def at(self, rows: NDArray[np.integer]) -> Evidence:
        """Some of the rows, in the order asked for, and as often."""
        return Evidence(
            len(rows),
            {name: codes[rows] for name, codes in self.codes.items()},
            {name: take_rows(values, rows) for name, values in self.values.items()},
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
    if isinstance(column, Line) and column.rebuilt_from:
        source = column.rebuilt_from
        raise InputError(f"column {name!r} is rebuilt from {source!r}; give {source!r} instead", name)
    if not column.modelled:
        raise InputError(f"column {name!r} is an identifier, which is never modelled; leave it out of given", name)
    # Of this column alone: the domain of the whole schema may not be known yet, where other columns are private.
    coding = coding_of(column)
    read: Plain | datetime = _read(coding, value, schema.missing_texts)[1]
    if isinstance(read, datetime):
        return read.isoformat().removesuffix("T00:00:00")
    return read


def _read(coding: Coding, value: object, missing_texts: Sequence[str]) -> tuple[int, Any]:
    """The code of a value, and the value as the type of its column; None where it is missing."""
    column, value = coding.column, _python(value)
    if is_missing(value, (*missing_texts, *column.missing_texts)):
        if not column.missing:
            raise _StatedError(coding, value, "must not be missing, since the column has no missing values")
        return coding.null_code, None
    read = read_value(column, value, missing_texts)
    special = coding.special_codes.get(read) if read is not None else None
    if special is not None:
        return special, read
    if reads_numbers(column) and (isinstance(value, bool) or str(value).lower() in ("true", "false")):
        read = None  # a row's truth value counts as 1 or 0, but nobody states one of a number
    return code_of(coding, read), _typed(coding, value, read)


def _python(value: object) -> object:
    """A value of numpy as one of Python, and a text without the spaces around it."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip(SPACES)
    return value


def is_missing(value: object, missing_texts: Sequence[str]) -> bool:
    """What can't be read counts as missing in a row; here only what is nothing, or stated to be missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # those of pandas
        return True
    return (isinstance(value, float) and math.isnan(value)) or spell(value) in ("", *missing_texts)


def _typed(coding: Coding, value: object, read: str | float | None) -> bool | str | int | float | datetime:
    """What was read as the type of its column; refused where it lies outside of the column's domain."""
    column = coding.column
    number = read if isinstance(read, float) else math.nan
    match column:
        case Boolean():
            if read not in Boolean.TRUE + Boolean.FALSE:
                raise _StatedError(coding, value, "must be true or false")
            return read in Boolean.TRUE
        case Categorical():
            label = number if column.numeric else column.spellings.get(str(read))
            if label not in column.labels:
                raise _StatedError(
                    coding, value, f"must be one of {_near(str(value), [str(v) for v in column.labels])}"
                )
            return int(number) if column.numeric else str(label)
        case Integer():
            assert column.minimum is not None and column.maximum is not None
            if not (column.minimum <= number <= column.maximum and number.is_integer()):
                raise _StatedError(coding, value, f"must be a whole number from {column.minimum} to {column.maximum}")
            return int(number)
        case Datetime():
            if not 0 <= number <= units_between(column, column.maximum):
                raise _StatedError(coding, value, f"must be a date from {column.minimum} to {column.maximum}")
            # What is finer than the column's resolution is left out, as it is of every value.
            return column.start + int(number) * timedelta(seconds=column.unit_seconds)
        case Number():
            assert column.minimum is not None and column.maximum is not None
            if not column.minimum <= number <= column.maximum:
                raise _StatedError(coding, value, f"must be a number from {column.minimum} to {column.maximum}")
            return value if isinstance(value, float) else number  # the text of -0.0 is that of 0
    raise _StatedError(coding, value, f"can't be read as {column.type}")


def _near(text: str, labels: Sequence[str]) -> str:
    """All labels of a short list; of a long one, those that look most like the text."""
    if len(labels) <= MOST_LISTED:
        return ", ".join(labels)
    near = close_names(text, labels, cutoff=0.5) or labels[:3]
    return f"the {len(labels)} values of the schema, such as {', '.join(near)}"


class _StatedError(InputError):
    """A stated value that lies outside of its column's domain."""

    def __init__(self, coding: Coding, value: object, problem: str) -> None:
        super().__init__(f"column {coding.name!r}: given value ({value!r}) {problem}", value)
        self.column, self.problem = coding.name, problem


def _values(coding: Coding, read: Sequence[Any]) -> Values:
    """The values as one array of the type that decoding gives."""
    absent = np.array([v is None for v in read], dtype=bool)
    kind = _dtype(coding)
    # What stands where a value is missing is never read, but must have the type of the others.
    filler = "" if kind == "O" else np.zeros(1, dtype=kind)[0]
    data = np.array([filler if v is None else v for v in read], dtype=kind)
    return Values(data, absent if coding.apart else None)


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


def take_rows(values: Values, rows: NDArray[np.integer]) -> Values:
    return Values(values.data[rows], None if values.missing is None else values.missing[rows])
