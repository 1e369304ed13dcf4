"""Noisy counts with their variance: how tables are made to agree, and counts into distributions.

Tables that overlap say different things of the columns they share, by their noise. Fitted one after the other they
would pull a model back and forth; and what they say together of a column is better than what its own counts say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.partition import Grid
from understudy.inference.grouping import Floats, Groups, sum_by_group

SHIFTS = 2
"""Rounds over the axes of a table. After the second one, margins are met to the last digits: shifts of one axis change
the other margins by one number each, which is the difference of the totals."""
LEAST_ROWS, SHARE_OF_LEAST = 1.05, 0.01
"""What a declared value keeps, as long as all values of its column together keep no more than this share of the rows.

A little more than a row, so that it is one in any number of rows that the total is rounded to."""


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts over a grid of columns, and the noise variance of every cell, or of each by itself."""

    columns: ColumnSet
    counts: Floats
    variance: float | Floats
    groups: tuple[Groups, ...] = ()
    """For each column the group of every code; none where the cells are those of the codes, or where it is clear."""

    @classmethod
    def of(cls, measured: Measurement) -> NoisyTable:
        """What the curator answered, over a grid or over the codes of some columns."""
        grid = measured.partition
        if not isinstance(grid, Grid):
            return cls(measured.columns, measured.counts.astype(np.float64), measured.variance)
        groups = tuple(np.array(g, dtype=np.intp) for g in grid.groups)
        return cls(grid.columns, measured.counts.reshape(grid.shape).astype(np.float64), measured.variance, groups)

    def margin(self, column: str) -> NoisyTable:
        """Of one column: counts add up over the others, and so do variances, which must be the same for all cells."""
        axis = self.columns.index(column)
        counts = self.counts.sum(axis=tuple(i for i in range(self.counts.ndim) if i != axis))
        variance = self.variance * self.counts.size / counts.size
        return NoisyTable((column,), counts, variance, self.groups[axis : axis + 1])

    def sorted_by(self, order: Sequence[str]) -> NoisyTable:
        """The same table with its columns in a given order."""
        columns = tuple(sorted(self.columns, key=order.index))
        axes = [self.columns.index(c) for c in columns]
        variance = self.variance
        if np.ndim(variance):
            variance = np.asarray(variance).transpose(axes)
        groups = tuple(self.groups[i] for i in axes) if self.groups else ()
        return NoisyTable(columns, np.asarray(self.counts, dtype=np.float64).transpose(axes), variance, groups)

    def averaged_with(self, other: NoisyTable) -> NoisyTable:
        """Two tables of the same cells as one, by inverse variance."""
        # Of all weighted means this has the least variance (Gauss and Markov), and stays unbiased.
        variance = 1.0 / (1.0 / np.asarray(self.variance) + 1.0 / np.asarray(other.variance))
        counts = variance * (self.counts / self.variance + other.counts / other.variance)
        return replace(self, counts=counts, variance=variance if variance.ndim else float(variance))

    def updated_by(self, margin: NoisyTable) -> NoisyTable:
        """The counts of a column's codes, with noisy sums of groups: each sum moves by its share of the variance.

        A Kalman step that keeps the variances only, not how the errors of values go together: a good approximation,
        and no matrix.
        """
        (groups,) = margin.groups
        sums, noise = np.bincount(groups, self.counts), np.bincount(groups, self.variance)
        # Codes share a correction by their variance: where nothing was known of a code, the sum decides.
        gain = (noise / (noise + margin.variance)) / noise
        counts = self.counts + (gain * (margin.counts - sums))[groups] * self.variance
        return replace(self, counts=counts, variance=self.variance * (1.0 - gain[groups] * self.variance))

    def scaled_to(self, total: float) -> NoisyTable:
        """Moved to another total, each cell by its share of the variance."""
        variance = np.asarray(self.variance)
        return replace(self, counts=self.counts + (total - self.counts.sum()) * variance / variance.sum())

    def shifted_to(self, columns: Mapping[str, NoisyTable]) -> NoisyTable:
        """Moved evenly so that the margins are the counts of the columns: what cells have in common stays."""
        counts = self.counts.copy()
        for _ in range(SHIFTS):
            for axis, (name, groups) in enumerate(zip(self.columns, self.groups, strict=True)):
                wanted = sum_by_group(groups, columns[name].counts)
                margin = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != axis))
                change = (wanted - margin) * (margin.size / counts.size)
                counts += change.reshape([-1 if i == axis else 1 for i in range(counts.ndim)])
        return replace(self, counts=counts)


