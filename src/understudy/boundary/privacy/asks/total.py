"""The number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Description, NoisyCounts, Price, Question, check_scale
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.tables.table import Table
from understudy.errors import MethodError


@dataclass(frozen=True)
class Total(NoisyCounts[Measurement]):
    """The number of rows: noisy for an amount of budget, or exact and free where it is public (replace-one).

    A person moves the number of rows by their own, in either norm; one put in place of another by one at most, since
    under replace-one a person has one row that counts, or none.
    """

    amount: Amount | None = None

    name = "total"
    description = Description(
        "the number of rows",
        "the rows of a person",
        "integer noise; exact and free under replace-one without a unit",
        "[Gaussian](../mechanisms/discrete-gaussian.md), [Laplace](../mechanisms/discrete-laplace.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        if facts.public_rows:
            return [Spend("public", "number of rows, public under replace-one", 0.0, 0.0)]
        if self.amount is None:
            raise MethodError("the number of rows is private: it needs a part of the budget", self)
        moved = float(facts.rows)
        scale = self.amount.noise_scale(moved)
        check_scale("number of rows", scale)
        return [Spend(self.amount.mechanism, "number of rows", moved, scale, cells=1)]

    def questions(self, price: Price) -> list[Question]:
        return [{"ask": self.name, "scale": price.spends[0].scale}]

    def exact(self, table: Table) -> list[NDArray[np.int64]]:
        return [np.array([table.count_rows()], dtype=np.int64)]

    def answer(self, values: Arrays, price: Price) -> Measurement:
        (count,), (spend,) = values, price.spends
        return Measurement((), count, spend.mechanism, spend.scale)
