"""Weighted rows as a model: raked softly to noisy counts over grids of the columns.

The estimate is p(x) ∝ exp(Σ θ_c(cell_c(x))), one θ per factor c, as in `estimation`; but instead of tables over the
cliques of a tree it is held as N weighted rows (*particles*), so that no set of columns is too large. Raking moves the
weights; Gibbs sampling under the same factors moves the rows (`gibbs`). Factors over the same columns, at whatever
resolution, form one block: it is counted once per pass, over the common refinement of their groups.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.grouping import Floats, Groups, refine, summed, summing
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import NoisyTable, settled
from understudy.inference.particles import kernels

NEWTON_STEPS = 3
STRIDE = 251
"""Rows between neighbours when particles are scattered: see `scattered`, and decision 12."""
LARGEST_STEP = 2.0
FEWEST_IN_CELL = 100.0
"""Without it, on CoverType at ε = 10, every refresh was rolled back. Decision 8."""
LOWEST_THETA, HIGHEST_THETA = -7.0, 5.0
LARGEST_SPREAD, SMALLEST_SPREAD = 4.0, 0.01
RARE = 0.01
"""Of the rows: the share up to which a value is rare."""
LOOKED_AT = 1_000
"""Particles that may take a value which none has; a few of them do."""
LEAST_SHARE = 1e-12
"""Of the rows: what a value keeps that should have none."""
CLOSE = 1e-3
"""Of the rows: columns that are off by no more need no further fit."""

STRETCH = 64
"""Blocks that are raked between two looks at how many particles are still effective."""

CELL = np.int32
Cells: TypeAlias = NDArray[np.int32]


@dataclass(eq=False)
class LogFactor:
    """A log-factor over the cells of a grid. With noisy counts it is evidence, and raking moves its θ."""

    columns: ColumnSet
    groups: tuple[Groups, ...]
    theta: Floats
    seen: NoisyTable | None = None
    spread: float = 0.0
    """The prior variance of θ; 0 until it is judged."""

    @classmethod
    def evidence(cls, seen: NoisyTable, spread: float = 0.0) -> LogFactor:
        return cls(seen.columns, seen.groups, np.zeros(seen.counts.shape), seen, spread)

    def judge(self, expected: Floats) -> None:
        """Empirical Bayes, once: how far the counts are from what was expected, net of noise."""
        assert self.seen is not None
        excess = ((self.seen.counts - expected) ** 2 - self.seen.variance).sum() / (expected**2).sum()
        self.spread = float(np.clip(LARGEST_SPREAD * excess, SMALLEST_SPREAD, LARGEST_SPREAD))

    def loss(self, expected: Floats, noise: float) -> float:
        """The mean squared error of the cells, in units of what noise and so few particles explain."""
        assert self.seen is not None
        # In units of noise alone an honest refresh looks bad where noise is tiny (decision 8).
        chance = noise * np.maximum(expected, self.seen.counts)
        return float(((self.seen.counts - expected) ** 2 / (self.seen.variance + chance)).mean())

    def step(self, expected: Floats, noise: float) -> Floats:
        """Moves θ to its optimum with all else fixed; returns the factor by which each cell changes.

        A cell's optimum is y − m·exp(θ − θ_old) = λθ, as in `estimation`. `noise` is the variance per row that comes
        of having so few particles: it adds to λ, so that no cell is fitted beyond what they can carry.
        """
        assert self.seen is not None
        counts, variance = self.seen.counts, self.seen.variance
        scale = np.maximum(np.maximum(expected, counts), np.maximum(np.sqrt(variance), 3 * noise))
        penalty = (variance + noise * scale) / (self.spread * scale)
        # Where few particles stand, raising θ changes next to nothing now, pass after pass, and far too much once Gibbs
        # sampling follows it. So a cell is raised as if at least so many stood there.
        expected = np.maximum(expected, np.minimum(FEWEST_IN_CELL * noise, counts))
        old, theta, moved = self.theta, self.theta.copy(), expected
        for step in range(NEWTON_STEPS):
            if step:
                moved = expected * np.exp(theta - old)
            theta += _between((counts - moved - penalty * theta) / (moved + penalty), -LARGEST_STEP, LARGEST_STEP)
        self.theta = _between(theta, LOWEST_THETA, HIGHEST_THETA)
        return np.exp(self.theta - old)


def _between(values: Floats, low: float, high: float) -> Floats:
    """As `np.clip`, which on small tables takes longer than all else."""
    return np.minimum(np.maximum(values, low), high)


class Block:
    """All factors over one set of columns, and the cell of each particle in their common refinement."""

    def __init__(self, columns: ColumnSet) -> None:
        self.columns = columns
        self.factors: list[LogFactor] = []
        self.groups: tuple[Groups, ...] = ()
        self.shape: tuple[int, ...] = ()
        self._maps: list[NDArray[np.intp] | None] = []
        self._sums: list[tuple[Floats | None, ...]] = []
        self._cells: Cells | None = None

    def add(self, factor: LogFactor) -> None:
        self.factors.append(factor)
        found = [refine([f.groups[axis] for f in self.factors]) for axis in range(len(self.columns))]
        self.groups = tuple(groups for groups, _ in found)
        self.shape = tuple(len(coarse) for _, coarse in found)
        maps = [tuple(coarse[:, j] for _, coarse in found) for j in range(len(self.factors))]
        self._maps = [_places(m, f.theta.shape) for m, f in zip(maps, self.factors, strict=True)]
        self._sums = [tuple(summing(m) for m in axes) for axes in maps]
        self.forget()

    def forget(self) -> None:
        """The particles have moved."""
        self._cells = None

    def cells(self, codes: CodeColumns) -> Cells:
        if self._cells is None:
            self._cells = cells_of(codes, self.columns, self.groups)
        return self._cells

    def histogram(self, codes: CodeColumns, weights: Floats) -> Floats:
        return kernels.histogram(self.cells(codes), weights, math.prod(self.shape)).reshape(self.shape)

    def merged(self, table: Floats, factor: int) -> Floats:
        """A table of the refinement, summed over the cells of one factor."""
        return summed(table, self._sums[factor])

    def opened(self, table: Floats, factor: int) -> Floats:
        """A table of one factor, repeated over the cells of the refinement."""
        places = self._maps[factor]
        return table if places is None else np.take(table, places)

    def theta(self) -> Floats:
        return np.sum([self.opened(f.theta, i) for i, f in enumerate(self.factors)], axis=0)

    @property
    def evident(self) -> bool:
        """Whether anything was measured of these columns, which raking could follow."""
        return any(f.seen is not None for f in self.factors)

    def step(self, table: Floats, noise: float) -> Floats:
        """Moves all evidence one step, given weighted counts; returns the factor by which each cell changes."""
        table, change = table.reshape(self.shape), np.ones(self.shape)
        for i, factor in enumerate(self.factors):
            if factor.seen is not None:
                ratio = self.opened(factor.step(self.merged(table, i), noise), i)
                table *= ratio
                change *= ratio
        return change.ravel()

    def rake(self, codes: CodeColumns, weights: Floats, noise: float) -> None:
        """One step of this block alone."""
        kernels.rescale(weights, self.cells(codes), self.step(self.histogram(codes, weights), noise))

    def losses(self, codes: CodeColumns, weights: Floats, noise: float) -> list[float]:
        """For each piece of evidence the mean squared error of its cells, in units of their noise and chance."""
        table = self.histogram(codes, weights)
        return [f.loss(self.merged(table, i), noise) for i, f in enumerate(self.factors) if f.seen is not None]


def _places(maps: tuple[Groups, ...], shape: tuple[int, ...]) -> NDArray[np.intp] | None:
    """For each cell of a refinement the place of the coarser cell that holds it; none where they are the same."""
    if all(np.array_equal(m, np.arange(size)) for m, size in zip(maps, shape, strict=True)):
        return None
    return np.asarray(np.ravel_multi_index(np.ix_(*maps), shape), dtype=np.intp)


def cells_of(codes: CodeColumns, columns: ColumnSet, groups: Sequence[Groups]) -> Cells:
    """The row-major cell number of each row, by groups."""
    if len(columns) == 1 and np.array_equal(groups[0], np.arange(len(groups[0]))):
        return np.asarray(codes[columns[0]], dtype=CELL)  # every code is a cell: no copy
    steps = steps_of(groups)
    cells = np.take(steps[0], codes[columns[0]], mode="clip")
    for column, step in zip(columns[1:], steps[1:], strict=True):
        kernels.place(cells, np.asarray(codes[column], dtype=CELL), step)
    return cells


def steps_of(groups: Sequence[Groups]) -> list[Cells]:
    """For each column what its codes add to the row-major number of a cell."""
    # In 32 bits, as codes are: no grid has more cells, and less is read and held than in 64.
    steps, below = list[Cells](), 1
    for group in reversed(groups):
        steps.append((group * below).astype(CELL))
        below *= int(group.max()) + 1
    return steps[::-1]


def scattered(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The same rows, neighbours far apart: to count rows of the same cell one after the other takes twice as long."""
    return np.concatenate([rows[first::STRIDE] for first in range(STRIDE)])


