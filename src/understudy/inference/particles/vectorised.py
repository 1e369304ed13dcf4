"""The inner loops of particles, by numpy: what is used where numba is not installed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int32]
Places = NDArray[np.intp]
Floats = NDArray[np.float64]

CHUNK = 1 << 12
"""Rows at once: their weights stay in the cache."""


def place(cells: Whole, codes: Whole, steps: Whole) -> None:
    """Cell numbers with one more column to them: what each of its codes adds."""
    cells += np.take(steps, codes, mode="clip")  # every code has a group; `clip` spares the check


def histogram(cells: Whole, weights: Floats, size: int) -> Floats:
    """The weight of each cell, added up in four parts as the compiled form does."""
    four = np.bincount(cells * 4 + _lanes(len(cells)), weights, 4 * size).reshape(size, 4)
    return np.asarray((four[:, 0] + four[:, 1]) + (four[:, 2] + four[:, 3]), dtype=np.float64)


@lru_cache(maxsize=4)
def _lanes(rows: int) -> Whole:
    return np.arange(rows, dtype=np.int32) % 4


def rescale(weights: Floats, cells: Whole, change: Floats) -> None:
    """Multiplies each weight by what its cell changes by."""
    # By parts that the memory of the last one is used for again.
    for first in range(0, len(weights), 4 * CHUNK):
        rows = slice(first, first + 4 * CHUNK)
        weights[rows] *= np.take(change, cells[rows], mode="clip")


def cross(first: Whole, first_steps: Whole, second: Whole, second_steps: Whole, weights: Floats, size: int) -> Floats:
    """The same for cells that are not held: by the codes of two columns, and what they add to the number of a cell."""
    cells = np.take(first_steps, first, mode="clip")
    place(cells, second, second_steps)
    return histogram(cells, weights, size)


def recount(weights: Floats, cells: Whole, change: Floats, others: Whole, size: int) -> Floats:
    """Both in one pass: weights change by their cells, and are then added up by other cells."""
    rescale(weights, cells, change)
    return histogram(others, weights, size)


def draw(table: Whole, steps: Whole, parts: Whole, codes: Whole, uniform: Floats, exponentials: Whole) -> Places:
    """For each row a group, in proportion to the exponential of its log-weights: see the compiled form."""
    drawn, size = np.zeros(len(uniform), dtype=np.intp), table.shape[1]
    # Written over and over: room that is asked of the system each time takes longer than all else.
    room = np.empty((3, min(CHUNK, len(uniform)) * size), dtype=np.int32)
    for first in range(0, len(uniform), CHUNK):
        rows = slice(first, first + CHUNK)
        count = len(uniform[rows])
        logs, said = (part[: count * size].reshape(count, size) for part in room[:2])
        logs[:] = table[0]
        place: Any = 0
        for column, begin, last in parts.tolist():
            place = place + np.take(steps[begin:], codes[column, rows], mode="clip")
            if last:
                logs += np.take(table, place, axis=0, out=said, mode="clip")
                place = 0
        # Groups below each other from here on: along so few of them numpy is slow.
        below, weights = (part[: count * size].reshape(size, count) for part in room[1:])
        below[:] = logs.T
        np.subtract(below.max(axis=0), below, out=below)
        np.minimum(below, len(exponentials) - 1, out=below)
        np.take(exponentials, below, out=weights, mode="clip")
        for group in range(1, size):
            weights[group] += weights[group - 1]
        # Of whole numbers those that a goal reaches are those that its whole part does.
        goal = (uniform[rows] * weights[-1]).astype(np.int32)
        found = drawn[rows]
        for passed in weights:
            found += passed <= goal
    return drawn


def spread(groups: Places, first: Places, line: Floats, uniform: Floats) -> Places:
    """For each row a place inside its group: `first` is where groups begin, `line` what places weigh, cumulated."""
    places = first[groups]
    several = np.flatnonzero((np.diff(first) > 1)[groups])  # a group of one place leaves nothing to draw
    if several.size:
        group = groups[several]
        low, high = line[first[group]], line[first[group + 1]]
        inside = np.searchsorted(line, low + uniform[several] * (high - low), side="right") - 1
        places[several] = np.clip(inside, first[group], first[group + 1] - 1)
    return places


def score(excess: NDArray[np.int64], cells: Whole, rows: Places) -> NDArray[np.int64]:
    """For each of some rows of `cells` the sum of what is in them."""
    sums = np.empty(len(rows), dtype=np.int64)
    for first in range(0, len(rows), CHUNK):  # of all particles at once it would be the most that a release holds
        here = slice(first, first + CHUNK)
        np.take(excess, cells[rows[here]]).sum(axis=1, out=sums[here])
    return sums
