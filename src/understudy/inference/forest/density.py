"""The density that a forest's leaves describe (FORDE), and rows drawn from it (FORGE).

In each leaf columns are independent of each other: a number follows a normal distribution between the leaf's bounds, a
category its shares in the leaf; the trees are equal parts of a mixture. See Watson, Blesch, Kapar & Wright,
"Adversarial random forests for density estimation and generative modeling" (AISTATS 2023). Nothing here knows where the
rows came from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.inference.forest.trees import Flags, Floats, Indices, LeafBoxes

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
            # About the leaf's own mean, not by the sum of squares less n times its square, which cancels.
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
        # A row counts once in every tree, so that each tree is a density of its own; the forest is their mean.
        row, tree = np.nonzero(leaf >= 0)
        at = leaf[row, tree]
        weight = np.ones(len(row))
        if weights is not None:
            weight = (weights * (len(points) / weights.sum()))[row]
        columns: list[Normal | CategoryShares] = []
        for j, size in enumerate(sizes):
            values = points[row, j]
            if size:
                codes = values.astype(np.int64)
                columns.append(
                    CategoryShares.count(codes, at, leaves, column=j, size=size, weights=weight, alpha=alpha)
                )
            else:
                columns.append(Normal.fit(values, at, len(leaves), j, weight))
        return cls(leaves, _coverage(leaves, at, weight, numbers=0 in sizes), tuple(columns))

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


NARROW = 1e-5
"""An interval of so few standard deviations is taken to have one density throughout."""
LOG_ROOT_TAU = 0.9189385332046727
"""log √(2π)."""


def log_between(low: Floats, high: Floats) -> Floats:
    """log(Φ(high) − Φ(low)) of a standard normal variable; −∞ where low ≥ high."""
    from scipy.special import log_ndtr

    low, high = _left_of_zero(low, high)[:2]
    # In logarithms throughout: far out in a tail the difference of two values of Φ is 0 in doubles.
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
    # Inverse transform sampling of a truncated normal, with Φ⁻¹ of a logarithm for the same reason.
    drawn = ndtri_exp(upper + np.log(share + uniform * (1.0 - share)))
    drawn = np.where(turned, -drawn, drawn)
    return np.clip(drawn, low, high)


def _left_of_zero(low: Floats, high: Floats) -> tuple[Floats, Floats, Flags]:
    """The interval, or its mirror image where most of it lies right of 0: there Φ is too near to 1 to be told apart."""
    turned = low > -high
    return np.where(turned, -high, low), np.where(turned, -low, high), turned


ROOM = 4
"""A full table of leaves and categories is counted in, if it has at most so many cells for each value."""

Codes = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class CategoryShares:
    """Weights of the categories of one column in each leaf; each category in a leaf's box has `alpha` more.

    Entries are sorted by key = leaf × size + code, so that a leaf's entries lie side by side.
    """

    size: int
    keys: NDArray[np.int64]
    weights: Floats
    first: NDArray[np.int64]
    """The first code in each leaf's box."""
    inside: NDArray[np.int64]
    """How many codes are in it."""
    alpha: float
    ends: Floats
    """Running sums of the weights, from 0 on."""
    starts: Indices
    """Where the entries of each leaf begin, and where the last ones end."""

    @classmethod
    def count(
        cls,
        codes: Codes,
        leaf: Indices,
        leaves: LeafBoxes,
        column: int,
        size: int,
        weights: Floats | None,
        alpha: float,
    ) -> CategoryShares:
        """Of values with these codes in these leaves; α smoothing as in a flat Dirichlet prior."""
        keys, counts = _tally(leaf * size + codes, len(leaves) * size, weights)
        return cls.of(keys, counts, leaves, column, size, alpha)

    @classmethod
    def of(
        cls, keys: NDArray[np.int64], weights: Floats, leaves: LeafBoxes, column: int, size: int, alpha: float
    ) -> CategoryShares:
        first, inside = leaves.levels(column, size)
        starts = np.searchsorted(keys, np.arange(len(leaves) + 1) * size)
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        return cls(size, keys, weights=weights, first=first, inside=inside, alpha=alpha, ends=ends, starts=starts)

    @property
    def totals(self) -> Floats:
        """The weight of all entries of each leaf."""
        return np.diff(self.ends[self.starts])

    def weigh(self, leaf: Indices, codes: Codes) -> Floats:
        """The probability of each code in its leaf; 0 for a code that is not in the leaf's box."""
        keys = leaf * self.size + codes
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = (self.keys[place] == keys) & (codes >= 0) & (codes < self.size)
        within = (codes >= self.first[leaf]) & (codes < self.first[leaf] + self.inside[leaf])
        total = self.totals[leaf] + self.alpha * self.inside[leaf]
        weight = np.where(known, self.weights[place], 0.0) + self.alpha * within
        return np.divide(weight, total, out=np.zeros(keys.shape), where=total > 0)

    def draw(self, leaf: Indices, rng: np.random.Generator) -> NDArray[np.int64]:
        """A code for each leaf. A leaf's mass is its entries, and then α for each code in its box."""
        low, high = self.ends[self.starts[leaf]], self.ends[self.starts[leaf + 1]]
        extra = self.alpha * self.inside[leaf]
        place = rng.random(leaf.shape) * (high - low + extra)
        entry = np.searchsorted(self.ends, low + place, side="right") - 1
        entry = np.clip(entry, self.starts[leaf], np.maximum(self.starts[leaf + 1] - 1, self.starts[leaf]))
        codes = self.keys[np.minimum(entry, len(self.keys) - 1)] - leaf * self.size
        if not self.alpha:
            return codes
        smooth = self.first[leaf] + (rng.random(leaf.shape) * self.inside[leaf]).astype(np.int64)
        return np.where(place < high - low, codes, smooth)

    def filled(self, leaves: LeafBoxes, column: int) -> CategoryShares:
        """The same shares with an entry for every code in each box, and no α any more."""
        leaf = np.repeat(np.arange(len(self.inside)), self.inside)
        begin = np.repeat(np.cumsum(self.inside) - self.inside, self.inside)
        codes = self.first[leaf] + np.arange(len(leaf)) - begin
        keys, weights = leaf * self.size + codes, self.weigh(leaf, codes)
        return CategoryShares.of(
            keys, weights * (self.totals + self.alpha * self.inside)[leaf], leaves, column, self.size, 0.0
        )


