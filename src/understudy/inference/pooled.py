"""A pool of rows as a model: weighted so that it has measured counts, and rows selected from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.inference.grouping import Floats
from understudy.inference.histogram import project_to_simplex
from understudy.inference.model import CodeColumns, Model
from understudy.inference.particles.particles import Particles, cells_of
from understudy.inference.particles.rounding import choose_rows
from understudy.inference.row_selection import Goal, Places, choose, proposals

TRIES = 8
"""Rows that are drawn for each row of evidence, of which one is kept by weight."""


@dataclass(frozen=True)
class PooledModel:
    """Rows of a pool with their weights, the model that they were drawn from, and how rows are selected.

    Without a distance they are drawn by weight, so that all counts are those of the weighted pool up to rounding. With
    one they are chosen row by row out of the pool as it is, each so that the measured marginals come nearest.
    """

    particles: Particles
    source: Model
    distance: str | None = None
    sections: int = 1

    @property
    def total(self) -> float:
        return self.particles.total

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        """Selected rows; where more are wanted than the pool has, the others are drawn from it by weight."""
        chosen = rng.permutation(self._chosen(rows, rng))
        return {c: v[chosen] for c, v in self.particles.codes.items()}

    def _chosen(self, rows: int, rng: np.random.Generator) -> Places:
        if self.distance is None:
            return choose_rows(self.particles, rows, rng)
        sections = min(self.sections, rows, self.particles.count)
        selected = min(rows, self.particles.count // sections * sections)
        proposed = proposals(self.particles.count, selected, sections, rng)
        found = choose(self._goal(), proposed, self.distance).ravel()[:selected]
        return np.concatenate([found, self.particles.draw(rows - selected, rng)]) if rows > selected else found

    def _goal(self) -> Goal:
        """The finest counts that were measured of each set of columns, made into distributions."""
        cells, wanted = [], []
        for columns, block in self.particles.blocks.items():
            known = [(f.seen.counts, f.groups) for f in block.factors if f.seen is not None]
            if known:
                counts, groups = max(known, key=lambda f: f[0].size)
                cells.append(cells_of(self.particles.codes, columns, groups))
                wanted.append(project_to_simplex(counts, self.total).ravel())
        return Goal.of(cells, wanted, [1.0] * len(cells))

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Rows of the pool's own model given the evidence, several for each, of which one is kept by its weight."""
        rows = len(next(iter(given.values())))
        drawn = self.source.complete({c: np.repeat(v, TRIES) for c, v in given.items()}, rng)
        logs = self._log_weights(drawn).reshape(rows, TRIES)
        # Gumbels: the largest sum is a draw by weight.
        kept = np.arange(rows) * TRIES + (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
        return {c: v[kept] for c, v in drawn.items()}

    def _log_weights(self, codes: CodeColumns) -> Floats:
        """By what factor the projection weighs each of these rows; for rows of the pool that is their weight."""
        logs = np.zeros(len(next(iter(codes.values()))))
        for columns, block in self.particles.blocks.items():
            logs += np.take(block.theta(), cells_of(codes, columns, block.groups))
        return logs
