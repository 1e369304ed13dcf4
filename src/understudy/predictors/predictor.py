"""What all private predictors share: fit, predict, save and load.

A fitted predictor is a function of its parameters and of the curator's recorded answers. So a saved one is just these,
and to load it is to learn again from the record: the private rows are not needed, and could not be there.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget, Spend, claim, total
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.ledger.ledger import Debited, ledger_for
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table
from understudy.errors import CheckFailed
from understudy.files import write_atomically
from understudy.inference.discovery import discover, provisional
from understudy.parameters import seed_number
from understudy.predictors.decision_tree import Codes, DecisionTree
from understudy.predictors.estimator import ScikitEstimator
from understudy.predictors.input_data import codes_of, rows_frame, training_data
from understudy.predictors.storage import FIT, UPDATE, TrainingRound, certificate_of, load, to_json
from understudy.predictors.tasks import ClassificationTask, PredictionTask
from understudy.releases.certificate import Certificate


class Size(Protocol):
    """What a user chose about the size of a model; None is left to a public rule."""

    @property
    def trees(self) -> int | None: ...

    @property
    def leaves(self) -> int | None: ...


class PrivatePredictor(ScikitEstimator):
    """Base of all private predictors; it has no structure of its own."""

    epsilon: float
    delta: float
    target: str | None
    schema: Schema | str | Path | None
    seed: int | None
    noise_seed: int | None
    ledger: Debited
    analyst: str
    accept_draft_as_public: bool

    rounds_: tuple[TrainingRound, ...]
    seed_: int
    schema_: Schema
    target_: str
    task_: PredictionTask
    n_features_in_: int

    def hyperparameters(self) -> Size:
        """What the user chose, and what is left to the public rule."""
        raise NotImplementedError

    def task(self, domain: Domain, target: str) -> PredictionTask:
        """What is predicted, from which columns."""
        raise NotImplementedError

    def grow(self, curator: Curator, chosen: Any) -> None:
        """Asks for all that the model is made of, and keeps it; `task_` and `seed_` are known."""
        raise NotImplementedError

    @property
    def trees_(self) -> tuple[DecisionTree, ...]:
        """All trees, in the order in which they were grown."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, target: str | None = None) -> PrivatePredictor:  # noqa: N803
        """Learns from a table of `understudy.open`, from a frame with a schema, or from features and classes.

        All of the budget is spent, and debited from `ledger`, or for a table that was opened from a file from the
        ledger beside it (`ledger=False` debits none). Fitting again spends it again.
        """
        chosen, budget = self.hyperparameters(), Budget(self.epsilon, self.delta)
        data = training_data(self, X, y, target or self.target)
        data.table.schema.check_confirmed(self.accept_draft_as_public, "accept_draft_as_public=True")
        # Refused before anything is spent, on a domain that stands in for what is still private.
        self.task(Domain.of(provisional(data.table.schema)), data.target).check()
        seed = check_seed(self.seed)
        if seed is None:
            # Public: it is saved, and decides the structure of random trees but no noise.
            seed = secrets.randbelow(2**63)
        self.seed_ = seed
        self.schema_, self.target_ = data.table.schema, data.target
        self._learn(self._curator(data.table, budget, FIT, self.noise_seed), chosen)
        return self

    @property
    def certificate_(self) -> Certificate:
        """The claim of the fit, and the spends that it rests on; see `rounds_` for those of later updates."""
        self._demand_fitted()
        return self.rounds_[0].certificate

    @property
    def spends_(self) -> tuple[Spend, ...]:
        """Every ask, of fit and updates, with its price."""
        self._demand_fitted()
        return tuple(s for r in self.rounds_ for s in r.certificate.spends)

    @property
    def guarantee_(self) -> tuple[float, float] | None:
        """The (ε, δ) that holds for a person whose rows were in the fit and in every update; None where none does.

        It is that of the budgets that were asked for, composed: how a round's budget is divided may follow its answers.
        """
        self._demand_fitted()
        if any(r.certificate.void for r in self.rounds_):
            return None
        asked = [r.certificate.asked for r in self.rounds_]
        if len(asked) == 1:
            return asked[0].epsilon, asked[0].delta
        # Costs are composed, not the (ε, δ) of each round, which would be looser; one δ is then chosen for all.
        delta = max(budget.delta for budget in asked)
        costs = (PublicFacts(self.schema_, r.certificate.asked, keys=r.keys).whole for r in self.rounds_)
        spent = total(costs)
        return claim(spent, delta, spent.accounting), delta

    def save(self, path: str | Path) -> None:
        """Writes parameters, schema, record and certificates as JSON; for its owner alone, if it guarantees nothing."""
        self._demand_fitted()
        write_atomically(Path(path), to_json(self).encode(), private=self.guarantee_ is None)

    @classmethod
    def load(cls, path: str | Path) -> PrivatePredictor:
        """Reads a predictor of any kind back; a file that was changed is a failed check."""
        return load(Path(path))

    def _codes(self, X: Any) -> Codes:  # noqa: N803
        """The codes of rows to predict for, in the columns that the trees use."""
        self._demand_fitted()
        used = tuple(dict.fromkeys(c for tree in self.trees_ for c in tree.columns))
        frame = rows_frame(self, X, tuple(c for c in self.schema_.names if c != self.target_))
        # Trees without a split use no column, but how many rows there are is still read off one.
        return codes_of(frame, self.task_.domain, used or self.task_.columns[:1])

    def _learn(self, curator: Curator, chosen: Size) -> None:
        self.task_ = self.task(Domain.of(discover(self.schema_, curator)), self.target_)
        self.grow(curator, chosen)
        self.rounds_ = (TrainingRound(curator.record, certificate_of(self, curator, FIT)),)

    def _count(self, curator: Curator, again: bool) -> None:
        """An update: of trees with counted leaves alone."""
        raise CheckFailed(f"a {type(self).__name__} has no updates", self)

    def _replay(self, rounds: Sequence[TrainingRound]) -> None:
        """Learns again from recorded answers alone; every question, and every spend, must be the recorded one."""
        first, *later = rounds
        self._learn(first.curator(self.schema_), self.hyperparameters())
        for each in later:
            self._count(each.curator(self.schema_), each.again)
        for recorded, now in zip(rounds, self.rounds_, strict=True):
            recorded.check(now)
        # The certificates as they were saved: those made just now have today's date and versions.
        self.rounds_ = tuple(rounds)

    def _curator(self, table: Table, budget: Budget, purpose: str, noise_seed: int | None) -> Curator:
        seed = check_seed(noise_seed)
        return Curator.on(
            table,
            budget,
            ledger=ledger_for(table, self.ledger),
            purpose=f"{purpose} {type(self).__name__} on {table.name}",
            analyst=self.analyst,
            randomness=ExactRandomness.system() if seed is None else ExactRandomness.seeded(seed),
            # An update counts in the categories that the fit has bought, so none of its δ is kept for keys.
            keys=() if purpose == UPDATE else None,
        )


def check_seed(seed: Any) -> int | None:
    """A seed of a generator, or None. Generators of numpy's old kind are not taken: a seed has to be recorded."""
    if seed is None:
        return None
    return seed_number(int(seed) if isinstance(seed, np.integer) else seed)


class PrivateClassifier(PrivatePredictor):
    """What predictors of classes share."""

    classes_: NDArray[Any]
    task_: ClassificationTask

    def task(self, domain: Domain, target: str) -> ClassificationTask:
        return ClassificationTask(domain, target)

    def expected(self, codes: Codes) -> NDArray[np.float64]:
        """The share of each class, row by row, from codes."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The share of each class that the trees expect, row by row, in the order of `classes_`."""
        return self.expected(self._codes(X))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each row."""
        self._demand_fitted()
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_codes(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.int64]:
        """The place of the likeliest class, of rows that are codes already: for studies of many predictors."""
        self._demand_fitted()
        return self.expected(codes).argmax(axis=1)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The share of rows whose class is predicted."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def _learn(self, curator: Curator, chosen: Size) -> None:
        super()._learn(curator, chosen)
        self.classes_ = np.array(list(self.task_.classes))
