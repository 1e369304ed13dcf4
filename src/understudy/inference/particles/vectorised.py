"""The inner loops of particles, by numpy: what is used where numba is not installed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int32]
Places = NDArray[np.intp]
Floats = NDArray[np.float64]


def place(cells: Whole, codes: Whole, groups: Whole, size: int) -> None:
    """Cell numbers with one more column to them, by its groups."""
    cells *= size
    cells += np.take(groups, codes, mode="clip")  # every code has a group; `clip` spares the check


def histogram(cells: Whole, weights: Floats, size: int) -> Floats:
    """The weight of each cell, added up in four parts as the compiled form does."""
    a, b, c, d = (np.bincount(cells[i::4], weights[i::4], size) for i in range(4))
    return np.asarray((a + b) + (c + d), dtype=np.float64)


def rescale(weights: Floats, cells: Whole, change: Floats) -> None:
    """Multiplies each weight by what its cell changes by."""
    weights *= np.take(change, cells, mode="clip")


def draw(start: Whole, table: Whole, cells: Whole, uniform: Floats, exponentials: Whole, drawn: Places) -> None:
    """For each row a group, in proportion to the exponential of its log-weights: those of its cells, one per layer."""
    logs = np.repeat(start[None, :], len(uniform), axis=0)
    said = np.empty_like(logs)
    for layer in cells:
        logs += np.take(table, layer, axis=0, out=said, mode="clip")
    below = np.minimum(logs.max(axis=1, keepdims=True) - logs, len(exponentials) - 1)
    weights = np.take(exponentials, below, out=said, mode="clip")
    np.cumsum(weights, axis=1, out=weights)
    drawn[:] = (weights <= (uniform * weights[:, -1])[:, None]).sum(axis=1)


def score(excess: NDArray[np.int64], cells: Whole, rows: Places) -> NDArray[np.int64]:
    """For each of some rows of `cells` the sum of what is in them."""
    return np.asarray(np.take(excess, cells[rows]).sum(axis=1))
