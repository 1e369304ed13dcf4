"""Rows drawn from the density of a forest's leaves (FORGE), freely or given some of their columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from understudy.inference.forest.density import BLOCK, ForestDensity, Normal
from understudy.inference.forest.trees import Floats, Indices
from understudy.inference.forest.truncated_normal import draw_between


def forge(density: ForestDensity, rows: int, rng: np.random.Generator) -> Floats:
    """That many rows: numbers (NaN where missing), categories as codes.

    Leaves are drawn by their coverage, each as often as that says, rounded up or down; so every tree has its part.
    """
    line = np.cumsum(density.coverage)
    places = (np.arange(rows) + rng.random()) * (line[-1] / max(rows, 1))
    leaf = np.searchsorted(line, places, side="right")
    leaf = np.minimum(leaf, np.flatnonzero(density.coverage)[-1])
    return fill(density, rng.permutation(leaf), {}, rng)


def fill(density: ForestDensity, leaf: Indices, given: Mapping[int, Floats], rng: np.random.Generator) -> Floats:
    """A row from each of these leaves; what is given stays."""
    columns = [given[j] if j in given else _draw(density, j, leaf, rng) for j in range(len(density.columns))]
    return np.column_stack(columns)


def complete(density: ForestDensity, given: Mapping[int, Floats], steps: Floats, rng: np.random.Generator) -> Floats:
    """For each row of the given columns a whole row that keeps them.

    A leaf is drawn by its coverage times the probability of what is given. Where no leaf allows for all of it, each
    column counts for so little as makes all leaves possible.
    """
    points = np.column_stack(list(given.values()))
    distinct, which = np.unique(points, axis=0, return_inverse=True)
    block = max(1, BLOCK * 4 // len(density.leaves))
    leaf = np.empty(len(points), dtype=np.intp)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    for begin in range(0, len(distinct), block):
        line = np.cumsum(_leaf_weights(density, distinct[begin : begin + block], list(given), steps), axis=1)
        rows = order[starts[begin] : starts[min(begin + block, len(distinct))]]
        leaf[rows] = _pick(line, which[rows] - begin, rng)
    return fill(density, leaf, given, rng)


def _leaf_weights(density: ForestDensity, points: Floats, columns: list[int], steps: Floats) -> Floats:
    """For each row of given values the weight of every leaf."""
    every = np.arange(len(density.leaves))
    with np.errstate(divide="ignore"):
        total = np.tile(np.log(density.coverage), (len(points), 1))
    lowest = -1e4
    for place, column in enumerate(columns):
        leaf, values = np.tile(every, len(points)), np.repeat(points[:, place], len(every))
        found = density.log_probability(column, leaf, values, float(steps[column])).reshape(total.shape)
        total += np.maximum(found, lowest)
    return np.exp(total - total.max(axis=1, keepdims=True))


def _pick(line: Floats, row: Indices, rng: np.random.Generator) -> Indices:
    """A place in each row of running sums; all at once, by laying the rows end to end."""
    scaled = line / line[:, -1:] + np.arange(len(line))[:, None]
    found = np.searchsorted(scaled.ravel(), row + rng.random(len(row)), side="right")
    return np.minimum(found - row * line.shape[1], line.shape[1] - 1)


def _draw(density: ForestDensity, column: int, leaf: Indices, rng: np.random.Generator) -> Floats:
    found = density.columns[column]
    if not isinstance(found, Normal):
        return found.draw(leaf, rng).astype(np.float64)
    mean, deviation = found.mean[leaf], found.deviation[leaf]
    low, high = density.leaves.low[leaf, column], density.leaves.high[leaf, column]
    spread = np.where(deviation > 0, deviation, 1.0)
    known = ~np.isnan(mean)
    drawn = np.full(len(leaf), np.nan)
    drawn[known] = draw_between(((low - mean) / spread)[known], ((high - mean) / spread)[known], rng)
    values = np.where(deviation > 0, mean + spread * drawn, mean)
    values = np.where(deviation > 0, np.clip(values, low, high), values)
    return np.where(rng.random(len(leaf)) < found.missing[leaf], np.nan, values)
