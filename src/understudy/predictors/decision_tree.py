"""Decision trees, and the noisy counts of their leaves.

The tree itself is a public fact: which column is cut where. What was counted in its leaves by class comes from the
curator, and the shares of the classes are estimated from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import cell_type
from understudy.inference.noisy_table import NoisyTable
from understudy.predictors.splits import ColumnSplit

LEAF = -1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.integer]]

LEAST_SHARE = 1e-6
"""No class is ever ruled out: a share of zero would be a claim that noisy counts can't support."""
LEAST_SPREAD = 1e-6
"""Of the squared distance between a node's shares and its parent's: keeps an estimate of zero from dividing by zero."""


@dataclass(frozen=True)
class DecisionTree:
    """Nodes level by level from the root; `nodes[i]` is the place of its split among `splits`, or LEAF.

    The children of a node follow those of the nodes before it, so nothing else has to be kept.

    >>> tree = DecisionTree((ColumnSplit("sex", (0, 1)),), (0, LEAF, LEAF))
    >>> tree.leaf_of({"sex": np.array([1, 0, 1])})
    array([1, 0, 1])
    """

    splits: tuple[ColumnSplit, ...]
    nodes: tuple[int, ...]

    @classmethod
    def single_leaf(cls) -> DecisionTree:
        return cls((), (LEAF,))

    @classmethod
    def of_levels(cls, levels: Sequence[ColumnSplit]) -> DecisionTree:
        """The tree in which every node of a level has the same split."""
        nodes, width = [], 1
        for place, split in enumerate(levels):
            nodes += [place] * width
            width *= split.branches
        return cls(tuple(levels), (*nodes, *[LEAF] * width))

    # Cached: a tree of thousands of nodes is a key of many look-ups.
    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.splits, self.nodes))

    @cached_property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys(s.column for s in self.splits))

    @cached_property
    def branches(self) -> Ints:
        """How many children each node has."""
        arity = np.array([*(s.branches for s in self.splits), 0])
        return arity[list(self.nodes)]

    @cached_property
    def first_child(self) -> Ints:
        """Of every node; of a leaf it says nothing."""
        return 1 + np.cumsum(self.branches) - self.branches

    @cached_property
    def parent(self) -> Ints:
        """Of every node; the root is its own."""
        return np.concatenate([[0], np.repeat(np.arange(len(self.nodes)), self.branches)])

    @cached_property
    def level(self) -> Ints:
        levels = np.zeros(len(self.nodes), dtype=np.int64)
        start, end, depth = 1, 1 + int(self.branches[0]), 1
        while start < end:
            levels[start:end] = depth
            start, end, depth = end, end + int(self.branches[start:end].sum()), depth + 1
        return levels

    @property
    def depth(self) -> int:
        return int(self.level[-1])

    @cached_property
    def leaf_nodes(self) -> Ints:
        """The nodes that are leaves, in the order in which leaves are numbered."""
        return np.flatnonzero(np.array(self.nodes) == LEAF)

    @property
    def leaves(self) -> int:
        return len(self.leaf_nodes)

    @property
    def cells(self) -> int:
        """As a partition of the rows by their leaves."""
        return self.leaves

    @cached_property
    def uniform(self) -> tuple[ColumnSplit, ...] | None:
        """The split of each level where all nodes of a level have the same one; else None."""
        nodes, levels = np.array(self.nodes), []
        for depth in range(self.depth):
            here = nodes[self.level == depth]
            if (here != here[0]).any():
                return None
            levels.append(self.splits[here[0]])
        return tuple(levels)

    def leaf_of(self, codes: Codes) -> Ints:
        """The leaf of each row, by its number."""
        return self.assign(codes).astype(np.int64)

    def assign(self, codes: Codes) -> NDArray[np.integer]:
        """The leaf of each row, in whichever type was fastest to find it."""
        if not self.splits:
            return np.zeros(len(next(iter(codes.values()), ())), dtype=np.uint16)
        if self.uniform is None:
            return self._walked(codes)
        return self._numbered(self.uniform, codes)

    def _numbered(self, levels: Sequence[ColumnSplit], codes: Codes) -> NDArray[np.integer]:
        """Where levels have one split each, the branches that a row takes are the digits of its leaf's number."""
        wide = cell_type(self.leaves)
        leaf: NDArray[np.integer] = levels[0].branch_of(codes[levels[0].column]).astype(wide)
        for split in levels[1:]:
            leaf *= wide.type(split.branches)
            np.add(leaf, split.branch_of(codes[split.column]), out=leaf, casting="unsafe")
        return leaf

    def _walked(self, codes: Codes) -> Ints:
        """From node to node. A leaf leads to itself, so that all rows walk the same number of steps.

        Two look-ups a step: the row's code of the node's column, and the child for that code. Codes stay as narrow as
        they come, which keeps them in the cache; what look-ups are made with is as wide as they need it.
        """
        walk = self._walk
        flat = np.concatenate([np.asarray(codes[c]) for c in self.columns])
        rows = len(flat) // len(self.columns)
        place, node = np.arange(rows, dtype=np.intp), np.zeros(rows, dtype=np.intp)
        start = walk.column * rows
        for _ in range(self.depth):
            at = start.take(node, mode="clip")
            at += place
            node *= walk.width
            node += flat.take(at, mode="clip")
            node = walk.child.take(node, mode="clip")
        return walk.leaf[node]

    @cached_property
    def _walk(self) -> _Walk:
        return _Walk.of(self)

    def fits(self, domain: Domain) -> bool:
        return self._complete and all(len(s.groups) == domain.size(s.column) for s in self.splits)

    @cached_property
    def _complete(self) -> bool:
        """Whether every node but the root has a parent before it, and every split's codes a child."""
        plain = all(type(s) is ColumnSplit and min(s.groups) >= 0 for s in self.splits)
        if not (plain and all(LEAF <= n < len(self.splits) for n in self.nodes)):
            return False
        born = 1 + np.cumsum(self.branches)
        return int(born[-1]) == len(self.nodes) and bool((born[:-1] > np.arange(1, len(self.nodes))).all())

    def describe(self) -> dict[str, Any]:
        return {"splits": [[s.column, list(s.groups)] for s in self.splits], "nodes": list(self.nodes)}


