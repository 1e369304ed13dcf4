"""Trees whose splits are chosen by the rows, one level at a time: by the exponential mechanism, or by noisy counts.

By the exponential mechanism all nodes of a level have the same split. So a level is one choice, whose score is a sum
over disjoint nodes: it costs no more than the choice at one node (parallel composition), and levels add up (sequential
composition). Trees that share the rows add up as well: the curator is asked for one split of each, and debits as many
draws.

The score is how pure the leaves would be, in rows: Σ over leaves of Σ over classes of n(leaf, class)² / n(leaf), which
are the rows that would be right if each were given a class drawn from its own leaf. It is the number of rows minus n
times the Gini index, so maximising it is what CART does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.exponential import OneOfEach
from understudy.boundary.privacy.mechanisms.score import GRID, STEP
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Bundle, CrossTable
from understudy.predictors.decision_tree import LEAF, DecisionTree, Floats
from understudy.predictors.splits import CodeRanges, ColumnSplit, SplitCatalogue, checked_offsets, options

Number = TypeVar("Number", np.int64, np.float64)

COST_OF_A_LEAF = 0.25
"""The rows that one more leaf is expected to cost, as a share of the noise in each of its counts."""
COST_OF_A_BIT = 0.004
"""The share of all rows that doubling the leaves must gain: later levels will have that much less room."""
COST_OF_NOISE = 1.0
"""The noise of a branch that a split must be better by, in standard deviations of its counts."""
MOST_ROWS_IN_FLOATS = 1 << 26
"""Below that, every number on the way to a score is a whole one below 2^53, which a double holds exactly."""
MOST_AT_ONCE, FEW_TO_A_CODE = 1 << 16, 256
"""Counts that are scored together, so that they stay in the cache."""


@dataclass(frozen=True)
class PartialTree:
    """A tree as it is being grown: the split of each level so far, and the columns that it may use."""

    columns: ColumnSet
    levels: tuple[ColumnSplit, ...] = ()
    grown: bool = False

    @property
    def leaves(self) -> int:
        return math.prod(split.branches for split in self.levels)

    @cached_property
    def tree(self) -> DecisionTree:
        return DecisionTree.of_levels(self.levels)

    def cut(self, split: ColumnSplit | None) -> PartialTree:
        """One level deeper; without a split, as it is and finished."""
        if split is None:
            return replace(self, grown=True)
        return replace(self, levels=(*self.levels, split))


@dataclass(frozen=True)
class GreedyGrower:
    """What is predicted, how many leaves a tree may have, and the noise that they will be counted with.

    `rows` are as declared, or noisy; `few` says that only some splits are offered.
    """

    domain: Domain
    target: str
    leaves: int
    noise: float
    rows: float
    few: bool = False

    def grow(self, curator: Queryable, amount: Amount, levels: int, columns: Sequence[ColumnSet]) -> list[DecisionTree]:
        """A tree for each set of columns. What is not spent, because trees stopped early, is left for their leaves."""
        trees = [PartialTree(c) for c in columns]
        # Which splits there are is public: one catalogue for all trees that may use the same columns.
        catalogues = {c: SplitCatalogue.of(self.domain, c, self.few) for c in dict.fromkeys(columns)}
        for part in amount.split([1.0] * levels):
            offers = {i: self._offer(t, catalogues[t.columns]) for i, t in enumerate(trees) if not t.grown}
            offers = {i: offer for i, offer in offers.items() if len(offer.splits) > 1}
            if not offers:
                break
            for place, split in self._choose(curator, part, trees, offers).items():
                trees[place] = trees[place].cut(split)
        return [tree.tree for tree in trees]

    def _choose(
        self, curator: Queryable, amount: Amount, trees: Sequence[PartialTree], offers: Mapping[int, SplitCatalogue]
    ) -> dict[int, ColumnSplit | None]:
        """A split, or none, for each tree that still grows."""
        candidates = [self._candidate(trees[i], offer) for i, offer in offers.items()]
        choices = [(i, split) for i, offer in offers.items() for split in offer.splits]
        rule = None
        if len(offers) > 1:
            rule = OneOfEach([tree for tree, _ in choices])
        chosen = curator.ask(Select(self.domain, candidates, amount, k=len(offers), rule=rule))
        return dict(choices[i] for i in chosen)

    def _offer(self, tree: PartialTree, catalogue: SplitCatalogue) -> SplitCatalogue:
        """No split, and the splits that leave the tree small enough, by public facts alone; none is used twice."""
        fits = tree.leaves * catalogue.arity <= self.leaves
        used = [catalogue.place(split) for split in tree.levels]
        fits[used] = False
        # Stopping is always on offer: a tree without a good split keeps its budget for its leaves.
        fits[0] = True
        return catalogue.kept(fits)

    def _candidate(self, tree: PartialTree, offer: SplitCatalogue) -> Purity:
        leaves = tree.leaves * offer.arity
        cost = COST_OF_A_LEAF * self.noise * leaves + COST_OF_A_BIT * self.rows * np.log2(leaves)
        return Purity(Bundle(tree.tree, tree.columns, self.domain, self.target), offer, -cost)


@dataclass(frozen=True)
class Purity:
    """For each split of the catalogue: the purity of a tree whose leaves are all cut by it, plus a public offset."""

    grid: Bundle
    catalogue: SplitCatalogue
    offsets: NDArray[np.float64]
    """From public facts and earlier answers alone: what the noise of so many leaves would cost."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", checked_offsets(self.offsets, self.choices))

    @property
    def columns(self) -> ColumnSet:
        return self.grid.columns

    @property
    def choices(self) -> int:
        return len(self.catalogue.splits)

    def scores(self, counts: Iterable[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Of all splits, from the counts of each column by value, class and leaf.

        Every leaf is rounded down to the public grid on its own, exactly: no other leaf has a part in that.
        """
        pure, start = np.zeros(self.choices, dtype=np.int64), 0
        for block in _blocks(counts):
            running = _running(block)
            _add(pure, self.catalogue, running, block[0].sum(axis=0), start)
            start += len(running) - 1
        return (pure + np.rint(self.offsets * GRID).astype(np.int64)) / GRID

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """At most 1 for a row added or removed, 2 for one replaced, and a step of the grid for each leaf touched.

        A row of class a changes its own leaf alone: with n rows there before, p their shares by class and S = Σ p²,
        (n(2p_a − S) + 1) / (n + 1) is added. As −1 ≤ −S ≤ 2p_a − S ≤ 2p_a − p_a² ≤ 1, this lies in (−1, 1].
        The nodes of a level are disjoint, so that one row moves the sum over all of them by no more than that: they
        are parallel. The rows of a person are added one after the other; a replaced one is removed, and another added.
        """
        # Rounding a leaf down to the grid moves its score by less than one step, before and after alike.
        return rows * (2.0 if replaced else 1.0) * (1.0 + STEP)


def _blocks(counts: Iterable[NDArray[np.int64]]) -> Iterator[list[NDArray[np.int64]]]:
    """Small columns together, large ones by themselves: what is worked on stays in the cache."""
    waiting: list[NDArray[np.int64]] = []
    for here in counts:
        if waiting and sum(n.size for n in waiting) + here.size > MOST_AT_ONCE:
            yield waiting
            waiting = []
        waiting.append(here)
    yield waiting


def _running(block: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Sums over all codes below each, one column after the other."""
    sums = np.zeros((sum(map(len, block)) + 1, *block[0].shape[1:]), dtype=np.int64)
    if sums[0].size < FEW_TO_A_CODE:
        np.cumsum(np.concatenate(block), axis=0, out=sums[1:])
        return sums
    # Several times faster than cumsum where each code has many counts.
    for code, here in enumerate(itertools.chain.from_iterable(block)):
        np.add(sums[code], here, out=sums[code + 1])
    return sums


def _add(
    pure: NDArray[np.int64], catalogue: SplitCatalogue, running: NDArray[np.int64], total: NDArray[np.int64], start: int
) -> None:
    """Adds the purity of every branch that takes codes of this block to that of its split, in steps of the grid.

    `total` is what each column of the block holds by class and leaf: every row once.
    """
    halves, branches = (s.between(start, start + len(running) - 1) for s in (catalogue.halves, catalogue.branches))
    np.add.at(pure, branches.split, _on_grid(_held(running, branches)))
    half = _held(running, halves)
    other = total - half
    pure[halves.split] = _on_grid(half) + _on_grid(other)


def _held(running: NDArray[np.int64], ranges: CodeRanges) -> NDArray[np.int64]:
    held = running.take(ranges.end, axis=0)
    held -= running.take(ranges.start, axis=0)
    return held


def _on_grid(held: NDArray[np.int64]) -> NDArray[np.int64]:
    """The purity of branches, from what they hold by class and leaf, rounded down leaf by leaf. It uses up `held`.

    With s the sum of squares, n the rows, s = q·n + r: ⌊s·G/n⌋ = q·G + ⌊r·G/n⌋. In doubles the quotient of two whole
    numbers a < 2^53 and n is off by at most a/n · 2^-53 < 1/n, which is its least distance from the next whole number
    above: so rounding it down gives the exact ⌊a/n⌋, much faster than a division of integers. In integers of 64 bits
    all of it holds for leaves of up to three thousand million rows.
    """
    rows = np.maximum(held.sum(axis=1), 1)
    squares = np.multiply(held, held, out=held).sum(axis=1)
    if int(rows.max(initial=0)) < MOST_ROWS_IN_FLOATS:
        return _rounded(squares.astype(np.float64), rows.astype(np.float64)).astype(np.int64)
    return _rounded(squares, rows)


def _rounded(squares: NDArray[Number], rows: NDArray[Number]) -> NDArray[Number]:
    whole = _quotient(squares, rows)
    squares -= whole * rows
    squares *= GRID
    whole *= GRID
    whole += _quotient(squares, rows)
    return whole.sum(axis=1)


def _quotient(numbers: NDArray[Number], by: NDArray[Number]) -> NDArray[Number]:
    if numbers.dtype.kind == "f":
        return np.floor(numbers / by)
    return numbers // by


@dataclass(frozen=True)
class Id3Grower:
    """The private ID3 of the literature (Friedman & Schuster 2010): splits chosen by noisy counts.

    At each level the counts of every column by class are bought in all nodes at once: the nodes are parallel, but the
    columns are not, so that each of |A| columns gets the |A|-th part of the level's budget. That is what makes this
    form expensive. Everything after the counts is post-processing, so that every node may have a split of its own.
    """

    domain: Domain
    target: str
    columns: Sequence[str]
    leaves: int

    def grow(self, curator: Queryable, amount: Amount, levels: int) -> DecisionTree:
        tree = DecisionTree.single_leaf()
        # Equal parts: a level counts every row once, however many nodes it has.
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
        # Best first, until the leaves are used up: post-processing, since gains follow from noisy counts alone.
        order = np.argsort(-gain, kind="stable")
        fits = np.cumsum(np.where(gain[order] > 0, extra[order], 0)) + tree.leaves <= self.leaves
        cut = order[(gain[order] > 0) & fits]
        return _with_splits(tree, offers, dict(zip(tree.leaf_nodes[cut].tolist(), best[cut].tolist(), strict=True)))

    def _gains(self, tree: DecisionTree, column: str, measured: Measurement) -> list[Floats]:
        """For each split of the column, how much purer it would make each leaf, net of what noise alone would give."""
        size, classes = self.domain.size(column), self.domain.size(self.target)
        # Of the node and of its branches from the same counts: both have the same noise in them.
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


def _with_splits(tree: DecisionTree, offers: Sequence[ColumnSplit], chosen: dict[int, int]) -> DecisionTree:
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
