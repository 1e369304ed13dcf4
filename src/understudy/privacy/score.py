"""Scores for private selection, each computed exactly, each with its proved sensitivity.

Scores are formed in integer arithmetic on a public grid of 2^-20: floating-point sums would differ between
neighbouring tables by more than one row can cause, in their last digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InternalError
from understudy.schema.domain import ColumnSet

GRID_BITS = 20
GRID = 1 << GRID_BITS
STEP = 1.0 / GRID


@dataclass(frozen=True)
class Candidate:
    """A set of columns that might be measured next, and the model's present estimate of its counts.

    Its score is weight × ‖counts − estimate‖₁ + offset: large where the model is worst. `estimate`, `weight` and
    `offset` must come from public facts and earlier answers alone.
    """

    columns: ColumnSet
    estimate: NDArray[np.float64]
    weight: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.weight <= 1e6 and np.isfinite(self.offset) and np.isfinite(self.estimate).all()):
            raise InternalError(f"candidate {self.columns} must have finite estimates and a weight in (0, 1e6]", self)

    def score(self, counts: NDArray[np.int64]) -> float:
        """Exact on the grid, then rounded down once after weighting."""
        on_grid = np.rint(self.estimate * GRID).astype(np.int64)
        error = int(np.abs((counts << GRID_BITS) - on_grid).sum())
        weighted = error * round(self.weight * GRID) // GRID
        return (weighted + round(self.offset * GRID)) / GRID


def error_sensitivity(candidates: list[Candidate], change: int) -> float:
    """Sensitivity of the largest score when a neighbour moves the counts of any set by at most `change` in L1.

    |‖h−e‖₁ − ‖h′−e‖₁| ≤ ‖h−h′‖₁ ≤ change (triangle inequality); the weight multiplies it, and rounding down to
    the grid adds at most one step. Every score shares this bound, whichever candidate it belongs to.
    """
    return max(round(c.weight * GRID) / GRID for c in candidates) * change + STEP


def rank_scores(counts: NDArray[np.int64], probability: float) -> NDArray[np.float64]:
    """Score of each cut point i = 0 … len(counts) as the `probability` quantile: −|rows below i − probability × rows|.

    One row more or less moves rows-below by at most 1 and probability × rows by `probability`, in the same direction
    or only the latter, so a score moves by at most max(probability, 1−probability) ≤ 1; one row replaced moves it by
    at most 1. (Smith 2011, with the row count as part of the query.) Integer arithmetic on the grid.
    """
    below = np.concatenate([[0], np.cumsum(counts)]) << GRID_BITS
    wanted = round(probability * GRID) * int(counts.sum())
    return -np.abs(below - wanted).astype(np.float64) / GRID
