"""The normal distribution between two bounds: probabilities of intervals and draws, sound far out in the tails."""

from __future__ import annotations

import numpy as np

from understudy.inference.forest.trees import Flags, Floats

NARROW = 1e-5
"""An interval of so few standard deviations is taken to have one density throughout."""
LOG_ROOT_TAU = 0.9189385332046727
"""log √(2π)."""


def log_between(low: Floats, high: Floats) -> Floats:
    """log(Φ(high) − Φ(low)) of a standard normal variable; −∞ where low ≥ high."""
    from scipy.special import log_ndtr

    low, high = _left_of_zero(low, high)[:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = log_ndtr(high), log_ndtr(low)
        wide = upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0)))
        thin = -0.5 * ((low + high) / 2) ** 2 - LOG_ROOT_TAU + np.log(high - low)
        found = np.where(high - low < NARROW, thin, wide)
    return np.where(low < high, found, -np.inf)


def draw_between(low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """One draw from each standard normal variable between two bounds, of which the lower is the smaller."""
    from scipy.special import log_ndtr, ndtri_exp

    left, right, turned = _left_of_zero(low, high)
    upper, lower = log_ndtr(right), log_ndtr(left)
    share = np.exp(np.minimum(lower - upper, 0.0))
    uniform = 1.0 - rng.random(low.shape)  # never 0
    drawn = ndtri_exp(upper + np.log(share + uniform * (1.0 - share)))
    drawn = np.where(turned, -drawn, drawn)
    return np.clip(drawn, low, high)


def _left_of_zero(low: Floats, high: Floats) -> tuple[Floats, Floats, Flags]:
    """The interval, or its mirror image where most of it lies right of 0: there Φ is too near to 1 to be told apart."""
    turned = low > -high
    return np.where(turned, -high, low), np.where(turned, -low, high), turned