Snapshot: TypeAlias = tuple[CodeColumns, Floats, list[Floats]]


@dataclass(eq=False)
class Particles:
    """N weighted rows, and the factors that they obey."""

    sizes: Mapping[str, int]
    total: float
    codes: CodeColumns
    weights: Floats
    blocks: dict[ColumnSet, Block] = field(default_factory=dict)
    visited: int = 0
    """The block that raking goes on with, where it ended early."""

    @property
    def count(self) -> int:
        return len(self.weights)

    @property
    def effective(self) -> float:
        """The number of equal weights that would carry as much: (Σw)²/Σw²."""
        return float(self.weights.sum() ** 2 / (self.weights @ self.weights))

    @property
    def factors(self) -> list[LogFactor]:
        return [f for block in self.blocks.values() for f in block.factors]

    def add(self, factor: LogFactor) -> None:
        """Takes a factor in. Evidence without a spread is judged by what the particles say before they learn of it."""
        block = self.blocks.setdefault(factor.columns, Block(factor.columns))
        block.add(factor)
        if factor.seen is not None and not factor.spread:
            factor.judge(block.merged(block.histogram(self.codes, self.weights), len(block.factors) - 1))

    def histogram(self, columns: ColumnSet, groups: Sequence[Groups]) -> Floats:
        """Weighted counts of some columns by group."""
        shape = tuple(int(g.max()) + 1 for g in groups)
        if len(columns) == 1:
            return kernels.histogram(cells_of(self.codes, columns, groups), self.weights, shape[0])
        first, second = (np.asarray(self.codes[c], dtype=CELL) for c in (columns[0], columns[-1]))
        steps = steps_of(groups)
        if len(columns) > 2:
            first = cells_of(self.codes, columns[:-1], groups[:-1])
            steps[0] = np.arange(math.prod(shape[:-1]), dtype=CELL) * CELL(shape[-1])
        return kernels.cross(first, steps[0], second, steps[-1], self.weights, math.prod(shape)).reshape(shape)

    def rake(self, passes: int, *, sampling: bool = True, fewest: float = 0.0) -> None:
        """Some passes over all evidence; without `sampling` the particles are taken to be as good as the domain.

        Where fewer than the share `fewest` of them stay effective it ends early: weights that degenerate carry no more.
        The next call, after particles were drawn anew, goes on with the block that would have been next.
        """
        blocks = deque(b for b in self.blocks.values() if b.evident)
        blocks.rotate(-self.visited)
        left = passes * len(blocks)
        while left > 0:
            stretch = list(itertools.islice(blocks, min(STRETCH, left)))
            self._follow(stretch, self.total / self.effective if sampling else 0.0)
            self.weights *= self.total / self.weights.sum()
            blocks.rotate(-len(stretch))
            left -= len(stretch)
            if self.effective < fewest * self.count:
                self.visited = (self.visited - left) % len(blocks)
                return
        self.weights *= self.total / self.weights.sum()

    def _follow(self, blocks: Sequence[Block], noise: float) -> None:
        """One step of each block. The weights change by one as they are counted for the next."""
        cells = blocks[0].cells(self.codes)
        table = kernels.histogram(cells, self.weights, math.prod(blocks[0].shape))
        for block, after in itertools.pairwise(blocks):
            others = after.cells(self.codes)
            table = kernels.recount(self.weights, cells, block.step(table, noise), others, math.prod(after.shape))
            cells = others
        kernels.rescale(self.weights, cells, blocks[-1].step(table, noise))

    def populate(self, counts: Mapping[str, Floats], rng: np.random.Generator) -> None:
        """Particles for values that should have a row or more and that none has: those that can take them best."""
        for name, wanted in counts.items():
            held = np.bincount(self.codes[name], minlength=len(wanted))
            # Chance misses rare values alone; where a frequent one is missing, the particles are not to be trusted.
            rare = (wanted >= 1.0) & (wanted <= RARE * self.total)
            for value in np.flatnonzero(rare & (held == 0)):
                few = max(1, round(self.count * wanted[value] / self.total))
                looked_at = rng.integers(0, self.count, LOOKED_AT)
                # Of no value that so few would be the last ones of.
                looked_at = np.unique(looked_at[held[self.codes[name][looked_at]] > few])
                if not len(looked_at):
                    continue
                # The few largest of log-odds with Gumbel noise are a draw by their odds under the factors.
                odds = self._log_odds(looked_at, name, int(value)) + rng.gumbel(size=len(looked_at))
                taken = looked_at[np.argsort(-odds)[:few]]
                codes = self.codes[name].copy()
                held -= np.bincount(codes[taken], minlength=len(wanted))
                codes[taken] = value
                self.move(self.codes | {name: codes})

    def _log_odds(self, rows: NDArray[np.intp], name: str, value: int) -> Floats:
        """By how much likelier the factors hold these rows with another value of one column than as they are."""
        now = {c: v[rows] for c, v in self.codes.items()}
        other, odds = now | {name: np.full(len(rows), value)}, np.zeros(len(rows))
        for columns, block in self.blocks.items():
            if name in columns:
                theta = block.theta().ravel()
                odds += theta[cells_of(other, columns, block.groups)] - theta[cells_of(now, columns, block.groups)]
        return odds

    def fit_columns(self, counts: Mapping[str, Floats], passes: int = 30, close: float = CLOSE) -> None:
        """Weights that add up to these counts of single columns; a value that no particle has stays without."""
        for _ in range(passes):
            misfit = 0.0
            for name, wanted in counts.items():
                cells = np.asarray(self.codes[name], dtype=CELL)
                found = kernels.histogram(cells, self.weights, len(wanted))
                # Never to nothing: where all particles have values that are not wanted, none would have a weight.
                least = np.maximum(wanted, LEAST_SHARE * self.total)
                misfit = max(misfit, float(np.abs(wanted - found)[found > 0].sum()))
                ratio = np.divide(least, found, out=np.ones(len(wanted)), where=found > 0)
                kernels.rescale(self.weights, cells, ratio)
            self.weights *= self.total / self.weights.sum()
            if misfit < close * self.total:
                break

    def loss(self) -> float:
        """The mean loss of all evidence: about 1 where only noise and the chance of so many particles are left."""
        # The chance of all particles, not of the effective ones: where weights degenerate, that would grow, and the
        # loss would fall just when it should warn.
        noise = self.total / self.count
        return float(np.mean([x for b in self.blocks.values() for x in b.losses(self.codes, self.weights, noise)]))

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Indices of particles, each as often as its weight says, rounded up or down; neighbours in sorted order."""
        # Like rows next to each other: a systematic draw then keeps their counts up to rounding, along this one order.
        order = np.lexsort(self._sort_keys())
        line = np.cumsum(settled(self.weights[order]))
        places = (np.arange(count) + rng.random()) * (line[-1] / count)
        return order[np.minimum(np.searchsorted(line, places, side="right"), len(line) - 1)]

    def _sort_keys(self) -> list[NDArray[np.int64]]:
        """Keys that sort as all columns do, several columns in each: to sort by 120 takes five times as long."""
        keys, room = list[NDArray[np.int64]](), 0
        for name, codes in self.codes.items():
            size = self.sizes[name]
            if room < size:
                keys.append(np.zeros(self.count, dtype=np.int64))
                room, below = 1 << 62, 1
            # Of two columns `lexsort` takes the later one as the more important one, as a higher digit is.
            keys[-1] += below * codes.astype(np.int64)
            room, below = room // size, below * size
        return keys

    def resample(self, count: int, rng: np.random.Generator) -> None:
        """Equal weights: heavy particles several times, light ones not at all."""
        drawn = scattered(self.draw(count, rng))
        self.move({c: v[drawn] for c, v in self.codes.items()})
        self.weights = np.full(count, self.total / count)

    def move(self, codes: CodeColumns) -> None:
        self.codes = codes
        for block in self.blocks.values():
            block.forget()

    def snapshot(self) -> Snapshot:
        return self.codes, self.weights.copy(), [f.theta for f in self.factors]

    def restore(self, snapshot: Snapshot) -> None:
        codes, weights, thetas = snapshot
        self.weights = weights.copy()  # raking changes them in place, and a snapshot can be restored again
        self.move(codes)
        for factor, theta in zip(self.factors, thetas, strict=True):
            factor.theta = theta
