"""The inner loops of particles, compiled by numba: the same results as `vectorised`, to the last bit.

Weights are added up in a settled order, and draws are in whole numbers. Each loop lets other threads run beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int32]
Places = NDArray[np.intp]
Floats = NDArray[np.float64]

UNSIGNED = np.uint32
"""A number that can't count from the end: the compiler need not ask each time whether it does."""
BLOCK = 256
"""Rows whose places are found at once: they stay in the cache."""


def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Kept on disk, where there is a folder for it: to compile takes a second, and to load it none."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # no folder that could be written to
        return numba.njit(nogil=True)(loop)


@_compiled
def _added_up(counts: Floats) -> Floats:
    total = np.empty(len(counts))
    for c in range(len(counts)):
        total[c] = (counts[c, 0] + counts[c, 1]) + (counts[c, 2] + counts[c, 3])
    return total


@_compiled
def place(cells: Whole, codes: Whole, steps: Whole) -> None:
    """Cell numbers with one more column to them: what each of its codes adds."""
    for i in range(cells.size):
        cells[i] += steps[UNSIGNED(codes[i])]


@_compiled
def histogram(cells: Whole, weights: Floats, size: int) -> Floats:
    """The weight of each cell. Four counts side by side need not wait for each other where rows share a cell."""
    # One addition after the other took three times as long where a pair has few cells. `vectorised.histogram` has to
    # add in the same order, or a release made by one form would not replay by the other (decision 12).
    counts, last = np.zeros((size, 4)), cells.size - cells.size % 4
    for i in range(0, last, 4):
        counts[UNSIGNED(cells[i]), 0] += weights[i]
        counts[UNSIGNED(cells[i + 1]), 1] += weights[i + 1]
        counts[UNSIGNED(cells[i + 2]), 2] += weights[i + 2]
        counts[UNSIGNED(cells[i + 3]), 3] += weights[i + 3]
    for i in range(last, cells.size):
        counts[UNSIGNED(cells[i]), i - last] += weights[i]
    return _added_up(counts)


@_compiled
def cross(first: Whole, first_steps: Whole, second: Whole, second_steps: Whole, weights: Floats, size: int) -> Floats:
    """The same for cells that are not held: by the codes of two columns, and what they add to the number of a cell."""
    counts, last = np.zeros((size, 4)), weights.size - weights.size % 4
    for i in range(0, last, 4):
        a = UNSIGNED(first_steps[UNSIGNED(first[i])]) + UNSIGNED(second_steps[UNSIGNED(second[i])])
        b = UNSIGNED(first_steps[UNSIGNED(first[i + 1])]) + UNSIGNED(second_steps[UNSIGNED(second[i + 1])])
        c = UNSIGNED(first_steps[UNSIGNED(first[i + 2])]) + UNSIGNED(second_steps[UNSIGNED(second[i + 2])])
        d = UNSIGNED(first_steps[UNSIGNED(first[i + 3])]) + UNSIGNED(second_steps[UNSIGNED(second[i + 3])])
        counts[a, 0] += weights[i]
        counts[b, 1] += weights[i + 1]
        counts[c, 2] += weights[i + 2]
        counts[d, 3] += weights[i + 3]
    for i in range(last, weights.size):
        counts[first_steps[first[i]] + second_steps[second[i]], i - last] += weights[i]
    return _added_up(counts)


@_compiled
def rescale(weights: Floats, cells: Whole, change: Floats) -> None:
    """Multiplies each weight by what its cell changes by."""
    for i in range(weights.size):
        weights[i] *= change[UNSIGNED(cells[i])]


@_compiled
def recount(weights: Floats, cells: Whole, change: Floats, others: Whole, size: int) -> Floats:
    """Both in one pass: weights change by their cells, and are then added up by other cells."""
    counts, last = np.zeros((size, 4)), weights.size - weights.size % 4
    for i in range(0, last, 4):
        a = weights[i] * change[UNSIGNED(cells[i])]
        b = weights[i + 1] * change[UNSIGNED(cells[i + 1])]
        c = weights[i + 2] * change[UNSIGNED(cells[i + 2])]
        d = weights[i + 3] * change[UNSIGNED(cells[i + 3])]
        weights[i], weights[i + 1], weights[i + 2], weights[i + 3] = a, b, c, d
        counts[UNSIGNED(others[i]), 0] += a
        counts[UNSIGNED(others[i + 1]), 1] += b
        counts[UNSIGNED(others[i + 2]), 2] += c
        counts[UNSIGNED(others[i + 3]), 3] += d
    for i in range(last, weights.size):
        weights[i] *= change[cells[i]]
        counts[others[i], i - last] += weights[i]
    return _added_up(counts)


@_compiled
def draw(table: Whole, steps: Whole, parts: Whole, codes: Whole, uniform: Floats, exponentials: Whole) -> Places:
    """For each row a group, in proportion to the exponential of its log-weights.

    They are the first row of the table and further ones, each found by the codes of one column or several: `parts` says
    which column, where its codes begin in `steps`, and whether it is the last one that the row is found by.
    """
    deepest, size, layers = exponentials.size - 1, table.shape[1], 0
    for p in range(parts.shape[0]):
        layers += parts[p, 2]
    places = np.empty((layers, BLOCK), np.int32)
    weights, drawn = np.empty(size, np.int32), np.empty(uniform.size, np.intp)
    for first in range(0, uniform.size, BLOCK):
        # The places of some rows first, layer by layer: row by row it takes half as long again.
        rows = min(BLOCK, uniform.size - first)
        places[:] = 0
        layer = 0
        for p in range(parts.shape[0]):
            own, step, code = places[layer], steps[parts[p, 1] :], codes[parts[p, 0], first : first + rows]
            for i in range(rows):
                own[i] += step[code[i]]
            layer += parts[p, 2]
        for i in range(rows):
            for g in range(size):
                weights[g] = table[0, g]
            for layer in range(layers):
                said = table[places[layer, i]]
                for g in range(size):
                    weights[g] += said[g]
            top = weights[0]
            for g in range(1, size):
                top = max(top, weights[g])
            total = np.int32(0)
            for g in range(size):
                total += exponentials[min(top - weights[g], deepest)]
                weights[g] = total
            goal, low, high = uniform[first + i] * total, 0, size
            while low < high:
                middle = (low + high) // 2
                if weights[middle] <= goal:
                    low = middle + 1
                else:
                    high = middle
            drawn[first + i] = low
    return drawn


@_compiled
def spread(groups: Places, first: Places, line: Floats, uniform: Floats) -> Places:
    """For each row a place inside its group: `first` is where groups begin, `line` what places weigh, cumulated."""
    places = np.empty(groups.size, np.intp)
    for i in range(groups.size):
        low, high = first[groups[i]], first[groups[i] + 1] - 1
        goal = line[low] + uniform[i] * (line[high + 1] - line[low])
        while low < high:  # the last place whose line does not pass the goal
            middle = (low + high + 1) // 2
            if line[middle] <= goal:
                low = middle
            else:
                high = middle - 1
        places[i] = low
    return places


@_compiled
def score(excess: NDArray[np.int64], cells: Whole, rows: Places) -> NDArray[np.int64]:
    """For each of some rows of `cells` the sum of what is in them."""
    sums = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        row, total = cells[rows[i]], np.int64(0)
        for j in range(row.size):
            total += excess[UNSIGNED(row[j])]
        sums[i] = total
    return sums
