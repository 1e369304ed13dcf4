"""A Bayesian network: each column given its parents, drawn in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.models.graphical import flat_cells
from understudy.models.model import CodeColumns
from understudy.models.sampling import draw_given
from understudy.schema.domain import ColumnSet


@dataclass(frozen=True)
class Family:
    """A column with its parents, and the weights of its values for each cell of the parents."""

    column: str
    parents: ColumnSet
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class BayesianNetwork:
    """Families in an order in which parents come before their children."""

    sizes: Mapping[str, int]
    families: Sequence[Family]
    total: float

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        drawn: CodeColumns = {}
        for family in self.families:
            parents = flat_cells(drawn, family.parents, self.sizes, rows)
            drawn[family.column] = draw_given(parents, family.weights, rng)
        return drawn
