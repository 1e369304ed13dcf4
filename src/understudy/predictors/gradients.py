"""Gradients as whole numbers: what a boosted model would change about each row, and how far one row moves their sums.

The gradient of a loss at a row depends on that row and on the model so far, which is made of paid answers and so is
public. It is put into one of a few public levels, by whole numbers alone. Rows by leaf and level are then a partition
like any other, and a sum of gradients is a weighted sum over its cells: no engine has to know what a gradient is.

The theorem, with its proof and its tests: docs/mechanisms/gradient-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import SumNeighbours
from understudy.boundary.schema.partition import cell_numbers
from understudy.predictors.additive_model import STEPS, AdditiveModel
from understudy.predictors.decision_tree import Codes, DecisionTree, Ints
from understudy.predictors.splits import ColumnSplit, checked_offsets

GRAIN = 1 << 12
"""Steps in a gradient of 1; sums of them are whole numbers, to which integer noise is added."""
CLIP = 0.5
"""The largest gradient that counts. A row that is more than half wrong counts like one that is half wrong, which halves
the noise of choices."""
BANDS, WIDTH = 48, 0.25
"""Bands of log-odds, and how wide they are: from −6 to 6, with all that is beyond in the outermost."""
_UNIT = 1 << 20
_DEEPEST = 14 * STEPS
"""Classes whose odds are worse than e^-14 to one have none at all."""
RESIDUALS, CURVATURE = 64, 0.25
"""Of a regression: levels of a residual, and what the second derivative, which is 1, is multiplied by. That sets how
much the number of rows in a leaf costs beside the sum of their residuals."""


@dataclass(frozen=True)
class GradientLevels:
    """The gradients that there are, and their second derivatives, in steps of the grain; the last level has neither.

    It is that of rows without a target.
    """

    gradients: Ints
    curvatures: Ints

    @property
    def count(self) -> int:
        return len(self.gradients)

    @property
    def nothing(self) -> int:
        return self.count - 1

    @cached_property
    def pairs(self) -> Ints:
        return np.stack([self.gradients, self.curvatures])

    @cached_property
    def largest(self) -> int:
        """Of all gradients, in either direction."""
        return int(np.abs(self.gradients).max())

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        """L1 and L2 of the sums of gradients and curvatures in disjoint cells, by looking at every pair of levels.

        A row adds the pair of its level to one cell. Replaced, it is taken from one cell and put into another, or into
        the same one: then the difference of two pairs counts, which is longer where gradients have opposite signs.
        """
        pairs = self.pairs.T.astype(np.float64)
        l1, l2 = float(np.abs(pairs).sum(axis=1).max()), _longest(pairs)
        if not neighbours.replaced:
            return neighbours.rows * l1, neighbours.rows * l2
        moved = (pairs[:, None] - pairs[None]).reshape(-1, 2)
        one_cell = float(np.abs(moved).sum(axis=1).max()), _longest(moved)
        return max(2 * l1, one_cell[0]), max(math.nextafter(math.sqrt(2) * l2, math.inf), one_cell[1])


def _longest(vectors: NDArray[np.float64]) -> float:
    """The largest Euclidean norm, rounded up: a sensitivity may be overstated, never understated."""
    return math.nextafter(math.sqrt(float((vectors**2).sum(axis=1).max())), math.inf)


def _clipped(gradients: NDArray[np.float64], curvatures: NDArray[np.float64], clip: float) -> GradientLevels:
    """Gradients scaled down to the bound, and their curvatures with them: the step of a leaf stays the same."""
    share = np.minimum(1.0, clip / np.maximum(np.abs(gradients), 1e-12))
    # Rounded towards zero: the bound holds after rounding, too.
    whole = [np.trunc(np.append(each * share, 0.0) * GRAIN).astype(np.int64) for each in (gradients, curvatures)]
    return GradientLevels(*whole)


@lru_cache(maxsize=8)
def logistic_levels(clip: float) -> GradientLevels:
    """By band of log-odds: 1 − p for a row of the class, −p for another, with p in the middle of the band; p(1 − p)."""
    odds = (np.arange(BANDS + 2) - BANDS / 2 - 0.5) * WIDTH
    p = 1.0 / (1.0 + np.exp(-odds))
    return _clipped(np.concatenate([-p, 1.0 - p]), np.tile(p * (1.0 - p), 2), clip)


@lru_cache(maxsize=8)
def residual_levels(clip: float) -> GradientLevels:
    """Residuals from −clip to clip, evenly; the curvature is a constant."""
    residuals = (np.arange(RESIDUALS + 1) / RESIDUALS * 2.0 - 1.0) * clip
    return _clipped(residuals, np.full(RESIDUALS + 1, CURVATURE), clip)


@lru_cache(maxsize=1)
def _exponentials() -> Ints:
    """e^-k in whole numbers, for each number of steps k that an output may be below the largest."""
    return np.rint(np.exp(-np.arange(_DEEPEST) / STEPS) * _UNIT).astype(np.int64)


@lru_cache(maxsize=1)
def _edges() -> Ints:
    """Between the bands of log-odds, as shares in whole numbers."""
    return np.rint(_UNIT / (1.0 + np.exp(-(np.arange(BANDS + 1) - BANDS / 2) * WIDTH))).astype(np.int64)


@dataclass(frozen=True)
class LogisticLoss:
    """Whether a row is of one class, by the log-odds of all of them: −ln p where it is, and −ln(1 − p) where not.

    One class at a time, so that a gradient is one number of at most 1; all of them at once may move by 2.
    """

    classes: int
    output: int
    clip: float = CLIP

    weight: ClassVar[float] = 1.0
    """What curvatures are multiplied by, so that they cost less."""
    sampling: ClassVar[float] = 1.0
    """The variance of a gradient, as a share of the second derivative, at most."""

    @property
    def levels(self) -> GradientLevels:
        return logistic_levels(self.clip)

    def level_of(self, scores: Ints, target: NDArray[np.integer]) -> Ints:
        """Of each row, in whole numbers alone."""
        below = np.minimum(scores.max(axis=1, keepdims=True) - scores, _DEEPEST - 1)
        raised = _exponentials().take(below)
        share = raised[:, self.output] * _UNIT // raised.sum(axis=1)
        band = np.searchsorted(_edges(), share, side="right")
        level = (target == self.output) * (BANDS + 2) + band
        return np.where(target < self.classes, level, self.levels.nothing)

    def fits(self, size: int, outputs: int) -> bool:
        return outputs == self.classes <= size and 0 <= self.output < self.classes and 0 < self.clip <= 1

    def describe(self) -> dict[str, Any]:
        return {"loss": "logistic", "classes": self.classes, "output": self.output, "clip": self.clip}


@dataclass(frozen=True)
class HuberLoss:
    """Half the squared distance from the target within the clip, and linear beyond it (Huber 1964)."""

    targets: tuple[int, ...]
    """What each code of the target stands for, in steps of the output; codes beyond them have no target."""
    clip: float = CLIP

    output: ClassVar[int] = 0
    weight: ClassVar[float] = CURVATURE
    sampling: ClassVar[float] = CLIP**2

    @property
    def levels(self) -> GradientLevels:
        return residual_levels(self.clip)

    def level_of(self, scores: Ints, target: NDArray[np.integer]) -> Ints:
        wanted = np.array(self.targets, dtype=np.int64).take(target, mode="clip")
        bound = round(self.clip * STEPS)
        residual = np.clip(wanted - scores[:, 0], -bound, bound) + bound
        level = (residual * RESIDUALS + bound) // (2 * bound)
        return np.where(target < len(self.targets), level, self.levels.nothing)

    def fits(self, size: int, outputs: int) -> bool:
        whole = all(type(v) is int and abs(v) <= STEPS for v in self.targets)
        return whole and outputs == 1 <= len(self.targets) <= size and 1 / RESIDUALS <= self.clip <= 1

    def describe(self) -> dict[str, Any]:
        return {"loss": "huber", "targets": list(self.targets), "clip": self.clip}


Loss = LogisticLoss | HuberLoss


@dataclass(frozen=True)
class GradientCells:
    """Rows by the leaf of a tree that is being grown, and by the level of their gradient: a partition."""

    model: AdditiveModel
    loss: Loss
    target: str
    tree: DecisionTree

    @cached_property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.model.columns, *self.tree.columns, self.target)))

    @property
    def cells(self) -> int:
        return self.tree.leaves * self.loss.levels.count

    @property
    def shape(self) -> tuple[int, int]:
        return self.tree.leaves, self.loss.levels.count

    def assign(self, codes: Codes) -> NDArray[np.integer]:
        level = self.loss.level_of(self.model.scores(codes), codes[self.target])
        leaf = np.minimum(self.tree.leaf_of(codes), self.tree.leaves - 1)
        return cell_numbers((leaf, level), self.shape)

    def fits(self, domain: Domain) -> bool:
        known = type(self.model) is AdditiveModel and type(self.loss) in (LogisticLoss, HuberLoss)
        whole = known and type(self.tree) is DecisionTree and self.tree.fits(domain) and self.model.fits(domain)
        return whole and self.loss.fits(domain.size(self.target), self.model.outputs)

    def describe(self) -> dict[str, Any]:
        own = {"kind": "gradients", "columns": list(self.columns), "model": self.model.digest, **self.loss.describe()}
        return own | {"tree": self.tree.describe()}


@dataclass(frozen=True)
class GradientTable:
    """Gradients by leaf and by the values of a column: what cutting every leaf by this column would give."""

    base: GradientCells
    column: str
    size: int

    @property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys((*self.base.columns, self.column)))

    @property
    def cells(self) -> int:
        return self.base.cells * self.size

    def assign(self, codes: Codes) -> NDArray[np.integer]:
        return self.within(self.base.assign(codes), codes)

    def within(self, cells: NDArray[np.integer], codes: Codes) -> NDArray[np.integer]:
        return cell_numbers((cells, codes[self.column]), (self.base.cells, self.size))

    def fits(self, domain: Domain) -> bool:
        return self.size == domain.size(self.column) and type(self.base) is GradientCells

    def describe(self) -> dict[str, Any]:
        return self.base.describe() | {"kind": "gradients by column", "column": self.column, "size": self.size}


@dataclass(frozen=True)
class LeafSums:
    """Of each leaf, the sum of the gradients of its rows, and of their second derivatives."""

    grid: GradientCells

    @property
    def totals(self) -> int:
        return 2 * self.grid.tree.leaves

    def sums(self, counts: Ints) -> Ints:
        return (counts.reshape(self.grid.shape) @ self.grid.loss.levels.pairs.T).ravel()

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        return self.grid.loss.levels.sensitivity(neighbours)

    def describe(self) -> dict[str, Any]:
        return self.grid.describe()


@dataclass(frozen=True)
class Pull:
    """For each split of a column: Σ over leaves and branches of |sum of gradients|, in rows, plus a public offset.

    That is how far the rows of each branch agree on where they would pull the model.
    """

    grid: GradientTable
    splits: tuple[ColumnSplit, ...]
    offsets: NDArray[np.float64]
    """From public facts and earlier answers alone: what the noise of so many leaves would cost."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", checked_offsets(self.offsets, self.choices))

    @property
    def columns(self) -> ColumnSet:
        return self.grid.columns

    @property
    def choices(self) -> int:
        return len(self.splits)

    def scores(self, counts: Ints) -> NDArray[np.float64]:
        """Whole numbers of steps all the way, which doubles hold exactly: no rounding depends on another row."""
        leaves, levels = self.grid.base.shape
        gradients = np.tensordot(self.grid.base.loss.levels.gradients, counts.reshape(leaves, levels, -1), (0, 1))
        pulls = [int(np.abs(_by_branch(gradients, split)).sum()) for split in self.splits]
        return (np.array(pulls) + np.rint(self.offsets * GRAIN).astype(np.int64)) / GRAIN

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """A row is in one branch of one leaf, whose sum it moves by its gradient: |a + g| − |a| ≤ |g|."""
        return rows * (2.0 if replaced else 1.0) * self.grid.base.loss.levels.largest / GRAIN


def _by_branch(gradients: Ints, split: ColumnSplit) -> Ints:
    """Leaf × branch, from leaf × code."""
    sums = np.zeros((split.branches, len(gradients)), dtype=np.int64)
    np.add.at(sums, np.array(split.groups), gradients.T)
    return sums


def offsets_of(splits: Sequence[ColumnSplit], leaves: int, cost: float) -> NDArray[np.float64]:
    """Minus what the leaves of a tree that is cut by each of these splits would cost."""
    return np.array([-cost * leaves * split.branches for split in splits])
