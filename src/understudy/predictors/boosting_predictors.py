"""The boosted predictors that people use: for classes, and for numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Debited
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.predictors.additive_model import STEPS, AdditiveModel, shares_of
from understudy.predictors.boosting import BoostingSize, boost_classes, boost_numbers
from understudy.predictors.decision_tree import Codes, DecisionTree
from understudy.predictors.predictor import PrivateClassifier, PrivatePredictor
from understudy.predictors.tasks import RegressionTask


class AdditivePredictor(PrivatePredictor):
    """A predictor whose model is a sum of trees."""

    model_: AdditiveModel

    @property
    def trees_(self) -> tuple[DecisionTree, ...]:
        return tuple(each.tree for each in self.model_.trees)


@dataclass(repr=False, eq=False)
class _Boosted(AdditivePredictor):
    """The parameters of both."""

    epsilon: float = 1.0
    delta: float = 0.0
    _: KW_ONLY
    rounds: int | None = None
    depth: int | None = None
    leaves: int | None = None
    rows: int | None = None
    target: str | None = None
    schema: Schema | str | Path | None = None
    noise_seed: int | None = None
    ledger: Debited = None
    analyst: str = ""
    accept_draft_as_public: bool = False

    # No parameter: beside the noise and the choices of the curator, nothing is drawn.
    seed = 0

    def hyperparameters(self) -> BoostingSize:
        return BoostingSize(self.rounds, self.depth, self.leaves, self.rows)


class PrivateBoosting(_Boosted, PrivateClassifier):
    """A private classifier by gradient boosting: a tree that is counted, and rounds of trees for what it gets wrong.

    What is None follows from the budget, the schema and the number of rows by a public rule (`predictors.boosting`).
    That number is bought with a twentieth of the budget unless `rows` declares it or replace-one makes it public.
    `depth` and `leaves` are those of the trees of a round.

    >>> import pyarrow as pa, understudy as us
    >>> columns = '[columns.ill]\\ntype = "boolean"\\n[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99'
    >>> people = us.open(pa.table({"ill": [True, False] * 50, "age": [80, 20] * 50}), us.Schema.loads(columns))
    >>> boosted = PrivateBoosting(epsilon=1000.0).fit(people, target="ill")
    >>> boosted.predict(pa.table({"age": [85, 15]}))
    array([ True, False])
    """

    def grow(self, curator: Curator, chosen: BoostingSize) -> None:
        self.model_ = boost_classes(curator, self.task_, chosen)

    def expected(self, codes: Codes) -> NDArray[np.float64]:
        return shares_of(self.model_.scores(codes))


class PrivateBoostingRegressor(_Boosted):
    """A private regressor by gradient boosting, of a number whose bounds and bins the schema declares.

    A target is known to its bin, and predictions stay within its bounds. Residuals are clipped at a quarter of the
    range (Huber's loss), so that no row counts for more than that.

    >>> PrivateBoostingRegressor(epsilon=0.5, rounds=4)
    PrivateBoostingRegressor(epsilon=0.5, rounds=4)
    """

    kind_of_estimator = "regressor"

    task_: RegressionTask

    def task(self, domain: Domain, target: str) -> RegressionTask:
        return RegressionTask(domain, target)

    def grow(self, curator: Curator, chosen: BoostingSize) -> None:
        self.model_ = boost_numbers(curator, self.task_, chosen)

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The number that is expected of each row."""
        self._demand_fitted()
        return self.task_.unscaled(self.model_.scores(self._codes(X))[:, 0] / STEPS)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The coefficient of determination, R²."""
        real = np.asarray(y, dtype=np.float64)
        missed, spread = np.sum((real - self.predict(X)) ** 2), np.sum((real - real.mean()) ** 2)
        return float(1.0 - missed / spread)
