"""Scores for private selection, each computed exactly, each with its proved sensitivity.

Scores are formed in integer arithmetic on a public grid of 2^-20: floating-point sums would differ between
neighbouring tables by more than one row can cause, in their last digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import frozen
from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.partition import Bundle, Partition
from understudy.errors import InternalError, MethodError

# In steps of 2^-20 rows, about a millionth, 64 bits hold 2^43 rows: more than any table has.
GRID_BITS = 20
GRID = 1 << GRID_BITS
STEP = 1.0 / GRID
MOST_THRESHOLD = 2.0**40
"""Times 2^20 it is still a whole number of 64 bits."""
MOST_EXPECTED = 2.0**32
"""Rows that a candidate may expect in all. With as many counted, and as much again for weights and offsets, a score is
a whole number of steps below 2^53, which 64 bits and a float hold exactly. (Of `Dependence`, to 2^31 rows.)"""
MOST_SHARE = 3.0
"""That the shares of a `Departure` may add up to (a distribution's are 1): a score of 2^31 rows is below 2^53 steps."""


class Scored(Protocol):
    """What a selection can be among: one choice, or several that are scored from the same exact counts."""

    @property
    def columns(self) -> ColumnSet: ...

    @property
    def grid(self) -> Partition | Bundle | None: ...

    @property
    def choices(self) -> int: ...

    def scores(self, counts: Any) -> NDArray[np.float64]:
        """The score of each choice, from the exact counts of its columns or cells; of a bundle, those of each part."""
        ...

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """How far one unit of at most `rows` rows can move any of the scores, when it comes or goes, or is replaced."""
        ...


class OneChoice:
    """A candidate that is a single choice."""

    choices = 1

    def score(self, counts: NDArray[np.int64]) -> float:
        raise NotImplementedError

    def scores(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([self.score(counts)])


@dataclass(frozen=True)
class Candidate(OneChoice):
    """A set of columns that might be measured next, and the model's present estimate of its counts.

    Its score is weight × Σ max(|counts − estimate| − threshold, 0) + offset, over all cells: large where the model is
    worst. `estimate`, `weight`, `offset`, `threshold` and `grid` (which merges values, so that counts are by group; or
    any other partition, such as the leaves of a tree) must come from public facts and earlier answers alone.
    """

    columns: ColumnSet
    estimate: NDArray[np.float64]
    weight: float = 1.0
    offset: float = 0.0
    grid: Partition | None = None
    threshold: float = 0.0
    """An error of a cell that is no larger does not count, and of a larger one only the rest."""

    def __post_init__(self) -> None:
        # A copy: whoever made the estimate may go on working on it, and what is checked here is what must be scored.
        object.__setattr__(self, "estimate", frozen(np.array(self.estimate, dtype=np.float64)))
        expected = float(np.abs(self.estimate).sum())  # finite only where every number is
        finite = math.isfinite(self.offset) and math.isfinite(expected)
        if not (finite and 0 < self.weight <= 1e6 and 0 <= self.threshold <= MOST_THRESHOLD):
            bounds = "finite estimates, a weight in (0, 1e6] and a threshold in [0, 2^40]"
            raise InternalError(f"candidate {self.columns} must have {bounds}", self)
        # Σ |h − e| is at most the rows and Σ |e| together. Beyond this a sum of 64 bits may wrap, or a float round, and
        # one row could move the score far. Estimates are no secret here, so that a refusal tells nothing.
        reach = max(1.0, self.weight) * expected + abs(self.offset)
        if reach > MOST_EXPECTED:
            raise MethodError(
                f"the expected counts of {', '.join(self.columns)} reach {reach:.4g} rows and must stay below "
                f"{MOST_EXPECTED:.4g} for an exact score; there is too much noise to choose by, so ask with a larger "
                "epsilon",
                self.columns,
            )

    def score(self, counts: NDArray[np.int64]) -> float:
        """Exact on the grid, then rounded down once after weighting."""
        # numpy would stretch the counts to the shape of the estimate, and count every row several times.
        if self.estimate.shape != counts.shape:
            raise InternalError(f"the estimate of {self.columns} must have the shape {counts.shape}.", self.columns)
        # The estimate is public, so that rounding it changes the question and not its sensitivity.
        on_grid = np.rint(self.estimate * GRID).astype(np.int64)
        errors = np.abs((counts << GRID_BITS) - on_grid) - round(self.threshold * GRID)
        error = int(np.maximum(errors, 0).sum())
        weighted = error * round(self.weight * GRID) // GRID
        return (weighted + round(self.offset * GRID)) / GRID

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """How far one unit of at most `rows` rows can move the score, when it is added or removed, or replaced."""
        return error_sensitivity([self], rows * (2 if replaced else 1))


@dataclass(frozen=True)
class Dependence(OneChoice):
    """How much the first column depends on the others: R = ½ Σ |n(x, π) − n(x)·n(π)/n|, in rows.

    It is n times the total variation distance from independence (the score R of PrivBayes; Zhang et al. 2017).
    """

    columns: ColumnSet
    grid: Partition | None = None

    def score(self, counts: NDArray[np.int64]) -> float:
        """Exact: every term times n is an integer, and the sum is rounded down to the grid once."""
        joint = counts.reshape(counts.shape[0], -1)
        rows = int(joint.sum())
        if rows == 0:
            return 0.0
        expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        return (int(np.abs(joint * rows - expected).sum()) * GRID // (2 * rows)) / GRID

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """At most 2 + 2/(n+1) per row added to n rows, and 3 + 2/n per row replaced; n is at least 2.

        With p = n(x)/n and q = n(π)/n, one more row at (e, f) changes n·p⊗q by p⊗f + e⊗q − p⊗q + (e−p)⊗(f−q)/(n+1),
        whose L1 norm is at most 3 + 4/(n+1), and n(x, π) by 1; half of the sum is the bound. A replaced row changes
        n·p⊗q by p⊗(f′−f) + (e′−e)⊗q + (e′−e)⊗(f′−f)/n, at most 4 + 4/n, and n(x, π) by 2.
        """
        # With the n ≥ 2 of `gates.FEWEST_ROWS`: 2 + 2/3 and 3 + 2/2. One step is for rounding down to the grid.
        return rows * (4.0 if replaced else 8.0 / 3.0) + STEP


@dataclass(frozen=True)
class Departure(OneChoice):
    """How far a column departs from `share`, its distribution in all rows, inside the cells of a partition.

    Σ_L Σ_b |n(L, b) − n_L·share(b)|, where L is a cell, b a group of the column and n_L the rows of L: large where the
    partition tells much about the column. `share` must come from public facts and earlier answers alone.
    """

    columns: ColumnSet
    share: NDArray[np.float64]
    grid: Partition

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", frozen(np.array(self.share, dtype=np.float64)))
        # Of a table of shares numpy would count a row several times. NaN is not at most anything.
        if self.share.ndim != 1 or not np.abs(self.share).sum() <= MOST_SHARE:
            raise InternalError(f"the shares of {self.columns} must be a list, of at most {MOST_SHARE:g} in all", self)

    def score(self, counts: NDArray[np.int64]) -> float:
        """Exact on the grid: the share is rounded to it first."""
        by_cell = counts.reshape(-1, len(self.share))
        expected = by_cell.sum(axis=1, keepdims=True) * self._on_grid
        return int(np.abs((by_cell << GRID_BITS) - expected).sum()) / GRID

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """1 + Σ share per row that comes or goes: n(L, b) changes by 1 in one cell, n_L·share(b) by the share in all b
        of that L (triangle inequality). A replaced row goes and comes.
        """
        return rows * (2 if replaced else 1) * (1.0 + int(np.abs(self._on_grid).sum()) / GRID)

    @property
    def _on_grid(self) -> NDArray[np.int64]:
        return np.rint(self.share * GRID).astype(np.int64)


def error_sensitivity(candidates: list[Candidate], change: int) -> float:
    """Sensitivity of the largest score when a neighbour moves the counts of any set by at most `change` in L1.

    In each cell, |max(|h−e|−c, 0) − max(|h′−e|−c, 0)| ≤ ||h−e| − |h′−e|| ≤ |h−h′|, since x ↦ max(x−c, 0) never moves
    faster than x, and by the triangle inequality. So the sums differ by at most ‖h−h′‖₁ ≤ change; the weight multiplies
    it, and rounding down to the grid adds at most one step. Every score shares this bound, of whichever candidate.
    """
    return max(round(c.weight * GRID) / GRID for c in candidates) * change + STEP


def rank_scores(counts: NDArray[np.int64], probability: float) -> NDArray[np.float64]:
    """Score of each cut point i = 0 … len(counts) as the `probability` quantile: −|rows below i − probability × rows|.

    (Smith 2011, with the row count as part of the query.) How far a row moves them: `rank_sensitivity`.
    """
    below = np.concatenate([[0], np.cumsum(counts)]) << GRID_BITS
    wanted = round(probability * GRID) * int(counts.sum())
    return -np.abs(below - wanted).astype(np.float64) / GRID


# Ranks: how far each bin of a column is from holding the row of a wanted rank.


@dataclass(frozen=True)
class Rank:
    """The row that has the share `probability` of its group's rows below it, moved by a public number of rows."""

    probability: float
    moved: int = 0

    def __post_init__(self) -> None:
        whole = isinstance(self.moved, int) and abs(self.moved) <= MOST_EXPECTED
        if not (0 <= self.probability <= 1 and whole):
            bound = f"a share from 0 to 1, moved by at most {MOST_EXPECTED:.4g} rows (not {self.moved:.4g})"
            raise MethodError(f"a rank must be {bound} to have exact scores; ask with a larger epsilon", self)

    def describe(self) -> dict[str, Any]:
        return {"probability": self.probability, "moved": self.moved}

    def scores(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Minus the number of rows between the wanted rank and each bin; 0 for a bin that holds it.

        Bin i holds the ranks from the rows below it to those up to it. One more bin at either end holds every rank
        beyond the rows, so that some bin always scores 0. How far a row moves a score: `rank_sensitivity`.
        """
        up_to = np.cumsum(counts) << GRID_BITS
        rows = int(up_to[-1])
        wanted = round(self.probability * GRID) * (rows >> GRID_BITS) + self.moved * GRID
        below = np.concatenate([[0], up_to[:-1]])
        inside = np.maximum(0, np.maximum(below - wanted, wanted - up_to))
        return -np.concatenate([[max(0, wanted)], inside, [max(0, rows - wanted)]]).astype(np.float64) / GRID


def rank_sensitivity(probability: float, rows: int, *, replaced: bool, grouped: bool = False) -> float:
    """How far a person of at most `rows` rows can move the scores of a rank, all groups together.

    With p the share on the public grid, a score is minus the largest of 0 and of differences ±(B − p·n − moved), where
    B is the rows below or up to a bin, and n all rows of the group. One row more moves B by b, which is 0 or 1, and p·n
    by p: each difference moves by b − p, which is −p or 1 − p, and so by max(p, 1 − p) at most. No maximum of terms
    moves further than the furthest of them. One row less is the same backwards; several rows move it one after the
    other; −|B − p·n| is the case without bins, ±1 the case p = 0 or p = 1, and ±½ that of the median.
    One row that replaces another leaves n as it is, and moves B by 1 at most; if it takes or leaves the group (by a
    condition, or a missing value), that is a row more or less. With groups it may leave one and join another, either of
    which moves by max(p, 1 − p) ≥ ½: twice that in all, which covers 1 as well.
    """
    share = round(probability * GRID) / GRID
    one = max(share, 1.0 - share)
    if not replaced:
        return rows * one
    if grouped:
        return rows * (2.0 * one)
    return rows * 1.0


def rank_exponent(epsilon: float, sensitivity: float) -> float:
    """ε/(2Δ), rounded down, so that the claim stays above the truth."""
    return math.nextafter(epsilon / (2.0 * sensitivity), 0.0)


def rank_reach(exponent: float, choices: int, miss: float) -> int:
    """Rows by which a chosen bin misses its rank with probability `miss` at most, rounded up to the next whole number.

    Some bin scores 0, so one that is worse by s is chosen with probability choices × exp(−exponent × s) at most
    (McSherry & Talwar 2007, Theorem 7).
    """
    return math.floor(math.log(choices / miss) / exponent) + 1
