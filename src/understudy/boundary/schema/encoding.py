"""A value becomes a code, and a code becomes a value again, by the schema alone.

This is the encoder of the package in Python; `tables.sql` has the same rule in SQL, for rows that an engine holds, and
the conformance suite (tests/boundary/tables) ties the two together. Both take two steps: a value is *read* as its
column's type, by the text that it has whatever stores it (`schema.spelling`), and what was read is *coded*. What can't
be read counts as missing, what lies outside the bounds is clamped, what is not on the list is `other`. Nothing raises
on a value, and no value has a part in how another one is read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import (
    SPACES,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Integer,
    Number,
    as_datetime,
)
from understudy.boundary.schema.domain import Coding, Domain, code_type, units_between
from understudy.boundary.schema.expression import Values
from understudy.boundary.schema.late_imports import pa
from understudy.boundary.schema.spelling import may_be_number, spell
from understudy.errors import SchemaError

Codes: TypeAlias = Mapping[str, NDArray[np.integer]]

# --- From values to codes -------------------------------------------------------------------------------------------


def read_value(column: Column, value: object, missing_texts: Collection[str]) -> str | float | None:
    """The value as its column's type: a text, a number, or the whole units of time since the column's `start`.

    None where it is missing (nothing, an empty text or one of `missing_texts`), and where it can't be read.
    """
    text = spell(value)
    text = text.strip(SPACES) if text is not None else None
    if not text or text in missing_texts:
        return None  # before the type is looked at: "-9" may be a missing value of a column of numbers
    match column:
        case Boolean():
            return text.lower()
        case Categorical(numeric=False):
            return text
        case Datetime():
            moment = read_moment(column, value if isinstance(value, date) else text)
            if moment is None:
                return None
            return float(units_between(column, moment))
    return _read_number(text)


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
    return moment if isinstance(moment, datetime) else None


def _read_number(text: str) -> float | None:
    """A truth value is a number too: beside one, a frame may store it as a text."""
    said = {"true": 1.0, "false": 0.0}.get(text.lower())
    if said is not None:
        return said
    try:
        # Python would also read the digits of other scripts, which engines don't.
        return float(text) if text.isascii() else None
    except ValueError:
        return None


def code_of(coding: Coding, read: str | float | None) -> int:
    """The code of what `read_value` made of a value."""
    if read is None:
        return coding.null_code
    if isinstance(read, str):
        texts = _FLAGS if isinstance(coding.column, Boolean) else coding.spellings
        return texts.get(read, coding.stray_code)
    return int(codes_of_numbers(coding, np.array([read]))[0])


def codes_of_numbers(coding: Coding, values: NDArray[np.float64]) -> NDArray[np.unsignedinteger]:
    """The codes of numbers that were read, in the narrowest type that holds them; NaN is a missing one."""
    places = _labels(coding, values) if coding.edges is None else _bins(coding, values)
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
    if numbers and reads_numbers(coding.column) and not any(map(may_be_number, missing_texts)):
        return codes_of_numbers(coding, column.to_numpy().astype(np.float64, copy=False))
    encoded = column.combine_chunks().dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    places = encoded.indices.fill_null(len(distinct)) if encoded.null_count else encoded.indices
    codes = codes_of_values(coding, [*distinct, None], missing_texts)
    return codes.take(places.to_numpy(zero_copy_only=False))


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
        return np.searchsorted(edges[1:-1] - 0.5 * whole, values, side="right").astype(np.float64)
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


# --- From codes to values -------------------------------------------------------------------------------------------


def decode(codes: Codes, domain: Domain, rng: np.random.Generator) -> dict[str, Values]:
    """Typed values of the coded columns, each drawn uniformly inside its bin."""
    return {coding.name: _decode(coding, codes[coding.name], rng) for coding in domain if coding.name in codes}


def made_up(column: Identifier, size: int) -> Values:
    """Numbered values after the column's public template; they say nothing about any row."""
    assert column.made_up is not None
    return Values(np.array([column.made_up.format(i + 1) for i in range(size)], dtype=object), None)


def decimals_of(coding: Coding) -> int:
    """Declared decimals of a number, or enough of them for a hundred steps in the narrowest bin.

    Never more than double precision has at the column's bounds (fewer than none, where those are huge).
    """
    column, edges = coding.column, coding.edges
    assert isinstance(column, Number) and edges is not None
    # A double has 15 decimal digits that it keeps; what is beyond them would be noise of the rounding.
    most = 15 - math.ceil(math.log10(max(abs(edges[0]), abs(edges[-1]))))
    if column.decimals is not None:
        return min(column.decimals, most)
    narrowest = min(b - a for a, b in itertools.pairwise(edges) if b > a)
    return min(max(0, min(12, 2 - math.floor(math.log10(narrowest)))), most)


def check_decodable(domain: Domain) -> None:
    """Refuses a number whose decimals are too coarse for its bins: a bin without any value can't be decoded."""
    for coding in domain:
        if isinstance(coding.column, Number):
            low, high = _steps(coding)
            empty = np.flatnonzero(high < low)
            if len(empty):
                edges = coding.edges or ()
                raise SchemaError(
                    f"column {coding.name!r}: no value of {decimals_of(coding)} decimals lies in the bin "
                    f"from {edges[empty[0]]:g} to {edges[empty[0] + 1]:g}; use fewer bins or more decimals",
                    coding.column,
                )


def _decode(coding: Coding, codes: NDArray[np.integer], rng: np.random.Generator) -> Values:
    missing = codes == coding.levels if coding.column.missing else None
    inside = np.minimum(codes, coding.levels - 1) if coding.column.missing else codes
    return Values(_values(coding, inside, rng), missing)


def _values(coding: Coding, codes: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.generic]:
    column = coding.column
    if isinstance(column, Boolean):
        return codes == 1
    if coding.labels is not None:
        return np.array(coding.labels, dtype=np.int64 if isinstance(coding.labels[0], int) else object)[codes]
    if isinstance(column, Number):
        low, high = _steps(coding)
        return rng.integers(low[codes], high[codes], endpoint=True) / 10.0 ** decimals_of(coding)
    edges = np.array(coding.edges, dtype=np.int64)
    whole = rng.integers(edges[codes], edges[codes + 1])
    if isinstance(column, Datetime):
        return np.datetime64(column.start, "s") + whole * np.timedelta64(column.unit_seconds, "s")
    return whole


def _steps(coding: Coding) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last multiple of 10^−decimals inside each bin of a number."""
    edges, power = np.array(coding.edges), 10.0 ** decimals_of(coding)
    first = np.ceil(edges * power)
    # Rounding in edges × power may put a step on the wrong side of its edge: compare as the encoder will.
    first = np.where((first - 1) / power >= edges, first - 1, np.where(first / power < edges, first + 1, first))
    last = first[1:] - 1
    last[-1] = first[-1] if first[-1] / power == edges[-1] else first[-1] - 1
    return first[:-1].astype(np.int64), last.astype(np.int64)
