"""A trained generator of rows: random numbers, and in the conditional form a chosen value, make a law of every column.

A row's columns are independent of each other given these; so the law of any two columns is a mean of products, and
drawing needs nothing but matrix products. The weights are trained elsewhere, and are all there is to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InternalError

Floats = NDArray[np.float64]

ROUNDED = 2.0**20
"""Scores are rounded to this fraction, so that the last digits of another processor change no row."""
BLOCK = 1 << 13


@dataclass(frozen=True)
class Plan:
    """The public form of a generator: sizes of columns, random numbers, hidden units, and if it has a condition."""

    sizes: tuple[int, ...]
    noise: int = 32
    hidden: int = 128
    conditional: bool = False

    @property
    def width(self) -> int:
        return sum(self.sizes)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        inputs = self.noise + (self.width if self.conditional else 0)
        return (inputs, self.hidden), (self.hidden, self.hidden), (self.hidden, self.width)

    @property
    def weights(self) -> int:
        return sum((i + 1) * o for i, o in self.layers)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    def columns(self) -> Iterator[slice]:
        return (slice(int(a), int(b)) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True))


@dataclass(frozen=True, eq=False)
class Generator:
    """A plan with its weights: matrices and biases, one after the other, in one vector."""

    plan: Plan
    vector: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.vector.shape != (self.plan.weights,) or not np.isfinite(self.vector).all():
            raise InternalError(f"a generator of this form must have {self.plan.weights} finite weights.", self.plan)

    @cached_property
    def layers(self) -> list[tuple[Floats, Floats]]:
        found, at, vector = [], 0, self.vector.astype(np.float64)
        for inputs, outputs in self.plan.layers:
            matrix = vector[at : at + inputs * outputs].reshape(inputs, outputs)
            at += inputs * outputs
            found.append((matrix, vector[at : at + outputs]))
            at += outputs
        return found

    def scores(self, inputs: Floats) -> Floats:
        """Log-weights of all groups of all columns, but for a constant per column."""
        values = inputs
        for place, (matrix, bias) in enumerate(self.layers):
            values = values @ matrix + bias
            if place < len(self.layers) - 1:
                values = values * (0.5 + 0.5 * np.tanh(0.5 * values))
        return np.rint(values * ROUNDED) / ROUNDED

    def laws(self, inputs: Floats) -> Floats:
        """The distribution of each column, side by side, for each line of inputs."""
        weights = self.scores(inputs)
        for column in self.plan.columns():
            part = weights[:, column]
            part -= part.max(axis=1, keepdims=True)
            np.exp(part, out=part)
            part /= part.sum(axis=1, keepdims=True)
        return weights

    def inputs(self, noise: Floats, columns: NDArray[np.integer[Any]], groups: NDArray[np.integer[Any]]) -> Floats:
        """Random numbers with the condition beside them: this group of this column, and nothing else."""
        if not self.plan.conditional:
            return noise
        condition = np.zeros((len(noise), self.plan.width))
        condition[np.arange(len(noise)), self.plan.starts[columns] + groups] = 1.0
        return np.concatenate([noise, condition], axis=1)


def draw_codes(laws: Floats, sizes: Sequence[int], rng: np.random.Generator) -> NDArray[np.int32]:
    """One group per line and column: the first whose cumulative weight exceeds a uniform number."""
    codes = np.empty((len(laws), len(sizes)), dtype=np.int32)
    start = 0
    for place, size in enumerate(sizes):
        cumulative = np.cumsum(laws[:, start : start + size], axis=1)
        uniform = rng.random((len(laws), 1)) * cumulative[:, -1:]
        codes[:, place] = np.minimum((cumulative <= uniform).sum(axis=1), size - 1)
        start += size
    return codes
