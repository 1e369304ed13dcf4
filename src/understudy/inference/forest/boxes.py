"""The leaves of a forest as boxes: one row of bounds per leaf, one column per column of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.inference.forest.trees import Floats, Indices, Trees


@dataclass(frozen=True, eq=False)
class LeafBoxes:
    """Leaf i is the box low[i] < x ≤ high[i] of its tree. The leaves of one tree cut the space into disjoint boxes."""

    tree: Indices
    low: Floats
    high: Floats
    number: Indices
    """Of each node of the trees its leaf's number, or −1."""

    @classmethod
    def of(cls, trees: Trees, columns: int) -> LeafBoxes:
        """Numbered tree by tree."""
        node, tree, low, high = (np.concatenate(parts) for parts in zip(*_levels(trees, columns), strict=True))
        order = np.lexsort((node, tree))
        number = np.full(len(trees.left), -1, dtype=np.intp)
        number[node[order]] = np.arange(len(order))
        return cls(tree[order], low[order], high[order], number)

    def __len__(self) -> int:
        return len(self.tree)

    @property
    def trees(self) -> int:
        return int(self.tree[-1]) + 1

    def clipped(self, low: Floats, high: Floats) -> LeafBoxes:
        """With bounds that are no wider than these, one for each column."""
        return LeafBoxes(self.tree, np.maximum(self.low, low), np.minimum(self.high, high), self.number)

    def levels(self, column: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of a column of codes 0 … size−1: the first code in each box, and how many codes there are."""
        first = np.floor(np.clip(self.low[:, column], -1, size - 1)).astype(np.int64) + 1
        last = np.floor(np.clip(self.high[:, column], -1, size - 1)).astype(np.int64)
        return first, np.maximum(last - first + 1, 0)


Level = tuple[Indices, Indices, Floats, Floats]


def _levels(trees: Trees, columns: int) -> list[Level]:
    """The leaves that lie at each depth: node, tree and bounds. All trees go down together, level by level."""
    node, tree = trees.roots, np.arange(trees.count)
    low, high = (np.full((trees.count, columns), bound) for bound in (-np.inf, np.inf))
    found: list[Level] = []
    while node.size:
        ends = trees.is_leaf[node]
        found.append((node[ends], tree[ends], low[ends], high[ends]))
        node, tree, low, high = _children(trees, node[~ends], tree[~ends], low[~ends], high[~ends])
    return found


def _children(trees: Trees, node: Indices, tree: Indices, low: Floats, high: Floats) -> Level:
    """The next level. Behind a split whose children are the same, the bounds are those before it."""
    left, right = trees.left[node], trees.right[node]
    true = left != right
    at, feature, threshold = np.flatnonzero(true), trees.feature[node[true]], trees.threshold[node[true]]
    left_high, right_low = high.copy(), low.copy()
    left_high[at, feature] = np.minimum(high[at, feature], threshold)
    right_low[at, feature] = np.maximum(low[at, feature], threshold)
    return (
        np.concatenate([left, right[true]]),
        np.concatenate([tree, tree[true]]),
        np.concatenate([low, right_low[true]]),
        np.concatenate([left_high, high[true]]),
    )
