"""How often each category occurs in each leaf: only what does occur is stored, however many categories there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.inference.forest.boxes import LeafBoxes
from understudy.inference.forest.trees import Floats, Indices

ROOM = 4
"""A full table of leaves and categories is counted in, if it has at most so many cells for each value."""

Codes = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class CategoryShares:
    """Weights of the categories of one column in each leaf; each category in a leaf's box has `alpha` more.

    Entries are sorted by key = leaf × size + code, so that a leaf's entries lie side by side.
    """

    size: int
    keys: NDArray[np.int64]
    weights: Floats
    first: NDArray[np.int64]
    """The first code in each leaf's box."""
    inside: NDArray[np.int64]
    """How many codes are in it."""
    alpha: float
    ends: Floats
    """Running sums of the weights, from 0 on."""
    starts: Indices
    """Where the entries of each leaf begin, and where the last ones end."""

    @classmethod
    def count(
        cls,
        codes: Codes,
        leaf: Indices,
        leaves: LeafBoxes,
        column: int,
        size: int,
        weights: Floats | None,
        alpha: float,
    ) -> CategoryShares:
        """Of values with these codes in these leaves; α smoothing as in a flat Dirichlet prior."""
        keys, counts = _tally(leaf * size + codes, len(leaves) * size, weights)
        return cls.of(keys, counts, leaves, column, size, alpha)

    @classmethod
    def of(
        cls, keys: NDArray[np.int64], weights: Floats, leaves: LeafBoxes, column: int, size: int, alpha: float
    ) -> CategoryShares:
        first, inside = leaves.levels(column, size)
        starts = np.searchsorted(keys, np.arange(len(leaves) + 1) * size)
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        return cls(size, keys, weights, first, inside, alpha, ends, starts)

    @property
    def totals(self) -> Floats:
        """The weight of all entries of each leaf."""
        return np.diff(self.ends[self.starts])

    def weigh(self, leaf: Indices, codes: Codes) -> Floats:
        """The probability of each code in its leaf; 0 for a code that is not in the leaf's box."""
        keys = leaf * self.size + codes
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = (self.keys[place] == keys) & (codes >= 0) & (codes < self.size)
        within = (codes >= self.first[leaf]) & (codes < self.first[leaf] + self.inside[leaf])
        total = self.totals[leaf] + self.alpha * self.inside[leaf]
        weight = np.where(known, self.weights[place], 0.0) + self.alpha * within
        return np.divide(weight, total, out=np.zeros(keys.shape), where=total > 0)

    def draw(self, leaf: Indices, rng: np.random.Generator) -> NDArray[np.int64]:
        """A code for each leaf. A leaf's mass is its entries, and then α for each code in its box."""
        low, high = self.ends[self.starts[leaf]], self.ends[self.starts[leaf + 1]]
        extra = self.alpha * self.inside[leaf]
        place = rng.random(leaf.shape) * (high - low + extra)
        entry = np.searchsorted(self.ends, low + place, side="right") - 1
        entry = np.clip(entry, self.starts[leaf], np.maximum(self.starts[leaf + 1] - 1, self.starts[leaf]))
        codes = self.keys[np.minimum(entry, len(self.keys) - 1)] - leaf * self.size
        if not self.alpha:
            return codes
        smooth = self.first[leaf] + (rng.random(leaf.shape) * self.inside[leaf]).astype(np.int64)
        return np.where(place < high - low, codes, smooth)

    def filled(self, leaves: LeafBoxes, column: int) -> CategoryShares:
        """The same shares with an entry for every code in each box, and no α any more."""
        leaf = np.repeat(np.arange(len(self.inside)), self.inside)
        begin = np.repeat(np.cumsum(self.inside) - self.inside, self.inside)
        codes = self.first[leaf] + np.arange(len(leaf)) - begin
        keys, weights = leaf * self.size + codes, self.weigh(leaf, codes)
        return CategoryShares.of(
            keys, weights * (self.totals + self.alpha * self.inside)[leaf], leaves, column, self.size, 0.0
        )


def _tally(keys: NDArray[np.int64], cells: int, weights: Floats | None) -> tuple[NDArray[np.int64], Floats]:
    """The keys that occur, rising, and the weight of each."""
    if cells <= ROOM * len(keys):
        table = np.bincount(keys, weights, cells)
        found = np.flatnonzero(table)
        return found, table[found].astype(np.float64)
    found, place = np.unique(keys, return_inverse=True)
    return found, np.bincount(place, weights, len(found)).astype(np.float64)
