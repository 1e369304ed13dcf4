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
from understudy.inference.model import CodeColumns
from understudy.inference.sampling import draw_rows

Floats = NDArray[np.float64]
Real = NDArray[np.floating[Any]]
"""Of single or double precision."""
Places = NDArray[np.integer[Any]]

ROUNDED = 2.0**20
"""Scores are rounded to this fraction, so that the last digits of another processor change no row."""
BLOCK = 1 << 13
NEAR = 1 << 11
"""Rows whose numbers stay near the processor while they are drawn."""
MOST_EXPONENT = 80.0
"""Of a gate: beyond it x / (1 + exp(−x)) is nothing, and the exponential of single precision ends soon after."""
SLACK, TAME = 1e-4, 60.0
"""How far single precision may be off on the line of a law's groups, and for scores up to which size. On trained
generators it was off by 4e-6 at most; about one row in forty is drawn again."""
CANDIDATES = 64
"""Inputs of the generator that are weighed against each other for a row that is given in part."""
POOL = 1 << 12


@dataclass(frozen=True)
class GeneratorLayout:
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

    plan: GeneratorLayout
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
                # SiLU, x·σ(x), by the identity σ(x) = (1 + tanh(x/2))/2, which overflows for no x.
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

    def draw(self, noise: Floats, uniform: Floats, told: Places | None = None) -> NDArray[np.int32]:
        """One group per column and line of noise: the rows that `draw_codes` draws from `laws`, much faster.

        `uniform` has a line of numbers for each column, and `told` each row's condition as a place among all groups.
        Rows are drawn in single precision first. Where a uniform number is so near to the boundary between two groups
        that single precision may err, or scores are large, the row is drawn again in double precision: so each row is
        that of double precision, on any processor.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a row whose scores overflow is one that is drawn again
            codes, sure = self._drawn(noise.astype(np.float32), uniform.astype(np.float32), told)
        # Replays on another processor need the same rows, and single precision differs there in its last digits.
        left = np.flatnonzero(~sure)
        codes[:, left] = self._drawn(noise[left], uniform[:, left], None if told is None else told[left])[0]
        return codes

    def _drawn(self, noise: Real, uniform: Real, told: Places | None) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """In the precision of the noise. Rows lie side by side, so that every operation runs along memory."""
        codes, sure = np.empty(uniform.shape, dtype=np.int32), np.ones(len(noise), dtype=bool)
        for start in range(0, len(noise), NEAR):
            part = slice(start, start + NEAR)
            scores = self._upright_scores(noise[part], None if told is None else told[part])
            for place, column in enumerate(self.plan.columns()):
                codes[place, part], known = _drawn(scores[column], uniform[place, part])
                sure[part] &= known
        return codes, sure

    def _upright_scores(self, noise: Real, told: Places | None) -> Real:
        """`scores`, a line for each group. A condition is one row of the first matrix, which is looked up and added."""
        (first, bias), *others = self.layers if noise.dtype == np.float64 else self._single_layers
        values = first[: self.plan.noise].T @ noise.T + bias[:, None]
        if told is not None:
            values += first[self.plan.noise + told].T
        for matrix, bias in others:
            values = matrix.T @ _gated(values)
            values += bias[:, None]
        if noise.dtype == np.float64:
            values *= ROUNDED
            np.rint(values, out=values)
            values *= 1.0 / ROUNDED
        return values

    @cached_property
    def _single_layers(self) -> list[tuple[Real, Real]]:
        return [(matrix.astype(np.float32), bias.astype(np.float32)) for matrix, bias in self.layers]

    def inputs(self, noise: Floats, columns: Places, groups: Places) -> Floats:
        """Random numbers with the condition beside them: this group of this column, and nothing else."""
        if not self.plan.conditional:
            return noise
        condition = np.zeros((len(noise), self.plan.width))
        condition[np.arange(len(noise)), self.plan.starts[columns] + groups] = 1.0
        return np.concatenate([noise, condition], axis=1)


def _gated(values: Real) -> Real:
    """x / (1 + exp(−x)), in place: exp alone takes a third of the time of tanh."""
    gate = np.negative(values)
    np.minimum(gate, MOST_EXPONENT, out=gate)
    np.exp(gate, out=gate)
    gate += 1.0
    values /= gate
    return values


def _drawn(scores: Real, uniform: Real) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """For each row a group of one column, whose log-weights are the lines of `scores`, which are overwritten.

    And whether any number within SLACK of the uniform one would give the same, and the scores are not large.
    """
    top = scores.max(axis=0)
    scores -= top
    np.exp(scores, out=scores)
    for line in range(1, len(scores)):
        scores[line] += scores[line - 1]
    # A double is taken at its word; a single is sure only if numbers near the uniform one give the same group.
    slack = SLACK * (scores.dtype == np.float32)
    low, high = (uniform - slack) * scores[-1], (uniform + slack) * scores[-1]
    codes, highest = np.zeros(len(uniform), dtype=np.int32), np.zeros(len(uniform), dtype=np.int32)
    for cumulative in scores[:-1]:
        codes += cumulative <= low
        highest += cumulative <= high
    return codes, (codes == highest) & (np.abs(top) <= TAME)


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


@dataclass(frozen=True, eq=False)
class GeneratedModel:
    """A generator over groups. Its condition, where it has one, is a column by chance and a value by its law."""

    generator: Generator
    columns: tuple[str, ...]
    laws: tuple[Floats, ...]
    """The distribution of each column by group, from which conditions are drawn."""
    choices: tuple[float, ...]
    """How often each column is the condition; sums to 1."""
    total: float

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        columns, groups = self._conditions(rows, rng)
        codes = np.empty((len(self.columns), rows), dtype=np.int32)
        for start in range(0, rows, BLOCK):
            part = slice(start, min(start + BLOCK, rows))
            codes[:, part] = self._drawn(columns[part], groups[part], rng)
        return dict(zip(self.columns, codes, strict=True))

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Each row takes one of many inputs, by how likely it makes what is given; the other columns follow from it."""
        places = [self.columns.index(c) for c in given]
        known = np.stack(list(given.values()), axis=1)
        codes = np.empty((len(known), len(self.columns)), dtype=np.int32)
        for start in range(0, len(known), BLOCK):
            part = slice(start, start + BLOCK)
            codes[part] = self._completed(places, known[part], rng)
        return dict(zip(self.columns, codes.T, strict=True)) | given

    def _conditions(self, rows: int, rng: np.random.Generator) -> tuple[Places, Places]:
        """For each row the column of its condition and the group; every column's share follows its law."""
        if not self.generator.plan.conditional:
            return np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=np.int32)
        columns = draw_rows(np.array(self.choices), rows, rng)
        groups = np.zeros(rows, dtype=np.int32)
        for place, law in enumerate(self.laws):
            chosen = np.flatnonzero(columns == place)
            groups[chosen] = draw_rows(law, len(chosen), rng)
        return columns, groups

    def _drawn(self, columns: Places, groups: Places, rng: np.random.Generator) -> Places:
        """A line of groups for each column."""
        plan, rows = self.generator.plan, len(columns)
        noise, uniform = rng.standard_normal((rows, plan.noise)), rng.random((len(self.columns), rows))
        codes = self.generator.draw(noise, uniform, plan.starts[columns] + groups if plan.conditional else None)
        if plan.conditional:
            codes[columns, np.arange(rows)] = groups
        return codes

    def _completed(self, places: Sequence[int], known: Places, rng: np.random.Generator) -> Places:
        """By importance: an input's weight is the likelihood of the given groups, capped below so that one is found."""
        # Sampling–importance–resampling (Rubin 1988): candidates by chance, one of them kept by its likelihood.
        laws, starts = self._pool(rng), self.generator.plan.starts
        candidates = rng.integers(0, len(laws), (len(known), CANDIDATES))
        likelihood = np.zeros(candidates.shape)
        for place, groups in zip(places, known.T, strict=True):
            likelihood += np.log(laws[candidates, (starts[place] + groups)[:, None]] + 1e-12)
        weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True)).cumsum(axis=1)
        chosen = (weights <= rng.random((len(known), 1)) * weights[:, -1:]).sum(axis=1)
        picked = candidates[np.arange(len(known)), np.minimum(chosen, CANDIDATES - 1)]
        return draw_codes(laws[picked], self.generator.plan.sizes, rng)

    def _pool(self, rng: np.random.Generator) -> Floats:
        """The laws of many inputs, where the condition's own column is its group for certain."""
        columns, groups = self._conditions(POOL, rng)
        plan = self.generator.plan
        laws = self.generator.laws(self.generator.inputs(rng.standard_normal((POOL, plan.noise)), columns, groups))
        for place, column in enumerate(plan.columns() if plan.conditional else ()):
            own = np.flatnonzero(columns == place)
            laws[own, column] = 0.0
            laws[own, plan.starts[place] + groups[own]] = 1.0
        return laws
