"""The predictors that people use: a random tree, a forest, and a greedy tree."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from understudy.boundary.privacy.ledger.ledger import Debited
from understudy.boundary.schema.schema import Schema
from understudy.predictors.boosting_predictors import PrivateBoosting, PrivateBoostingRegressor
from understudy.predictors.estimator import UnusableInputError
from understudy.predictors.predictor import PrivatePredictor
from understudy.predictors.tree_induction import EXPONENTIAL, NOISY, RANDOM, Hyperparameters
from understudy.predictors.tree_predictors import MEAN, VOTE, PrivateTrees


@dataclass(repr=False, eq=False)
class _Parameters(PrivateTrees):
    """The parameters that all predictors have.

    A dataclass writes `__init__` from its fields just as scikit-learn wants it: every argument is kept under its own
    name, and nothing is checked before `fit`.
    """

    epsilon: float = 1.0
    delta: float = 0.0
    _: KW_ONLY
    depth: int | None = None
    leaves: int | None = None
    rows: int | None = None
    shrink: bool = True
    target: str | None = None
    schema: Schema | str | Path | None = None
    seed: int | None = None
    noise_seed: int | None = None
    ledger: Debited = None
    analyst: str = ""
    accept_draft_as_public: bool = False


@dataclass(repr=False, eq=False)
class PrivateForest(_Parameters):
    """Several private trees that share one budget.

    With `structure="exponential"` their splits are chosen by the exponential mechanism, a level at a time; with
    `"random"` they are drawn from the schema without looking at a row, so that only the leaves are paid for. What is
    None follows from the budget, the schema and the number of rows by a public rule (`predictors.tree_induction`). That
    number is bought with a twentieth of the budget unless `rows` declares it or replace-one makes it public.

    `voting="vote"` and `shrink=False` give the printed form of the literature: trees vote, and a leaf is what its own
    counts say. By default shares are averaged, and leaves with few rows are drawn to the nodes above them.

    >>> import pyarrow as pa, understudy as us
    >>> from understudy.boundary.schema.schema import Schema
    >>> columns = '[columns.ill]\\ntype = "boolean"\\n[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99'
    >>> people = us.open(pa.table({"ill": [True, False] * 50, "age": [80, 20] * 50}), Schema.loads(columns))
    >>> forest = PrivateForest(epsilon=1000.0).fit(people, target="ill")
    >>> forest.predict(pa.table({"age": [85, 15]}))
    array([ True, False])
    """

    _: KW_ONLY
    trees: int | None = None
    structure: str = EXPONENTIAL
    voting: str = MEAN

    def hyperparameters(self) -> Hyperparameters:
        if self.voting not in (MEAN, VOTE):
            raise UnusableInputError(f"voting ({self.voting!r}) must be {MEAN!r} or {VOTE!r}", self.voting)
        return Hyperparameters(self.structure, self.trees, self.depth, self.leaves, self.rows)


class PrivateDecisionTree(_Parameters):
    """One tree whose structure is drawn from the schema: only its leaves are paid for.

    >>> PrivateDecisionTree(epsilon=0.5, depth=3)
    PrivateDecisionTree(epsilon=0.5, depth=3)
    """

    voting = MEAN

    def hyperparameters(self) -> Hyperparameters:
        return Hyperparameters(RANDOM, 1, self.depth, self.leaves, self.rows)


@dataclass(repr=False, eq=False)
class PrivateGreedyTree(_Parameters):
    """One tree that looks for good splits: half of the budget chooses them, and half counts its leaves.

    `splits="exponential"` chooses a split for all nodes of a level at once by the exponential mechanism.
    `splits="noisy"` is the private ID3 of the literature: it buys the counts of every column by class at each level,
    and each node takes what looks best; the more columns there are, the noisier they get.

    >>> PrivateGreedyTree(splits="noisy")
    PrivateGreedyTree(splits='noisy')
    """

    _: KW_ONLY
    splits: str = EXPONENTIAL

    voting = MEAN

    def hyperparameters(self) -> Hyperparameters:
        if self.splits not in (EXPONENTIAL, NOISY):
            raise UnusableInputError(f"splits ({self.splits!r}) must be {EXPONENTIAL!r} or {NOISY!r}", self.splits)
        return Hyperparameters(self.splits, 1, self.depth, self.leaves, self.rows)


KINDS: dict[str, type[PrivatePredictor]] = {
    cls.__name__: cls
    for cls in (PrivateBoosting, PrivateBoostingRegressor, PrivateDecisionTree, PrivateForest, PrivateGreedyTree)
}
