"""Sums of trees: a public function of a row's codes, in whole numbers.

Every tree adds a whole number of steps to one output (or to all of them), and outputs are log-odds in steps of 2^-10.
No float has a part in it, so that what the model says of a row depends on that row alone: vectorised floating-point
functions may round the same number differently at different places of an array.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.predictors.decision_tree import Codes, DecisionTree, Floats, Ints

STEPS = 1 << 10
"""Steps in one unit of an output: a factor of e in the odds."""
MOST_STEPS = 1 << 20
"""That a leaf may add, in either direction; sums of thousands of trees stay whole numbers of 64 bits."""


@dataclass(frozen=True)
class BoostedTree:
    """A tree whose leaves each add a whole number of steps to every output, most often to one of them alone."""

    tree: DecisionTree
    steps: tuple[tuple[int, ...], ...]
    """For each leaf, what it adds to each output."""

    @classmethod
    def of(cls, tree: DecisionTree, values: Floats) -> BoostedTree:
        """From one row of values for each leaf, rounded to steps."""
        bound = MOST_STEPS / STEPS
        whole = np.rint(np.clip(values, -bound, bound) * STEPS).astype(np.int64)
        return cls(tree, tuple(map(tuple, whole.tolist())))

    @cached_property
    def _table(self) -> Ints:
        return np.array(self.steps, dtype=np.int64)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Those that it adds anything to."""
        return tuple(np.flatnonzero(self._table.any(axis=0)).tolist())

    def add_to(self, scores: Ints, codes: Codes) -> None:
        leaf = self.tree.assign(codes)
        for output in self.outputs:
            scores[:, output] += self._table[:, output].take(leaf, mode="clip")

    def fits(self, domain: Domain, outputs: int) -> bool:
        whole = all(len(s) == outputs and all(type(v) is int and abs(v) <= MOST_STEPS for v in s) for s in self.steps)
        complete = type(self.tree) is DecisionTree and self.tree.fits(domain) and len(self.steps) == self.tree.leaves
        return whole and complete


@dataclass(frozen=True)
class AdditiveModel:
    """The sum of its trees; without any, every output is 0."""

    outputs: int
    trees: tuple[BoostedTree, ...] = ()

    # Cached: a model is part of many questions.
    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return type(other) is AdditiveModel and self.digest == other.digest

    @cached_property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys(c for each in self.trees for c in each.tree.columns))

    def plus(self, tree: BoostedTree) -> AdditiveModel:
        return AdditiveModel(self.outputs, (*self.trees, tree))

    def scores(self, codes: Codes) -> Ints:
        """Of each row, each output in steps."""
        rows = len(next(iter(codes.values()), ()))
        scores = np.zeros((rows, self.outputs), dtype=np.int64)
        for each in self.trees:
            each.add_to(scores, codes)
        return scores

    def fits(self, domain: Domain) -> bool:
        return all(each.fits(domain, self.outputs) for each in self.trees)

    @cached_property
    def digest(self) -> str:
        """Stands for the model in a question: the record holds every answer that it was made of."""
        described = [[each.tree.describe(), each.steps] for each in self.trees]
        return hashlib.sha256(json.dumps([self.outputs, described]).encode()).hexdigest()


def shares_of(scores: Ints) -> Floats:
    """The share of each class that log-odds in steps amount to."""
    raised = np.exp((scores - scores.max(axis=1, keepdims=True)) / STEPS)
    shares: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return shares


def single_output(values: Sequence[float] | Floats, output: int, outputs: int) -> Floats:
    """One value for each leaf, as what the leaves add to all outputs."""
    table = np.zeros((len(values), outputs))
    table[:, output] = values
    return table
