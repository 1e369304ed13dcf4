"""Tree induction: how large the trees are, what is asked of the curator, and with which part of the budget.

How deep the trees are, how many there are and how many leaves they have follows from a public rule. It looks at the
budget, the schema and the number of rows, which is declared or bought with a small part of the budget, and at nothing
else. The *signal* is the number of rows over the noise that the whole budget would put on one count.

On a curator of rows `learn` learns; on a curator of recorded answers the same code rebuilds the same trees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.asks import Partitions, Total
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.errors import MethodError
from understudy.inference.noisy_table import NoisyTable
from understudy.parameters import one_of, whole_number
from understudy.predictors.decision_tree import DecisionTree, LeafClasses, LeafCounts
from understudy.predictors.greedy import GreedyGrower, Id3Grower
from understudy.predictors.random_trees import RandomSplits, draw_trees
from understudy.predictors.tasks import ClassificationTask

RANDOM, EXPONENTIAL, NOISY = "random", "exponential", "noisy"
STRUCTURES = (RANDOM, EXPONENTIAL, NOISY)

TOTAL_SHARE = 0.05
"""Of the budget, for the number of rows, where it is neither declared nor public."""
SELECTION_SHARE = 0.5
"""Of what is left after that, for choosing splits; the rest counts the leaves."""
SIGNAL_OF_A_LEVEL, LEVELS_PER_DOUBLING, MOST_LEVELS = 50.0, 0.65, 10
"""A greedy tree has one level up to the first signal, and gains so many with every doubling of it."""
LEAVES_PER_SIGNAL, FEWEST_LEAVES, MOST_LEAVES = 0.5, 32, 8192
"""At half a leaf for each unit of signal, a leaf of average size holds twice as many rows as noise."""
MOST_FREE_DEPTH = 10
"""A depth that is asked for gets the leaves that it needs in two-way splits, up to this many levels."""
RANDOM_DEPTH, MOST_RANDOM_TREES, SIGNAL_OF_A_RANDOM_TREE = 7, 30, 500.0
"""Random trees: their depth, and how many there are, which grows with the square root of the signal."""
SIGNAL_OF_ALL_SPLITS = 400.0
"""With less, a choice among all splits would be lost in the noise of choosing."""
COLUMNS_PER_TREE = 0.7
"""The share of columns that each of several greedy trees may use, drawn at random: so that they differ."""
LIMITS = {"trees": 1000, "depth": 30, "leaves": 1 << 20, "rows": 2**52}
"""The most that a user may ask for; rows stay below 2^53, up to which doubles count exactly."""


@dataclass(frozen=True)
class Hyperparameters:
    """What a user may choose; None leaves it to the rule."""

    structure: str = EXPONENTIAL
    trees: int | None = None
    depth: int | None = None
    leaves: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        one_of("structure", self.structure, STRUCTURES)
        for name, most in LIMITS.items():
            value = getattr(self, name)
            if value is not None:
                whole_number(name, value, 1, most, advice=", or None")


@dataclass(frozen=True)
class ForestSize:
    """What will be grown; `few` says that greedy trees are offered only some splits of each column."""

    trees: int
    depth: int
    leaves: int
    few: bool = False

    @classmethod
    def of(cls, chosen: Hyperparameters, signal: float, columns: int) -> ForestSize:
        """As the user chose, and by the public rule where they didn't.

        >>> ForestSize.of(Hyperparameters(), 32_000.0, 14)
        ForestSize(trees=1, depth=6, leaves=8192, few=False)
        """
        # The noisy number of rows may be anything; a signal below 1 means that nothing can be learned.
        signal = max(signal, 1.0)
        if chosen.structure == RANDOM:
            trees = chosen.trees or min(MOST_RANDOM_TREES, max(1, round(math.sqrt(signal / SIGNAL_OF_A_RANDOM_TREE))))
            depth = chosen.depth or min(RANDOM_DEPTH, columns)
        else:
            trees = chosen.trees or 1
            depth = chosen.depth or _levels(signal / trees)
        least = 2 ** min(chosen.depth or 0, MOST_FREE_DEPTH)
        leaves = chosen.leaves or min(MOST_LEAVES, max(FEWEST_LEAVES, least, round(LEAVES_PER_SIGNAL * signal / trees)))
        return cls(trees, depth, leaves, few=signal / trees < SIGNAL_OF_ALL_SPLITS)


def _levels(signal: float) -> int:
    if signal <= SIGNAL_OF_A_LEVEL:
        return 1
    return min(max(round(LEVELS_PER_DOUBLING * math.log2(signal / SIGNAL_OF_A_LEVEL)), 1), MOST_LEVELS)


def learn(
    curator: Queryable, task: ClassificationTask, chosen: Hyperparameters, rng: np.random.Generator
) -> list[LeafCounts]:
    """Grows the trees and counts their leaves; all of the budget is spent."""
    if chosen.structure == EXPONENTIAL:
        check_selecting(curator, f"structure ({EXPONENTIAL})", f"use {RANDOM} or {NOISY}")
    # Before the number of rows is bought, so that a declared number gives trees of the same size.
    whole = curator.remaining()
    rows = row_number(curator, chosen.rows)
    size = ForestSize.of(chosen, rows / whole.noise_scale(curator.count_sensitivity(whole)), len(task.columns))
    trees = _grow(curator, task, chosen.structure, size, rows, rng)
    return [LeafCounts(*pair) for pair in zip(trees, count_leaves(curator, task, trees), strict=True)]


def check_selecting(curator: Queryable, what: str, remedy: str) -> None:
    """Refuses what selects, where each site adds noise by itself, before anything is spent."""
    federation = curator.facts.federation
    if federation is not None and federation.sites_draw:
        raise MethodError(
            f"{what} chooses by exact counts, which sites don't give under trust {federation.trust}; {remedy}, or "
            "trust the aggregator",
            federation.trust,
        )


def count_leaves(
    curator: Queryable, task: ClassificationTask, trees: Sequence[DecisionTree], amount: Amount | None = None
) -> list[NoisyTable]:
    """Each tree's leaves by class, counted with this amount, or with all that is left of the budget."""
    cells = [LeafClasses(tree, task.target, task.coding.size) for tree in trees]
    measured = curator.ask(Partitions(task.domain, cells, amount or curator.remaining()))
    pairs = zip(cells, measured, strict=True)
    return [NoisyTable(c.columns, m.counts.reshape(c.shape).astype(np.float64), m.variance) for c, m in pairs]


