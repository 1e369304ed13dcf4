"""Step 5. One run, many canaries: for methods that train by gradients, and are too slow to be run thousands of times.

Each canary is in the training rows or not, by a coin of its own; after one run every coin is guessed (Steinke, Nasr &
Jagielski 2023). What right guesses prove is said in three ways:

- `OneRun.epsilon`: of any mechanism that claims (ε, δ), whatever ties its canaries together;
- `OneRun.refutes`: of any mechanism that claims a whole curve, whatever ties its canaries together (Mahloujifar, Melis
  & Chaudhuri 2024);
- `OneRun.refutes_apart`: of one that claims a curve, where each canary is seen through coins and noise of its own.

The canaries here are rows of two columns that have a pair of values of their own (`Canaries`). The wide gradient of a
row is its pair of values, so that each canary has one number of the noisy sums to itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.training import LARGEST_WEIGHT, Deep, Noisy
from understudy.lab.audits.games.bounds import Curve, lower_share

Floats = NDArray[np.float64]
Coins = NDArray[np.bool_]
Codes = NDArray[np.integer[Any]]
Scores = Sequence[float] | Floats
# Of a bisection of [0, 30]: as fine as floats are.
STEPS = 60


@dataclass(frozen=True)
class OneRun:
    """How many guesses were made, of how many canaries, and how many were right."""

    canaries: int
    guesses: int
    right: int

    def epsilon(self, level: float, delta: float) -> float:
        """The largest ε that is refuted at this level: bisection, since the p-value grows with ε."""
        low, high = 0.0, 30.0  # with m canaries no more than about ln m can be proved
        if self.p_value(low, delta) > level:
            return 0.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            if self.p_value(middle, delta) <= level:
                low = middle
            else:
                high = middle
        return low

    def p_value(self, epsilon: float, delta: float) -> float:
        """How likely that many right guesses are, at most, if (ε, δ) holds (their theorem 5.2)."""
        from scipy.stats import binom

        chance = 1.0 / (1.0 + np.exp(-epsilon))
        tail = float(binom.sf(self.right - 1, self.guesses, chance))
        if delta == 0 or self.right == 0:
            return min(1.0, tail)
        below = np.cumsum(binom.pmf(np.arange(self.right - 1, -1, -1), self.guesses, chance))
        worst = float((below / np.arange(1, self.right + 1)).max())
        return min(1.0, tail + 2 * self.canaries * delta * worst)

    def refutes(self, curve: Curve, level: float) -> bool:
        """Whether no mechanism of this curve has so many right guesses with a chance of `level`.

        Take a canary j, and the event that j is guessed to be b while at least i − 1 of the other guesses are right. It
        does not depend on j's own coin, so that the curve bounds its chance where the coin is b by its chance where it
        is not. Added up over all m canaries and both b (the curve is convex: Jensen), with C right of k guesses,

            E[k − C; C ≥ i − 1] ≥ m · least(E[C; C ≥ i] / m)   for every i.

        In P_i = P[C ≥ i] this is a lower bound on P_{i−1} that grows with all P_l, l ≥ i. So, beginning with
        P_right = level and nothing above, the least P are found one after the other; one above 1 is a contradiction.
        """
        tail = above = level
        for i in range(self.right, 0, -1):
            wrong = self.canaries * curve.least(((i - 1) * tail + above) / self.canaries)
            tail = max(tail, (wrong + above) / (self.guesses - i + 1))
            if tail > 1.0:
                return True
            above += tail
        return False

    def refutes_apart(self, curve: Curve, level: float) -> bool:
        """The same where every canary is guessed, and nothing but its own coins and noise decides whether rightly."""
        return lower_share(self.right, self.guesses, level) > (1.0 + curve.distance) / 2


def tossed(canaries: int) -> Coins:
    """A fair coin for each, which nobody can know beforehand."""
    return (np.frombuffer(secrets.token_bytes(canaries), dtype=np.uint8) & 1).astype(bool)


def guessed(coins: Coins, scores: Scores, share: float) -> OneRun:
    """The most and the least suspicious canaries are guessed, `share` of all; the others are passed over."""
    order = np.argsort(np.asarray(scores, dtype=np.float64), kind="stable")
    each = max(1, int(len(coins) * share) // 2)
    right = int((~coins[order[:each]]).sum() + coins[order[-each:]].sum())
    return OneRun(len(coins), 2 * each, right)


def judged(coins: Coins, scores: Scores) -> OneRun:
    """Every canary is guessed, each by its own score alone: in where it is above zero."""
    return OneRun(len(coins), len(coins), int(((np.asarray(scores) > 0) == coins).sum()))


@dataclass(frozen=True)
class Canaries:
    """A row for each pair of two different values, of which the first `units` have a hidden unit of their own.

    Rows of twice the same value are company: they are always in, so that noisy counts show every value as frequent and
    no two values share a group, and they touch no canary's pair.
    """

    values: int
    units: int

    @cached_property
    def rows(self) -> Codes:
        first, second = np.divmod(np.arange(self.values**2), self.values)
        return np.stack([first, second], axis=1)[first != second]

    def company(self, each: int) -> Codes:
        return np.repeat(np.arange(self.values), each)[:, None].repeat(2, axis=1)

    def critic(self, width: int) -> Deep:
        """The critic that asks for each unit's canary: its gradient is LARGEST_WEIGHT long, along one number.

        A unit gets that much from a row with both values, 0 from one with one of them, less from others, and silu
        leaves nothing of what is 0 or far below. The last weights are 0, so that no other weight has a gradient. The
        accounting holds for every critic (`subsampling`), this one included.
        """
        first, units = np.zeros((width, self.units)), np.arange(self.units)
        first[self.rows[: self.units, 0], units] = LARGEST_WEIGHT
        first[self.values + self.rows[: self.units, 1], units] = LARGEST_WEIGHT
        return Deep(first, np.full(self.units, -LARGEST_WEIGHT), np.zeros(self.units))


class GradientListener:
    """Adds up, over the steps, the log-likelihood ratio of each canary being in, from the numbers that are its own.

    In a step, a canary that is in joins with probability `rate`, and then adds `length` to normal noise. `wide` listens
    for the pair of values, which is best for an honest training; `deep` listens for gradients that nobody clipped. How
    large the noise is, is heard where the critic leaves nothing else (all but its last weights), so that less noise
    than declared is made use of; those numbers are no canary's own.
    """

    def __init__(self, canaries: Canaries, rate: float, wide_of_deep: float) -> None:
        self._places = canaries.rows @ np.array([canaries.values, 1])
        self._units, self._rate, self._wide_of_deep = canaries.units, rate, wide_of_deep
        self.wide, self.deep = np.zeros(len(canaries.rows)), np.zeros(canaries.units)

    def hear(self, noisy: Noisy) -> None:
        noise = float(np.sqrt(np.mean(noisy.deep[: -self._units] ** 2)))
        self.wide += self._ratio(noisy.pairs[self._places], 1.0, noise * self._wide_of_deep)
        self.deep += self._ratio(noisy.deep[-self._units :], LARGEST_WEIGHT, noise)

    def _ratio(self, heard: Floats, length: float, noise: float) -> Floats:
        joined = length * (heard - length / 2) / noise**2
        return np.asarray(np.logaddexp(np.log1p(-self._rate), np.log(self._rate) + joined))
