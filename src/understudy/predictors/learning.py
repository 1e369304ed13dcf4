"""Learning: what is asked of the curator, in which order, and with which part of the budget.

On a curator of rows it learns; on a curator of recorded answers the same code rebuilds the same trees.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import Coding, Domain
from understudy.errors import InputError
from understudy.predictors.cells import LeafClasses
from understudy.predictors.chance import Deck, draw_trees
from understudy.predictors.greedy import Greedy
from understudy.predictors.id3 import NoisySplits
from understudy.predictors.leaves import Floats, Leaves
from understudy.predictors.rule import (
    EXPONENTIAL,
    NOISY,
    RANDOM,
    SELECTION_SHARE,
    TOTAL_SHARE,
    Plan,
    Recipe,
    plan,
)
from understudy.predictors.tree import Tree

COLUMNS_PER_TREE = 0.7
"""The share of columns that each of several greedy trees may use, drawn at random: so that they differ."""


@dataclass(frozen=True)
class Task:
    """What is predicted, from which columns."""

    domain: Domain
    target: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.domain if c.name != self.target and c.size > 1)

    @property
    def coding(self) -> Coding:
        return self.domain[self.target]

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels, in the order of the schema; a missing value is no class."""
        coding = self.coding
        if coding.labels is not None:
            return coding.labels
        edges = coding.edges or ()
        return tuple(int(e) for e in edges[:-1])

    def check(self) -> None:
        """Refuses a target that has no classes."""
        coding, edges = self.coding, self.coding.edges
        wide = edges is not None and any(b - a != 1 for a, b in itertools.pairwise(edges))
        if coding.column.type in ("number", "datetime") or wide:
            raise InputError(f"the target {self.target!r} must be a column of classes, not of bins", self.target)
        if not self.columns:
            raise InputError(f"nothing is left to predict {self.target!r} from; declare another column", self.target)


def learn(curator: Curator, task: Task, recipe: Recipe, rng: np.random.Generator) -> list[Leaves]:
    """Grows the trees and counts their leaves; all of the budget is spent."""
    whole = curator.remaining()
    rows = _rows(curator, recipe)
    settled = plan(recipe, rows / whole.noise_scale(curator.count_sensitivity(whole)), len(task.columns))
    trees = _grow(curator, task, recipe.structure, settled, rows, rng)
    return [
        Leaves(tree, counts, variance)
        for tree, (counts, variance) in zip(trees, count_leaves(curator, task, trees), strict=True)
    ]


def count_leaves(curator: Curator, task: Task, trees: Sequence[Tree]) -> list[tuple[Floats, float]]:
    """Noisy counts of each tree's leaves by class, with all that is left of the budget, and their noise variance."""
    cells = [LeafClasses(tree, task.target, task.coding.size) for tree in trees]
    measured = curator.partition(task.domain, cells, curator.remaining())
    return [(m.counts.reshape(c.shape).astype(np.float64), m.variance) for c, m in zip(cells, measured, strict=True)]


def _rows(curator: Curator, recipe: Recipe) -> float:
    """The number of rows: declared, public, or noisy."""
    if recipe.rows is not None:
        return float(recipe.rows)
    price = None if curator.public_rows else curator.remaining().part(TOTAL_SHARE)
    return max(1.0, float(curator.total(price).counts.sum()))


def _grow(
    curator: Curator, task: Task, structure: str, settled: Plan, rows: float, rng: np.random.Generator
) -> list[Tree]:
    if structure == RANDOM:
        deck = Deck.of([task.domain[c] for c in task.columns])
        return draw_trees(deck, settled.trees, settled.depth, settled.leaves, rng)
    share = curator.remaining().part(SELECTION_SHARE)
    if structure == EXPONENTIAL:
        noise = _leaf_noise(curator, settled.trees)
        greedy = Greedy(task.domain, task.target, settled.leaves, noise, rows, settled.few)
        return greedy.grow(curator, share, settled.depth, _column_sets(task.columns, settled.trees, rng))
    assert structure == NOISY
    noisy = NoisySplits(task.domain, task.target, task.columns, settled.leaves)
    return [noisy.grow(curator, part, settled.depth) for part in share.split([1.0] * settled.trees)]


def _leaf_noise(curator: Curator, trees: int) -> float:
    """The standard deviation that a count of a leaf will have."""
    part = curator.remaining().part(1.0 - SELECTION_SHARE).split([1.0] * trees)[0]
    scale = part.noise_scale(curator.count_sensitivity(part))
    return scale * (math.sqrt(2.0) if part.pure else 1.0)


def _column_sets(columns: Sequence[str], trees: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """All columns for one tree; for each of several, some of them."""
    if trees == 1:
        return [tuple(columns)]
    kept = max(1, math.ceil(COLUMNS_PER_TREE * len(columns)))
    drawn = [np.sort(rng.choice(len(columns), kept, replace=False)) for _ in range(trees)]
    return [tuple(columns[i] for i in places) for places in drawn]