def agree(
    columns: Mapping[str, NoisyTable], tables: Sequence[NoisyTable], total: float | None
) -> dict[str, NoisyTable]:
    """Each column with all that the tables say of it; they all get the known total, or the best estimate of it.

    The columns have a variance for each code, the tables one for all cells.
    """
    found = dict(columns)
    for table in tables:
        for column in table.columns:
            found[column] = found[column].updated_by(table.margin(column))
    if total is None:
        # The mean of the columns' totals, by inverse variance; never below 1, for there is a row to release.
        sums, precision = zip(*((c.counts.sum(), 1.0 / np.sum(c.variance)) for c in found.values()), strict=True)
        total = max(1.0, float(np.average(sums, weights=precision)))
    return {name: column.scaled_to(total) for name, column in found.items()}


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from all measurements: each one's sum has variance cells × σ², so weight by its inverse.

    A public row count has no variance and settles the matter. Never below 1: there is a row to release.
    """
    # Under replace-one the number of rows is public, and is among the measurements without noise.
    for m in measurements:
        if m.variance == 0:
            return max(1.0, float(m.counts.sum()))
    sums = np.array([float(m.counts.sum()) for m in measurements])
    precision = np.array([1.0 / (m.counts.size * m.variance) for m in measurements])
    return max(1.0, float(sums @ precision / precision.sum()))


def project_to_simplex(counts: NDArray[np.number[Any]], total: float) -> NDArray[np.float64]:
    """The nearest non-negative counts (in L2) that sum to `total`: y − τ where positive, else 0 (Duchi et al. 2008)."""
    flat = np.asarray(counts, dtype=np.float64).ravel()
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, flat.size + 1)
    # The cells that stay positive are the largest ones; how many is where the last one still exceeds its threshold.
    kept = np.flatnonzero(falling > excess)[-1]
    return np.maximum(flat - excess[kept], 0.0).reshape(np.shape(counts))


def keep_every_value(
    counts: NDArray[np.number[Any]], total: float, variance: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """The nearest counts (in L2) that sum to `total` and leave each value about a row, where that takes few of them.

    A declared value that noise has taken below zero would come out with no row at all, as if it were impossible. The
    rule is public: it reads how many values there are, their noise, and the noisy total.

    >>> keep_every_value(np.array([900.0, 110.0, -10.0]), 1000, 25.0).round(2).tolist()
    [894.47, 104.47, 1.05]
    """
    size, plain = np.asarray(counts).size, project_to_simplex(counts, total)
    # With noise of less than a row, a count of none is none.
    if np.mean(variance) < 1.0 or LEAST_ROWS * size > SHARE_OF_LEAST * total or plain.min() >= LEAST_ROWS:
        return plain
    return project_to_simplex(counts - LEAST_ROWS, total - LEAST_ROWS * size) + LEAST_ROWS


def settled(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table to ten significant bits.

    Fits use `exp` and matrix products, whose last digits differ between kinds of processors. Rounded this coarsely, one
    number in a billion or so would still differ, and a release can be replayed on another machine; what it changes is
    far below the noise.
    """
    fraction, exponent = np.frexp(table)
    return np.ldexp(np.rint(fraction * 1024.0), exponent - 10)
