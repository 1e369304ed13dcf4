"""The exact law of the privacy loss of a Polya tree's draws, for the neighbours whose largest loss is the supremum.

One table has its first row at a, in a half of the line that holds no other row; the other table has it at b, in the
half where all other rows are. The counts of draws that matter are then those along the two paths. They form two chains
of beta-binomial splits, which can be enumerated for small trees and few draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.inference.polya.polya_prior import PolyaPrior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """The values that a privacy loss can have, and their probabilities."""

    values: Floats
    probabilities: Floats

    def exceeds(self, epsilon: float) -> float:
        """P(loss > ε): the δ of probabilistic differential privacy."""
        return float(self.probabilities[self.values > epsilon].sum())

    def delta(self, epsilon: float) -> float:
        """The δ of (ε, δ)-differential privacy: E[(1 − e^(ε − loss))⁺]."""
        gain = -np.expm1(np.minimum(epsilon - self.values, 0.0))
        return float(self.probabilities @ gain)


def worst_pair(tree: PolyaPrior, rows: int, draws: int) -> Loss:
    """The loss of `draws` draws from the table with a, against the one with b, of `rows` rows each."""
    a, others = tree.pseudo_counts, rows - 1
    first = _split_law(draws, a[0] + 1, a[0] + others)
    values, probabilities = [], []
    for near in range(draws + 1):
        with_a = _chain(a, near, 0, 1)
        with_b = _chain(a, draws - near, others, 0)
        values.append(np.subtract.outer(with_a.values, with_b.values).ravel())
        probabilities.append(first[near] * np.outer(with_a.probabilities, with_b.probabilities).ravel())
    return Loss(np.concatenate(values), np.concatenate(probabilities))


def _chain(pseudo_counts: Floats, draws: int, others: int, here: int) -> Loss:
    """ln of how many times likelier the draws of one half are with one row more at the end of a path through it.

    `others` rows are at its end besides, and `here` says whether the one more is there when the draws are made.
    """
    a = pseudo_counts
    drawn = np.array([draws])
    found = Loss(np.log1p(drawn / (a[0] + others)), np.ones(1))
    for j in range(1, len(a)):
        below = np.concatenate([np.arange(m + 1) for m in drawn])
        from_above = np.repeat(np.arange(len(drawn)), drawn + 1)
        chance = np.concatenate([_split_law(int(m), a[j] + others + here, a[j]) for m in drawn])
        step = np.log1p(below / (a[j] + others)) - np.log1p(drawn[from_above] / (2 * a[j] + others))
        found = Loss(found.values[from_above] + step, found.probabilities[from_above] * chance)
        drawn = below
    return found


def _split_law(draws: int, left: float, right: float) -> Floats:
    """The probability that 0, 1, …, all of the draws go left: beta-binomial."""
    from scipy.special import betaln, gammaln

    k = np.arange(draws + 1)
    ways = gammaln(draws + 1) - gammaln(k + 1) - gammaln(draws - k + 1)
    return np.asarray(np.exp(ways + betaln(left + k, right + draws - k) - betaln(left, right)))
