"""The nodes of several binary trees as arrays, and their leaves as boxes.

Trees say which way rows go, and lose the leaves that hold too few. A box has one row of bounds per leaf, one column per
column of the table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]

FIELDS = {
    "left": "children_left",
    "right": "children_right",
    "feature": "feature",
    "threshold": "threshold",
    "missing_left": "missing_go_to_left",
}
"""What scikit-learn calls them."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Nodes of all trees, one tree after the other. Rows with x ≤ threshold go left; a leaf is its own child.

    As in scikit-learn, values are compared in single precision. A split whose children are the same is none.
    """

    roots: Indices
    left: Indices
    right: Indices
    feature: Indices
    threshold: Floats
    missing_left: Flags
    """Which way rows go whose value is missing (NaN)."""

    @classmethod
    def of(cls, forest: Any) -> Trees:
        """Those of a fitted forest of scikit-learn."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        nodes = {ours: np.concatenate([getattr(t, theirs) for t in trees]) for ours, theirs in FIELDS.items()}
        return cls.joined(np.array([t.node_count for t in trees]), nodes)

    @classmethod
    def joined(cls, sizes: NDArray[np.integer], nodes: Mapping[str, NDArray[Any]]) -> Trees:
        """Of trees that lie one after the other, each numbering its own nodes from 0; a leaf's children are below 0."""
        roots = np.cumsum(sizes) - sizes
        own, shift = np.arange(int(sizes.sum())), np.repeat(roots, sizes)
        left, right = (np.where(nodes[side] < 0, own, nodes[side] + shift) for side in ("left", "right"))
        feature = np.maximum(nodes["feature"], 0).astype(np.intp)
        missing_left = np.asarray(nodes["missing_left"], dtype=np.bool_)
        return cls(roots, left, right, feature, np.asarray(nodes["threshold"], np.float64), missing_left)

    @property
    def count(self) -> int:
        return len(self.roots)

    @cached_property
    def is_leaf(self) -> Flags:
        return self.left == np.arange(len(self.left))

    def apply(self, points: Floats) -> Indices:
        """The leaf's node of each row (first axis) in each tree (second)."""
        # As scikit-learn compares: in doubles a row near a threshold would go to another leaf than in training.
        values = points.astype(np.float32)
        found = np.empty((len(values), self.count), dtype=np.intp)
        for tree, root in enumerate(self.roots):
            found[:, tree] = self._descend(values, np.full(len(values), root))
        return found

    def _descend(self, values: NDArray[np.float32], at: Indices) -> Indices:
        """Where rows arrive that begin at the given nodes."""
        rows = np.flatnonzero(~self.is_leaf[at])
        # All rows go down together, a level at a time: as many steps as the tree is deep, however many rows there are.
        while rows.size:
            here = at[rows]
            x = values[rows, self.feature[here]]
            goes_left = np.where(np.isnan(x), self.missing_left[here], x <= self.threshold[here])
            here = np.where(goes_left, self.left[here], self.right[here])
            at[rows] = here
            rows = rows[~self.is_leaf[here]]
        return at

    def rerouted(self, points: Floats, nodes: Indices) -> Indices:
        """As `apply`, for rows that arrived at `nodes` before the trees were pruned; only a few have to move."""
        reached = np.zeros(len(self.left), dtype=np.bool_)
        reached[np.concatenate(self.levels)] = True
        rows, trees = np.nonzero(~reached[nodes])
        moved = nodes.copy()
        moved[rows, trees] = self._descend(points[rows].astype(np.float32), self.roots[trees])
        return moved

    @cached_property
    def levels(self) -> list[Indices]:
        """The nodes that a row can come to, by depth."""
        found, front = [], self.roots
        while front.size:
            found.append(front)
            inner = front[~self.is_leaf[front]]
            front = np.unique(np.concatenate([self.left[inner], self.right[inner]]))
        return found

    def pruned(self, rows: NDArray[np.integer], fewest: int, *, merge: bool = False) -> Trees:
        """Without leaves of fewer rows than that: their siblings take the parents' place.

        `rows` counts the rows in each node that is a leaf. Where both children of a node go, so does the node; or, with
        `merge`, it becomes a leaf if it holds enough rows itself. Of a tree that keeps no leaf, the root remains.
        """
        if merge:
            gone = self._held(rows) < fewest
        else:
            gone = self._without_large_leaves(rows, fewest)
        left = np.where(gone[self.left] & ~self.is_leaf, self.right, self.left)
        right = np.where(gone[self.right] & ~self.is_leaf, self.left, self.right)
        ends = ~gone & gone[left] & gone[right]
        ends[self.roots] |= gone[self.roots]
        own = np.arange(len(left))
        return dataclasses.replace(self, left=np.where(ends, own, left), right=np.where(ends, own, right))

    def _without_large_leaves(self, rows: NDArray[np.integer], fewest: int) -> Flags:
        gone = self.is_leaf & (rows < fewest)
        # Upwards until nothing changes: a node whose halves are both gone goes as well.
        while (more := ~gone & ~self.is_leaf & gone[self.left] & gone[self.right]).any():
            gone |= more
        return gone

    def _held(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """The rows in each node, from those in the leaves."""
        held = rows.copy()
        for front in reversed(self.levels):
            inner = front[~self.is_leaf[front]]
            held[inner] = held[self.left[inner]] + held[self.right[inner]]
        return held


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