def _tally(keys: NDArray[np.int64], cells: int, weights: Floats | None) -> tuple[NDArray[np.int64], Floats]:
    """The keys that occur, rising, and the weight of each."""
    if cells <= ROOM * len(keys):
        table = np.bincount(keys, weights, cells)
        found = np.flatnonzero(table)
        return found, table[found].astype(np.float64)
    found, place = np.unique(keys, return_inverse=True)
    return found, np.bincount(place, weights, len(found)).astype(np.float64)


def forge(density: ForestDensity, rows: int, rng: np.random.Generator) -> Floats:
    """That many rows: numbers (NaN where missing), categories as codes.

    Leaves are drawn by their coverage, each as often as that says, rounded up or down; so every tree has its part.
    """
    # A systematic draw: one random offset for all rows.
    line = np.cumsum(density.coverage)
    places = (np.arange(rows) + rng.random()) * (line[-1] / max(rows, 1))
    leaf = np.searchsorted(line, places, side="right")
    leaf = np.minimum(leaf, np.flatnonzero(density.coverage)[-1])
    return fill(density, rng.permutation(leaf), {}, rng)


def fill(density: ForestDensity, leaf: Indices, given: Mapping[int, Floats], rng: np.random.Generator) -> Floats:
    """A row from each of these leaves; what is given stays."""
    columns = [given[j] if j in given else _draw(density, j, leaf, rng) for j in range(len(density.columns))]
    return np.column_stack(columns)


def complete(density: ForestDensity, given: Mapping[int, Floats], steps: Floats, rng: np.random.Generator) -> Floats:
    """For each row of the given columns a whole row that keeps them.

    A leaf is drawn by its coverage times the probability of what is given. Where no leaf allows for all of it, each
    column counts for so little as makes all leaves possible.
    """
    points = np.column_stack(list(given.values()))
    distinct, which = np.unique(points, axis=0, return_inverse=True)
    block = max(1, BLOCK * 4 // len(density.leaves))
    leaf = np.empty(len(points), dtype=np.intp)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    for begin in range(0, len(distinct), block):
        line = np.cumsum(_leaf_weights(density, distinct[begin : begin + block], list(given), steps), axis=1)
        rows = order[starts[begin] : starts[min(begin + block, len(distinct))]]
        leaf[rows] = _pick(line, which[rows] - begin, rng)
    return fill(density, leaf, given, rng)


def _leaf_weights(density: ForestDensity, points: Floats, columns: list[int], steps: Floats) -> Floats:
    """For each row of given values the weight of every leaf."""
    every = np.arange(len(density.leaves))
    with np.errstate(divide="ignore"):
        total = np.tile(np.log(density.coverage), (len(points), 1))
    # A column that contradicts a leaf takes this off, which is more than all others can make up for: leaves are weighed
    # by how many columns they contradict, and among those with the fewest by probability.
    lowest = -1e4
    for place, column in enumerate(columns):
        leaf, values = np.tile(every, len(points)), np.repeat(points[:, place], len(every))
        found = density.log_probability(column, leaf, values, float(steps[column])).reshape(total.shape)
        total += np.maximum(found, lowest)
    return np.exp(total - total.max(axis=1, keepdims=True))


def _pick(line: Floats, row: Indices, rng: np.random.Generator) -> Indices:
    """A place in each row of running sums; all at once, by laying the rows end to end."""
    # Row i lies between i and i + 1, so that one sorted search finds the places of all rows.
    scaled = line / line[:, -1:] + np.arange(len(line))[:, None]
    found = np.searchsorted(scaled.ravel(), row + rng.random(len(row)), side="right")
    return np.minimum(found - row * line.shape[1], line.shape[1] - 1)


def _draw(density: ForestDensity, column: int, leaf: Indices, rng: np.random.Generator) -> Floats:
    found = density.columns[column]
    if not isinstance(found, Normal):
        return found.draw(leaf, rng).astype(np.float64)
    mean, deviation = found.mean[leaf], found.deviation[leaf]
    low, high = density.leaves.low[leaf, column], density.leaves.high[leaf, column]
    spread = np.where(deviation > 0, deviation, 1.0)
    known = ~np.isnan(mean)
    drawn = np.full(len(leaf), np.nan)
    drawn[known] = draw_between(((low - mean) / spread)[known], ((high - mean) / spread)[known], rng)
    values = np.where(deviation > 0, mean + spread * drawn, mean)
    values = np.where(deviation > 0, np.clip(values, low, high), values)
    return np.where(rng.random(len(leaf)) < found.missing[leaf], np.nan, values)
