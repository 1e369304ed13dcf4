"""Lower bounds on ε, ρ and μ from how often two worlds were told apart, each at a stated level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ORDERS = np.array([1.0 + 1e-6, 1.1, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0])


@dataclass(frozen=True)
class Proved:
    """At least this much, with the probability that the level says; 0 where nothing is proved."""

    epsilon: float = 0.0
    rho: float = 0.0
    mu: float = 0.0

    @classmethod
    def of(cls, high: float, low: float, delta: float) -> Proved:
        """From an event that has at least probability `high` in one world, and at most `low` in the other."""
        if high <= low:
            return cls()
        return cls(_epsilon(high, low, delta), max(_rho(high, low), _rho(low, high)), _mu(high, low))

    @classmethod
    def by_accuracy(cls, right: int, runs: int, level: float, delta: float) -> Proved:
        """From guesses of a fair coin, each right with the same probability: one binomial, so one bound.

        A world is told rightly with probability a = (P[event in one] + 1 − P[event in the other]) / 2, which is at most
        1 − (1−δ)/(1+e^ε), and at most Φ(μ/2). For ρ: with the worlds exchanged and the guess turned round, the two
        errors change places; the even mixture of both has error 1−a in either world, and is no more divergent than
        the worse of them (Rényi divergence is jointly quasi-convex: van Erven & Harremoës 2014, theorem 13).
        """
        a = lower_share(right, runs, level)
        if a <= 0.5:
            return cls()
        epsilon = math.log(max(1.0, (1 - delta) / (1 - a) - 1)) if a < 1 else math.inf
        return cls(epsilon, _rho(a, 1 - a), _mu(a, 1 - a))


def lower_share(hits: int, runs: int, level: float) -> float:
    """Clopper–Pearson: the true share is at least this, but for a chance of `level`."""
    from scipy.stats import beta

    return float(beta.ppf(level, hits, runs - hits + 1)) if hits else 0.0


def upper_share(hits: int, runs: int, level: float) -> float:
    return 1.0 - lower_share(runs - hits, runs, level)


def by_event(hits: tuple[int, int], runs: tuple[int, int], level: float, delta: float) -> Proved:
    """From an event that was fixed beforehand, by how often it was seen in each world; more in the second one."""
    (first, second), (of_first, of_second) = hits, runs
    return Proved.of(lower_share(second, of_second, level / 2), upper_share(first, of_first, level / 2), delta)


def _epsilon(high: float, low: float, delta: float) -> float:
    """P ≤ e^ε·Q + δ, for the event and for its complement."""
    ratios = [(high - delta, low), (1 - low - delta, 1 - high)]
    return max(0.0, *(math.log(p / q) if q > 0 else math.inf for p, q in ratios if p > 0))


def _rho(p: float, q: float) -> float:
    """ρ is at least D_α/α for every α; here D_α between coins of bias p and q (data processing)."""
    if not (0 < p < 1 and 0 < q < 1):
        return math.inf
    exponents = [
        np.logaddexp(a * math.log(p) + (1 - a) * math.log(q), a * math.log1p(-p) + (1 - a) * math.log1p(-q))
        / (a - 1)
        / a
        for a in ORDERS
    ]
    return float(max(exponents))


def _mu(high: float, low: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(high) - ndtri(low))


def best_event(first: Floats, second: Floats, delta: float, scale: Proved) -> tuple[int, float, bool]:
    """The column of statistics, threshold and direction that prove the most, by runs that will not test them.

    `first` and `second` hold a row for each run and a column for each statistic; `scale` holds what is claimed, to
    weigh bounds on ε against bounds on ρ.
    """
    best = (-1.0, (0, 0.0, True))
    for column in range(first.shape[1]):
        for above in (True, False):
            found = _best_threshold(first[:, column], second[:, column], above, delta, scale)
            best = max(best, (found[0], (column, found[1], above)))
    return best[1]


def _best_threshold(first: Floats, second: Floats, above: bool, delta: float, scale: Proved) -> tuple[float, float]:
    thresholds = np.unique(np.concatenate([first, second]))
    tried = thresholds[np.linspace(0, len(thresholds) - 1, min(40, len(thresholds))).round().astype(int)]
    return max((_worth(first, second, t, above, delta, scale), float(t)) for t in tried)


def _worth(first: Floats, second: Floats, at: float, above: bool, delta: float, scale: Proved) -> float:
    """Smoothed, so that an event that was seen once does not look certain."""
    p, q = ((float(happened(x, at, above).sum()) + 0.5) / (len(x) + 1) for x in (second, first))
    spread = 2 * math.sqrt(p * (1 - p) / len(second)) + 2 * math.sqrt(q * (1 - q) / len(first))
    proved = Proved.of(max(p, q) - spread / 2, min(p, q) + spread / 2, delta)
    return max(proved.epsilon / scale.epsilon, proved.rho / scale.rho if scale.rho else 0.0)


def happened(statistic: Floats, at: float, above: bool) -> NDArray[np.bool_]:
    return statistic >= at if above else statistic < at
