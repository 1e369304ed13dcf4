"""What the leaves say: noisy counts by class, and the shares of the classes that they are evidence for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.predictors.tree import Tree, sums_of_children

Floats = NDArray[np.float64]
LEAST_SHARE = 1e-6
LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class Leaves:
    """A tree with the noisy counts of its leaves by class, each with the same noise variance."""

    tree: Tree
    counts: Floats
    variance: float

    def with_more(self, counts: Floats, variance: float) -> Leaves:
        """Other rows counted in the same leaves: counts add up, and so does their noise."""
        return Leaves(self.tree, self.counts + counts, self.variance + variance)

    def with_again(self, counts: Floats, variance: float) -> Leaves:
        """The same rows counted once more: the mean, weighted by what each count is worth."""
        kept = variance / (self.variance + variance)
        mixed = kept * self.counts + (1.0 - kept) * counts
        return Leaves(self.tree, mixed, self.variance * kept)

    def shares(self, classes: int) -> Floats:
        """The share of each class in each leaf; a leaf that says little has those of the nodes above it."""
        sums = sums_of_children(self.tree, self.counts)[:, :classes]
        size = sums_of_children(self.tree, np.ones((self.tree.leaves, 1)))
        shares = np.full(sums.shape, 1.0 / classes)
        shares[0] = _proportions(sums[0] + 1.0)
        for depth in range(1, self.tree.depth + 1):
            here = np.flatnonzero(self.tree.level == depth)
            above = self.tree.parent[here]
            shares[here] = _drawn_to(shares[above], sums[here], self.variance * size[here], self._column(above))
        return shares[self.tree.leaf_nodes]

    def plain_shares(self, classes: int) -> Floats:
        """As printed in the seed: each leaf by itself; one without rows has the shares of the whole."""
        counts = np.maximum(self.counts[:, :classes], 0.0)
        whole = _proportions(np.maximum(self.counts[:, :classes].sum(axis=0), 0.0) + LEAST_SHARE)
        rows = counts.sum(axis=1, keepdims=True)
        return np.where(rows > 0, counts / np.maximum(rows, 1.0), whole)

    def _column(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the column that each of these nodes is cut by."""
        names = {name: i for i, name in enumerate(self.tree.columns)}
        return np.array([names[s.column] for s in self.tree.splits])[np.array(self.tree.nodes)[nodes]]


def _drawn_to(above: Floats, counts: Floats, variance: Floats, column: NDArray[np.int64]) -> Floats:
    """Shares of nodes between their own counts and the shares of their parents (empirical Bayes).

    With n rows and the parent's shares p, counts − n·p has mean n·(own − p), and the variance of sampling and of the
    noise. How far the children of nodes cut by one column differ from their parents is estimated from all of them.
    """
    classes = counts.shape[1]
    rows = np.maximum(counts.sum(axis=1, keepdims=True), 0.0)
    surprise = counts - rows * above
    uncertain = rows * above * (1.0 - above) + variance * (1.0 - 2.0 * above + classes * above**2)
    sure = rows[:, 0] > np.sqrt(classes * variance[:, 0])
    excess = np.bincount(column, sure * (surprise**2 - uncertain).sum(axis=1))
    weight = np.bincount(column, sure * rows[:, 0] ** 2)
    spread = np.maximum(excess / np.maximum(weight, 1.0), LEAST_SPREAD)[column][:, None] / classes
    own = above + spread * rows * surprise / np.maximum(spread * rows**2 + uncertain, 1e-12)
    return _proportions(np.maximum(own, LEAST_SHARE))


def _proportions(weights: Floats) -> Floats:
    weights = np.maximum(weights, LEAST_SHARE)
    return weights / weights.sum(axis=-1, keepdims=True)


def mean_shares(shares: Sequence[Floats]) -> Floats:
    """What several trees say together."""
    return np.mean(np.stack(shares), axis=0)


def votes(shares: Sequence[Floats]) -> Floats:
    """The share of trees that vote for each class, as printed in the seed."""
    ballots = [np.eye(s.shape[1])[s.argmax(axis=1)] for s in shares]
    return np.mean(np.stack(ballots), axis=0)
