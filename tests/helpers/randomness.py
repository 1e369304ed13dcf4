"""Randomness that is silent, that takes the best, or that is broken in one way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness


@dataclass
class SilentRandomness:
    """No noise at all, and selections pinned to the first indices; remembers what it was asked for."""

    secure: bool = True
    events: list[str] = field(default_factory=list)
    scales: list[tuple[str, float, int]] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)
    exponents: list[float] = field(default_factory=list)

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        self.events.append("noise")
        self.scales.append((mechanism, scale, size))
        return np.zeros(size, dtype=np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        self.events.append("choose")
        self.scores.append(scores)
        self.exponents.append(exponent)
        return list(range(k))


@dataclass
class BestRandomness(SilentRandomness):
    """No noise, and the best scores selected: the answer of an infinite budget."""

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        super().choose(scores, exponent, k)
        return [int(i) for i in np.argsort(-scores, kind="stable")[:k]]


class MutantRandomness:
    """Honest noise, spoilt by a subclass."""

    secure = True

    def __init__(self) -> None:
        self._honest: Randomness = ExactRandomness.system()

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self._honest.noise(mechanism, scale, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return self._honest.choose(scores, exponent, k)


class ScaledNoise(MutantRandomness):
    """The right law at the wrong scale."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return super().noise(mechanism, scale * self._factor, size)


class ShiftedNoise(MutantRandomness):
    """Noise that is not centred at zero: `ones` plus `share` of the scale."""

    def __init__(self, ones: int = 0, share: float = 0.0) -> None:
        super().__init__()
        self._ones, self._share = ones, share

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return super().noise(mechanism, scale, size) + self._ones + round(self._share * scale)


class RepeatedNoise(MutantRandomness):
    """Fresh draws for a `share` of the cells, used again for the rest; a share of 0 gives all the same noise.

    A draw of 0 becomes 1: were it the only one, the mutant would add nothing, and be caught by another check.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        fresh = super().noise(mechanism, scale, max(1, round(size * self._share)))
        return np.resize(np.where(fresh == 0, 1, fresh), size)


class PairedNoise(MutantRandomness):
    """Each draw used for two neighbouring cells."""

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return np.repeat(super().noise(mechanism, scale, (size + 1) // 2), 2)[:size]


class ReusedNoise(MutantRandomness):
    """The noise of the first histogram, used again for every later one of its size."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[int, NDArray[np.int64]] = {}

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self._kept.setdefault(size, super().noise(mechanism, scale, size))


class SeededRandomness(MutantRandomness):
    """Honest, and the same every time."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._honest = ExactRandomness.seeded(seed)