def counted_tree(
    curator: Queryable, task: ClassificationTask, *, rows: float, signal: float, share: float, depth: int | None
) -> LeafCounts:
    """One greedy tree for this share of what is left: what boosting begins with."""
    amount = curator.remaining().part(share)
    size = ForestSize.of(Hyperparameters(depth=depth), signal, len(task.columns))
    counting = amount.part(1.0 - SELECTION_SHARE)
    noise = _count_noise(curator, counting)
    grower = GreedyGrower(task.domain, task.target, leaves=size.leaves, noise=noise, rows=rows, few=size.few)
    (tree,) = grower.grow(curator, amount.part(SELECTION_SHARE), size.depth, [task.columns])
    # Where nothing comes after it, the leaves get what a tree that stopped early has left over.
    (counts,) = count_leaves(curator, task, [tree], None if share == 1.0 else counting)
    return LeafCounts(tree, counts)


def row_number(curator: Queryable, declared: int | None) -> float:
    """The number of rows: declared, public, or noisy."""
    if declared is not None:
        return float(declared)
    # Under replace-one the number of rows is public, and asking for it is free.
    price = None if curator.public_rows else curator.remaining().part(TOTAL_SHARE)
    return max(1.0, float(curator.ask(Total(price)).counts.sum()))


def _grow(
    curator: Queryable,
    task: ClassificationTask,
    structure: str,
    size: ForestSize,
    rows: float,
    rng: np.random.Generator,
) -> list[DecisionTree]:
    if structure == RANDOM:
        splits = RandomSplits.of([task.domain[c] for c in task.columns])
        return draw_trees(splits, size.trees, depth=size.depth, leaves=size.leaves, rng=rng)
    # What greedy trees leave of it, having stopped early, goes to their leaves: those get all that remains.
    share = curator.remaining().part(SELECTION_SHARE)
    if structure == EXPONENTIAL:
        greedy = GreedyGrower(
            task.domain,
            task.target,
            leaves=size.leaves,
            noise=_leaf_noise(curator, size.trees),
            rows=rows,
            few=size.few,
        )
        return greedy.grow(curator, share, size.depth, _column_sets(task.columns, size.trees, rng))
    assert structure == NOISY
    noisy = Id3Grower(task.domain, task.target, task.columns, size.leaves)
    return [noisy.grow(curator, part, size.depth) for part in share.split([1.0] * size.trees)]


def _leaf_noise(curator: Queryable, trees: int) -> float:
    """The standard deviation that a count of a leaf will have."""
    return _count_noise(curator, curator.remaining().part(1.0 - SELECTION_SHARE).split([1.0] * trees)[0])


def _count_noise(curator: Queryable, part: Amount) -> float:
    scale = part.noise_scale(curator.count_sensitivity(part))
    # Laplace noise of scale b, which pure budgets have, has a variance of 2b².
    return scale * math.sqrt(2.0) if part.pure else scale


def _column_sets(columns: Sequence[str], trees: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """All columns for one tree; for each of several, some of them."""
    if trees == 1:
        return [tuple(columns)]
    kept = max(1, math.ceil(COLUMNS_PER_TREE * len(columns)))
    # Sets of columns per tree, not per node as in a random forest (Breiman 2001): a level has one split for all nodes.
    drawn = [np.sort(rng.choice(len(columns), kept, replace=False)) for _ in range(trees)]
    return [tuple(columns[i] for i in places) for places in drawn]
