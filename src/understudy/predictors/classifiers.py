"""The predictors that people use: a random tree, a forest, and a greedy tree."""

from __future__ import annotations

from pathlib import Path

from understudy.boundary.privacy.ledger.beside import Debited
from understudy.boundary.schema.schema import Schema
from understudy.predictors.estimator import UnusableInputError
from understudy.predictors.predictor import MEAN, VOTE, PrivatePredictor
from understudy.predictors.rule import EXPONENTIAL, NOISY, RANDOM, Recipe


class PrivateForest(PrivatePredictor):
    """Several private trees that share one budget.

    With `structure="exponential"` their splits are chosen by the exponential mechanism, a level at a time; with
    `"random"` they are drawn from the schema without looking at a row, so that only the leaves are paid for. What is
    None is settled by a public rule (`predictors.rule`) from the budget, the schema and the number of rows, which is
    bought with a twentieth of the budget unless `rows` declares it or replace-one makes it public.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        trees: int | None = None,
        depth: int | None = None,
        leaves: int | None = None,
        rows: int | None = None,
        structure: str = EXPONENTIAL,
        voting: str = MEAN,
        shrink: bool = True,
        target: str | None = None,
        schema: Schema | str | Path | None = None,
        seed: int | None = None,
        noise_seed: int | None = None,
        ledger: Debited = None,
        analyst: str = "",
        accept_draft_as_public: bool = False,
    ) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.trees, self.depth, self.leaves, self.rows = trees, depth, leaves, rows
        self.structure, self.voting, self.shrink = structure, voting, shrink
        self.target, self.schema = target, schema
        self.seed, self.noise_seed = seed, noise_seed
        self.ledger, self.analyst = ledger, analyst
        self.accept_draft_as_public = accept_draft_as_public

    def recipe(self) -> Recipe:
        if self.voting not in (MEAN, VOTE):
            raise UnusableInputError(f"voting ({self.voting!r}) must be {MEAN!r} or {VOTE!r}", self.voting)
        return Recipe(self.structure, self.trees, self.depth, self.leaves, self.rows)


class _OneTree(PrivatePredictor):
    """What the predictors of a single tree share."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        depth: int | None = None,
        leaves: int | None = None,
        rows: int | None = None,
        shrink: bool = True,
        target: str | None = None,
        schema: Schema | str | Path | None = None,
        seed: int | None = None,
        noise_seed: int | None = None,
        ledger: Debited = None,
        analyst: str = "",
        accept_draft_as_public: bool = False,
    ) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.depth, self.leaves, self.rows = depth, leaves, rows
        self.shrink = shrink
        self.target, self.schema = target, schema
        self.seed, self.noise_seed = seed, noise_seed
        self.ledger, self.analyst = ledger, analyst
        self.accept_draft_as_public = accept_draft_as_public

    voting = MEAN


class PrivateDecisionTree(_OneTree):
    """One tree whose structure is drawn from the schema: only its leaves are paid for.

    >>> PrivateDecisionTree(epsilon=0.5, depth=3)
    PrivateDecisionTree(epsilon=0.5, depth=3)
    """

    def recipe(self) -> Recipe:
        return Recipe(RANDOM, 1, self.depth, self.leaves, self.rows)


class PrivateGreedyTree(_OneTree):
    """One tree that looks for good splits: half of the budget chooses them, and half counts its leaves.

    `splits="exponential"` chooses a split for all nodes of a level at once by the exponential mechanism.
    `splits="noisy"` is the private ID3 of the literature: it buys the counts of every column by class at each level,
    and each node takes what looks best; the more columns there are, the noisier they get.

    >>> PrivateGreedyTree(splits="noisy")
    PrivateGreedyTree(splits='noisy')
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        splits: str = EXPONENTIAL,
        depth: int | None = None,
        leaves: int | None = None,
        rows: int | None = None,
        shrink: bool = True,
        target: str | None = None,
        schema: Schema | str | Path | None = None,
        seed: int | None = None,
        noise_seed: int | None = None,
        ledger: Debited = None,
        analyst: str = "",
        accept_draft_as_public: bool = False,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            depth=depth,
            leaves=leaves,
            rows=rows,
            shrink=shrink,
            target=target,
            schema=schema,
            seed=seed,
            noise_seed=noise_seed,
            ledger=ledger,
            analyst=analyst,
            accept_draft_as_public=accept_draft_as_public,
        )
        self.splits = splits

    def recipe(self) -> Recipe:
        if self.splits not in (EXPONENTIAL, NOISY):
            raise UnusableInputError(f"splits ({self.splits!r}) must be {EXPONENTIAL!r} or {NOISY!r}", self.splits)
        return Recipe(self.splits, 1, self.depth, self.leaves, self.rows)


KINDS: dict[str, type[PrivatePredictor]] = {
    cls.__name__: cls for cls in (PrivateDecisionTree, PrivateForest, PrivateGreedyTree)
}
