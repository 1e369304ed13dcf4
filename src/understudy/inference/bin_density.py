"""Where values lie inside bins: a density that follows the neighbouring bins, and keeps every bin's count.

All that is known of a release's column are the counts of its bins. Inside a bin the density is taken to be exponential,
with the slope that the counts on both sides show. It is a function of counts that were paid for, or of rows drawn from
a model of them: post-processing. Lines are measured in *steps*, the values that can occur, numbered through.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.inference.sampling import stable_argsort

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]

PSEUDO_ROWS = 2.0
"""In every bin, so that a slope between bins of few rows is mostly taken for chance; 0.5 and 5 do as well."""


def draw_steps(codes: NDArray[np.integer], edges: Steps, rng: np.random.Generator) -> Steps:
    """A step inside the bin of each code; bin i is edges[i] ≤ step < edges[i+1]."""
    sizes = np.diff(edges)
    counts = np.bincount(codes, minlength=len(sizes))
    places = _spread_out(codes, counts, rng)
    inside = _tilted(places, log_slopes(counts, edges), codes) * sizes[codes]
    # A place may round up to 1, which is already in the next bin.
    return edges[codes] + np.minimum(inside.astype(np.int64), sizes[codes] - 1)


def log_slopes(counts: NDArray[np.integer], edges: Steps) -> Floats:
    """By how much the logarithm of the density rises from one end of each bin to the other.

    Between two bins it is a straight line through their middles. A bin takes the harmonic mean of the lines on its two
    sides (van Leer 1974): it is 0 at peaks and in valleys, and at most twice the flatter one, so that a heap in the
    next bin pulls nothing out of place. The first and the last bin have one line.

    >>> log_slopes(np.array([60, 30, 14]), np.array([0, 10, 20, 30])).round(2).tolist()
    [-0.66, -0.68, -0.69]
    """
    sizes = np.diff(edges)
    if len(sizes) < 2:
        return np.zeros(len(sizes))
    middles = edges[:-1] + sizes / 2
    rise = np.diff(np.log((counts + PSEUDO_ROWS) / sizes)) / np.diff(middles)
    # A bin of one value is a point mass, often zeros or "none": its density says nothing of the bins beside it.
    apart = (sizes[:-1] == 1) | (sizes[1:] == 1)
    rise[apart] = np.nan
    left, right = np.concatenate([[np.nan], rise]), np.concatenate([rise, [np.nan]])
    left, right = np.where(np.isnan(left), right, left), np.where(np.isnan(right), left, right)
    agree = left * right > 0
    mean = np.divide(2 * left * right, left + right, out=np.zeros(len(sizes)), where=agree)
    return mean * sizes


def _tilted(places: Floats, slopes: Floats, codes: NDArray[np.integer]) -> Floats:
    """The inverse of the distribution function of a density ∝ exp(slope·t) on [0, 1), with the slope of each code."""
    # A slope this small bends nothing that a double could show, and 0 would be divided by.
    slopes = np.where(np.abs(slopes) < 1e-9, 1e-9, slopes)
    return np.log1p(places * np.expm1(slopes)[codes]) / slopes[codes]


def _spread_out(codes: NDArray[np.integer], counts: NDArray[np.integer], rng: np.random.Generator) -> Floats:
    """For each row a number in [0, 1), uniform by itself; those of one code lie one in each of as many equal parts.

    As with the systematic draws of `sampling`: chance inside a bin would only add to the error.
    """
    # Shuffled first: which row of a code gets which part must not depend on the order of the rows.
    order = rng.permutation(np.arange(len(codes), dtype=np.int32))
    order = order[stable_argsort(codes[order], len(counts))]
    part = np.empty(len(codes))
    part[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return (part + rng.random(len(codes))) / counts[codes]
