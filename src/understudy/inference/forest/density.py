"""The density that a forest's leaves describe (FORDE): in each leaf, columns that are independent of each other.

A number follows a normal distribution between the leaf's bounds, a category its shares in the leaf; the trees are equal
parts of a mixture. See Watson, Blesch, Kapar & Wright, "Adversarial random forests for density estimation and
generative modeling" (AISTATS 2023). Nothing here knows where the rows came from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.inference.forest.boxes import LeafBoxes
from understudy.inference.forest.category_shares import CategoryShares
from understudy.inference.forest.trees import Floats, Indices
from understudy.inference.forest.truncated_normal import log_between

BLOCK = 1 << 18
"""Values that are looked at together."""


@dataclass(frozen=True, eq=False)
class Normal:
    """A number in each leaf: normal with this mean and deviation between the leaf's bounds; sometimes missing."""

    column: int
    mean: Floats
    deviation: Floats
    missing: Floats
    """The share of missing values."""

    @classmethod
    def fit(cls, values: Floats, leaf: Indices, leaves: int, column: int, weights: Floats) -> Normal:
        """Mean and deviation (with n − 1) of the values in each leaf; a single value has no deviation."""
        present = ~np.isnan(values)
        rows = np.bincount(leaf, weights, leaves)
        leaf, values, weights = leaf[present], values[present], weights[present]
        known = np.bincount(leaf, weights, leaves)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(leaf, weights * values, leaves) / known
            square = np.bincount(leaf, weights * (values - mean[leaf]) ** 2, leaves)
            deviation = np.sqrt(np.where(known > 1, square / (known - 1), 0.0))
            missing = np.where(rows > 0, 1.0 - known / rows, 0.0)
        # Equal values whose mean was rounded have no deviation either.
        return cls(column, mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0), np.clip(missing, 0.0, 1.0))

    @property
    def spread(self) -> Floats:
        """The deviation, and 1 where there is none, to divide by."""
        return np.where(self.deviation > 0, self.deviation, 1.0)

    def log_whole(self, leaves: LeafBoxes) -> Floats:
        """log P(low < x ≤ high) of the normal distribution of each leaf, were it without bounds."""
        low, high = leaves.low[:, self.column], leaves.high[:, self.column]
        with np.errstate(invalid="ignore"):
            return log_between((low - self.mean) / self.spread, (high - self.mean) / self.spread)

    def log_mass(self, leaf: Indices, values: Floats, step: float, leaves: LeafBoxes, log_whole: Floats) -> Floats:
        """log P(value, rounded to a multiple of `step`, is this one), in its leaf; NaN asks for a missing value."""
        mean, spread, absent = self.mean[leaf], self.spread[leaf], self.missing[leaf]
        below = np.maximum(values - step / 2, leaves.low[leaf, self.column])
        above = np.minimum(values + step / 2, leaves.high[leaf, self.column])
        with np.errstate(divide="ignore", invalid="ignore"):
            normal = log_between((below - mean) / spread, (above - mean) / spread) - log_whole[leaf]
            point = np.where((values - step / 2 < mean) & (mean <= values + step / 2), 0.0, -np.inf)
            found = np.log1p(-absent) + np.where(self.deviation[leaf] > 0, normal, point)
            found = np.where(np.isnan(values), np.log(absent), found)
        return np.where(np.isnan(found), -np.inf, found)


@dataclass(frozen=True, eq=False)
class ForestDensity:
    """What is known of each leaf: how much of the whole it holds, and a distribution of each column."""

    leaves: LeafBoxes
    coverage: Floats
    """Sums to 1 over the leaves of all trees."""
    columns: tuple[Normal | CategoryShares, ...]

    @classmethod
    def fit(
        cls,
        leaves: LeafBoxes,
        points: Floats,
        sizes: Sequence[int],
        leaf: Indices,
        *,
        alpha: float = 0.0,
        weights: Floats | None = None,
    ) -> ForestDensity:
        """Learns from rows: numbers as they are (NaN where missing), categories as codes.

        `sizes` has the number of categories of each column, and 0 for a number. `leaf` has the leaf of each row in each
        tree, or −1 where the row is not to count there. Weights are taken as numbers of rows, n in all.
        """
        row, tree = np.nonzero(leaf >= 0)
        at = leaf[row, tree]
        weight = np.ones(len(row)) if weights is None else (weights * (len(points) / weights.sum()))[row]
        columns = tuple(
            CategoryShares.count(points[row, j].astype(np.int64), at, leaves, j, size, weight, alpha)
            if size
            else Normal.fit(points[row, j], at, len(leaves), j, weight)
            for j, size in enumerate(sizes)
        )
        return cls(leaves, _coverage(leaves, at, weight, numbers=0 in sizes), columns)

    def log_likelihood(self, points: Floats, leaf: Indices, steps: Floats) -> Floats:
        """log P(row) for each row; numbers as they are after rounding to multiples of `steps`.

        `leaf` has the leaf of each row in each tree. For small steps this is a log-density but for the constant
        Σ log(steps), and where all values of a leaf are the same it stays finite. Where a leaf ends within a number's
        step, what lies beyond is left out; so probabilities sum to slightly less than 1.
        """
        rows = max(1, BLOCK // leaf.shape[1])
        blocks = [slice(i, i + rows) for i in range(0, len(points), rows)]
        return np.concatenate([np.zeros(0), *(self._log_likelihood(points[b], leaf[b], steps) for b in blocks)])

    def _log_likelihood(self, points: Floats, leaf: Indices, steps: Floats) -> Floats:
        from scipy.special import logsumexp

        at, row = leaf.ravel(), np.repeat(np.arange(len(points)), leaf.shape[1])
        with np.errstate(divide="ignore"):
            total = np.log(self.coverage[at])
        for j in range(len(self.columns)):
            total = total + self.log_probability(j, at, points[row, j], float(steps[j]))
        return np.asarray(logsumexp(total.reshape(leaf.shape), axis=1), dtype=np.float64)

    def log_probability(self, column: int, leaf: Indices, values: Floats, step: float) -> Floats:
        """Of each value of one column in its leaf."""
        found = self.columns[column]
        if isinstance(found, Normal):
            return found.log_mass(leaf, values, step, self.leaves, self._log_wholes[column])
        with np.errstate(divide="ignore"):
            return np.log(found.weigh(leaf, values.astype(np.int64)))

    @cached_property
    def _log_wholes(self) -> dict[int, Floats]:
        return {c.column: c.log_whole(self.leaves) for c in self.columns if isinstance(c, Normal)}

    def with_columns(self, columns: Sequence[Normal | CategoryShares]) -> ForestDensity:
        return dataclasses.replace(self, columns=tuple(columns))


def _coverage(leaves: LeafBoxes, at: Indices, weight: Floats, *, numbers: bool) -> Floats:
    """Each tree is an equal part of the whole. A leaf of one row has no deviation, so it counts for nothing."""
    mass, rows = np.bincount(at, weight, len(leaves)), np.bincount(at, minlength=len(leaves))
    mass = np.where(rows > 1, mass, 0.0) if numbers else mass
    of_tree = np.bincount(leaves.tree, mass, leaves.trees)
    share = np.divide(mass, of_tree[leaves.tree], out=np.zeros(len(mass)), where=mass > 0)
    return share / max(share.sum(), 1e-300)
