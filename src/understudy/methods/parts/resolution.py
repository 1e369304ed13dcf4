"""Resolutions: each column merged into 2, 3, 4, … groups, by noisy one-way counts alone.

A table measured at a coarse resolution has fewer cells, so that each can carry its noise. Every resolution of a column
merges the groups of the next finer one, so that tables of the same columns at different resolutions fit together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.grouping import Floats, Grouping, Groups, by_halves, by_rank, coarser, summing

LEVELS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 200, 400, 1000)
"""Groups per column; the finest level of a column is its values, where they are no more than the last of these."""


@dataclass(frozen=True)
class Resolutions:
    """The groupings of every column at every level, and grids of several columns at one level."""

    domain: Domain
    groupings: Mapping[str, Mapping[int, Grouping]]
    target_levels: Mapping[str, int] = field(default_factory=dict)
    """In grids of four columns and more, these columns are no coarser than so, whatever the level of the others."""
    _grids: dict[tuple[ColumnSet, int], Grid] = field(default_factory=dict, repr=False)
    _matrices: dict[tuple[str, int, int], Floats | None] = field(default_factory=dict, repr=False)
    _ladders: dict[ColumnSet, dict[int, int]] = field(default_factory=dict, repr=False)
    _rungs: dict[tuple[ColumnSet, tuple[int, ...]], list[tuple[Grid, list[Floats | None]]]] = field(
        default_factory=dict, repr=False
    )
    _levels: dict[tuple[str, int], int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, domain: Domain, weights: Mapping[str, Floats], target_levels: Mapping[str, int] | None = None
    ) -> Resolutions:
        """`weights` are the noisy one-way counts, made non-negative."""
        groupings = {c.name: _groupings(weights[c.name], c.edges is not None, c.apart) for c in domain}
        return cls(domain, groupings, target_levels or {})

    def groups(self, columns: ColumnSet, level: int) -> tuple[Groups, ...]:
        """Each column at the finest of its levels that is no finer than this one."""
        return tuple(g.of_code for g in self._at(columns, level))

    def _at(self, columns: ColumnSet, level: int) -> list[Grouping]:
        return [self.groupings[c][self._level(columns, c, level)] for c in columns]

    def _level(self, columns: ColumnSet, column: str, level: int) -> int:
        if len(columns) > 3:
            level = max(level, self.target_levels.get(column, level))
        return self._nearest(column, level)

    def matrices(self, columns: ColumnSet, fine: int, level: int) -> list[Floats | None]:
        """What sums a table at a finer level up to this one, axis by axis."""
        return [self._matrix(c, self._level(columns, c, fine), self._level(columns, c, level)) for c in columns]

    def _nearest(self, column: str, level: int) -> int:
        key = (column, level)
        if key not in self._levels:
            self._levels[key] = max(x for x in self.groupings[column] if x <= level)
        return self._levels[key]

    def _matrix(self, column: str, fine: int, level: int) -> Floats | None:
        key = (column, fine, level)
        if key not in self._matrices:
            of = self.groupings[column]
            self._matrices[key] = summing(coarser(of[fine].of_code, of[level].of_code))
        return self._matrices[key]

    def shape(self, columns: ColumnSet, level: int) -> tuple[int, ...]:
        return tuple(g.count for g in self._at(columns, level))

    def grid(self, columns: ColumnSet, level: int) -> Grid:
        """The public partition by these groups."""
        key = (columns, level)
        if key not in self._grids:
            self._grids[key] = Grid(columns, tuple(g.labels for g in self._at(columns, level)))
        return self._grids[key]

    def ladder(self, columns: ColumnSet, levels: tuple[int, ...]) -> list[tuple[Grid, list[Floats | None]]]:
        """For each of these levels its grid, and what sums a table at the last, finest one up to it."""
        key = (columns, levels)
        if key not in self._rungs:
            self._rungs[key] = [(self.grid(columns, x), self.matrices(columns, levels[-1], x)) for x in levels]
        return self._rungs[key]

    def levels(self, columns: ColumnSet, most_cells: float, most_groups: float = math.inf) -> list[int]:
        """The levels, coarse to fine, at which a table of these columns is small enough; each shape once."""
        return [x for x, cells in self._ladder(columns).items() if x <= most_groups and cells <= most_cells]

    def _ladder(self, columns: ColumnSet) -> dict[int, int]:
        """Every level that gives these columns a shape of its own, and how many cells it has."""
        if columns not in self._ladders:
            coarsest = max(min(self.groupings[c]) for c in columns)
            found: dict[tuple[int, ...], int] = {}
            for level in sorted({g for c in columns for g in self.groupings[c] if g >= coarsest}):
                found.setdefault(self.shape(columns, level), level)
            self._ladders[columns] = {level: math.prod(shape) for shape, level in found.items()}
        return self._ladders[columns]


def _groupings(weights: Floats, ordered: bool, apart: int) -> dict[int, Grouping]:
    """Along a line by halves of segments, where special values and a missing one have groups of their own: these are
    merged with each other at the coarsest levels, and never with the line. Else the commonest values."""
    size = weights.size
    wanted = [level for level in LEVELS if level < size]
    if size <= LEVELS[-1]:
        wanted.append(size)
    # Without an order, codes of the same frequency have nothing in common: the common ones stay apart.
    if not ordered:
        return dict(zip(wanted, by_rank(weights, wanted), strict=True))
    # What is added to every weight makes halves of segments without rows equally long.
    line = weights[: size - apart] + 1e-9 * (1.0 + weights.sum())
    groupings = by_halves(line, [max(level - apart, 1) for level in wanted])
    if not apart:
        return dict(zip(wanted, groupings, strict=True))
    return {
        level: g.followed_by(apart, most=min(apart, level - g.count))
        for level, g in zip(wanted, groupings, strict=True)
    }
