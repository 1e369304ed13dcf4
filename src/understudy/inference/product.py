"""Every column on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import Measurement
from understudy.inference.histogram import estimate_total, project_to_simplex
from understudy.inference.model import CodeColumns
from understudy.inference.sampling import draw_rows


@dataclass(frozen=True)
class IndependentModel:
    """A product of one-way distributions."""

    weights: Mapping[str, NDArray[np.float64]]
    total: float

    @classmethod
    def fit(cls, measurements: Sequence[Measurement]) -> IndependentModel:
        """From one-way measurements, and a public row count if there is one among them."""
        total = estimate_total(measurements)
        return cls({m.columns[0]: project_to_simplex(m.counts, total) for m in measurements if m.columns}, total)

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        return {column: draw_rows(weights, rows, rng) for column, weights in self.weights.items()}

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """What is given tells nothing of the other columns."""
        return self.sample(len(next(iter(given.values()))), rng) | given
