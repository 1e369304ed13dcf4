"""Measurements made to agree: one estimate of each column from all tables that hold it, and tables with its margins.

Tables that overlap say different things of the columns they share, by their noise. Fitted one after the other they
would pull the model back and forth; and what they say together of a column is better than what its own counts say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.grouping import Floats, Groups

SHIFTS = 2


@dataclass(frozen=True)
class Reading:
    """Noisy counts over a grid of columns, each cell with the same variance."""

    columns: ColumnSet
    groups: tuple[Groups, ...]
    counts: Floats
    variance: float

    def margin(self, column: str) -> tuple[Groups, Floats, float]:
        """The groups of one column, their counts, and the variance of each: counts add up, and so do variances."""
        axis = self.columns.index(column)
        counts = self.counts.sum(axis=tuple(i for i in range(self.counts.ndim) if i != axis))
        return self.groups[axis], counts, self.variance * self.counts.size / counts.size


@dataclass(frozen=True)
class Column:
    """Counts of the values of a column, and the variance of each."""

    counts: Floats
    variances: Floats

    def updated(self, groups: Groups, seen: Floats, variance: float) -> Column:
        """With the noisy counts of its groups: each sum moves by its share of the variance (a Kalman step).

        Only the variances are kept, not how the errors of values go together: a good approximation, and no matrix.
        """
        sums, noise = np.bincount(groups, self.counts), np.bincount(groups, self.variances)
        gain = (noise / (noise + variance)) / noise
        counts = self.counts + (gain * (seen - sums))[groups] * self.variances
        return Column(counts, self.variances * (1.0 - gain[groups] * self.variances))

    def scaled_to(self, total: float) -> Column:
        """Moved to another total, each value by its share of the variance."""
        return Column(self.counts + (total - self.counts.sum()) * self.variances / self.variances.sum(), self.variances)


def agree(columns: Mapping[str, Column], readings: Sequence[Reading], total: float | None) -> dict[str, Column]:
    """Each column with all that the readings say of it; they all get the known total, or the best estimate of it."""
    found = dict(columns)
    for reading in readings:
        for column in reading.columns:
            found[column] = found[column].updated(*reading.margin(column))
    common = _total(found.values()) if total is None else total
    return {name: column.scaled_to(common) for name, column in found.items()}


def _total(columns: Iterable[Column]) -> float:
    """The mean of the columns' totals, by inverse variance; never below 1, for there is a row to release."""
    sums, precision = zip(*((c.counts.sum(), 1.0 / c.variances.sum()) for c in columns), strict=True)
    return max(1.0, float(np.average(sums, weights=precision)))


def shifted(reading: Reading, columns: Mapping[str, Column]) -> Floats:
    """The counts of a reading, moved evenly so that its margins are those of the columns."""
    counts = reading.counts.copy()
    for _ in range(SHIFTS):
        for axis, (name, groups) in enumerate(zip(reading.columns, reading.groups, strict=True)):
            wanted = np.bincount(groups, columns[name].counts)
            margin = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != axis))
            change = (wanted - margin) * (margin.size / counts.size)
            counts += change.reshape([-1 if i == axis else 1 for i in range(counts.ndim)])
    return counts
