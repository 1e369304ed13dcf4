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


def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Kept on disk, where there is a folder for it: to compile takes a second, and to load it none."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # no folder that could be written to
        return numba.njit(nogil=True)(loop)


@_compiled
def place(cells: Whole, codes: Whole, groups: Whole, size: int) -> None:
    """Cell numbers with one more column to them, by its groups."""
    for i in range(cells.size):
        cells[i] = cells[i] * size + groups[codes[i]]


@_compiled
def histogram(cells: Whole, weights: Floats, size: int) -> Floats:
    """The weight of each cell. Four counts side by side need not wait for each other where rows share a cell."""
    # One addition after the other took three times as long where a pair has few cells. `vectorised.histogram` has to
    # add in the same order, or a release made by one form would not replay by the other (decision 12).
    counts, last = np.zeros((size, 4)), cells.size - cells.size % 4
    for i in range(0, last, 4):
        counts[cells[i], 0] += weights[i]
        counts[cells[i + 1], 1] += weights[i + 1]
        counts[cells[i + 2], 2] += weights[i + 2]
        counts[cells[i + 3], 3] += weights[i + 3]
    for i in range(last, cells.size):
        counts[cells[i], i - last] += weights[i]
    total = np.empty(size)
    for c in range(size):
        total[c] = (counts[c, 0] + counts[c, 1]) + (counts[c, 2] + counts[c, 3])
    return total


@_compiled
def rescale(weights: Floats, cells: Whole, change: Floats) -> None:
    """Multiplies each weight by what its cell changes by."""
    for i in range(weights.size):
        weights[i] *= change[cells[i]]


@_compiled
def draw(start: Whole, table: Whole, cells: Whole, uniform: Floats, exponentials: Whole, drawn: Places) -> None:
    """For each row a group, in proportion to the exponential of its log-weights: those of its cells, one per layer."""
    deepest, size = exponentials.size - 1, start.size
    weights = np.empty(size, np.int32)
    for i in range(uniform.size):
        for g in range(size):
            weights[g] = start[g]
        for layer in range(cells.shape[0]):
            said = table[cells[layer, i]]
            for g in range(size):
                weights[g] += said[g]
        top = weights[0]
        for g in range(1, size):
            top = max(top, weights[g])
        total = np.int32(0)
        for g in range(size):
            total += exponentials[min(top - weights[g], deepest)]
            weights[g] = total
        goal, low, high = uniform[i] * total, 0, size
        while low < high:
            middle = (low + high) // 2
            if weights[middle] <= goal:
                low = middle + 1
            else:
                high = middle
        drawn[i] = low


@_compiled
def score(excess: NDArray[np.int64], cells: Whole, rows: Places) -> NDArray[np.int64]:
    """For each of some rows of `cells` the sum of what is in them."""
    sums = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        row = cells[rows[i]]
        for j in range(row.size):
            sums[i] += excess[row[j]]
    return sums
