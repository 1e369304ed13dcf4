"""The score by which a greedy tree chooses its next split: how pure its leaves would be, in rows.

Σ over leaves of Σ over classes of n(leaf, class)² / n(leaf): the rows that would be right if each were given a class
drawn from its own leaf. It is the number of rows minus n times the Gini index, so maximising it is what CART does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.predictors.cells import BranchClasses
from understudy.predictors.split import Split
from understudy.privacy.score import GRID, GRID_BITS, STEP, Dependence

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Purity(Dependence):
    """The purity of a tree, all of whose leaves are cut by one split (or by none), plus a public offset.

    For the curator it is one more measure of how much the class depends on other columns. It is counted over leaves,
    values of the split's column and classes, so that all splits of a column share one exact histogram.
    """

    grid: BranchClasses
    split: Split | None = None
    offset: float = 0.0
    """From public facts and earlier answers alone: what the noise of so many leaves would cost."""

    def score(self, counts: NDArray[np.int64]) -> float:
        """Every leaf is rounded down to the public grid on its own, in integers: other leaves have no part in it.

        Integers of 64 bits hold the squares of leaves of up to three thousand million rows.
        """
        leaves = by_branch(counts.reshape(self.grid.shape), self.split)
        squares, rows = (leaves * leaves).sum(axis=-1), np.maximum(leaves.sum(axis=-1), 1)
        pure = int(((squares // rows) << GRID_BITS).sum() + (((squares % rows) << GRID_BITS) // rows).sum())
        return (pure + round(self.offset * GRID)) / GRID

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """At most 1 for a row added or removed, 2 for one replaced, and a step of the grid for each leaf touched.

        A row of class a changes its own leaf alone: with n rows there before, p their shares by class and S = Σ p²,
        (n(2p_a − S) + 1) / (n + 1) is added. As −1 ≤ −S ≤ 2p_a − S ≤ 2p_a − p_a² ≤ 1, this lies in (−1, 1].
        The nodes of a level are disjoint, so that one row moves the sum over all of them by no more than that: they
        are parallel. The rows of a person are added one after the other; a replaced one is removed, and another added.
        """
        return rows * (2.0 if replaced else 1.0) * (1.0 + STEP)


def by_branch(counts: NDArray[Number], split: Split | None) -> NDArray[Number]:
    """Counts by leaf, value and class, summed over the values of each branch; without a split, over all of them."""
    if split is None:
        return counts.sum(axis=1)
    if split.branches == len(split.groups):
        return counts
    groups = np.array(split.groups)
    return np.stack([counts[:, groups == branch].sum(axis=1) for branch in range(split.branches)], axis=1)
