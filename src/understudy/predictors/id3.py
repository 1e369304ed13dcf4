"""Trees whose splits are chosen by noisy counts, as in the private ID3 of the literature (Friedman & Schuster 2010).

At each level the counts of every column by class are bought in all nodes at once: the nodes are parallel, but the
columns are not, so that each of |A| columns gets the |A|-th part of the level's budget. That is what makes this form
expensive. Everything after the counts is post-processing, so that every node may have a split of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Partitions
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import CrossTable
from understudy.predictors.decision_tree import LEAF, DecisionTree
from understudy.predictors.splits import ColumnSplit, options

Floats = NDArray[np.float64]
COST_OF_NOISE = 1.0
"""The noise of a branch that a split must be better by, in standard deviations of its counts."""


@dataclass(frozen=True)
class Id3Grower:
    """What is predicted, from which columns, and how many leaves there may be."""

    domain: Domain
    target: str
    columns: Sequence[str]
    leaves: int

    def grow(self, curator: Queryable, amount: Amount, levels: int) -> DecisionTree:
        tree = DecisionTree.single_leaf()
        for part in amount.split([1.0] * levels):
            size = self.domain.size
            cells = [CrossTable(tree, c, size(c), self.target, size(self.target)) for c in self.columns]
            deeper = self._deeper(tree, curator.ask(Partitions(self.domain, cells, part)))
            if deeper == tree:
                break
            tree = deeper
        return tree

    def _deeper(self, tree: DecisionTree, measured: Sequence[Measurement]) -> DecisionTree:
        """The tree with the leaves of its lowest level cut, the best first, as long as there is room for leaves."""
        offers = [split for column in self.columns for split in options(self.domain[column])]
        if not offers:
            return tree
        gains = np.stack([g for c, m in zip(self.columns, measured, strict=True) for g in self._gains(tree, c, m)])
        best = gains.argmax(axis=0)
        lowest = tree.level[tree.leaf_nodes] == tree.depth
        gain = np.where(lowest, gains.max(axis=0), -np.inf)
        extra = np.array([s.branches - 1 for s in offers])[best]
        order = np.argsort(-gain, kind="stable")
        fits = np.cumsum(np.where(gain[order] > 0, extra[order], 0)) + tree.leaves <= self.leaves
        cut = order[(gain[order] > 0) & fits]
        return _cut(tree, offers, dict(zip(tree.leaf_nodes[cut].tolist(), best[cut].tolist(), strict=True)))

    def _gains(self, tree: DecisionTree, column: str, measured: Measurement) -> list[Floats]:
        """For each split of the column, how much purer it would make each leaf, net of what noise alone would give."""
        size, classes = self.domain.size(column), self.domain.size(self.target)
        counts = np.maximum(measured.counts.reshape(size, classes, tree.leaves).astype(np.float64), 0.0)
        whole = _purity(counts.sum(axis=0, keepdims=True))
        found = []
        for split in options(self.domain[column]):
            # A branch that adds up k noisy counts has √k times the noise of one.
            spread = np.sqrt(np.bincount(split.groups)).sum() * measured.deviation
            branches = [counts[np.array(split.groups) == b].sum(axis=0) for b in range(split.branches)]
            found.append(_purity(np.stack(branches)) - whole - COST_OF_NOISE * spread)
        return found


def _purity(counts: Floats) -> Floats:
    """Of each leaf, over its branches."""
    rows = np.maximum(counts.sum(axis=1), 1e-9)
    return ((counts**2).sum(axis=1) / rows).sum(axis=0)


def _cut(tree: DecisionTree, offers: Sequence[ColumnSplit], chosen: dict[int, int]) -> DecisionTree:
    """The tree with some leaves of its lowest level split."""
    if not chosen:
        return tree
    new = list(dict.fromkeys(offers[i] for i in chosen.values()))
    place = {split: len(tree.splits) + i for i, split in enumerate(new)}
    nodes = list(tree.nodes)
    for node, offer in chosen.items():
        nodes[node] = place[offers[offer]]
    below = sum(offers[offer].branches for offer in chosen.values())
    return DecisionTree((*tree.splits, *new), (*nodes, *[LEAF] * below))
