"""Private predictors, as subjects of an audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.schema import Schema
from understudy.lab.audits.pairs.pair import EQUAL, OTHER, TARGET
from understudy.lab.audits.subjects.harness import RunContext
from understudy.lab.audits.subjects.subject import RunOutput
from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.predictors.predictor import PrivatePredictor
from understudy.predictors.storage import certificate_of
from understudy.releases.certificate import Certificate

if TYPE_CHECKING:
    import pyarrow as pa

PREDICTORS: dict[str, Callable[[Budget], PrivatePredictor]] = {
    "private-tree": lambda b: PrivateDecisionTree(b.epsilon, b.delta),
    "private-forest": lambda b: PrivateForest(b.epsilon, b.delta),
    "private-greedy-tree": lambda b: PrivateGreedyTree(b.epsilon, b.delta),
    "private-id3": lambda b: PrivateGreedyTree(b.epsilon, b.delta, splits="noisy"),
}


@dataclass(frozen=True)
class PredictorSubject:
    """A predictor that learns which rows are ripe."""

    name: str
    budget: Budget
    kind: str = "predictor"
    buys_keys: bool = True

    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        self._fitted(context, curator, seed)

    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        fitted = self._fitted(context, curator, seed)
        shares = fitted.predict_proba(_asked(context.schema))
        numbers = {f"share {i} of row {j}": float(p) for j, row in enumerate(shares) for i, p in enumerate(row)}
        answers = [(q.question, q.value.shape) for q in curator.record]
        trees = [repr(leaves.tree) for leaves in fitted.leaves_]
        outside = {"classes": fitted.classes_.tolist(), "questions": answers, "trees": trees}
        return RunOutput(outside, numbers=numbers)

    def claim(self, context: RunContext, curator: Curator) -> Certificate:
        return certificate_of(self._settled(context, 0), curator, "fit")

    def _fitted(self, context: RunContext, curator: Curator, seed: int) -> PrivatePredictor:
        predictor = self._settled(context, seed)
        predictor._learn(curator, predictor.hyperparameters())
        return predictor

    def _settled(self, context: RunContext, seed: int) -> PrivatePredictor:
        predictor = PREDICTORS[self.name](self.budget)
        predictor.schema_, predictor.target_, predictor.seed_ = context.schema, TARGET, seed
        return predictor


def _asked(schema: Schema) -> pa.Table:
    """A row that is common in most pairs, and one that is not; where a pair has more columns, nothing is known."""
    import pyarrow as pa

    names = [name for name in schema.names if name != TARGET]
    return pa.table({name: [EQUAL.get(name), OTHER.get(name)] for name in names})
