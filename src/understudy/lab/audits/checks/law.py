"""What noise of a declared law must obey, as Chernoff bounds.

For independent draws with a known moment generating function, P[Σx ≥ s] is at most exp(n·ln M(t) − t·s) for *every*
t ≥ 0, so the least of these over any list of t is a bound on the p-value, at any n. No asymptotics, no seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Residuals = NDArray[np.int64]
Floats = NDArray[np.float64]
Moments = Callable[[float], float]
"""ln E[exp(t·x)]; infinite where there is none."""

ORDERS = np.geomspace(1e-4, 0.98, 120)
LARGE = 5.0
"""From this σ on, the discrete Gaussian has the moments of the normal law up to 10⁻⁷⁰."""


@dataclass(frozen=True)
class NoiseLaw:
    """The moments of a size (which measures the scale) and of the value itself."""

    size: Callable[[Residuals], Floats]
    size_moments: Moments
    value: Callable[[Residuals], Floats]
    value_moments: Moments


def gaussian(sigma: float) -> NoiseLaw:
    """The discrete Gaussian. Its moments are ratios of theta functions, which are those of the normal law up to a

    factor of 1 ± 3·exp(−2π²s²) with s² = σ²/(1−2t): for σ ≥ 5 and t ≥ −1 that is 1 ± 10⁻⁷⁰ (Poisson summation).
    Below that they are summed. E[exp(t·x/σ)] ≤ exp(t²/2) holds without any error (Canonne, Kamath & Steinke 2020,
    Lemma 19).
    """

    def closed(t: float) -> float:
        return -0.5 * math.log1p(-2 * t) if t < 0.5 else math.inf

    return NoiseLaw(
        lambda x: (x / sigma) ** 2,
        closed if sigma >= LARGE else _summed(sigma),
        lambda x: x / sigma,
        lambda t: t * t / 2,
    )


def _summed(sigma: float) -> Moments:
    """By the probabilities themselves, as far out as exp(−x²/2σ²·(1−2t)) is above nothing for every t that is tried."""
    k = np.arange(-400, 401)
    exponents = -(k**2) / (2 * sigma**2)
    norm = math.log(np.exp(exponents).sum())

    def moments(t: float) -> float:
        if t >= 0.45:  # what lies beyond the sum might matter
            return math.inf
        return math.log(np.exp(exponents * (1 - 2 * t)).sum()) - norm

    return moments


def laplace(scale: float) -> NoiseLaw:
    """The discrete Laplace law, P[k] = (1−r)/(1+r)·r^|k| with r = exp(−1/b): geometric series, exactly."""
    r = math.exp(-1 / scale)

    def size_moments(t: float) -> float:
        tail = r * math.exp(t / scale)
        return math.log((1 - r) / (1 + r) * (1 + 2 * tail / (1 - tail))) if tail < 1 else math.inf

    def value_moments(t: float) -> float:
        up, down = r * math.exp(t / scale), r * math.exp(-t / scale)
        return 2 * math.log1p(-r) - math.log1p(-up) - math.log1p(-down) if max(up, down) < 1 else math.inf

    return NoiseLaw(lambda x: np.abs(x) / scale, size_moments, lambda x: x / scale, value_moments)


LAWS: dict[str, Callable[[float], NoiseLaw]] = {
    "discrete-gaussian": gaussian,
    "thresholded-gaussian": gaussian,
    "discrete-laplace": laplace,
}


def hoeffding(t: float) -> float:
    """Of anything centred within [−1, 1] (Hoeffding 1963): here the product of two independent, symmetric signs."""
    return t * t / 2


def coin(probability: float) -> Moments:
    return lambda t: math.log1p(probability * math.expm1(t))


def tail_bound(values: Floats, moments: Moments) -> float:
    """An upper bound on the probability of a sum as far out as this one, on its side."""
    total, count = float(values.sum()), values.size
    exponents = [count * moments(t) - t * total for order in ORDERS for t in (order, -order)]
    return math.exp(min(0.0, *exponents))


def signs(first: Residuals, second: Residuals) -> Floats:
    return (np.sign(first) * np.sign(second)).astype(np.float64)
