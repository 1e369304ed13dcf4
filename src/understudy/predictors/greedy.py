"""Trees whose splits are chosen by the exponential mechanism, one level at a time.

All nodes of a level have the same split. So a level is one choice, whose score is a sum over disjoint nodes: it costs
no more than the choice at one node (parallel composition), and levels add up (sequential composition). Trees that share
the rows add up as well: the curator is asked for one split of each, and debits as many draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from understudy.predictors.cells import BranchClasses
from understudy.predictors.purity import Purity
from understudy.predictors.split import Split, options
from understudy.predictors.tree import Tree
from understudy.privacy.budget import Amount
from understudy.privacy.curator import Curator
from understudy.schema.domain import ColumnSet, Domain

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
        for part in amount.split([1.0] * levels):
            growing = [i for i, tree in enumerate(trees) if not tree.grown and self._splits(tree)]
            if not growing:
                break
            for place, split in self._choose(curator, part, trees, growing).items():
                trees[place] = trees[place].cut(split)
        return [Tree.of_levels(tree.levels) for tree in trees]

    def _choose(
        self, curator: Curator, amount: Amount, trees: Sequence[Growing], growing: Sequence[int]
    ) -> dict[int, Split | None]:
        """A split, or none, for each tree that still grows."""
        offers = [(i, split) for i in growing for split in (None, *self._splits(trees[i]))]
        candidates = [self._candidate(trees[i], split) for i, split in offers]
        served: set[int] = set()

        def admits(offer: int) -> bool:
            first = offers[offer][0] not in served
            served.add(offers[offer][0])
            return first

        chosen = curator.select(
            self.domain, candidates, amount, k=len(growing), admits=admits if len(growing) > 1 else None
        )
        return {offers[i][0]: offers[i][1] for i in chosen}

    def _splits(self, tree: Growing) -> list[Split]:
        """Those that leave the tree small enough, by public facts alone; none twice."""
        every = (split for column in tree.columns for split in options(self.domain[column], self.few))
        return [s for s in every if tree.leaves * s.branches <= self.leaves and s not in tree.levels]

    def _candidate(self, tree: Growing, split: Split | None) -> Purity:
        column = split.column if split else tree.columns[0]
        leaves = tree.leaves * (split.branches if split else 1)
        so_far = Tree.of_levels(tree.levels)
        cells = BranchClasses(so_far, column, self.domain.size(column), self.target, self.domain.size(self.target))
        cost = COST_OF_A_LEAF * self.noise * leaves + COST_OF_A_BIT * self.rows * math.log2(leaves)
        return Purity(cells.columns, cells, split, -cost)
