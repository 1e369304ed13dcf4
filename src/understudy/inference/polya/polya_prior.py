"""Polya trees: a prior on distributions over a line that is halved again and again, and its posterior.

A node at level j of the tree has α_j = c·j^p pseudo-counts; the share of a node that goes left is a Beta of the
pseudo-counts and counts of its two halves. Large c trusts the base measure, small c the data. Everything is done by
level, for all nodes of it at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DEEPEST = 24


class Base(Protocol):
    """The measure that a tree is centred at: values to places in [0, 1], where it is uniform, and back."""

    def place(self, values: Floats) -> Floats: ...

    def value(self, places: Floats) -> Floats: ...

    def log_density(self, values: Floats) -> Floats: ...


@dataclass(frozen=True)
class Uniform:
    """Uniform from low to high."""

    low: float = 0.0
    high: float = 1.0

    def place(self, values: Floats) -> Floats:
        return (values - self.low) / (self.high - self.low)

    def value(self, places: Floats) -> Floats:
        return self.low + places * (self.high - self.low)

    def log_density(self, values: Floats) -> Floats:
        inside = (values >= self.low) & (values <= self.high)
        return np.where(inside, -math.log(self.high - self.low), -np.inf)


@dataclass(frozen=True)
class PolyaPrior:
    """The prior: pseudo-counts c·j^p at the levels j = 1 … depth, about a base measure.

    >>> PolyaPrior(concentration=1.0, depth=2).posterior(np.array([0.1, 0.2, 0.9])).predictive().round(3).tolist()
    [0.36, 0.24, 0.178, 0.222]
    """

    concentration: float
    depth: int
    # With j² draws have a density, since Σ 1/α_j is finite (Kraft 1964).
    exponent: float = 2.0
    base: Base = Uniform()

    def __post_init__(self) -> None:
        if not 0 < self.concentration < math.inf:
            raise InputError(f"concentration ({self.concentration}) must be above 0 and finite", self)
        if not 1 <= self.depth <= DEEPEST:
            raise InputError(f"depth ({self.depth}) must be from 1 to {DEEPEST}; ask for another", self)

    @property
    def pseudo_counts(self) -> Floats:
        return self.concentration * np.arange(1.0, self.depth + 1) ** self.exponent

    @property
    def leaves(self) -> int:
        return 1 << self.depth

    def leaf(self, values: Floats) -> Integers:
        """The leaf of each value; what lies beyond the base measure is in the first or last."""
        places = self.base.place(np.asarray(values, dtype=np.float64)) * self.leaves
        return np.clip(places, 0, self.leaves - 1).astype(np.int64)

    def posterior(self, values: Floats) -> PolyaPosterior:
        return PolyaPosterior.of_counts(self, np.bincount(self.leaf(values), minlength=self.leaves))

    def log_ratio_limit(self, draws: int) -> float:
        """The largest log ratio of the probabilities of `draws` draws under data that differ in one value: exact.

        As for `boundary.privacy.mechanisms.posterior.epsilon_of_draws`, which rounds it up to a price.
        """
        # Reached where the row that differs is alone in its half of the line and all draws fall into its leaf; the
        # proof is in docs/concepts/nonparametric.md.
        a = self.pseudo_counts
        return float(np.log1p(draws / a).sum() - np.log1p(draws / (2 * a[1:])).sum())


@dataclass(frozen=True)
class PolyaPosterior:
    """A tree with the counts of each level's nodes, from the root down."""

    tree: PolyaPrior
    levels: tuple[NDArray[Any], ...]

    @classmethod
    def of_counts(cls, tree: PolyaPrior, leaves: NDArray[Any]) -> PolyaPosterior:
        """From counts by leaf, which need not be whole: noisy counts that were made consistent will do."""
        levels = [np.asarray(leaves)]
        for _ in range(tree.depth):
            levels.append(levels[-1][::2] + levels[-1][1::2])
        return cls(tree, tuple(reversed(levels)))

    def predictive(self) -> Floats:
        """The probability of each leaf for one more value: the mean of the posterior."""
        mass = np.ones(1)
        for a, counts in zip(self.tree.pseudo_counts, self.levels[1:], strict=True):
            left = (a + counts[::2]) / (2 * a + counts[::2] + counts[1::2])
            mass = np.stack([mass * left, mass * (1 - left)], axis=1).ravel()
        return mass

    def log_density(self, values: Floats) -> Floats:
        """Of one more value."""
        with np.errstate(divide="ignore"):
            leaf = np.log(self.predictive()[self.tree.leaf(values)] * self.tree.leaves)
        return leaf + self.tree.base.log_density(np.asarray(values, dtype=np.float64))

    def measures(self, count: int, rng: np.random.Generator) -> Floats:
        """Draws from the posterior: in each row the probabilities of all leaves."""
        mass = np.ones((count, 1))
        for a, counts in zip(self.tree.pseudo_counts, self.levels[1:], strict=True):
            left = rng.beta(a + counts[::2], a + counts[1::2], (count, len(counts) // 2))
            mass = np.stack([mass * left, mass * (1 - left)], axis=-1).reshape(count, -1)
        return mass

    def draw(self, values: int, rng: np.random.Generator) -> Floats:
        """Values from one measure that is drawn from the posterior: the joint predictive law, in random order."""
        counts = self.draw_counts(values, rng)
        places = np.repeat(np.arange(self.tree.leaves, dtype=np.float64), counts)
        rng.shuffle(places)
        places += rng.random(values)
        places /= self.tree.leaves
        return self.tree.base.value(places)

    def draw_counts(self, values: int, rng: np.random.Generator) -> Integers:
        """How many of these values fall into each leaf."""
        drawn = np.array([values])
        for a, counts in zip(self.tree.pseudo_counts, self.levels[1:], strict=True):
            left = rng.binomial(drawn, rng.beta(a + counts[::2], a + counts[1::2]))
            drawn = np.stack([left, drawn - left], axis=1).ravel()
        return drawn

    def log_probability(self, draws: Sequence[int] | Integers) -> float:
        """ln of the probability of draws with these counts by leaf, in one given order: a product of Beta integrals."""
        from scipy.special import betaln

        drawn, found = PolyaPosterior.of_counts(self.tree, np.asarray(draws)), 0.0
        pairs = zip(self.tree.pseudo_counts, self.levels[1:], drawn.levels[1:], strict=True)
        for a, counts, more in pairs:
            before = betaln(a + counts[::2], a + counts[1::2])
            found += float((betaln(a + counts[::2] + more[::2], a + counts[1::2] + more[1::2]) - before).sum())
        return found
