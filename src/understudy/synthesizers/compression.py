"""Rare values merged before columns are measured together, by noisy counts alone.

A cell whose count is below its noise says nothing but costs error. Values of a column whose noisy one-way counts do
not stand out of the noise share one group; joint tables are measured over groups; a drawn group is opened again by
the one-way counts of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.models.estimation import Observation
from understudy.models.histogram import project_to_simplex
from understudy.models.model import CodeColumns, Model
from understudy.models.sampling import draw_given
from understudy.privacy.measurement import Measurement
from understudy.schema.domain import ColumnSet
from understudy.schema.partition import Grid

STANDS_OUT = 3.0
"""A value keeps a cell of its own when its noisy count is at least this many standard deviations of its noise."""


@dataclass(frozen=True)
class Compression:
    """Per column, the group of each code; and the non-negative one-way estimate by which groups are opened."""

    groups: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, one_ways: Sequence[Measurement], total: float) -> Compression:
        groups = {m.columns[0]: _groups(m) for m in one_ways}
        return cls(groups, {m.columns[0]: project_to_simplex(m.counts, total) for m in one_ways})

    @property
    def sizes(self) -> dict[str, int]:
        return {c: max(g) + 1 for c, g in self.groups.items()}

    def grid(self, columns: ColumnSet) -> Grid:
        """The public partition that counts these columns by group."""
        return Grid(columns, tuple(self.groups[c] for c in columns))

    def base(self) -> dict[str, NDArray[np.float64]]:
        """The one-way estimate of each column, by group."""
        return {c: _sums(g, self.weights[c]) for c, g in self.groups.items()}

    def merge(self, one_way: Measurement) -> Observation:
        """A one-way measurement by group: counts add up, and so do variances."""
        groups = self.groups[one_way.columns[0]]
        variance = _sums(groups, np.full(len(groups), one_way.variance))
        return Observation(one_way.columns, _sums(groups, one_way.counts.astype(np.float64)), variance)

    def observe(self, measured: Measurement) -> Observation:
        """A measurement over this compression's own grid."""
        shape = tuple(self.sizes[c] for c in measured.columns)
        return Observation(measured.columns, measured.counts.reshape(shape).astype(np.float64), measured.variance)

    def expand(self, codes: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Codes of the domain from codes of groups."""
        return {c: draw_given(groups.astype(np.intp), self._table(c), rng) for c, groups in codes.items()}

    def _table(self, column: str) -> NDArray[np.float64]:
        """Weights of the values of each group; where a group has none, its values are equally likely."""
        groups = np.array(self.groups[column])
        table = np.zeros((groups.max() + 1, len(groups)))
        table[groups, np.arange(len(groups))] = self.weights[column]
        table[groups, np.arange(len(groups))] += (table.sum(axis=1) == 0)[groups]
        return table


@dataclass(frozen=True)
class OpenedModel:
    """A model over groups, whose rows are opened to codes of the domain."""

    model: Model
    compression: Compression

    @property
    def total(self) -> float:
        return self.model.total

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        return self.compression.expand(self.model.sample(rows, rng), rng)


def _groups(one_way: Measurement) -> tuple[int, ...]:
    """Values that stand out keep their own group, in order; the others share the last one."""
    stands_out = one_way.counts >= STANDS_OUT * one_way.deviation
    if np.count_nonzero(~stands_out) < 2:
        return tuple(range(one_way.counts.size))
    own = np.cumsum(stands_out) - 1
    return tuple(int(g) for g in np.where(stands_out, own, np.count_nonzero(stands_out)))


def _sums(groups: Sequence[int], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.bincount(groups, values), dtype=np.float64)
