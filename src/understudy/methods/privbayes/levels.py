"""Columns at coarser levels, so that a joint table of fine columns can be afforded at all.

A level puts the values of a column into groups, by noisy one-way counts alone: neighbours of about equal weight where
values have an order, the commonest values and the rest where they have none. A joint table is measured over groups;
in the network each level of a column is a node of its own, and a drawn group is opened by the one-way counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.grouping import Grouping, sum_by_group
from understudy.inference.model import CodeColumns
from understudy.inference.network import BayesianNetwork, Family
from understudy.inference.noisy_table import NoisyTable, settled

Groups = tuple[int, ...]
Table = NDArray[np.float64]

LEAST_VARIANCE = 1e-9
"""Smaller variances are as good as none, and their inverses would drown the others."""
MOST_STEPS, SMALL_RESIDUAL = 100, 1e-16


@dataclass(frozen=True)
class Levels:
    """The groupings of every column; no table over them has more than `largest` cells."""

    domain: Domain
    weights: Mapping[str, Table]
    """The one-way estimate of each column: not negative, and the same sum for all."""
    largest: float
    _known: dict[tuple[str, int], Grouping] = field(default_factory=dict, repr=False, compare=False)

    def grid(self, columns: ColumnSet) -> Grid:
        """The finest partition by these columns that is small enough, with the same bound on groups for each."""
        most = self.resolution(columns)
        return Grid(columns, tuple(self.groups(c, most).labels for c in columns))

    def resolution(self, columns: ColumnSet) -> int:
        """The most groups that each of these columns may have together, or all values of the finest of them."""
        sizes = self.domain.shape(columns)
        low, high = 1, max(sizes)
        # By bisection: the product of the sizes, none above the bound, grows with the bound.
        while low < high:
            most = (low + high + 1) // 2
            fits = math.prod(min(size, most) for size in sizes) <= self.largest
            low, high = (most, high) if fits else (low, most - 1)
        return low

    def groups(self, column: str, most: int) -> Grouping:
        """The group of each value, `most` groups at most; none lighter than an average cell of the largest table."""
        most = min(most, self.domain.size(column))
        if (column, most) not in self._known:
            self._known[column, most] = self._cut(column, most)
        return self._known[column, most]

    def _cut(self, column: str, most: int) -> Grouping:
        coding, weights = self.domain[column], self.weights[column]
        least = float(weights.sum()) / self.largest
        if coding.edges is None:
            return Grouping.commonest(weights, most, least)
        line, beside = np.split(weights, [coding.levels])
        # A special or a missing value that is too rare for a group of its own goes into the last group of the line.
        own = np.argsort(-beside, kind="stable")[: most - 1]
        own = own[beside[own] >= least]
        groups = Grouping.balanced(line, most - own.size, least)
        places = np.full(beside.size, groups.count - 1)
        places[np.sort(own)] = groups.count + np.arange(own.size)
        return Grouping(np.concatenate([groups.of_code, places]))


def grid_of(measured: Measurement) -> Grid:
    """The grid over which a table was measured."""
    assert isinstance(measured.partition, Grid)
    return measured.partition


def sharpened(one_way: NoisyTable, margins: Sequence[NoisyTable]) -> Table:
    """The counts of a column that fit its one-way counts and all margins best: least squares by inverse variance.

    Conjugate gradients, since the matrix of a column with many values need not be written down (Hestenes & Stiefel).
    """
    # The normal equations are Σ Gᵀ·(y − G·x)/σ² = 0, G summing by the groups of each source.
    counts = np.asarray(one_way.counts, dtype=np.float64)
    sources = [NoisyTable(one_way.columns, counts, one_way.variance, (np.arange(counts.size),)), *margins]
    residual = _pulls(sources, [m.counts - sum_by_group(m.groups[0], counts) for m in sources])
    direction, size, enough = residual, float(residual @ residual), SMALL_RESIDUAL * float(residual @ residual)
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        image = _pulls(sources, [sum_by_group(m.groups[0], direction) for m in sources])
        step = size / float(direction @ image)
        counts, residual = counts + step * direction, residual - step * image
        before, size = size, float(residual @ residual)
        direction = residual + size / before * direction
    return counts


def _pulls(sources: Sequence[NoisyTable], by_group: Sequence[Table]) -> Table:
    """Numbers by group of each source, weighted by its inverse variance, summed at every value of the column."""
    pulls = [(x / max(m.variance, LEAST_VARIANCE))[m.groups[0]] for m, x in zip(sources, by_group, strict=True)]
    return np.asarray(np.sum(pulls, axis=0))


@dataclass
class LevelledNetwork:
    """A Bayesian network in the making, whose nodes are columns and their levels."""

    sizes: dict[str, int] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)
    _nodes: dict[tuple[str, Groups], str] = field(default_factory=dict)

    def add_root(self, column: str, weights: Table) -> None:
        """A column without parents."""
        self._append(column, (), weights[None, :])

    def add_child(self, weights: Table, grid: Grid, joint: Table) -> None:
        """The first column of the grid, given the others by their joint counts; its groups are opened by weights."""
        (column, *above), (groups, *levels) = grid.columns, grid.groups
        parents = tuple(self._node(c, g) for c, g in zip(above, levels, strict=True))
        node = self._name(column, groups)
        self._append(node, parents, joint.reshape(len(joint), -1).T)
        if node != column:
            # A drawn group is opened by the column's own counts, so that it keeps its resolution.
            self._append(column, (node,), _opening(groups, weights))

    def finish(self, columns: ColumnSet, total: float) -> LevelledModel:
        return LevelledModel(BayesianNetwork(self.sizes, self.families, total), columns)

    def _append(self, node: str, parents: ColumnSet, weights: Table) -> None:
        self.sizes[node] = weights.shape[1]
        self.families.append(Family(node, parents, settled(weights)))

    def _node(self, column: str, groups: Groups) -> str:
        """The node of a level that may be new: it follows from the column."""
        node = self._name(column, groups)
        if node not in self.sizes:
            self._append(node, (column,), np.eye(max(groups) + 1)[list(groups)])
        return node

    def _name(self, column: str, groups: Groups) -> str:
        """The column itself where every value has a group of its own, else a name that no column has."""
        if groups == tuple(range(len(groups))):
            return column
        return self._nodes.setdefault((column, groups), f"{column}\0{len(self._nodes)}")


@dataclass(frozen=True)
class LevelledModel:
    """A network of columns and levels, of which only columns are shown."""

    network: BayesianNetwork
    columns: ColumnSet

    @property
    def total(self) -> float:
        return self.network.total

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        return self._shown(self.network.sample(rows, rng))

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        return self._shown(self.network.complete(given, rng))

    def _shown(self, codes: CodeColumns) -> CodeColumns:
        return {c: codes[c] for c in self.columns}


def _opening(groups: Groups, weights: Table) -> Table:
    """For each group the weights of its values; where they have none, its values are equally likely."""
    table = np.zeros((max(groups) + 1, len(groups)))
    at = np.array(groups), np.arange(len(groups))
    table[at] = weights
    table[at] += (table.sum(axis=1) == 0)[at[0]]
    return table
