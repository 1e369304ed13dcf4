"""How strongly columns hang together that were not measured together: a guess, from those that were."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.model import CodeColumns
from understudy.releases.observation import Array, Table, margin_of

SEEN_PART, UNSEEN_PART = 0.25, 0.5
"""How large an association that a selection passed over is held to be: a part of those that it chose, and a part of
what the noise would hide. Simulated in `benchmarks/intervals.py`."""
TYPICAL_ASSOCIATION, MOST_ASSOCIATION = 0.25, 0.5
TRIED_SETS, FEW_VALUES = 64, 8


def association(tables: Sequence[Table], drawn: CodeColumns, total: float, selected: bool) -> float:
    """The standard deviation of an association that was not measured, as a correlation of two conditions.

    Measured pairs are compared with independence on random sets of their values, net of noise. Where the pairs were
    selected for being far from what the model expected, those that were passed over are closer.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    found = [_association(t, pair, drawn, total, rng) for t in tables for pair in itertools.combinations(t.columns, 2)]
    if not found:
        return TYPICAL_ASSOCIATION
    seen = max(float(np.mean([strength for strength, _ in found])), 0.0)
    hidden = float(np.median([noise for _, noise in found]))
    part = SEEN_PART if selected else 1.0
    return min(math.sqrt(part**2 * seen + UNSEEN_PART**2 * hidden), MOST_ASSOCIATION)


def _association(
    table: Table, pair: ColumnSet, drawn: CodeColumns, total: float, rng: np.random.Generator
) -> tuple[float, float]:
    """The mean square correlation of random conditions on two columns net of noise, and what noise adds to it."""
    counts, cells = margin_of(table, pair)
    groups = [np.array(table.grid.groups[table.columns.index(c)]) for c in pair]
    masses = [mass(weights_of(g[drawn[c]], int(g.max()) + 1)) for c, g in zip(pair, groups, strict=True)]
    first, second = (_random_sets(len(m), rng) for m in masses)
    error = ((first @ (counts - total * np.outer(*masses))) * second).sum(axis=1)
    noise = table.variance * cells * first.sum(axis=1) * second.sum(axis=1)
    shares = [s @ m for s, m in zip((first, second), masses, strict=True)]
    scale = total**2 * np.prod([p * (1 - p) for p in shares], axis=0).sum() + 1e-9
    return float((error**2 - noise).sum() / scale), float(noise.sum() / scale)


def _random_sets(size: int, rng: np.random.Generator) -> Array:
    """Sets of values as people ask for them: ranges of many values, any of a few; of any length."""
    if size > FEW_VALUES:
        start, length = rng.integers(0, size, (TRIED_SETS, 1)), rng.integers(1, size, (TRIED_SETS, 1))
        return np.asarray((np.arange(size) - start) % size < length, dtype=np.float64)
    return np.asarray(rng.random((TRIED_SETS, 1)) > rng.random((TRIED_SETS, size)), dtype=np.float64)


def weights_of(codes: NDArray[np.integer], size: int) -> Array:
    return np.bincount(codes, minlength=size).astype(np.float64)


def mass(weights: Array) -> Array:
    """A distribution in which nothing is quite impossible."""
    return np.asarray((weights + 0.5) / (weights + 0.5).sum())
