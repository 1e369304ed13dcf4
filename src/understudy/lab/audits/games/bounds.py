"""Lower bounds on ε, ρ and μ from how often two worlds were told apart, each at a stated level.

A bound on ε alone forgets how the loss is spread. `Curve` is all that a training claims, δ at every ε; a training is
bounded by the noisiest one of its kind (same rate, same steps) whose curve is not refuted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.subsampling import LEAST_NOISE, Course, epsilon_of_course, loss_accountant

Floats = NDArray[np.float64]
# Orders of the Rényi divergence that ρ is bounded by; near 1 it is the relative entropy.
ORDERS = np.array([1.0 + 1e-6, 1.1, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0])
# The ε at which a curve is known. Between them a bound is only weaker, never wrong (`Curve.least`).
LOSSES = np.concatenate([[0.0], np.geomspace(0.01, 60.0, 120)])
# How far from its own noise a training is bounded, to within 1 %; nothing is said of less than a quarter of it.
LEAST_OF_NOISE, MOST_OF_NOISE, HALVINGS = 0.25, 16.0, 9

# Of the level, for the twos in which the event happened in the wrong world alone (`LowerBounds.by_twos`).
OF_LOST = 0.1

# Of each statistic that are tried, evenly spaced among the values that were seen.
MOST_THRESHOLDS = 40


@dataclass(frozen=True)
class LowerBounds:
    """What is proved to be at least this large, but for a chance of `level`; 0 where nothing is proved."""

    epsilon: float = 0.0
    rho: float = 0.0
    mu: float = 0.0

    @classmethod
    def of(cls, high: float, low: float, delta: float) -> LowerBounds:
        """From an event that has at least probability `high` in one world, and at most `low` in the other."""
        if high <= low:
            return cls()
        # P ≤ e^ε·Q + δ, for the event and for its complement.
        ratios = [(high - delta, low), (1 - low - delta, 1 - high)]
        epsilon = max(0.0, *(math.log(p / q) if q > 0 else math.inf for p, q in ratios if p > 0))
        return cls(epsilon, max(_rho(high, low), _rho(low, high)), _mu(high, low))

    @classmethod
    def by_twos(cls, gained: int, lost: int, twos: int, level: float, delta: float) -> LowerBounds:
        """From runs by twos, one in each world: in `gained` of them the event happened in the second world alone, in
        `lost` in the first alone.

        The two of them may share their noise: P[event in the second] − P[event in the first] is P[gained] − P[lost]
        however they are tied, as long as each has the law of its world. With the same noise most twos are alike, and a
        rare difference needs fewer runs than two shares of a half. Where noise is all there is to chance nothing is
        lost, so that a tenth of the level is enough for it.

        Who guesses a fair coin by the event is right with probability a = (1 + gained − lost)/2, which is at most
        1 − (1−δ)/(1+e^ε), and at most Φ(μ/2). For ρ: with the worlds exchanged and the guess turned round, the two
        errors change places; the even mixture of both has error 1−a in either world, and is no more divergent than
        the worse of them (Rényi divergence is jointly quasi-convex: van Erven & Harremoës 2014, theorem 13).
        """
        least = lower_share(gained, twos, level * (1 - OF_LOST)) - upper_share(lost, twos, level * OF_LOST)
        a = (1 + least) / 2
        if a <= 0.5:
            return cls()
        epsilon = math.inf
        if a < 1:
            epsilon = math.log(max(1.0, (1 - delta) / (1 - a) - 1))
        return cls(epsilon, _rho(a, 1 - a), _mu(a, 1 - a))


def lower_share(hits: int, runs: int, level: float) -> float:
    """Clopper–Pearson: the true share is at least this, but for a chance of `level`."""
    from scipy.stats import beta

    if not hits:
        return 0.0
    return float(beta.ppf(level, hits, runs - hits + 1))


def upper_share(hits: int, runs: int, level: float) -> float:
    return 1.0 - lower_share(runs - hits, runs, level)


def by_event(hits: tuple[int, int], runs: tuple[int, int], level: float, delta: float) -> LowerBounds:
    """From an event that was fixed beforehand, by how often it was seen in each world; more in the second one."""
    (first, second), (of_first, of_second) = hits, runs
    return LowerBounds.of(lower_share(second, of_second, level / 2), upper_share(first, of_first, level / 2), delta)


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


def best_event(first: Floats, second: Floats, delta: float, scale: LowerBounds) -> tuple[int, float, bool]:
    """The column of statistics, threshold and direction that prove the most, by runs that will not test them.

    `first` and `second` hold a row for each run and a column for each statistic; `scale` holds what is claimed, to
    weigh bounds on ε against bounds on ρ.
    """
    best = (-1.0, (0, 0.0, True))
    for column in range(first.shape[1]):
        seen = np.unique(np.concatenate([first[:, column], second[:, column]]))
        tried = seen[np.linspace(0, len(seen) - 1, min(MOST_THRESHOLDS, len(seen))).round().astype(int)]
        for at, above in itertools.product(tried.tolist(), (True, False)):
            worth = _worth(first[:, column], second[:, column], at, above, delta, scale)
            # As tuples: among equals the last statistic and the largest threshold win, in every run of an audit.
            best = max(best, (worth, (column, at, above)))
    return best[1]


def _worth(first: Floats, second: Floats, at: float, above: bool, delta: float, scale: LowerBounds) -> float:
    """Smoothed, so that an event that was seen once does not look certain."""
    p, q = ((float(happened(x, at, above).sum()) + 0.5) / (len(x) + 1) for x in (second, first))
    spread = 2 * math.sqrt(p * (1 - p) / len(second)) + 2 * math.sqrt(q * (1 - q) / len(first))
    proved = LowerBounds.of(max(p, q) - spread / 2, min(p, q) + spread / 2, delta)
    worth = proved.epsilon / scale.epsilon
    if scale.rho:
        worth = max(worth, proved.rho / scale.rho)
    return worth


def happened(statistic: Floats, at: float, above: bool) -> NDArray[np.bool_]:
    if above:
        return statistic >= at
    return statistic < at


@dataclass(frozen=True, eq=False)
class Curve:
    """What two neighbours may differ by: at every ε of a list, from 0 on, a δ that holds in both directions."""

    epsilons: Floats
    deltas: Floats

    @property
    def distance(self) -> float:
        """The total variation, δ at ε = 0: a fair coin is guessed rightly with at most (1 + distance)/2."""
        return float(self.deltas[0])

    def least(self, chance: float) -> float:
        """How likely an event must be in one world that has this chance in the other.

        P ≤ e^ε·Q + δ gives Q ≥ (P − δ)/e^ε; of the complements, it gives Q ≥ 1 − δ − e^ε·(1 − P). A maximum of lines,
        so that what is between the listed ε is never overstated.
        """
        odds = np.exp(self.epsilons)
        lines = np.maximum((chance - self.deltas) / odds, 1.0 - self.deltas - odds * (1.0 - chance))
        return max(0.0, float(lines.max()))


@lru_cache(maxsize=64)
def curve_of(course: Course) -> Curve:
    """Of a training, as its accountant knows it: rounded up."""
    return Curve(LOSSES, np.array(loss_accountant(course).get_delta(LOSSES.tolist()), dtype=np.float64))


def least_epsilon(refuted: Callable[[Curve], bool], course: Course, delta: float) -> float:
    """The ε at this δ of the noisiest training of this rate and as many steps that is not refuted; 0 if none is.

    More noise has a curve that lies lower everywhere, and is refuted before: bisection.
    """
    low, high = max(LEAST_NOISE, course.noise * LEAST_OF_NOISE), course.noise * MOST_OF_NOISE
    if not refuted(curve_of(replace(course, noise=high))):
        return 0.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        if refuted(curve_of(replace(course, noise=middle))):
            high = middle
        else:
            low = middle
    return epsilon_of_course(replace(course, noise=high), delta)
