"""Predictors that are trees with counted leaves: one tree, or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table, is_table
from understudy.errors import InputError
from understudy.predictors.decision_tree import Codes, DecisionTree, LeafCounts, mean_shares, votes
from understudy.predictors.predictor import PrivateClassifier
from understudy.predictors.storage import UPDATE, TrainingRound, certificate_of
from understudy.predictors.tree_induction import Hyperparameters, count_leaves, learn

MEAN, VOTE = "mean", "vote"


class PrivateTrees(PrivateClassifier):
    """Base of the private trees and forests."""

    voting: str
    shrink: bool

    leaves_: list[LeafCounts]

    def hyperparameters(self) -> Hyperparameters:
        """What the user chose, and what is left to the public rule."""
        raise NotImplementedError

    @property
    def trees_(self) -> tuple[DecisionTree, ...]:
        return tuple(leaves.tree for leaves in self.leaves_)

    def grow(self, curator: Curator, chosen: Hyperparameters) -> None:
        # From the saved seed in a replay as well: the structure of random trees is not in the record.
        rng = np.random.Generator(np.random.PCG64(self.seed_))
        self.leaves_ = learn(curator, self.task_, chosen, rng)

    def expected(self, codes: Codes) -> NDArray[np.float64]:
        shares = [s[leaves.tree.leaf_of(codes)] for s, leaves in zip(self._shares(), self.leaves_, strict=True)]
        if self.voting == VOTE:
            return votes(shares)
        return mean_shares(shares)

    def update(self, table: Any, *, epsilon: float, delta: float = 0.0, again: bool = False) -> PrivateTrees:
        """Counts the rows of a table (or a frame) in the leaves of the trees, with a budget of its own.

        Rows that came later are added to those counted before. With `again=True` they are the same rows, counted once
        more: the two counts are averaged by what each is worth. Either way a person in both pays both budgets.
        """
        self._demand_fitted()
        opened: Table = table if is_table(table) else open_table(table, self.schema_)
        if opened.schema != self.schema_:
            raise InputError("the table must have the schema that the predictor was fitted with", opened.schema)
        later = None
        if self.noise_seed is not None:
            # The same noise on two counts of the same rows would cancel out of their difference.
            later = self.noise_seed + len(self.rounds_)
        curator = self._curator(opened, Budget(epsilon, delta), UPDATE, later)
        self._count(curator, again)
        return self

    def export_text(self, tree: int = 0) -> str:
        """One tree as indented text, with what its leaves predict."""
        from understudy.predictors.tree_picture import tree_text

        self._demand_fitted()
        labels = [str(c) for c in self.classes_.tolist()]
        return tree_text(self.task_.domain, self.leaves_[tree], self._shares()[tree], labels)

    def _shares(self) -> list[NDArray[np.float64]]:
        count = len(self.classes_)
        if self.shrink:
            return [leaves.shares(count) for leaves in self.leaves_]
        return [leaves.plain_shares(count) for leaves in self.leaves_]

    def _count(self, curator: Curator, again: bool) -> None:
        counted = count_leaves(curator, self.task_, [leaves.tree for leaves in self.leaves_])
        merge = LeafCounts.with_again if again else LeafCounts.with_more
        self.leaves_ = [merge(old, new) for old, new in zip(self.leaves_, counted, strict=True)]
        self.rounds_ += (TrainingRound(curator.record, certificate_of(self, curator, UPDATE), again),)
