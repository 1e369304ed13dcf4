"""A value becomes a code, by the schema alone.

This is the encoder of the package in Python; `tables.sql` has the same rule in SQL, for rows that an engine holds, and
the conformance suite (tests/boundary/tables) ties the two together. Both take two steps: a value is *read* as its
column's type, by the text that it has whatever stores it (`schema.spelling`), and what was read is *coded*. What can't
be read counts as missing, what lies outside the bounds is clamped, what is not on the list is `other`. Nothing raises
on a value, and no value has a part in how another one is read.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import (
    SPACES,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Integer,
    Line,
    Number,
    as_datetime,
)
from understudy.boundary.schema.derived import EPOCH, LARGEST_TERM, Derived, DerivedPart, Formula, grid_power
from understudy.boundary.schema.domain import Coding, code_type, units_between
from understudy.boundary.schema.late_imports import pa
from understudy.boundary.schema.spelling import may_be_number, spell


def read_value(column: Column, value: object, missing_texts: Collection[str]) -> str | float | None:
    """The value as its column's type: a text, a number, or the whole units of time since the column's `start`.

    None where it is missing (nothing, an empty text or one of `missing_texts`), and where it can't be read.
    """
    text = (spell(value) or "").strip(SPACES)
    if not text or text in missing_texts or text in column.missing_texts:
        return None  # before the type is looked at: "-9" may be a missing value of a column of numbers
    match column:
        case Boolean():
            return text.lower()
        case Categorical(numeric=False):
            return text
        case Line() if text in column.special:
            return text
        case Datetime():
            # A typed date is no text, so the column's format has no say in it.
            moment = read_moment(column, value if isinstance(value, date) else text)
            if moment is None:
                return None
            return float(units_between(column, moment))
    return _read_number(text)


def read_derived(column: Derived, values: Mapping[str, object], missing_texts: Collection[str]) -> float | None:
    """What is computed from a row's values; None where one of them is missing, special or unreadable."""
    if isinstance(column, DerivedPart):
        return _read_part(column, values, missing_texts)
    total = 0.0
    for (sign, _), source in zip(column.terms, column.sources, strict=True):
        value = values[source.name]
        if isinstance(source, Datetime):
            # By the same origin for both dates, whatever their bounds are.
            source = dataclasses.replace(source, minimum=EPOCH, maximum=None)
        read = read_value(source, value, missing_texts)
        if not isinstance(read, float) or math.isnan(read) or read in getattr(source, "special", ()):
            return None
        total += sign * min(max(read, -LARGEST_TERM), LARGEST_TERM)
    return settled(column, total)


def _read_part(column: DerivedPart, values: Mapping[str, object], missing_texts: Collection[str]) -> float | None:
    (source,) = column.sources
    assert isinstance(source, Datetime)
    counted = dataclasses.replace(source, minimum=EPOCH, maximum=None)
    read = read_value(counted, values[source.name], missing_texts)
    if not isinstance(read, float):
        return None
    return float(column.value_of(EPOCH + timedelta(seconds=read * counted.unit_seconds)))


def settled(column: Formula, total: float) -> float:
    """A derived number on the grid of its decimals; the operations of `tables.sql`, in their order."""
    power = grid_power(column)
    if power is None:
        return total
    low, high = float(column.minimum), float(column.maximum)
    return math.floor(min(max(total, low), high) * power + 0.5) / power


def read_moment(column: Datetime, value: object) -> datetime | None:
    """A point in time in UTC; a text in the column's format, or in ISO form, which is understood whatever the format.

    So a date reads the same whether a frame stores it as a date or, because another row holds none, as a text.
    """
    if isinstance(value, str) and column.format:
        try:
            return datetime.strptime(value, column.format)
        except ValueError:
            pass
    moment = as_datetime(value)
    if not isinstance(moment, datetime):
        return None
    return moment


def _read_number(text: str) -> float | None:
    """A truth value is a number too: beside one, a frame may store it as a text."""
    said = {"true": 1.0, "false": 0.0}.get(text.lower())
    if said is not None:
        return said
    try:
        # What else `float` takes (1_000, inf, nan), DuckDB takes too, and `tables.dialect` spells out for PostgreSQL.
        # Python would also read the digits of other scripts, which engines don't.
        return float(text) if text.isascii() else None
    except ValueError:
        return None


def code_of(coding: Coding, read: str | float | None) -> int:
    """The code of what `read_value` made of a value."""
    if read is None:
        return coding.null_code
    if isinstance(read, str) and isinstance(coding.column, Line):
        return coding.special_codes[read]
    if isinstance(read, str):
        texts = _FLAGS if isinstance(coding.column, Boolean) else coding.spellings
        return texts.get(read, coding.stray_code)
    return int(codes_of_numbers(coding, np.array([read]))[0])


