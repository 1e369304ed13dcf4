"""Noisy counts made into distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import Measurement


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from all measurements: each one's sum has variance cells × σ², so weight by its inverse.

    A public row count has no variance and settles the matter. Never below 1: there is a row to release.
    """
    for m in measurements:
        if m.variance == 0:
            return max(1.0, float(m.counts.sum()))
    sums = np.array([float(m.counts.sum()) for m in measurements])
    precision = np.array([1.0 / (m.counts.size * m.variance) for m in measurements])
    return max(1.0, float(sums @ precision / precision.sum()))


def project_to_simplex(counts: NDArray[np.number[Any]], total: float) -> NDArray[np.float64]:
    """The nearest non-negative counts (in L2) that sum to `total`: y − τ where positive, else 0 (Duchi et al. 2008)."""
    flat = np.asarray(counts, dtype=np.float64).ravel()
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, flat.size + 1)
    kept = np.flatnonzero(falling > excess)[-1]
    return np.maximum(flat - excess[kept], 0.0).reshape(np.shape(counts))


def settled(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table to ten significant bits.

    Fits use `exp` and matrix products, whose last digits differ between kinds of processors. Rounded this coarsely, one
    number in a billion or so would still differ, and a release can be replayed on another machine; what it changes is
    far below the noise.
    """
    fraction, exponent = np.frexp(table)
    return np.ldexp(np.rint(fraction * 1024.0), exponent - 10)
