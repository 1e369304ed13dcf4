"""From codes back to values that look like the original: whole numbers, decimals, dates, labels, made-up identifiers.

The other direction, from a private row's value to its code, is in `tables.sql`: it is where rows are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Boolean, Datetime, Identifier, Number
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.expression import Values
from understudy.errors import SchemaError

Codes: TypeAlias = Mapping[str, NDArray[np.integer]]


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
