"""Trees whose splits are chosen by the exponential mechanism, one level at a time.

All nodes of a level have the same split. So a level is one choice, whose score is a sum over disjoint nodes: it costs
no more than the choice at one node (parallel composition), and levels add up (sequential composition). Trees that share
the rows add up as well: the curator is asked for one split of each, and debits as many draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.admission import OneOfEach
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Bundle
from understudy.predictors.decision_tree import DecisionTree
from understudy.predictors.purity import Purity
from understudy.predictors.splits import ColumnSplit, SplitCatalogue

COST_OF_A_LEAF = 0.25
"""The rows that one more leaf is expected to cost, as a share of the noise in each of its counts."""
COST_OF_A_BIT = 0.004
"""The share of all rows that doubling the leaves must gain: later levels will have that much less room."""


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
        rule = OneOfEach([tree for tree, _ in choices]) if len(offers) > 1 else None
        chosen = curator.ask(Select(self.domain, candidates, amount, k=len(offers), rule=rule))
        return dict(choices[i] for i in chosen)

    def _offer(self, tree: PartialTree, catalogue: SplitCatalogue) -> SplitCatalogue:
        """No split, and the splits that leave the tree small enough, by public facts alone; none is used twice."""
        fits = tree.leaves * catalogue.arity <= self.leaves
        used = [catalogue.place(split) for split in tree.levels]
        fits[used] = False
        fits[0] = True
        return catalogue.kept(fits)

    def _candidate(self, tree: PartialTree, offer: SplitCatalogue) -> Purity:
        leaves = tree.leaves * offer.arity
        cost = COST_OF_A_LEAF * self.noise * leaves + COST_OF_A_BIT * self.rows * np.log2(leaves)
        return Purity(Bundle(tree.tree, tree.columns, self.domain, self.target), offer, -cost)
