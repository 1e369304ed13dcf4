"""Drawing rows with as little sampling error as rows allow.

Systematic draws give every cell its expected count, rounded up or down. The order of rows within a group is random,
so that columns drawn one after the other do not move together beyond what the model says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def draw_given(parents: NDArray[np.intp], table: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """For each row a child cell, given its parent cell: row p of `table` holds the weights of the children of p.

    Within each parent's group the draws are systematic. A parent without any weight draws its children uniformly.
    """
    cumulative = _cumulative(table)
    order = rng.permutation(len(parents))
    order = order[np.argsort(parents[order], kind="stable")]
    grouped = parents[order]
    sizes = np.bincount(parents, minlength=len(table))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = np.arange(len(parents)) - starts[grouped]
    offset = rng.random(len(table))
    position = (rank + offset[grouped]) / sizes[grouped]
    # Row p of the table covers the interval [p, p+1), so one search serves all groups.
    line = (cumulative + np.arange(len(table))[:, None]).ravel()
    cell = np.searchsorted(line, position + grouped, side="right") - grouped * table.shape[1]
    drawn = np.empty(len(parents), dtype=np.intp)
    drawn[order] = np.clip(cell, 0, table.shape[1] - 1)
    return drawn


def draw_rows(weights: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`rows` indices, each as often as its weight says, rounded up or down: systematic resampling."""
    return draw_given(np.zeros(rows, dtype=np.intp), weights[None, :], rng)


def _cumulative(table: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = table.sum(axis=1, keepdims=True)
    weights = np.where(sums > 0, table, 1.0)
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= cumulative[:, -1:]
    return cumulative
