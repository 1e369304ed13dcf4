"""Teachers behind the boundary, each of whom knows its own rows alone; what leaves is a noisy count of their votes.

Every row is given to one teacher by a coin of its own, so that adding, removing or replacing a row changes what one
teacher knows, and moves each count of votes by one at most. That bound holds whatever the rows are: no vote's price
depends on how the others voted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.training import Floats, Groups, Keep, at_once, symmetric
from understudy.errors import InternalError

PSEUDO_ROWS = 2.0
"""How many made rows each teacher adds to its own, so that what it never saw isn't impossible."""
SPREAD = 2.0**30
"""Noise of this scale, modulo the number of teachers, is even among them up to an error that no float can hold."""


def votes_sensitivity(votes: int) -> float:
    """How far one row moves all counts of votes together, in L2: one teacher, one vote in each."""
    # A replaced row keeps its coin, and so its teacher: √votes under either relation, and not 2√votes.
    return math.nextafter(math.sqrt(votes), math.inf)


class ExactVotes:
    """Some teachers who judge made rows: does a row look more like my own rows than like made ones?

    A teacher's judgement is the likelihood ratio of the row's pairs of groups, as if pairs were independent.
    Its counts are exact, so that it never leaves `Consult`; strategies are handed `Teachers`, who add the noise.

    Who teaches a row is written nowhere, since that would tell how many rows there are. A release that goes on after
    an interruption gives out the rows anew. One row still moves each count by one at most, whatever the coins of both
    parts were, and the coins don't depend on the rows: the price of all votes together is the same.
    """

    def __init__(
        self,
        codes: NDArray[np.integer[Any]],
        groups: Groups,
        teachers: int,
        randomness: Randomness,
        mechanism: str = "discrete-gaussian",
    ) -> None:
        self.groups, self.teachers, self.randomness, self.mechanism = groups, teachers, randomness, mechanism
        self._counts, self._rows = self.taught(codes)

    def assigned(self, rows: int) -> NDArray[np.int64]:
        """The teacher of each row, by its own coin: no row's teacher depends on another row."""
        # Even or not, the proof needs no more than that the coin is blind to the row (docs/mechanisms/votes.md).
        return self.randomness.noise("discrete-gaussian", SPREAD, rows) % self.teachers

    def taught(self, codes: NDArray[np.integer[Any]]) -> tuple[Floats, Floats]:
        """What all teachers know of their rows."""
        return self.known(codes, self.assigned(len(codes)))

    def known(self, codes: NDArray[np.integer[Any]], of: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Pairs of groups among each teacher's rows, and how many rows that are."""
        counts = np.zeros((self.teachers, len(self.groups.upper[0])))
        for teacher in range(self.teachers):
            rows = self.groups.one_hot(codes[of == teacher])
            counts[teacher] = (rows.T @ rows)[self.groups.upper]
        return counts, np.bincount(of, minlength=self.teachers).astype(np.float64)

    def count(self, rows: Floats, shares: Floats) -> NDArray[np.int64]:
        """For each made row the number of teachers who take it for real."""
        total = np.zeros(len(rows), dtype=np.int64)
        even = np.maximum(shares, 1e-9)
        for counts, known in zip(self._counts, self._rows, strict=True):
            ratio = np.log((counts / even + PSEUDO_ROWS) / (known + PSEUDO_ROWS))
            table = symmetric(self.groups, ratio)
            total += np.einsum("ij,ij->i", rows @ table, rows) > 0
        return total

    def noisy(self, rows: Floats, shares: Floats, scale: float) -> NDArray[np.int64]:
        """The same with noise."""
        noise = self.randomness.noise(self.mechanism, scale, len(rows))
        return self.count(rows, shares) + noise


class Teachers:
    """The noisy votes of teachers, as many as are paid for, and nothing else."""

    def __init__(self, exact: ExactVotes, votes: int, scale: float, keep: Keep = at_once) -> None:
        self._exact, self._left, self._keep = exact, votes, keep
        self.scale = scale

    @property
    def groups(self) -> Groups:
        return self._exact.groups

    @property
    def teachers(self) -> int:
        return self._exact.teachers

    @property
    def mechanism(self) -> str:
        """Of the noise."""
        return self._exact.mechanism

    @property
    def left(self) -> int:
        """How many votes are still paid for."""
        return self._left

    def votes(self, rows: Floats, shares: Floats) -> NDArray[np.float64]:
        """For each made row (of ones and zeros) the noisy number of teachers who take it for real.

        `shares` is how often made rows have each pair of groups; it is public, as are the rows.
        """
        rows, shares = np.array(rows, dtype=np.float64), np.array(shares, dtype=np.float64)
        if len(rows) > self._left:
            raise InternalError(f"{len(rows)} votes can't be asked where {self._left} are left.", self)
        self._left -= len(rows)
        return self._keep(lambda: self._exact.noisy(rows, shares, self.scale)).astype(np.float64)
