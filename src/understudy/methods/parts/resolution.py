"""Resolutions: each column merged into 2, 3, 4, … groups, by noisy one-way counts alone.

A table measured at a coarse resolution has fewer cells, so that each can carry its noise. Every resolution of a column
merges the groups of the next finer one, so that tables of the same columns at different resolutions fit together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.particles.particles import Groups, refine, summing

LEVELS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 200, 400, 1000)
"""Groups per column; the finest level of a column is its values, where they are no more than the last of these."""


@dataclass(frozen=True)
class Resolutions:
    """The groupings of every column at every level, and grids of several columns at one level."""

    domain: Domain
    groupings: Mapping[str, Mapping[int, Groups]]
    _grids: dict[tuple[ColumnSet, int], Grid] = field(default_factory=dict, repr=False)
    _matrices: dict[tuple[str, int, int], NDArray[np.float64] | None] = field(default_factory=dict, repr=False)
    _ladders: dict[ColumnSet, dict[int, int]] = field(default_factory=dict, repr=False)
    _levels: dict[tuple[str, int], int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, domain: Domain, weights: Mapping[str, NDArray[np.float64]]) -> Resolutions:
        """`weights` are the noisy one-way counts, made non-negative."""
        return cls(domain, {c.name: _groupings(weights[c.name], c.edges is not None, c.column.missing) for c in domain})

    def groups(self, columns: ColumnSet, level: int) -> tuple[Groups, ...]:
        """Each column at the finest of its levels that is no finer than this one."""
        return tuple(self.groupings[c][self._nearest(c, level)] for c in columns)

    def matrices(self, columns: ColumnSet, fine: int, level: int) -> list[NDArray[np.float64] | None]:
        """What sums a table at a finer level up to this one, axis by axis."""
        return [self._matrix(c, self._nearest(c, fine), self._nearest(c, level)) for c in columns]

    def _nearest(self, column: str, level: int) -> int:
        key = (column, level)
        if key not in self._levels:
            self._levels[key] = max(x for x in self.groupings[column] if x <= level)
        return self._levels[key]

    def _matrix(self, column: str, fine: int, level: int) -> NDArray[np.float64] | None:
        key = (column, fine, level)
        if key not in self._matrices:
            self._matrices[key] = summing(coarser(self.groupings[column][fine], self.groupings[column][level]))
        return self._matrices[key]

    def shape(self, columns: ColumnSet, level: int) -> tuple[int, ...]:
        return tuple(int(g.max()) + 1 for g in self.groups(columns, level))

    def grid(self, columns: ColumnSet, level: int) -> Grid:
        """The public partition by these groups."""
        key = (columns, level)
        if key not in self._grids:
            groups = tuple(tuple(int(g) for g in gs) for gs in self.groups(columns, level))
            self._grids[key] = Grid(columns, groups)
        return self._grids[key]

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


def coarser(fine: Groups, groups: Groups) -> Groups:
    """For each fine group the coarser one that holds it."""
    _, both = refine([fine, groups])
    return both[:, 1]


def _groupings(weights: NDArray[np.float64], ordered: bool, missing: bool) -> dict[int, Groups]:
    size = weights.size
    wanted = [level for level in LEVELS if level < size]
    if size <= LEVELS[-1]:
        wanted.append(size)
    cut = _neighbours(weights, wanted, missing) if ordered else _commonest(weights, wanted)
    return dict(zip(wanted, cut, strict=True))


def _commonest(weights: NDArray[np.float64], wanted: Sequence[int]) -> list[Groups]:
    """The commonest values keep a group of their own; the others share the last one."""
    rank = np.empty(weights.size, dtype=np.intp)
    rank[np.argsort(-weights, kind="stable")] = np.arange(weights.size)
    return [np.minimum(rank, level - 1) if level < weights.size else np.arange(level) for level in wanted]


def _neighbours(weights: NDArray[np.float64], wanted: Sequence[int], missing: bool) -> list[Groups]:
    """Neighbours share a group: the heaviest is halved by weight, again and again; a missing value has its own."""
    values = weights.size - missing
    line = np.concatenate([[0.0], np.cumsum(weights[:values] + 1e-9 * (1.0 + weights.sum()))])
    segments, found = [(0, values)], []
    for level in wanted:
        while len(segments) < level - missing:
            _halve_the_heaviest(segments, line)
        starts = np.sort([start for start, _ in segments])
        groups = np.searchsorted(starts, np.arange(weights.size), side="right") - 1
        if missing:
            groups[-1] = len(segments)
        found.append(groups.astype(np.intp))
    return found


def _halve_the_heaviest(segments: list[tuple[int, int]], line: NDArray[np.float64]) -> None:
    _, place = max((line[b] - line[a], -i) for i, (a, b) in enumerate(segments) if b - a > 1)
    a, b = segments[-place]
    cut = a + 1 + int(np.abs(line[a + 1 : b] - (line[a] + line[b]) / 2).argmin())
    segments[-place : -place + 1] = [(a, cut), (cut, b)]
