"""Deliberately broken trainings: what a method that trains can get wrong, and no other method can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.gradient import Deep
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.subsampling import GRID_SCALE
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes
from understudy.boundary.privacy.mechanisms.training import GradientSums

Codes = NDArray[np.integer[Any]]


class Unclipped(GradientSums):
    """Sums gradients as long as they are."""

    def clipped(self, critic: Deep, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return critic.clipped_sum(rows, 1e9)


class HalfNoise(GradientSums):
    """Draws noise of half the scale."""

    def noise(self, size: int) -> NDArray[np.int64]:
        return self.randomness.noise("discrete-gaussian", GRID_SCALE / 2, size)


class Shuffled(GradientSums):
    """Goes through the shuffled rows in batches of one size, and is accounted as if rows had joined by coins."""

    _order: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def batch(self) -> NDArray[np.intp]:
        size = round(self.course.rate * len(self.codes))
        if len(self._order) < size:
            keys = self.randomness.noise("discrete-gaussian", GRID_SCALE, len(self.codes))
            self._order = np.argsort(keys, kind="stable")
        batch, self._order = self._order[:size], self._order[size:]
        return batch


class SharedTeachers(ExactVotes):
    """Every row is known to three teachers."""

    def taught(self, codes: Codes) -> Any:
        of = self.assigned(len(codes))
        parts = [self.known(codes, (of + k) % self.teachers) for k in range(3)]
        return sum(c for c, _ in parts), sum(n for _, n in parts)


@dataclass(frozen=True)
class RawLaw:
    """No noise on the counts that make the law of conditions; all else is honest."""

    honest: Randomness
    secure: bool = True

    @classmethod
    def system(cls) -> RawLaw:
        return cls(ExactRandomness.system())

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        counted = mechanism == "discrete-gaussian" and scale < GRID_SCALE / 4
        return np.zeros(size, dtype=np.int64) if counted else self.honest.noise(mechanism, scale, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return self.honest.choose(scores, exponent, k)

    def draw(self, counts: NDArray[np.int64], prior: Any, draws: int) -> NDArray[np.int64]:
        return self.honest.draw(counts, prior, draws)