def codes_of_numbers(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.unsignedinteger]:
    """The codes of numbers that were read, in the narrowest type that holds them; NaN is a missing one."""
    if coding.edges is None:
        places = _labels(coding, values)
    else:
        places = _bins(coding, values)
    for value, code in coding.special_codes.items():
        if isinstance(value, float):
            places[values == value] = code
    # Found like a number so far: NaN sorts behind all others, and must not count as the largest.
    absent = np.isnan(values)
    if absent.any():
        places[absent] = coding.null_code
    return places.astype(code_type(coding.size))


def codes_of_values(
    coding: Coding, values: Sequence[object], missing_texts: Collection[str]
) -> NDArray[np.unsignedinteger]:
    """The code of each value, whatever type it has. For many rows, give distinct values."""
    codes = [code_of(coding, read_value(coding.column, value, missing_texts)) for value in values]
    return np.array(codes, dtype=code_type(coding.size))


def codes_of_column(
    coding: Coding, column: pa.ChunkedArray, missing_texts: Collection[str]
) -> NDArray[np.unsignedinteger]:
    """The code of each entry of an Arrow column: numbers all at once, anything else by its distinct values.

    Numbers are their own readings, unless one of them may be written as a missing value is.
    """
    kind = column.type
    numbers = pa.types.is_integer(kind) or (pa.types.is_floating(kind) and not pa.types.is_float16(kind))
    missing = (*missing_texts, *coding.column.missing_texts)
    if numbers and reads_numbers(coding.column) and not any(map(may_be_number, missing)):
        return codes_of_numbers(coding, column.to_numpy().astype(np.float64, copy=False))  # null becomes NaN
    # Each distinct value is read by itself, so that neither its frequency nor its neighbours have a part in it.
    encoded = column.combine_chunks().dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    places = encoded.indices
    if encoded.null_count:
        places = places.fill_null(len(distinct))
    codes = codes_of_values(coding, [*distinct, None], missing_texts)
    return codes.take(places.to_numpy(zero_copy_only=False))


def codes_of_derived(coding: Coding, table: pa.Table, missing_texts: Collection[str]) -> NDArray[np.unsignedinteger]:
    """The codes of a derived column, row by row, from the columns that it is made of."""
    column = coding.column
    assert isinstance(column, Derived)
    lists = {s.name: table.column(s.name).to_pylist() for s in column.sources}
    rows = (dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True))
    read = [read_derived(column, row, missing_texts) for row in rows]
    return codes_of_numbers(coding, np.array([math.nan if r is None else r for r in read], dtype=np.float64))


def reads_numbers(column: Column) -> bool:
    """Whether a value is read as a number: on a line of numbers, or as one of a list of them."""
    return isinstance(column, Integer | Number) or (isinstance(column, Categorical) and column.numeric)


_FLAGS = dict.fromkeys(Boolean.FALSE, 0) | dict.fromkeys(Boolean.TRUE, 1)


def _bins(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bin of each number, by the operations of `tables.sql` in their order; whole numbers are rounded first.

    Rounding is x + 0.5 where bins have one width and a comparison with an edge less 0.5 where they have not: the two
    differ for the number just below 0.5, and whichever SQL takes is taken here.
    """
    edges = np.array(coding.edges)
    whole = isinstance(coding.column, Integer)
    if not (whole and _have_one_width(edges)):
        # Among the inner edges alone: what lies outside the bounds falls into the first or the last bin.
        return np.searchsorted(edges[1:-1] - 0.5 * whole, values, side="right").astype(np.float64)
    # Halves go up, as SQL's FLOOR(x + 0.5) does; `np.rint` would take them to the even number.
    places = np.floor(values + 0.5)
    np.clip(places, edges[0], edges[-1] - 1, out=places)
    places -= edges[0]
    width = edges[1] - edges[0]
    return places if width == 1 else np.floor(places / width)


def _have_one_width(edges: NDArray[np.float64]) -> bool:
    """Of bins of whole numbers; the last may be shorter."""
    widths = [b - a for a, b in itertools.pairwise(edges.tolist())]
    return len(set(widths[:-1])) <= 1 and widths[-1] <= widths[0]


def _labels(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each number among labels that are whole numbers."""
    # Labels are at most 2^52, so that each is a double of its own, and equality is exact.
    labels = np.array(coding.labels, dtype=np.float64)
    order = np.argsort(labels)
    found = order[np.searchsorted(labels[order], values).clip(max=len(labels) - 1)]
    return np.where(labels[found] == values, found, coding.stray_code).astype(np.float64)
