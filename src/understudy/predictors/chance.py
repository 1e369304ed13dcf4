"""Trees drawn at random from the schema: no row is looked at, so their structure costs nothing.

(Jagannathan, Pillaipakkamnatt & Wright 2012.) A path uses a category once, and so a column with missing values; another
ordered column as often as there is room between two of its cuts. `leaves` bounds the size: a node hands its allowance
down in equal parts, and is cut only by columns with no more branches than it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Coding
from understudy.predictors.split import Split, below_and_above, every_value, is_ordered
from understudy.predictors.tree import LEAF, Tree

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Deck:
    """All splits that a random tree can have, column by column, and how its columns behave."""

    splits: tuple[Split, ...]
    ordered: NDArray[np.bool_]
    first: Ints
    """The place of a column's first split."""
    branches: Ints
    levels: Ints

    @classmethod
    def of(cls, codings: Sequence[Coding]) -> Deck:
        splits: list[Split] = []
        first = []
        for coding in codings:
            first.append(len(splits))
            ordered = is_ordered(coding) and coding.levels > 1
            cut = [below_and_above(coding, c) for c in range(1, coding.levels)] if ordered else [every_value(coding)]
            splits += cut
        return cls(
            tuple(splits),
            np.array([is_ordered(c) and c.levels > 1 for c in codings], dtype=bool),
            np.array(first, dtype=np.int64),
            np.array([splits[i].branches for i in first], dtype=np.int64),
            np.array([c.levels for c in codings], dtype=np.int64),
        )


@dataclass(frozen=True)
class _Front:
    """The nodes of one level of all trees: whose they are, and what each may still use."""

    tree: Ints
    allowance: Ints
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    """A column may be cut strictly between them; a category that was used has no room left."""

    @classmethod
    def roots(cls, deck: Deck, count: int, leaves: int) -> _Front:
        room = np.where(deck.ordered, deck.levels, 2).astype(np.int32)
        high = np.repeat(room[None, :], count, axis=0)
        return cls(np.arange(count), np.full(count, leaves), np.zeros_like(high), high)


def draw_trees(deck: Deck, count: int, depth: int, leaves: int, rng: np.random.Generator) -> list[Tree]:
    """Random trees of at most this depth and this many leaves, all of them level by level."""
    front = _Front.roots(deck, count, leaves)
    owners, nodes = [], []
    for _ in range(depth):
        column, cut = _draw(deck, front, rng)
        owners.append(front.tree)
        nodes.append(np.where(column < 0, LEAF, deck.first[column] + np.where(deck.ordered[column], cut - 1, 0)))
        front = _children(deck, front, column, cut)
    owner = np.concatenate([*owners, front.tree])
    order = np.argsort(owner, kind="stable")
    node = np.concatenate([*nodes, np.full(len(front.tree), LEAF)])[order]
    ends = np.cumsum(np.bincount(owner, minlength=count))[:-1]
    return [_compact(deck, own) for own in np.split(node, ends)]


def _draw(deck: Deck, front: _Front, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """A column for each node, -1 where none fits, and a cut between its bounds."""
    fits = (front.high - front.low > 1) & (deck.branches <= front.allowance[:, None]) & (deck.branches > 1)
    lots = np.where(fits, rng.random(fits.shape), -1.0)
    column = np.where(fits.any(axis=1), lots.argmax(axis=1), -1)
    rows = np.arange(len(column))
    low, high = front.low[rows, column], front.high[rows, column]
    cut: Ints = (low + 1 + np.floor(rng.random(len(column)) * (high - low - 1))).astype(np.int64)
    return column, cut


def _children(deck: Deck, front: _Front, column: Ints, cut: Ints) -> _Front:
    """A child of a cut has the room on its side; a category, or a column with missing values, has none left."""
    parents = np.flatnonzero(column >= 0)
    arity = deck.branches[column[parents]]
    of = np.repeat(parents, arity)
    branch = np.arange(len(of)) - np.repeat(np.cumsum(arity) - arity, arity)
    low, high, col = front.low[of], front.high[of], column[of]
    rows, ordered = np.arange(len(of)), deck.ordered[col]
    low[rows, col] = np.where(ordered & (branch == 1), cut[of], low[rows, col])
    closed = ~ordered | (deck.branches[col] > 2)
    high[rows, col] = np.where(closed, low[rows, col], np.where(branch == 0, cut[of], high[rows, col]))
    return _Front(front.tree[of], front.allowance[of] // deck.branches[col], low, high)


def _compact(deck: Deck, nodes: Ints) -> Tree:
    """Only the splits that the tree has."""
    used, place = np.unique(nodes[nodes >= 0], return_inverse=True)
    compact = np.full(len(nodes), LEAF)
    compact[nodes >= 0] = place
    return Tree(tuple(deck.splits[i] for i in used), tuple(compact.tolist()))
