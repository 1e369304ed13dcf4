"""An adversarial random forest: it tells rows from made-up ones, until what its own leaves make up passes for rows.

Watson, Blesch, Kapar & Wright, "Adversarial random forests for density estimation and generative modeling" (AISTATS
2023), algorithm 1. In each round the made-up rows are drawn from the last forest: a leaf by the rows that it holds,
then every column by itself from the rows in that leaf. Nothing here knows where the rows came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.inference.forest.trees import Flags, Floats, Indices, LeafBoxes, Trees
from understudy.parameters import whole_number


@dataclass(frozen=True)
class Growth:
    """How a forest is grown; names and defaults are those of arfpy 0.1.1, but for `merge`."""

    num_trees: int = 30
    delta: float = 0.0
    """The loop ends when out-of-bag accuracy is at most 0.5 + delta."""
    max_iters: int = 10
    early_stop: bool = True
    """End the loop when a round is told apart better than the one before."""
    min_node_size: int = 5
    """The fewest rows in a leaf; leaves of fewer real rows are pruned."""
    merge: bool = True
    """Two small leaves of one parent become one, if that is large enough. arfpy drops both (False): test rows of Adult
    are then less likely (by .05 in the mean log P), and those of the insurance table as well (by .03)."""
    forest: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of scikit-learn's RandomForestClassifier."""

    def __post_init__(self) -> None:
        for name, least in (("num_trees", 1), ("max_iters", 0), ("min_node_size", 1)):
            value = getattr(self, name)
            whole_number(name, int(value) if isinstance(value, np.integer) else value, least)
        if not 0 <= self.delta <= 0.5:
            raise InputError(f"delta ({self.delta}) must be from 0 to 0.5", self.delta)


@dataclass(frozen=True, eq=False)
class FittedForest:
    """A forest without its small leaves, and where the rows are in it."""

    trees: Trees
    leaves: LeafBoxes
    leaf: Indices
    """Of each row in each tree."""
    unseen: Flags
    """Whether the tree was grown without that row (out of bag)."""
    accuracy: tuple[float, ...]
    """How well each round's rows were told from real ones, out of bag."""

    def locate(self, points: Floats) -> Indices:
        """The leaf of other rows, in each tree."""
        return self.leaves.number[self.trees.apply(points)]


@dataclass(frozen=True, eq=False)
class TrainedForest:
    """A forest that was taught to tell real rows from made-up ones."""

    trees: Trees
    nodes: Indices
    """Where each real row arrives in each tree."""
    unseen: Flags
    accuracy: float


def grow(
    points: Floats, growth: Growth, rng: np.random.Generator, say: Callable[[str], None] | None = None
) -> FittedForest:
    """Grows a forest on rows: numbers (NaN where missing), categories as codes."""
    say = say or (lambda text: None)
    # scikit-learn grows and applies trees in single precision: what is made up has to be of the same values.
    values = points.astype(np.float32)
    best = _teach(values, rng.permuted(values, axis=0), growth, rng)
    accuracy = [best.accuracy]
    say(f"Initial accuracy is {best.accuracy}")
    while accuracy[-1] > 0.5 + growth.delta and len(accuracy) <= growth.max_iters:
        found = _teach(values, made_up(values, best.nodes, rng), growth, rng)
        accuracy.append(found.accuracy)
        say(f"Iteration number {len(accuracy) - 1} reached accuracy of {found.accuracy}.")
        if growth.early_stop and accuracy[-1] > accuracy[-2]:
            break
        # Rows that can't be told from real ones speak for the forest that made them, not for the one that failed.
        if accuracy[-1] > 0.5 + growth.delta and len(accuracy) <= growth.max_iters:
            best = found
    rows = np.bincount(best.nodes.ravel(), minlength=len(best.trees.left))
    trees = best.trees.pruned(rows, growth.min_node_size, merge=growth.merge)
    leaves = LeafBoxes.of(trees, points.shape[1])
    leaf = leaves.number[trees.rerouted(points, best.nodes)]
    return FittedForest(trees, leaves, leaf, best.unseen, tuple(accuracy))


def made_up(values: Any, nodes: Indices, rng: np.random.Generator) -> Any:
    """As many rows, each from a leaf that is drawn by the rows in it; every column is that of some row of the leaf."""
    rows, trees = nodes.shape
    flat = nodes.ravel()
    member = (np.argsort(flat, kind="stable") // trees).astype(np.int32)
    count = np.bincount(flat)
    start = np.cumsum(count) - count
    drawn = flat[rng.integers(flat.size, size=rows)]
    first, most = start[drawn], count[drawn]
    synthetic = np.empty_like(values)
    for j in range(values.shape[1]):
        synthetic[:, j] = values[member[first + (rng.random(rows) * most).astype(np.int64)], j]
    return synthetic


def _teach(real: Any, synthetic: Any, growth: Growth, rng: np.random.Generator) -> TrainedForest:
    from sklearn.ensemble import RandomForestClassifier

    values, truth = np.vstack([real, synthetic]), np.repeat([0, 1], len(real))
    chosen = {"n_estimators": growth.num_trees, "min_samples_leaf": growth.min_node_size, **growth.forest}
    chosen.setdefault("random_state", int(rng.integers(2**31)))
    forest = RandomForestClassifier(**chosen).fit(values, truth)
    trees, nodes = Trees.of(forest), forest.apply(values).astype(np.intp)
    nodes += trees.roots
    # Accuracy is out of bag: on rows that a tree was grown with, deep trees are right whatever the rows are.
    unseen = np.ones((len(values), len(forest.estimators_)), dtype=np.bool_)
    if forest.bootstrap:
        for tree, seen in enumerate(forest.estimators_samples_):
            unseen[seen, tree] = False
    # A node's `value` has shares or counts, by the version of scikit-learn: divided by their sum both are shares.
    votes = np.concatenate([e.tree_.value[:, 0, 1] / e.tree_.value[:, 0].sum(axis=1) for e in forest.estimators_])
    said = np.where(unseen, votes[nodes] - 0.5, 0.0).sum(axis=1) > 0
    return TrainedForest(trees, nodes[: len(real)], unseen[: len(real)], float((said == truth).mean()))
