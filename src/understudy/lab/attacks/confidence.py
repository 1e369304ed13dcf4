"""Intervals of shares, of their differences, of means and of rankings, without assuming that anything is normal."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""How often an interval covers the truth."""

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def _quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def clopper_pearson(hits: int, trials: int, level: float = LEVEL) -> Interval:
    """Of a share: exact, so that it covers the truth at least this often.

    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    from scipy.special import betaincinv

    tail, low, high = (1 - level) / 2, 0.0, 1.0
    # The quantiles of a beta law, which has none where a parameter is 0: there the interval ends with the range.
    if hits:
        low = float(betaincinv(hits, trials - hits + 1, tail))
    if hits < trials:
        high = float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high


def wilson(hits: int, trials: int, level: float = LEVEL) -> Interval:
    """Of a share: where the score test would not reject it.

    >>> tuple(round(end, 4) for end in wilson(56, 70))
    (0.6918, 0.877)
    """
    z2 = _quantile(level) ** 2
    share = hits / trials
    middle = share + z2 / (2 * trials)
    room = math.sqrt(z2 * share * (1 - share) / trials + z2 * z2 / (4 * trials * trials))
    low, high = (middle - room) / (1 + z2 / trials), (middle + room) / (1 + z2 / trials)
    # The ends are exact where the formula would miss them by a rounding.
    if hits == 0:
        low = 0.0
    if hits == trials:
        high = 1.0
    return low, high


def newcombe(hits: int, trials: int, base_hits: int, base_trials: int, level: float = LEVEL) -> Interval:
    """Of the difference of two shares: Newcombe's hybrid score interval (1998, method 10).

    >>> tuple(round(end, 4) for end in newcombe(56, 70, 48, 80))
    (0.0524, 0.3339)
    """
    share, base = hits / trials, base_hits / base_trials
    (low, high), (base_low, base_high) = wilson(hits, trials, level), wilson(base_hits, base_trials, level)
    # A difference is lowest where its first share is at its low end and its second at its high end. The two estimates
    # are independent, so their distances from those ends add up in squares.
    below = math.hypot(share - low, base_high - base)
    above = math.hypot(high - share, base - base_low)
    return max(share - base - below, -1.0), min(share - base + above, 1.0)


def welch(values: Floats, base: Floats, level: float = LEVEL) -> Interval:
    """Of the difference of two means, whose spreads may differ; both need two values or more."""
    from scipy.special import stdtrit

    parts = [float(np.var(v, ddof=1)) / len(v) for v in (values, base)]
    gap, variance = float(values.mean() - base.mean()), math.fsum(parts)
    if variance == 0:
        return gap, gap
    # Degrees of freedom after Welch and Satterthwaite.
    freedom = variance**2 / math.fsum(p**2 / (len(v) - 1) for p, v in zip(parts, (values, base), strict=True))
    room = float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance)
    return gap - room, gap + room


def ranked_above(scores: Floats, base: Floats) -> float:
    """How often a score is above one of the base; a tie counts half. It is the area under the curve (AUC)."""
    # Mann and Whitney's U over the number of pairs, without forming the pairs.
    ordered = np.sort(base)
    twice = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return float(twice.sum()) / (2 * len(scores) * len(base))


def ranking(area: float, count: int, base_count: int, level: float = LEVEL) -> Interval:
    """Of an area under the curve: Newcombe's score interval (2006, method 5), which has a width even at 0 and at 1."""
    return _lower_area(area, count, base_count, level), 1 - _lower_area(1 - area, count, base_count, level)


def _lower_area(area: float, count: int, base_count: int, level: float) -> float:
    """The smallest truth that the score test would not reject."""
    from scipy.optimize import brentq

    if area <= 0:
        return 0.0
    z = _quantile(level)

    def excess(truth: float) -> float:
        # The variance of Hanley and McNeil (1982) for scores of exponential laws, with the mean of both counts where
        # they have one count each: that is what makes it method 5.
        spread = (1 - truth) / (2 - truth) + truth / (1 + truth)
        variance = truth * (1 - truth) * (1 + ((count + base_count) / 2 - 1) * spread) / (count * base_count)
        return area - truth - z * math.sqrt(variance)

    # From below the area: of an area of 1 the variance is 0, so that 1 would be a root, and the interval a point.
    return float(brentq(excess, 0.0, area * (1 - 1e-9), xtol=1e-12))
