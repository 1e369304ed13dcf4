"""A column's codes halved again and again, and noisy counts of the halves made into one estimate.

Code i of K stands at (i + ½)/K on a line from 0 to 1; the nodes of level j are the 2^j equal pieces of that line, so
that every node is the sum of its two halves, and at the last level no node has more than one code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid, Partition
from understudy.inference.noisy_table import NoisyTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_LISTED = 4096
"""Of a column with no more codes, a level is a grid like any other, which lists the node of each code."""
COARSE, SMOOTH, HEAPED, FEW_CODES = 0.08, 3.0, 0.2, 8
"""What is lost below a level, on a line of length 1, for nodes of width h (from histograms of five columns): COARSE·h,
or SMOOTH·h² where that is less, for a smooth density; HEAPED·h where nodes have few codes, as people round them."""
RATIOS = (0.5, 0.7, 1.0, 1.4, 2.0)
LARGEST_STRIDE = 8
STANDS_OUT = 9.0
"""A split three standard deviations from even is kept but for 1/z², whatever the others of its level look like."""
LEAST_SPREAD = 1e-6


def depth_of(codes: int) -> int:
    """The first level at which every code has a node of its own."""
    return (codes - 1).bit_length()


@dataclass(frozen=True)
class Dyadic:
    """The nodes of one level as a public partition; codes `apart`, of special and missing values, have their own cells.

    >>> Dyadic("age", 6, 2).assign({"age": np.arange(6)}).tolist()
    [0, 1, 1, 2, 3, 3]
    """

    column: str
    codes: int
    level: int
    apart: int = 0

    @property
    def columns(self) -> ColumnSet:
        return (self.column,)

    @property
    def cells(self) -> int:
        return (1 << self.level) + self.apart

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.intp]:
        # The code after the last has the node after the last, as long as 2^level < 2·codes.
        code = codes[self.column].astype(np.int64)
        nodes = ((2 * code + 1) << self.level) // (2 * self.codes)
        if self.apart < 2:
            return np.asarray(nodes)
        return np.where(code < self.codes, nodes, (1 << self.level) + code - self.codes)

    def fits(self, domain: Domain) -> bool:
        whole = self.codes + self.apart == domain.size(self.column) and self.level >= 0
        return whole and not (self.apart and 1 << self.level >= 2 * self.codes)

    def describe(self) -> dict[str, Any]:
        # As a truth value where it is one: so have records been written that are to be replayed.
        missing = bool(self.apart) if self.apart < 2 else self.apart
        plain = {"codes": self.codes, "level": self.level, "missing": missing}
        return {"kind": "dyadic", "columns": [self.column], **plain}

    def listed(self) -> Partition:
        """The nodes that have codes as a grid, if it is short: whatever reads grids can then use its counts."""
        if self.codes > MOST_LISTED:
            return self
        nodes = self.assign({self.column: np.arange(self.codes + self.apart)})
        return Grid(self.columns, (tuple(int(g) for g in np.unique(nodes, return_inverse=True)[1]),))

    def by_node(self, counts: NDArray[Any]) -> tuple[Floats, Floats]:
        """Counts of this partition, or of the one listed, by node; and those of the codes apart."""
        flat = np.asarray(counts, dtype=np.float64).ravel()
        flat, beside = np.split(flat, [flat.size - self.apart])
        nodes = np.unique(nodes_of(self.codes, self.level))
        found = np.zeros(1 << self.level)
        found[nodes] = flat if flat.size == nodes.size else flat[nodes]
        return found, beside


def nodes_of(codes: int, level: int) -> Integers:
    """The node of each code."""
    return Dyadic("", codes, level).assign({"": np.arange(codes)}).astype(np.int64)


@dataclass(frozen=True)
class LevelEstimates:
    """For every level the best estimate of each node from what was measured at and below it.

    A node without any code is 0 for certain.
    """

    codes: int
    levels: tuple[NoisyTable, ...]
    """From the root down, each with a variance for every node."""

    @classmethod
    def of(cls, codes: int, measured: Mapping[int, NoisyTable]) -> LevelEstimates:
        """Upwards from the noisy counts of some levels: what a node's halves say of it and what was measured of it, by
        inverse variance (Hay et al. 2010, here with any variances)."""
        deepest = max(measured)
        live = np.bincount(nodes_of(codes, deepest), minlength=1 << deepest) > 0
        own = measured[deepest]
        found = [NoisyTable(own.columns, np.where(live, own.counts, 0.0), np.where(live, own.variance, 0.0))]
        # The upward pass of Hay et al.; the way down again, which makes halves add up, is `split`.
        for level in range(deepest - 1, -1, -1):
            counts, noise = (x[::2] + x[1::2] for x in (found[-1].counts, np.asarray(found[-1].variance)))
            if level in measured:
                own = measured[level]
                weight = noise / (noise + own.variance)
                counts, noise = counts + weight * (own.counts - counts), weight * own.variance
            found.append(NoisyTable(own.columns, counts, noise))
        return cls(codes, tuple(reversed(found)))

    @property
    def total(self) -> tuple[float, float]:
        """The estimate of all rows, and its variance."""
        return float(self.levels[0].counts[0]), float(np.max(self.levels[0].variance))

    def posterior_mean(self, total: float) -> Floats:
        """Least squares under a Polya tree prior, non-negative, by code.

        The split of a node with N rows deviates from its base share q with variance N²·q(1−q)/(A + 1) under the prior,
        whose pseudo-counts A are those of the level that explain its deviations best (empirical Bayes).
        """
        mass = np.array([max(total, 0.0)])
        for level in range(1, len(self.levels)):
            left, noise = self.split(level, mass)
            even = mass * _left_share(self.codes, level)
            left = np.clip(even + _kept(left - even, noise, mass, _left_share(self.codes, level)), 0.0, mass)
            mass = np.stack([left, mass - left], axis=1).ravel()
        node = nodes_of(self.codes, len(self.levels) - 1)
        return np.asarray((mass / np.maximum(np.bincount(node, minlength=len(mass)), 1))[node])

    def split(self, level: int, mass: Floats) -> tuple[Floats, Floats]:
        """The left half of each node, given the rows of the node; and the noise variance of that split."""
        counts, variances = self.levels[level].counts, np.asarray(self.levels[level].variance)
        both = variances[::2] + variances[1::2]
        share = np.divide(variances[::2], both, out=np.zeros_like(both), where=both > 0)
        return counts[::2] + (mass - counts[::2] - counts[1::2]) * share, share * variances[1::2]


def _left_share(codes: int, level: int) -> Floats:
    """The share of each node's codes that its left half has."""
    widths = np.bincount(nodes_of(codes, level), minlength=1 << level)
    return np.asarray(widths[::2] / np.maximum(widths[::2] + widths[1::2], 1))


