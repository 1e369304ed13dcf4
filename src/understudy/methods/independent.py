"""`independent`: a noisy one-way marginal per column. The baseline that every other method must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.inference.network import IndependentModel
from understudy.methods.method import Method, Traits
from understudy.methods.parts.one_ways import measure_each, public_rows


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
        return IndependentModel.fit(public_rows(curator) + measure_each(self.domain, curator, self.amount))


METHOD = Method(
    name="independent",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="one-way counts of every column; the baseline",
    limits="columns are unrelated to each other",
    build=lambda options, params: Independent(),
    traits=Traits(general=True, keeps_relations=False, sums_only=True),
)
