"""Trees whose splits are chosen by the exponential mechanism, one level at a time.

All nodes of a level have the same split. So a level is one choice, whose score is a sum over disjoint nodes: it costs
no more than the choice at one node (parallel composition), and levels add up (sequential composition). Trees that share
the rows add up as well: the curator is asked for one split of each, and debits as many draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.admission import OneOfEach
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.predictors.cells import Branches
from understudy.predictors.menu import Menu
from understudy.predictors.purity import Purity
from understudy.predictors.split import Split
from understudy.predictors.tree import Tree

COST_OF_A_LEAF = 0.25
"""The rows that a leaf more is expected to cost, as a share of the noise in each of its counts."""
COST_OF_A_BIT = 0.004
"""The share of all rows that twice as many leaves must be worth: they are room that later levels won't have."""


@dataclass(frozen=True)
class Growing:
    """A tree as it is being grown: the split of each level so far, and the columns that it may use."""

    columns: ColumnSet
    levels: tuple[Split, ...] = ()
    grown: bool = False

    @property
    def leaves(self) -> int:
        leaves = 1
        for split in self.levels:
            leaves *= split.branches
        return leaves

    @cached_property
    def tree(self) -> Tree:
        return Tree.of_levels(self.levels)

    def cut(self, split: Split | None) -> Growing:
        """One level deeper; without a split, as it is and finished."""
        return replace(self, grown=True) if split is None else replace(self, levels=(*self.levels, split))


@dataclass(frozen=True)
class Greedy:
    """How to grow: what is predicted, how many leaves a tree may have, and the noise that they will be counted with."""

    domain: Domain
    target: str
    leaves: int
    noise: float
    rows: float
    """As declared, or noisy."""
    few: bool = False
    """Whether to offer only some splits."""

    def grow(self, curator: Curator, amount: Amount, levels: int, columns: Sequence[ColumnSet]) -> list[Tree]:
        """A tree for each set of columns. What is not spent, because trees stopped early, is left for their leaves."""
        trees = [Growing(c) for c in columns]
        menus = {c: Menu.of(self.domain, c, self.few) for c in dict.fromkeys(columns)}
        for part in amount.split([1.0] * levels):
            offers = {i: self._offer(t, menus[t.columns]) for i, t in enumerate(trees) if not t.grown}
            offers = {i: offer for i, offer in offers.items() if len(offer.splits) > 1}
            if not offers:
                break
            for place, split in self._choose(curator, part, trees, offers).items():
                trees[place] = trees[place].cut(split)
        return [tree.tree for tree in trees]

    def _choose(
        self, curator: Curator, amount: Amount, trees: Sequence[Growing], offers: Mapping[int, Menu]
    ) -> dict[int, Split | None]:
        """A split, or none, for each tree that still grows."""
        candidates = [self._candidate(trees[i], offer) for i, offer in offers.items()]
        choices = [(i, split) for i, offer in offers.items() for split in offer.splits]
        rule = OneOfEach([tree for tree, _ in choices]) if len(offers) > 1 else None
        chosen = curator.select(self.domain, candidates, amount, k=len(offers), rule=rule)
        return dict(choices[i] for i in chosen)

    def _offer(self, tree: Growing, menu: Menu) -> Menu:
        """To stay as it is, and the splits that leave the tree small enough, by public facts alone; none twice."""
        fits = tree.leaves * menu.arity <= self.leaves
        used = [menu.place(split) for split in tree.levels]
        fits[used] = False
        fits[0] = True
        return menu.kept(fits)

    def _candidate(self, tree: Growing, offer: Menu) -> Purity:
        leaves = tree.leaves * offer.arity
        cost = COST_OF_A_LEAF * self.noise * leaves + COST_OF_A_BIT * self.rows * np.log2(leaves)
        return Purity(Branches(tree.tree, tree.columns, self.domain, self.target), offer, -cost)
