"""A training behind the boundary: it owns the rows, and hands out noisy sums of clipped gradients, step by step.

A critic scores a row by its groups: f(x) = Σ over pairs of columns w[x_a, x_b] + v·h(W·x + b). The first, *wide* part
is linear in its weights: the gradient of a row is 1 for the pairs of groups that it has and 0 elsewhere, so all rows
have the same norm and the sum is a count. The second, *deep* part is a network of one hidden layer, whose gradient with
respect to W is an outer product: its norm is the product of two norms, and the sum of clipped gradients is one product
of matrices (Goodfellow 2015). The proof is docs/mechanisms/gradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import frozen
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.subsampling import GRID_SCALE, Course, poisson_rows
from understudy.errors import InternalError, MethodError

BLOCK = 1 << 12
"""Rows whose gradients are in memory together; the bound on a sum's rounding has it, too (`GradientSums`)."""
MARGIN = 2.0**-11
"""How much shorter than allowed a row's deep gradient is clipped: room for the last digits of floats (`Training`)."""
MOST_ROWS = 1 << 25
"""Of a table to train on, and so of any batch: the sum of so many gradients stays within half of MARGIN (`Training`).

That tables have no more is a public promise of every training, as FEWEST_ROWS is of every claim."""
MOST_NOISE = 2.0**12
"""The longest gradient then still has 2^18 steps of the grid, beside which rounding to the grid is small."""
LARGEST_WEIGHT = 100.0
"""Of a critic, which is public: no row's gradient overflows, so that clipping always has a number to clip."""

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Keep = Callable[[Callable[[], NDArray[np.int64]]], NDArray[np.int64]]
"""Hands out the noisy whole numbers of one step: those that the function draws, or those drawn before (`journal`)."""


def at_once(draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Draws, and keeps nothing."""
    return draw()


@dataclass(frozen=True)
class Groups:
    """How many groups each column has: a row is one of them in each column, written as ones and zeros side by side."""

    sizes: tuple[int, ...]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each column begins."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    @property
    def width(self) -> int:
        return sum(self.sizes)

    @property
    def pairs(self) -> int:
        return len(self.sizes) * (len(self.sizes) - 1) // 2

    @cached_property
    def upper(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places of all pairs of groups of different columns, each once, in a table of groups by groups."""
        column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        above, below = np.nonzero(column[:, None] < column[None, :])
        return above, below

    def one_hot(self, codes: Codes) -> Floats:
        found = np.zeros((len(codes), self.width))
        found[np.arange(len(codes))[:, None], codes + self.starts[:-1]] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class Deep:
    """The deep part of a critic: f(x) = last · silu(first' x + bias). Smooth, so that rounding stays rounding."""

    first: Floats
    bias: Floats
    last: Floats

    def __post_init__(self) -> None:
        for name in ("first", "bias", "last"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), dtype=np.float64)))

    @classmethod
    def of(cls, vector: Floats, width: int, hidden: int) -> Deep:
        ends = (width * hidden, width * hidden + hidden)
        if len(vector) != ends[1] + hidden:
            raise InternalError(f"a critic of {width} by {hidden} can't have {len(vector)} weights.", vector)
        return cls(vector[: ends[0]].reshape(width, hidden), vector[ends[0] : ends[1]], vector[ends[1] :])

    @property
    def cells(self) -> int:
        return self.first.size + self.bias.size + self.last.size

    def fits(self, shape: GradientShape) -> bool:
        hidden = (shape.hidden,)
        return (self.first.shape, self.bias.shape, self.last.shape) == ((shape.groups.width, *hidden), hidden, hidden)

    def flat(self) -> Floats:
        return np.concatenate([self.first.ravel(), self.bias, self.last])

    def clipped_sum(self, rows: Floats, longest: float) -> Floats:
        """The sum of the rows' gradients, none of them longer than `longest`, as one vector in the order of `flat`."""
        if not len(rows):
            return np.zeros(self.cells)
        # Goodfellow 2015: the gradient of a row is (x ⊗ back, back, hidden), whose squared length is
        # (|x|² + 1)·|back|² + |hidden|². So no gradient is ever formed, and clipping is a weight for each row.
        before = rows @ self.first + self.bias
        gate = 0.5 + 0.5 * np.tanh(0.5 * before)
        hidden = before * gate
        back = gate * (1.0 + before * (1.0 - gate)) * self.last
        squares = (np.einsum("ij,ij->i", rows, rows) + 1.0) * np.einsum("ij,ij->i", back, back)
        squares += np.einsum("ij,ij->i", hidden, hidden)
        weights = longest / np.maximum(np.sqrt(squares), longest)
        weighted = back * weights[:, None]
        return np.concatenate([(rows.T @ weighted).ravel(), weighted.sum(axis=0), weights @ hidden])


