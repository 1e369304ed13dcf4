"""Columns drawn one after the other: each given its parents (a Bayesian network), or each on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.conditional import LIMITS, ConditionalTable, ConditioningLimits, product, resample
from understudy.inference.graphical.graphical_model import GraphicalModel, flat_cells, log_or_never
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import estimate_total, keep_every_value
from understudy.inference.sampling import draw_given, draw_rows


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
    limits: ConditioningLimits = LIMITS

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        # Ancestral sampling: every parent is drawn before its children.
        drawn: CodeColumns = {}
        for family in self.families:
            parents = flat_cells(drawn, family.parents, self.sizes, rows)
            drawn[family.column] = draw_given(parents, family.weights, rng)
        return drawn

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        if self.graph is None:
            return resample(self, given, rng, self.limits)
        return self.graph.complete(given, rng)

    @cached_property
    def graph(self) -> GraphicalModel | None:
        """The same distribution on a junction tree, unless that would be too large."""
        factors = []
        for family in self.families:
            shape = [self.sizes[c] for c in (*family.parents, family.column)]
            factors.append(ConditionalTable(family.parents, (family.column,), family.weights.reshape(shape)))
        return product(self.sizes, factors, self.total, limits=self.limits)


@dataclass(frozen=True)
class IndependentModel:
    """A product of one-way distributions."""

    weights: Mapping[str, NDArray[np.float64]]
    total: float

    @classmethod
    def fit(cls, measurements: Sequence[Measurement]) -> IndependentModel:
        """From one-way measurements, and a public row count if there is one among them."""
        total = estimate_total(measurements)
        counted = [m for m in measurements if m.columns]
        return cls({m.columns[0]: keep_every_value(m.counts, total, m.variance) for m in counted}, total)

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        return {column: draw_rows(weights, rows, rng) for column, weights in self.weights.items()}

    def log_density(self, codes: CodeColumns) -> NDArray[np.float64]:
        logs = [log_or_never(weights / weights.sum())[codes[column]] for column, weights in self.weights.items()]
        return np.asarray(np.sum(logs, axis=0))

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """What is given tells nothing of the other columns."""
        return self.sample(len(next(iter(given.values()))), rng) | given
