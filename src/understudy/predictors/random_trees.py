"""Trees drawn at random from the schema: no row is looked at, so their structure costs nothing.

(Jagannathan, Pillaipakkamnatt & Wright 2012.) A path uses a category, or a column with missing values, only once;
another ordered column as often as there is room between two of its cuts. `leaves` bounds the size: a node hands its
allowance down in equal parts, and is cut only by columns with no more branches than it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Coding
from understudy.predictors.decision_tree import LEAF, DecisionTree
from understudy.predictors.splits import ColumnSplit, below_and_above, every_value, is_ordered

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RandomSplits:
    """All splits that a random tree can have, column by column, and how its columns behave."""

    splits: tuple[ColumnSplit, ...]
    ordered: NDArray[np.bool_]
    first: Ints
    """Where the splits of each column begin."""
    branches: Ints
    levels: Ints

    @classmethod
    def of(cls, codings: Sequence[Coding]) -> RandomSplits:
        splits: list[ColumnSplit] = []
        ordered, first = [], []
        for coding in codings:
            ordered.append(is_ordered(coding) and coding.levels > 1)
            first.append(len(splits))
            if ordered[-1]:
                splits += [below_and_above(coding, cut) for cut in range(1, coding.levels)]
            else:
                splits.append(every_value(coding))
        return cls(
            tuple(splits),
            np.array(ordered, dtype=bool),
            np.array(first, dtype=np.int64),
            branches=np.array([splits[i].branches for i in first], dtype=np.int64),
            levels=np.array([c.levels for c in codings], dtype=np.int64),
        )


@dataclass(frozen=True)
class _Frontier:
    """The nodes of one level of all trees: whose they are, and what each may still use."""

    tree: Ints
    allowance: Ints
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    """A column may be cut strictly between them; a category that was used has no room left."""

    @classmethod
    def roots(cls, splits: RandomSplits, count: int, leaves: int) -> _Frontier:
        room = np.where(splits.ordered, splits.levels, 2).astype(np.int32)
        high = np.repeat(room[None, :], count, axis=0)
        return cls(np.arange(count), np.full(count, leaves), np.zeros_like(high), high)


def draw_trees(
    splits: RandomSplits, count: int, *, depth: int, leaves: int, rng: np.random.Generator
) -> list[DecisionTree]:
    """Random trees of at most this depth and this many leaves, all of them level by level."""
    frontier = _Frontier.roots(splits, count, leaves)
    owners, nodes = [], []
    for _ in range(depth):
        column, cut = _draw(splits, frontier, rng)
        owners.append(frontier.tree)
        nodes.append(np.where(column < 0, LEAF, splits.first[column] + np.where(splits.ordered[column], cut - 1, 0)))
        frontier = _children(splits, frontier, column, cut)
    owner = np.concatenate([*owners, frontier.tree])
    # Stable, so that the nodes of each tree stay in the order of their levels.
    order = np.argsort(owner, kind="stable")
    node = np.concatenate([*nodes, np.full(len(frontier.tree), LEAF)])[order]
    ends = np.cumsum(np.bincount(owner, minlength=count))[:-1]
    return [_compact(splits, own) for own in np.split(node, ends)]


def _draw(splits: RandomSplits, frontier: _Frontier, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """A column for each node, -1 where none fits, and a cut between its bounds."""
    fits = (frontier.high - frontier.low > 1) & (splits.branches <= frontier.allowance[:, None]) & (splits.branches > 1)
    # The largest of independent uniforms: every column that fits is as likely as any other.
    lots = np.where(fits, rng.random(fits.shape), -1.0)
    column = np.where(fits.any(axis=1), lots.argmax(axis=1), -1)
    rows = np.arange(len(column))
    low, high = frontier.low[rows, column], frontier.high[rows, column]
    cut: Ints = (low + 1 + np.floor(rng.random(len(column)) * (high - low - 1))).astype(np.int64)
    return column, cut


def _children(splits: RandomSplits, frontier: _Frontier, column: Ints, cut: Ints) -> _Frontier:
    """A child of a cut has the room on its side; a category, or a column with missing values, has none left."""
    parents = np.flatnonzero(column >= 0)
    arity = splits.branches[column[parents]]
    of = np.repeat(parents, arity)
    branch = np.arange(len(of)) - np.repeat(np.cumsum(arity) - arity, arity)
    low, high, col = frontier.low[of], frontier.high[of], column[of]
    rows, ordered = np.arange(len(of)), splits.ordered[col]
    low[rows, col] = np.where(ordered & (branch == 1), cut[of], low[rows, col])
    closed = ~ordered | (splits.branches[col] > 2)
    high[rows, col] = np.where(closed, low[rows, col], np.where(branch == 0, cut[of], high[rows, col]))
    return _Frontier(frontier.tree[of], frontier.allowance[of] // splits.branches[col], low, high)


def _compact(splits: RandomSplits, nodes: Ints) -> DecisionTree:
    """Only the splits that the tree has."""
    # A tree is part of every question about its leaves: what it does not use would only make records longer.
    used, place = np.unique(nodes[nodes >= 0], return_inverse=True)
    compact = np.full(len(nodes), LEAF)
    compact[nodes >= 0] = place
    return DecisionTree(tuple(splits.splits[i] for i in used), tuple(compact.tolist()))
