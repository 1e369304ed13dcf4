"""How far the pairs of a table will be off: what noise, rows and unknown relations add up to.

A pair of columns is told from unrelated ones by a *departure* r: that of the population, which is how closely the
columns are related, and that of the sample, √(cells/rows). To measure the pair costs noise v, which grows with its
cells; whoever shrinks a noisy table as far as it is noise errs by neither more than v nor more than r. Of what a method
does not reach a share of r stays. And the noise of single columns is in each of their pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.methods.forecast.spending import SHARE_OF_NOISE, Floats, Public, Spending

MOST_EFFECTIVE = 40.0
"""Values of a column are not equally frequent: k of them count as k/(1 + k/40) in the noise and in the sampling of a
table. Measured on columns of eleven public tables, where a column's count is (Σ√p)² (`scripts/bench plan`)."""
POINTS = (np.arange(32) + 0.5) / 32
"""Pairs, and columns, are represented by so many quantiles."""
ROUNDING, LARGEST = 6.0, 0.999
"""No distance exceeds one; what would is bent below it."""


@dataclass(frozen=True)
class Setting:
    """What the error of a method follows from; every field may be an array over cases, quantiles being last."""

    columns: Floats
    """The noise of single columns, as a total variation: its quantiles."""
    pairs: Floats
    """The effective cells of pairs: their quantiles."""
    rows: NDArray[np.float64]
    noise: NDArray[np.float64]
    """In each cell of what is measured together; none is measured where it is 0."""

    @classmethod
    def of(cls, public: Public, spending: Spending) -> Setting:
        effective = effective_sizes(public.sizes)
        return cls(
            quantiles(spending.columns), pairs_of(effective), np.array([public.rows]), np.array([spending.noise])
        )


def effective_sizes(sizes: Floats) -> Floats:
    return np.asarray(sizes / (1 + sizes / MOST_EFFECTIVE))


def pairs_of(effective: Floats) -> Floats:
    """Quantiles of the cells of pairs; one column alone has none."""
    one, other = np.triu_indices(effective.size, 1)
    return quantiles(effective[one] * effective[other]) if one.size else np.zeros(POINTS.size)


def quantiles(values: Floats) -> Floats:
    return np.asarray(np.quantile(values, POINTS, method="inverted_cdf"))


@dataclass(frozen=True)
class Shape:
    """What all methods have in common."""

    shrinking: float
    """How sharply the error turns from noise to departure."""
    columns: float
    """How much of the noise of single columns is in their pairs."""
    damping: float
    """How soon that noise stops growing: counts can't be negative."""


def expected_error(of: Setting, shape: Shape, related: Floats, waste: Floats, unreached: Floats) -> NDArray[np.float64]:
    """The mean total variation of pairs. `related` is the mean distance of pairs from unrelated columns."""
    rows, noise = of.rows, of.noise
    sampled = of.pairs / rows
    departure = np.sqrt(sampled + np.where(of.pairs > 0, (related / SHARE_OF_NOISE) ** 2, 0.0))
    noisy = waste * of.pairs * noise / rows
    low, high = np.minimum(noisy, departure), np.maximum(np.maximum(noisy, departure), 1e-300)
    known = low / (1 + (low / high) ** shape.shrinking) ** (1 / shape.shrinking)
    pairs = SHARE_OF_NOISE * np.sqrt(known**2 + unreached * departure**2).mean(axis=-1)
    columns = (of.columns / (1 + shape.damping * of.columns)).mean(axis=-1)
    error = np.sqrt(pairs**2 + (shape.columns * columns) ** 2)
    return np.asarray(np.minimum(error / (1 + error**ROUNDING) ** (1 / ROUNDING), LARGEST))