def _kept(deviation: Floats, noise: Floats, mass: Floats, share: Floats) -> Floats:
    """What remains of the deviations from the base measure when they are shrunk as far as they are noise."""
    spread = mass**2 * share * (1 - share)
    likely = float((deviation**2 - noise)[spread > 0].sum()) / max(float(spread.sum()), 1e-300)
    spread *= min(max(likely, LEAST_SPREAD), 1.0)
    kept = np.divide(spread, spread + noise, out=np.zeros_like(spread), where=spread > 0)
    squares = deviation**2
    # Limited translation (Efron & Morris 1972): a rare large split must not be shrunk because the others are even.
    own = np.divide(squares - noise, squares, out=np.zeros_like(squares), where=squares > STANDS_OUT * noise)
    return np.asarray(np.maximum(kept, own) * deviation)


def best_levels(codes: int, rows: float, variance: float, pure: bool) -> list[tuple[int, float]]:
    """Which levels to measure, each with its share of the budget, so that the cumulative distribution errs least.

    `variance` is that of a count which gets the whole budget; a share w of it multiplies that by 1/w², or 1/w for
    zCDP. The error of a split shifts the distribution function by a hat over its node, so that splits of variance u_j/2
    have a mean square of Σ u_j/6; what lies below the deepest level adds the width of its nodes. The best of all
    strides between levels and all ratios of neighbouring shares is taken: plain arithmetic, the same on every machine.
    """
    # With Laplace noise a few levels far apart come out best, with Gaussian noise many close together.
    found: tuple[float, list[tuple[int, float]]] = (math.inf, [])
    for deepest in range(1, depth_of(codes) + 1):
        unresolved = _unresolved(codes, deepest)
        for stride in range(1, min(deepest, LARGEST_STRIDE) + 1):
            levels = list(range(deepest, 0, -stride))
            for ratio in RATIOS if len(levels) > 1 else (1.0,):
                shares = _geometric(len(levels), ratio)
                noise = {j: variance / (w * w if pure else w) for j, w in zip(levels, shares, strict=True)}
                error = _mean_square(noise, deepest) / rows**2 + unresolved**2
                if error < found[0]:
                    found = error, list(zip(levels, shares, strict=True))
    return sorted(found[1])


def _unresolved(codes: int, level: int) -> float:
    """What is expected to be lost below a level; nothing where every code has its own node."""
    if level >= depth_of(codes):
        return 0.0
    width = 1 / 2**level
    if codes < FEW_CODES << level:
        return HEAPED * width
    return min(COARSE, SMOOTH * width) * width


def _geometric(count: int, ratio: float) -> list[float]:
    weights = [1.0]
    for _ in range(count - 1):
        weights.append(weights[-1] * ratio)
    whole = sum(weights)
    return [w / whole for w in weights]


def _mean_square(noise: Mapping[int, float], deepest: int) -> float:
    """Σ u_j/6 over the levels, where u_j is the variance of a node from all that was measured at and below it."""
    found, below = 0.0, math.inf
    for level in range(deepest, 0, -1):
        precision = 0.0
        if level in noise:
            precision += 1 / noise[level]
        if below < math.inf:
            precision += 1 / (2 * below)
        below = 1 / precision
        found += below / 6
    return found
