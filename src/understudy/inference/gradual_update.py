"""Rows that are changed little by little until they hold given marginals (GUM; Zhang et al. 2021, PrivSyn).

It begins with rows of unrelated columns. One marginal after the other, rows leave the cells that hold too many of them
and enter cells that hold too few: as copies of whole rows that are there, which keeps what the copied rows have in
common beyond this marginal, or with the values of this marginal alone, which brings in what no row has yet. So no model
of all columns is needed, and any number of marginals may overlap in any way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.conditional import resample
from understudy.inference.graphical.graphical_model import flat_cells, unflatten
from understudy.inference.marginal_model import CONSISTENCY_ROUNDS, make_consistent
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import NoisyTable, keep_every_value, settled
from understudy.inference.sampling import draw_rows, stable_argsort

PASSES = 60
FIRST_STEP, SHRINKING, EVERY = 1.0, 0.84, 10
"""A cell grows by this share of its rows at most, and by less in every tenth pass: large steps forever would undo what
other marginals have settled. In print it is every twentieth of more passes."""
COPIED = 0.5
"""Of the rows that enter a cell: the part that are copies of rows in it. As in print."""


@dataclass(frozen=True)
class GraduallyUpdated:
    """Marginals that agree with each other, each over columns of these sizes; every single column is among them."""

    sizes: Mapping[str, int]
    marginals: Mapping[ColumnSet, NDArray[np.float64]]
    total: float
    passes: int = PASSES

    @classmethod
    def fit(cls, sizes: Mapping[str, int], tables: list[NoisyTable], total: float) -> GraduallyUpdated:
        counts = {t.columns: np.asarray(t.counts, dtype=np.float64) for t in tables}
        variances = {t.columns: float(np.mean(t.variance)) for t in tables}
        # In turn, as PriView does (Qardaji, Yang & Li 2014): each step undoes a little of the other.
        for _ in range(CONSISTENCY_ROUNDS):
            make_consistent(counts, variances)
            counts = {c: keep_every_value(n, total, variances[c]) for c, n in counts.items()}
        return cls(sizes, {c: settled(n) for c, n in counts.items()}, total)

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        codes = {c: rng.permutation(draw_rows(self.marginals[c,], rows, rng)) for c in self.sizes}
        joint = {c: n.ravel() * (rows / n.sum()) for c, n in self.marginals.items() if len(c) > 1}
        for number in range(self.passes):
            step = FIRST_STEP * SHRINKING ** (number // EVERY)
            for place in rng.permutation(len(joint)):
                columns = list(joint)[place]
                self._update(codes, columns, joint[columns], step, rng)
        return codes

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        return resample(self, given, rng)

    def _update(
        self, codes: CodeColumns, columns: ColumnSet, wanted: NDArray[np.float64], step: float, rng: np.random.Generator
    ) -> None:
        """Moves rows from the cells that hold too many to those that hold too few, in place."""
        rows = len(codes[columns[0]])
        cells = flat_cells(codes, columns, self.sizes, rows)
        held = np.bincount(cells, minlength=wanted.size)
        over = np.maximum(held - wanted, 0.0)
        # An empty cell has nothing to grow by a share of: it gets that share of what it lacks.
        entering = np.minimum(np.maximum(wanted - held, 0.0), step * np.where(held > 0, held, wanted))
        moved = min(over.sum(), entering.sum())
        if moved < 1.0:
            return
        # By chance, row by row: how many leave a cell is right on average, and later passes see to the rest.
        leaves = np.divide(over, held, out=np.zeros(wanted.size), where=held > 0) * (moved / over.sum())
        leaving = np.flatnonzero(rng.random(rows) < leaves[cells])
        into = rng.permutation(draw_rows(entering, len(leaving), rng))
        copied = (rng.random(len(leaving)) < COPIED) & (held[into] > 0)
        self._copy(codes, cells, held, leaving[copied], into[copied], rng)
        shape = [self.sizes[c] for c in columns]
        for column, values in zip(columns, unflatten(into[~copied], shape), strict=True):
            codes[column][leaving[~copied]] = values

    def _copy(
        self,
        codes: CodeColumns,
        cells: NDArray[np.integer],
        held: NDArray[np.integer],
        leaving: NDArray[np.intp],
        into: NDArray[np.integer],
        rng: np.random.Generator,
    ) -> None:
        """Puts copies of rows of the cells `into` in the place of the rows that leave."""
        by_cell, first = stable_argsort(cells, len(held)), np.cumsum(held) - held
        chosen = by_cell[first[into] + (rng.random(len(into)) * held[into]).astype(np.intp)]
        for values in codes.values():
            values[leaving] = values[chosen]
