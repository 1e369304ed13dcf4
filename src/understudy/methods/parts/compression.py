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

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.partition import Grid
from understudy.inference.graphical.graphical_model import GraphicalModel, log_or_never
from understudy.inference.grouping import Grouping
from understudy.inference.model import CodeColumns, Model
from understudy.inference.noisy_table import NoisyTable, keep_every_value
from understudy.inference.sampling import CODE, draw_rows
from understudy.inference.structural_zeros import Mask, Zeros

MOST_GROUPS = 1_000
"""Of a column with more values only the heaviest keep their own cell, so that no pair has more than a million."""
STANDS_OUT = 3.0
"""A value keeps a cell of its own when its noisy count is at least this many standard deviations of its noise."""


@dataclass(frozen=True)
class Compression:
    """Per column, the group of each code; and the non-negative one-way estimate by which groups are opened."""

    groups: Mapping[str, Grouping]
    weights: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, one_ways: Sequence[Measurement], total: float) -> Compression:
        groups = {m.columns[0]: _groups(m) for m in one_ways}
        return cls(groups, {m.columns[0]: keep_every_value(m.counts, total, m.variance) for m in one_ways})

    @property
    def sizes(self) -> dict[str, int]:
        return {c: g.count for c, g in self.groups.items()}

    def grid(self, columns: ColumnSet) -> Grid:
        """The public partition that counts these columns by group."""
        return Grid(columns, tuple(self.groups[c].labels for c in columns))

    def base(self) -> dict[str, NDArray[np.float64]]:
        """The one-way estimate of each column, by group."""
        return {c: g.sums(self.weights[c]) for c, g in self.groups.items()}

    def merge(self, one_way: Measurement) -> NoisyTable:
        """A one-way measurement by group: counts add up, and so do variances."""
        groups = self.groups[one_way.columns[0]]
        variance = groups.sums(np.full(one_way.counts.size, one_way.variance))
        return NoisyTable(one_way.columns, groups.sums(one_way.counts.astype(np.float64)), variance)

    def merged(self, codes: CodeColumns) -> CodeColumns:
        """Codes of groups from codes of the domain."""
        return {c: self.groups[c].of_code.astype(CODE)[v] for c, v in codes.items()}

    def zeros(self, zeros: Zeros) -> dict[ColumnSet, Mask]:
        """Cells of groups that can't occur: none of their cells can."""
        found = {}
        for columns, forbidden in zeros.items():
            grid = self.grid(columns)
            # A merged cell can occur if any of its cells can: only what is wholly forbidden stays forbidden.
            possible = np.zeros(grid.shape, dtype=bool)
            np.logical_or.at(possible, np.ix_(*map(np.array, grid.groups)), ~forbidden)
            if not possible.all():
                found[columns] = ~possible
        return found

    def expand(self, codes: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Codes of the domain from codes of groups."""
        return {c: self._open(c, groups, rng) for c, groups in codes.items()}

    def _open(self, column: str, drawn: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.integer]:
        """A group of one value is that value; the values of a merged group are drawn by their weights.

        Where a merged group has no weight at all, its values are equally likely.
        """
        groups = self.groups[column].of_code
        first = np.zeros(groups.max() + 1, dtype=CODE)
        # Backwards, so that of the codes that share a group the first one is written last.
        first[groups[::-1]] = np.arange(len(groups))[::-1]
        codes = first[drawn]
        for group in np.flatnonzero(np.bincount(groups) > 1):
            rows, values = np.flatnonzero(drawn == group), np.flatnonzero(groups == group)
            codes[rows] = values[draw_rows(self.weights[column][values], len(rows), rng)]
        return codes


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

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """A value tells of the other columns what its group tells: the groups are the evidence, the values stay."""
        groups = self.model.complete(self.compression.merged(given), rng)
        return self.compression.expand({c: g for c, g in groups.items() if c not in given}, rng) | given


@dataclass(frozen=True)
class OpenedGraph(OpenedModel):
    """One whose model over groups has a density."""

    model: GraphicalModel

    def log_density(self, codes: CodeColumns) -> NDArray[np.float64]:
        """That of the groups, times the share that each value has of its group."""
        logs = self.model.log_density(self.compression.merged(codes))
        for name, grouping in self.compression.groups.items():
            weights = self.compression.weights[name]
            whole = grouping.sums(weights)
            evenly = 1.0 / grouping.sums(np.ones(len(weights)))
            of_group = whole[grouping.of_code]
            share = np.divide(weights, of_group, out=evenly[grouping.of_code].copy(), where=of_group > 0)
            logs += log_or_never(share)[codes[name]]
        return logs


def _groups(one_way: Measurement) -> Grouping:
    """Values that stand out keep their own group, in order; the others share the last one."""
    # As private-PGM's own `mst` does: below three deviations a count may well be noise alone.
    stands_out = one_way.counts >= STANDS_OUT * one_way.deviation
    if np.count_nonzero(stands_out) > MOST_GROUPS:
        heaviest = np.argsort(-one_way.counts, kind="stable")[:MOST_GROUPS]
        stands_out[np.setdiff1d(np.arange(one_way.counts.size), heaviest)] = False
    return Grouping.merging(stands_out)
