"""Gibbs sampling of particles: each column of each row drawn anew, given the others.

Only the groups of a column meet other columns, so a group is drawn first, in the common refinement of all groupings of
the column, and then a value inside it. All weights are whole numbers (logarithms on a grid of 1/1024, and a table of
their exponentials), so that the draws are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.grouping import Floats, Groups, refine
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import settled
from understudy.inference.particles import kernels
from understudy.inference.particles.particles import CELL, Particles, steps_of
from understudy.inference.particles.threads import by_rows

GRID = 1024
"""Steps of the logarithms; a factor is off by at most half a step, a twentieth of a per cent."""
DEEPEST = 14 * GRID
"""Below e^-14 of the largest weight there is nothing."""
EXPONENTIALS = np.rint(np.exp(-np.arange(DEEPEST + 1) / GRID) * (1 << 20)).astype(np.int32)
EXPONENTIALS[-1] = 0

Whole = NDArray[np.int32]


@dataclass(frozen=True)
class Layer:
    """What one block says of a column: log-weights of its groups (columns) by cells of the others (rows)."""

    table: Whole
    columns: ColumnSet
    groups: tuple[Groups, ...]


def sweep(particles: Particles, rng: np.random.Generator, fixed: frozenset[str] = frozenset()) -> None:
    """Draws every column that is not fixed once, in random order."""
    thetas = {b.columns: b.theta() for b in particles.blocks.values()}
    codes = dict(particles.codes)
    names = [c for c in particles.sizes if c not in fixed]
    for i in rng.permutation(len(names)):
        codes[names[i]] = _drawn(particles, names[i], thetas, codes, rng)
    particles.move(codes)


def _drawn(
    particles: Particles, column: str, thetas: Mapping[ColumnSet, Floats], codes: CodeColumns, rng: np.random.Generator
) -> NDArray[np.integer]:
    single = particles.blocks[(column,)]
    log = thetas[(column,)][single.groups[0]]
    mass = settled(np.exp(log - log.max()))
    blocks = [b for b in particles.blocks.values() if column in b.columns and len(b.columns) > 1]
    axes = [b.columns.index(column) for b in blocks]
    groups, coarse = refine(
        [np.zeros(len(mass), dtype=np.intp), *(b.groups[a] for b, a in zip(blocks, axes, strict=True))]
    )
    layers = []
    for i, (block, axis) in enumerate(zip(blocks, axes, strict=True)):
        others = [(c, g) for j, (c, g) in enumerate(zip(block.columns, block.groups, strict=True)) if j != axis]
        table = np.moveaxis(thetas[block.columns], axis, -1).reshape(-1, block.shape[axis])[:, coarse[:, i + 1]]
        layers.append(Layer(_on_grid(table), tuple(c for c, _ in others), tuple(g for _, g in others)))
    # Whole numbers from here on: a last digit that differs between processors would change a row (decision 8).
    start = _on_grid(np.log(np.maximum(np.bincount(groups, mass), 1e-30)))
    inside, rows = Inside.of(groups, mass), len(codes[column])
    among, within = rng.random(rows), rng.random(rows)
    found = np.empty(rows, dtype=codes[column].dtype)

    def draw(part: slice) -> None:
        known = {c: codes[c][part] for layer in layers for c in layer.columns}
        found[part] = inside.draw(_draw_groups(start, layers, known, among[part]), within[part])

    by_rows(draw, rows)
    return found


def _on_grid(logs: Floats) -> Whole:
    return np.ascontiguousarray(np.rint(logs * GRID).astype(np.int32))


def _draw_groups(start: Whole, layers: Sequence[Layer], codes: CodeColumns, uniform: Floats) -> NDArray[np.intp]:
    """For each row a group, in proportion to the exponential of its summed log-weights."""
    columns = list(dict.fromkeys(c for layer in layers for c in layer.columns))
    table = np.concatenate([start[None, :], *(x.table for x in layers)])
    steps, parts = _addresses(layers, columns)
    stacked = np.empty((len(columns), len(uniform)), dtype=CELL)
    for row, column in zip(stacked, columns, strict=True):
        row[:] = codes[column]
    return kernels.draw(table, steps, parts, stacked, uniform, EXPONENTIALS)


def _addresses(layers: Sequence[Layer], columns: Sequence[str]) -> tuple[Whole, Whole]:
    """Where a row finds what the layers say to it, in a table that holds all of them below each other.

    For each column of each layer: what its codes add to the number of the row in the table; and in which place the
    column is, where its codes begin, and whether it is the last one of its layer.
    """
    steps, parts, above, begin = list[Whole](), list[tuple[int, int, bool]](), 1, 0
    for layer in layers:
        for i, (column, added) in enumerate(zip(layer.columns, steps_of(layer.groups), strict=True)):
            steps.append(added + above if i == 0 else added)
            parts.append((columns.index(column), begin, i + 1 == len(layer.columns)))
            begin += len(added)
        above += len(layer.table)
    none = np.zeros(0, dtype=CELL)
    return np.concatenate([none, *steps]), np.array(parts, dtype=CELL).reshape(-1, 3)


@dataclass(frozen=True)
class Inside:
    """What values weigh inside their groups."""

    values: NDArray[np.intp]
    """By group."""
    first: NDArray[np.intp]
    """Where each group begins among them, and the last one ends."""
    line: Floats
    """Their mass, cumulated."""

    @classmethod
    def of(cls, groups: Groups, mass: Floats) -> Inside:
        order = np.argsort(groups, kind="stable")
        line = np.concatenate([[0.0], np.cumsum(mass[order])])
        return cls(order, np.searchsorted(groups[order], np.arange(groups.max() + 2)), line)

    def draw(self, groups: NDArray[np.intp], uniform: Floats) -> NDArray[np.intp]:
        """For each row a value of its group, in proportion to the values' mass."""
        return self.values[kernels.spread(groups, self.first, self.line, uniform)]