def pair_counts(groups: Groups, rows: Floats) -> NDArray[np.int64]:
    """How many rows have each pair of groups, in the order of `Groups.upper`; whole numbers, so exact in floats."""
    return (rows.T @ rows)[groups.upper].astype(np.int64)


def symmetric(groups: Groups, values: Floats) -> Floats:
    """A table of groups by groups from one number per pair; nothing is said of a column with itself."""
    table = np.zeros((groups.width, groups.width))
    table[groups.upper] = values
    return table + table.T


def lengths(groups: Groups, deep_share: float) -> tuple[float, float]:
    """How long the wide and the deep gradient of a row may be, so that both together are of length 1."""
    share = deep_share if groups.pairs else 1.0
    return math.sqrt(1.0 - share), math.sqrt(share)


@dataclass(frozen=True)
class GradientShape:
    """The public form of a critic's gradient."""

    sizes: tuple[int, ...]
    hidden: int = 0
    deep_share: float = 0.0

    def __post_init__(self) -> None:
        if bool(self.hidden) != (self.deep_share > 0) or not 0 <= self.deep_share <= 1:
            raise InternalError(
                f"deep share ({self.deep_share}) must be above 0 just where there are hidden units.", self
            )

    @cached_property
    def groups(self) -> Groups:
        return Groups(self.sizes)

    @property
    def cells(self) -> int:
        """How many numbers one noisy gradient has."""
        wide = (self.groups.width**2 - sum(s * s for s in self.sizes)) // 2
        return wide + self.hidden * (self.groups.width + 2)


@dataclass(frozen=True, eq=False)
class Noisy:
    """The noisy sums of one step: rows by pair of groups, and gradients in units of their longest."""

    pairs: Floats
    deep: Floats


def check_rows(rows: int) -> None:
    """Refuses a table of more rows than the sums of a training are proved for."""
    if rows > MOST_ROWS:
        raise MethodError(
            f"a training can have at most {MOST_ROWS:,} rows; use a method that counts, which has no such bound",
            MOST_ROWS,
        )