@dataclass(frozen=True)
class _Walk:
    """What a step from a node to its child needs: its column, and the child for each code, `width` codes to a node."""

    column: NDArray[np.intp]
    child: NDArray[np.intp]
    width: int
    leaf: Ints

    @classmethod
    def of(cls, tree: DecisionTree) -> _Walk:
        names = {name: place for place, name in enumerate(tree.columns)}
        width = max(len(s.groups) for s in tree.splits)
        groups = np.zeros((len(tree.splits) + 1, width), dtype=np.intp)  # the last one is that of leaves
        for place, split in enumerate(tree.splits):
            groups[place, : len(split.groups)] = split.groups
        nodes = np.array(tree.nodes)
        column = np.array([*(names[s.column] for s in tree.splits), 0], dtype=np.intp)
        first = np.where(nodes == LEAF, np.arange(len(nodes)), tree.first_child).astype(np.intp)
        child = (first[:, None] + groups[nodes]).ravel()
        return cls(column[nodes], child, width, np.cumsum(nodes == LEAF) - 1)


def sums_of_children(tree: DecisionTree, leaf_values: Floats) -> Floats:
    """What every node holds when it is the sum of its children: from one row of values for each leaf."""
    sums = np.zeros((len(tree.nodes), leaf_values.shape[1]))
    sums[tree.leaf_nodes] = leaf_values
    for depth in range(tree.depth, 0, -1):
        here = np.flatnonzero(tree.level == depth)
        np.add.at(sums, tree.parent[here], sums[here])
    return sums


@dataclass(frozen=True)
class LeafClasses:
    """The leaves of a tree by class, as a partition: every row is in exactly one cell, by that row's codes alone.

    So all nodes of a level are counted for the price of one (parallel composition).
    """

    tree: DecisionTree
    target: str
    classes: int

    @property
    def columns(self) -> ColumnSet:
        return (*self.tree.columns, self.target)

    @property
    def cells(self) -> int:
        return self.tree.leaves * self.classes

    @property
    def shape(self) -> tuple[int, int]:
        return (self.tree.leaves, self.classes)

    @property
    def base(self) -> DecisionTree:
        return self.tree

    def fits(self, domain: Domain) -> bool:
        return self.classes == domain.size(self.target)

    def assign(self, codes: Codes) -> NDArray[np.intp]:
        return self.tree.leaf_of(codes) * self.classes + codes[self.target]

    # The tree's part is cached: a question is described several times, when asked, recorded and compared.
    def describe(self) -> dict[str, Any]:
        return {"kind": "tree", "columns": list(self.columns), "classes": self.classes, **self._tree}

    @cached_property
    def _tree(self) -> dict[str, Any]:
        return self.tree.describe()


