"""Round numbers for a draft: bounds a little wider than the values, and cuts for skewed columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import LARGEST_INTEGER

STEPS_BETWEEN = 8
"""Bounds are multiples of a round step, of which about eight lie between them."""
HEAPS = (1000, 500, 100, 50, 10, 5)
"""Round numbers, to whose multiples people round."""
MOST_CUTS = 32
MOST_IN_A_BIN = 0.2
"""Of the values: with more in one of 64 equal bins, cuts are drafted."""


def round_step(width: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is not above `width`."""
    if not 0 < width < math.inf:
        return 1.0
    power = math.floor(math.log10(width))
    for digit in (5, 2, 1):
        if digit * 10.0**power <= width * (1 + 1e-9):
            return _times(digit, power)
    return _times(5, power - 1)


def _times(digit: float, power: int) -> float:
    """By division for fractions: 0.1, and not 0.1000000001."""
    return float(digit * 10**power) if power >= 0 else digit / 10**-power


def multiple(value: float, step: float, up: bool) -> float:
    """The next multiple of a round step, without the last digits that products of doubles have."""
    count = value / step
    # So far out, or so fine a step, that no multiple can be told.
    if not math.isfinite(count) or not math.isfinite(1 / step):
        return value
    whole = round(count)
    if abs(count - whole) > 1e-9 * max(1.0, abs(count)):
        whole = math.ceil(count) if up else math.floor(count)
    if step < 1:
        return whole / round(1 / step) if abs(1 / step - round(1 / step)) < 1e-6 else whole * step
    return float(whole * step)


def round_bounds(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Bounds that hold both, round ones: from zero where that is near."""
    if whole and low >= 0 and high - low <= 12 and high <= 20:
        return low, high  # a short count or a scale
    step = round_step((high - low) / STEPS_BETWEEN or abs(high) / STEPS_BETWEEN or 1)
    if whole:
        step = max(step, 1.0)
    bottom = 0.0 if 0 <= low < 0.4 * high else multiple(low, step, up=False)
    top = 0.0 if low < 0.4 * high and low < high <= 0 else multiple(high, step, up=True)
    most = float(LARGEST_INTEGER)
    if whole and max(-bottom, top) > most:
        return low, high
    return bottom, top if top > bottom else bottom + 1


def round_dates(low: datetime, high: datetime) -> tuple[datetime, datetime]:
    """From the beginning of a year to the end of one; of a month, where all lie in a few months."""
    low, high = low.replace(tzinfo=None), high.replace(tzinfo=None)
    start, end = datetime(low.year, low.month, 1), _next_month(high)
    if high - low > timedelta(days=180):
        start = datetime(low.year, 1, 1)
        end = datetime(min(high.year + 1, 9999), 1, 1)
    return start, end - timedelta(days=1)


def _next_month(moment: datetime) -> datetime:
    if moment.month == 12:
        return datetime(min(moment.year + 1, 9999), 1, 1)
    return datetime(moment.year, moment.month + 1, 1)


def is_skewed(values: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether equal bins would put most values into a few."""
    if len(values) < 50 or not 0 < high - low < math.inf:
        return False
    counts, _ = np.histogram(values, bins=64, range=(low, high))
    return bool(counts.max() > MOST_IN_A_BIN * len(values))


def round_cuts(values: NDArray[np.float64], low: float, high: float, *, smallest: float) -> tuple[float, ...]:
    """Cuts between bins of about the same number of rows, rounded; a heavy value has a bin of its own.

    `smallest` is the finest step between two values: 1 for whole numbers.
    """
    found: set[float] = set()
    heavy = [v for v, n in zip(*np.unique(values, return_counts=True), strict=True) if n > 0.05 * len(values)]
    for value in heavy:
        found |= {float(value), float(value) + smallest}
    rest = values[~np.isin(values, heavy)]
    if len(rest) >= 20:
        places = np.quantile(rest, np.linspace(0, 1, MOST_CUTS - 8))
        for a, b in itertools.pairwise(places):
            if b > a:
                step = max(round_step((b - a) / 2), smallest)
                found.add(multiple(float(a), step, up=False))
        found |= _ladder(float(places[-2]), high) | {-c for c in _ladder(-float(places[1]), -low)}
    digits = max(0, -math.floor(math.log10(smallest) + 1e-9))
    cuts = sorted({round(c, digits) for c in found})
    return tuple(c for c in cuts if low < c <= high)


def _ladder(start: float, end: float) -> set[float]:
    """1, 2, 5, 10, 20 and so on, between a quantile in the tail and the bound."""
    steps: set[float] = set()
    place = round_step(start) if start > 0 else 0.0
    while 0 < place < end and len(steps) < MOST_CUTS:
        if place > start:
            steps.add(place)
        place = round_step(place * 2.6)
    return steps


def common_step(values: NDArray[np.float64]) -> int | None:
    """The largest round number of which all of many whole values are multiples, if there are several such multiples."""
    numbers = np.unique(values[values != 0])
    if len(values) < 50 or len(numbers) < 8:
        return None
    return next((step for step in HEAPS if not (numbers % step).any()), None)


def heap_of(values: Sequence[float]) -> int | None:
    """A round number of which suspiciously many values are multiples."""
    numbers = np.array([v for v in values if v], dtype=np.float64)
    if len(numbers) < 50:
        return None
    for step in HEAPS:
        share = float(np.mean(numbers % step == 0))
        if np.max(np.abs(numbers)) > 4 * step and share > 0.3 and share > 3 / step:
            return step
    return None
