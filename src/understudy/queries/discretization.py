"""How finely a column is divided: the whole steps in which it is added up, and the bins of its quantiles.

Both follow from the schema alone: the declared decimals, as far as the integers of the noise can hold them.
"""

from __future__ import annotations

import dataclasses
import math
from datetime import datetime, timedelta

from understudy.boundary.schema.column import Column, Datetime, Integer, Number
from understudy.boundary.schema.domain import Coding, EvenCoding, coding_of, units_between
from understudy.boundary.schema.grouped_sums import ValueSum
from understudy.errors import InternalError

MOST_STEPS = 2**31
"""The most steps that one row may add: then four billion rows fit into 64 bits, and the noise of any ε above 0.01."""
UNDECLARED_STEPS = 1_000_000
"""The steps of a column without declared decimals: a row is rounded by less than a millionth of the range."""
MOST_BINS = 4096
"""Of a quantile: the score of every bin is kept in memory, group by group."""


def bounds_of(column: Column) -> tuple[float, float]:
    """The declared bounds of a column of numbers."""
    if not isinstance(column, Integer | Number) or column.minimum is None or column.maximum is None:
        raise InternalError(f"column {column.name!r} has no bounds to add up its values by", column)
    return float(column.minimum), float(column.maximum)


def steps_of(column: Column) -> float:
    """How many steps make one unit: a power of ten."""
    low, high = bounds_of(column)
    # Bounds of zero would divide by zero; 1e-290 keeps the quotient within the range of doubles.
    most = math.floor(math.log10(MOST_STEPS / max(abs(low), abs(high), 1e-290)))
    if isinstance(column, Integer):
        return 10.0 ** min(0, most)
    assert isinstance(column, Number)
    declared = column.decimals
    if declared is None:
        declared = math.ceil(math.log10(UNDECLARED_STEPS / (high - low)))
    return 10.0 ** min(declared, most)


def plain_sum(column: Column) -> ValueSum:
    """The sum itself."""
    return _sum_around(column, 0.0)


def centred_sum(column: Column) -> ValueSum:
    """The sum of distances from the middle of the bounds, which one row moves by half of their width at most."""
    low, high = bounds_of(column)
    steps = steps_of(column)
    # The middle on the grid of the steps, so that distances from it are whole steps again.
    return _sum_around(column, round((low + (high - low) / 2) * steps) / steps)


def _sum_around(column: Column, centre: float) -> ValueSum:
    low, high = bounds_of(column)
    steps = steps_of(column)
    # Rounded half up like the rows themselves, so that the sensitivity is that of the largest step a row can add.
    first, last = math.floor((low - centre) * steps + 0.5), math.floor((high - centre) * steps + 0.5)
    return ValueSum(column.name, centre, steps, min(first, last), max(first, last, first + 1))


def fine_coding(column: Column) -> Coding:
    """The column in as many bins as a quantile may tell apart: every value where there are not too many."""
    if isinstance(column, Number):
        low, high = bounds_of(column)
        bins = MOST_BINS
        if column.decimals is not None:
            bins = max(1, min(MOST_BINS, math.floor((high - low) * 10.0**column.decimals)))
        return EvenCoding(column, edges=(*(low + (high - low) * (i / bins) for i in range(bins)), high))
    assert isinstance(column, Integer | Datetime)
    if isinstance(column, Datetime):
        values = units_between(column, column.maximum) + 1
    else:
        low, high = bounds_of(column)
        values = int(high - low) + 1
        column = dataclasses.replace(column, step=None)
    fine = dataclasses.replace(column, bins=min(MOST_BINS, values), cuts=None)
    return coding_of(fine)


def first_value(coding: Coding, place: int) -> float | datetime:
    """The least value of a bin; before the first bin and behind the last, the column's bounds."""
    return _value(coding, _ends(coding, place)[0])


def last_value(coding: Coding, place: int) -> float | datetime:
    """The greatest value of a bin."""
    return _value(coding, _ends(coding, place)[1])


def middle_value(coding: Coding, place: int) -> float | datetime:
    """The middle of a bin, or its one value."""
    low, high = _ends(coding, place)
    if isinstance(coding.column, Number):
        return _value(coding, (low + high) / 2)
    return _value(coding, low + (high - low) // 2)


def _ends(coding: Coding, place: int) -> tuple[float, float]:
    edges, inside = coding.edges or (), min(max(place, 0), coding.levels - 1)
    low, high = edges[inside], edges[inside + 1]
    if isinstance(coding.column, Number):
        return low, high
    # Integers and dates are whole, and the upper edge is the first value of the next bin.
    return low, high - 1


def _value(coding: Coding, position: float) -> float | datetime:
    column = coding.column
    if isinstance(column, Datetime):
        return column.start + timedelta(seconds=column.unit_seconds * int(position))
    if isinstance(column, Integer):
        return int(position)
    if isinstance(column, Number) and column.decimals is not None:
        # One digit more than the column has: the middle of a bin lies half-way between two values.
        return round(float(position), column.decimals + 1)
    return float(position)