class GradientSums:
    """The sums of clipped gradients over random batches, and their noise: what a training adds up behind the boundary.

    Its sums are exact, so that it never leaves `Train`; strategies are handed a `Training`, which adds the noise.

    Each row joins a batch by its own coin, and its gradient is no longer than 1 in all (`lengths`). One length is
    GRID_SCALE/noise steps of a grid, on which the noise is drawn exactly (`noise.discrete_gaussian`). The wide sum is a
    count times a whole number of steps. The deep sum of d numbers is added up in float64 and then rounded, which moves
    it by at most ½ a number in each of two neighbours: by √d steps in all. Gradients are clipped that much shorter:
    MARGIN lengths for floats, √d steps for rounding.

    Half of MARGIN is for the sum. No number goes through more than m = BLOCK + B/BLOCK additions where B rows are added
    up in blocks, in whatever order a processor does it, so that the sum errs by at most m·2^-53 times the lengths of
    all gradients together (Higham 2002, section 4.2), which is B: with MOST_ROWS that is below MARGIN/4 in each of two
    neighbours. The other half is for the gradients themselves: how a processor blocks its products changes the last
    digits of a smooth function of weights up to LARGEST_WEIGHT.
    """

    def __init__(
        self, codes: NDArray[np.integer[Any]], shape: GradientShape, course: Course, randomness: Randomness
    ) -> None:
        if course.noise > MOST_NOISE:
            raise MethodError(
                f"noise ({course.noise:.4g}) must be at most {MOST_NOISE:g}; ask with a larger epsilon", course
            )
        check_rows(len(codes))
        self.codes, self.randomness = codes, randomness
        self.shape, self.course = shape, course
        wide, deep = lengths(shape.groups, shape.deep_share)
        # The noise has GRID_SCALE steps and is `noise` lengths: so many steps has the longest gradient of a row.
        length = GRID_SCALE / course.noise
        # A row has one group in each column, and so a 1 for every pair of columns: length √pairs before scaling.
        self.wide_steps = math.floor(length * wide / math.sqrt(max(1, shape.groups.pairs)))
        # ½ a step for each of d numbers, in each of two neighbours: √d together (the class's docstring).
        rounding = math.sqrt(shape.hidden * (shape.groups.width + 2))
        self.deep_steps = length * deep * (1.0 - MARGIN) - rounding
        if shape.hidden and self.deep_steps < length * deep / 2:
            raise MethodError(f"noise ({course.noise:.4g}) is too large for the critic; ask for a larger epsilon", self)

    def noisy(self, critic: Deep | None) -> NDArray[np.int64]:
        """The sums of the next batch with their noise, in whole steps of the grid."""
        # Never divided by the size of the batch, which is private.
        sums = self.sums(self.codes[self.batch()], critic)
        return sums + self.noise(len(sums))

    def batch(self) -> NDArray[np.intp]:
        return poisson_rows(self.course.rate, len(self.codes), self.randomness)

    def noise(self, size: int) -> NDArray[np.int64]:
        return self.randomness.noise("discrete-gaussian", GRID_SCALE, size)

    def sums(self, batch: NDArray[np.integer[Any]], critic: Deep | None) -> NDArray[np.int64]:
        """Without noise, in whole steps of the grid."""
        if bool(self.shape.hidden) != (critic is not None):
            raise InternalError("a training with hidden units needs the critic that has them.", self.shape)
        # A subclass might do anything with the rows, and numpy would stretch what has another shape.
        if critic is not None and (type(critic) is not Deep or not critic.fits(self.shape)):
            raise InternalError(f"a critic must be a Deep of the shape {self.shape}.", self.shape)
        if critic is not None and not np.abs(critic.flat()).max() <= LARGEST_WEIGHT:
            raise InternalError(f"weights of a critic must be finite and at most {LARGEST_WEIGHT:g}.", critic)
        groups = self.shape.groups
        pairs = np.zeros(len(groups.upper[0]), dtype=np.int64)
        deep = np.zeros(self.shape.cells - len(pairs))
        for start in range(0, len(batch), BLOCK):
            rows = groups.one_hot(batch[start : start + BLOCK])
            pairs += pair_counts(groups, rows)
            if critic is not None:
                deep += self.clipped(critic, rows)
        return np.concatenate([pairs * self.wide_steps, np.rint(deep * self.deep_steps).astype(np.int64)])

    def clipped(self, critic: Deep, rows: Floats) -> Floats:
        return critic.clipped_sum(rows, 1.0)


class Training:
    """One training's access to rows: `course.steps` noisy sums, and nothing else."""

    def __init__(self, sums: GradientSums, keep: Keep = at_once) -> None:
        self._sums, self._keep, self._left = sums, keep, sums.course.steps

    @property
    def shape(self) -> GradientShape:
        return self._sums.shape

    @property
    def course(self) -> Course:
        return self._sums.course

    @property
    def left(self) -> int:
        """How many steps are still paid for."""
        return self._left

    def gradients(self, critic: Deep | None = None) -> Noisy:
        """The next noisy sums; an empty batch gives noise alone."""
        if self._left < 1:
            raise InternalError(f"a training of {self.course.steps} steps can't take another one.", self)
        # Counted before it is drawn: a learner that fails within a step can't have the same step twice.
        self._left -= 1
        noisy = self._keep(lambda: self._sums.noisy(critic))
        wide = len(noisy) - (critic.cells if critic else 0)
        return Noisy(noisy[:wide] / max(1, self._sums.wide_steps), noisy[wide:] / (self._sums.deep_steps or 1.0))