@dataclass(frozen=True)
class LeafCounts:
    """A tree, and the noisy table of its leaves (rows) by class (columns)."""

    tree: DecisionTree
    table: NoisyTable

    @property
    def counts(self) -> Floats:
        return self.table.counts

    @property
    def variance(self) -> float:
        """Of every count: they were all asked for at once, with the same noise."""
        return float(self.table.variance)

    def with_more(self, more: NoisyTable) -> LeafCounts:
        """Other rows counted in the same leaves: counts add up, and so does their noise."""
        added = replace(more, counts=self.counts + more.counts, variance=self.variance + more.variance)
        return LeafCounts(self.tree, added)

    def with_again(self, again: NoisyTable) -> LeafCounts:
        """The same rows counted once more: the mean, weighted by what each count is worth."""
        # Weights inverse to the variances have the least variance of all: v·w/(v + w). `NoisyTable.averaged_with` is
        # the same but for the last digits, which saved predictors have to keep.
        kept = again.variance / (self.variance + again.variance)
        mixed = kept * self.counts + (1.0 - kept) * again.counts
        return LeafCounts(self.tree, replace(again, counts=mixed, variance=self.variance * kept))

    def shares(self, classes: int) -> Floats:
        """The share of each class in each leaf; where a leaf holds little evidence, that of the nodes above it."""
        sums = sums_of_children(self.tree, self.counts)[:, :classes]
        size = sums_of_children(self.tree, np.ones((self.tree.leaves, 1)))
        shares = np.full(sums.shape, 1.0 / classes)
        # The root has no parent to be drawn to: one row more of each class, as in Laplace's rule of succession.
        shares[0] = _proportions(sums[0] + 1.0)
        # From the root down, each node drawn to its parent's shares as they were just estimated.
        for depth in range(1, self.tree.depth + 1):
            here = np.flatnonzero(self.tree.level == depth)
            above = self.tree.parent[here]
            shares[here] = _shrunk(shares[above], sums[here], self.variance * size[here], self._column(above))
        return shares[self.tree.leaf_nodes]

    def plain_shares(self, classes: int) -> Floats:
        """As in the literature: each leaf by itself; one without rows has the shares of all rows."""
        counts = np.maximum(self.counts[:, :classes], 0.0)
        whole = _proportions(np.maximum(self.counts[:, :classes].sum(axis=0), 0.0) + LEAST_SHARE)
        rows = counts.sum(axis=1, keepdims=True)
        return np.where(rows > 0, counts / np.maximum(rows, 1.0), whole)

    def wrong(self, classes: int) -> float:
        """How many of the counted rows are expected to have another class than the likeliest one of their leaf."""
        held = np.maximum(self.counts[:, :classes].sum(axis=1), 0.0)
        return float((held * (1.0 - self.shares(classes).max(axis=1))).sum())

    def _column(self, nodes: Ints) -> Ints:
        """The number of the column that each of these nodes is cut by."""
        names = {name: i for i, name in enumerate(self.tree.columns)}
        return np.array([names[s.column] for s in self.tree.splits])[np.array(self.tree.nodes)[nodes]]


def _shrunk(above: Floats, counts: Floats, variance: Floats, column: Ints) -> Floats:
    """Shares of nodes between their own counts and the shares of their parents (empirical Bayes).

    With n rows and the parent's shares p, counts − n·p has mean n·(own − p), and the variance of sampling and of the
    noise. How far the children of nodes cut by one column differ from their parents is estimated from all of them.
    """
    classes = counts.shape[1]
    rows = np.maximum(counts.sum(axis=1, keepdims=True), 0.0)
    surprise = counts - rows * above
    # Sampling is multinomial. n has the noise of all classes in it, so that counts − n·p has that of one count times
    # (1 − p)² + (classes − 1)·p².
    uncertain = rows * above * (1.0 - above) + variance * (1.0 - 2.0 * above + classes * above**2)
    # A node with fewer rows than noise says nothing about the spread, and would only add to its variance.
    sure = rows[:, 0] > np.sqrt(classes * variance[:, 0])
    excess = np.bincount(column, sure * (surprise**2 - uncertain).sum(axis=1))
    weight = np.bincount(column, sure * rows[:, 0] ** 2)
    spread = np.maximum(excess / np.maximum(weight, 1.0), LEAST_SPREAD)[column][:, None] / classes
    own = above + spread * rows * surprise / np.maximum(spread * rows**2 + uncertain, 1e-12)
    return _proportions(np.maximum(own, LEAST_SHARE))


def _proportions(weights: Floats) -> Floats:
    weights = np.maximum(weights, LEAST_SHARE)
    return weights / weights.sum(axis=-1, keepdims=True)


def mean_shares(shares: Sequence[Floats]) -> Floats:
    """The average over several trees."""
    return np.mean(np.stack(shares), axis=0)


def votes(shares: Sequence[Floats]) -> Floats:
    """The share of trees that vote for each class, as in the literature."""
    # A tie is the first class's: `argmax` takes the first of equals.
    ballots = [np.eye(s.shape[1])[s.argmax(axis=1)] for s in shares]
    return np.mean(np.stack(ballots), axis=0)
