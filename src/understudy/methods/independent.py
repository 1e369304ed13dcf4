"""`independent`: a noisy one-way marginal per column. The baseline that every other method must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.asks import Marginals, Total
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.inference.network import IndependentModel
from understudy.methods.method import Method, Traits
from understudy.methods.parts.one_ways import error_weights


@dataclass(frozen=True)
class Independent:
    """The recipe, which has no parameters."""

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedIndependent:
        return CalibratedIndependent(domain, amount)


@dataclass(frozen=True)
class CalibratedIndependent:
    domain: Domain
    amount: Amount

    def fit(self, curator: Queryable, rng: np.random.Generator) -> IndependentModel:
        sets = [(name,) for name in self.domain.names]
        weights = error_weights([self.domain.cells(s) for s in sets], self.amount.pure)
        rows = [curator.ask(Total())] if curator.public_rows else []
        return IndependentModel.fit(rows + curator.ask(Marginals(self.domain, sets, self.amount, weights)))


METHOD = Method(
    name="independent",
    guarantee="pure ε with delta = 0, else zCDP",
    good_for="one-way counts of every column; the baseline",
    limits="columns are unrelated to each other",
    build=lambda options, params: Independent(),
    traits=Traits(general=True, keeps_relations=False),
)
