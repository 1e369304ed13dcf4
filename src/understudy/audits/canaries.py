"""Step 5. One run, many canaries: for methods that train by gradients, and are too slow to be run thousands of times.

Each canary is in the training rows or not, by a coin of its own; after one run every coin is guessed (Steinke, Nasr &
Jagielski 2023). A pure ε allows each guess to be right with probability e^ε/(1+e^ε), as if they were independent.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = Sequence[float] | NDArray[np.float64]
Train = Callable[[NDArray[np.bool_]], Scores]
"""From which canaries are in, to a score of each: high where the run looks as if it had been there."""
STEPS = 60


@dataclass(frozen=True)
class OneRun:
    """How many guesses were made, of how many canaries, and how many were right."""

    canaries: int
    guesses: int
    right: int

    def epsilon(self, level: float, delta: float) -> float:
        """The largest ε that is refuted at this level: bisection, since the p-value grows with ε."""
        low, high = 0.0, 30.0
        if self.p_value(low, delta) > level:
            return 0.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p_value(middle, delta) <= level else (low, middle)
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


def play(train: Train, canaries: int, guessed: float = 0.5) -> OneRun:
    """One run. The most and the least suspicious canaries are guessed, `guessed` of all; the others are passed over."""
    coins = np.array([secrets.randbits(1) for _ in range(canaries)], dtype=bool)
    order = np.argsort(np.asarray(train(coins), dtype=np.float64), kind="stable")
    each = max(1, int(canaries * guessed) // 2)
    right = int((~coins[order[:each]]).sum() + coins[order[-each:]].sum())
    return OneRun(canaries, 2 * each, right)
