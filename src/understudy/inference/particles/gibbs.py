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
from understudy.inference.particles.particles import CELL, Cells, Particles, cells_of

GRID = 1024
"""Steps of the logarithms; a factor is off by at most half a step, a twentieth of a per cent."""
DEEPEST = 14 * GRID
"""Below e^-14 of the largest weight there is nothing."""
EXPONENTIALS = np.rint(np.exp(-np.arange(DEEPEST + 1) / GRID) * (1 << 20)).astype(np.int32)
EXPONENTIALS[-1] = 0
CHUNK = 1 << 12
"""Rows at once: their weights stay in the cache."""

Whole = NDArray[np.int32]


@dataclass(frozen=True)
class Layer:
    """What one block says of a column: log-weights of its groups (columns) by cells of the others (rows)."""

    table: Whole
    columns: ColumnSet
    groups: tuple[Groups, ...]

    def cells(self, codes: CodeColumns, rows: slice) -> Cells:
        return cells_of({c: codes[c][rows] for c in self.columns}, self.columns, self.groups)


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
    drawn = _draw_groups(start, layers, codes, rng.random(len(codes[column])))
    return _draw_inside(drawn, groups, mass, rng.random(len(drawn))).astype(codes[column].dtype)


def _on_grid(logs: Floats) -> Whole:
    return np.ascontiguousarray(np.rint(logs * GRID).astype(np.int32))


def _draw_groups(start: Whole, layers: Sequence[Layer], codes: CodeColumns, uniform: Floats) -> NDArray[np.intp]:
    """For each row a group, in proportion to the exponential of its summed log-weights."""
    drawn = np.empty(len(uniform), dtype=np.intp)
    table = start[None, :]
    if layers:
        table = np.concatenate([x.table for x in layers])
    above = np.cumsum([0, *(len(x.table) for x in layers)], dtype=CELL)[:-1, None]
    for first in range(0, len(uniform), CHUNK):
        rows = slice(first, first + CHUNK)
        cells = np.empty((len(layers), len(uniform[rows])), dtype=CELL)
        for i, layer in enumerate(layers):
            cells[i] = layer.cells(codes, rows)
        cells += above
        kernels.draw(start, table, cells, uniform[rows], EXPONENTIALS, drawn[rows])
    return drawn


def _draw_inside(drawn: NDArray[np.intp], groups: Groups, mass: Floats, uniform: Floats) -> NDArray[np.intp]:
    """For each row a value of its group, in proportion to the values' mass."""
    order = np.argsort(groups, kind="stable")
    line = np.concatenate([[0.0], np.cumsum(mass[order])])
    first = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    place = first[drawn]
    several = np.flatnonzero((np.diff(first) > 1)[drawn])  # a group of one value leaves nothing to draw
    if several.size:
        group = drawn[several]
        low, high = line[first[group]], line[first[group + 1]]
        inside = np.searchsorted(line, low + uniform[several] * (high - low), side="right") - 1
        place[several] = np.clip(inside, first[group], first[group + 1] - 1)
    return order[place]
