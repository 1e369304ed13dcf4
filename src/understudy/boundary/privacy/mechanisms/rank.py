"""Scores for private quantiles: how far each bin of a column is from holding the row of a wanted rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.score import GRID, GRID_BITS


@dataclass(frozen=True)
class Rank:
    """The row that has the share `probability` of its group's rows below it, moved by a public number of rows."""

    probability: float
    moved: int = 0

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
    return rows * (2.0 * one if grouped else 1.0)


def rank_exponent(epsilon: float, sensitivity: float) -> float:
    """ε/(2Δ), rounded down, so that the claim stays above the truth."""
    return math.nextafter(epsilon / (2.0 * sensitivity), 0.0)


def rank_reach(exponent: float, choices: int, miss: float) -> int:
    """Rows by which a chosen bin misses its rank with probability `miss` at most, rounded up to the next whole number.

    Some bin scores 0, so one that is worse by s is chosen with probability choices × exp(−exponent × s) at most
    (McSherry & Talwar 2007, Theorem 7).
    """
    return math.floor(math.log(choices / miss) / exponent) + 1
