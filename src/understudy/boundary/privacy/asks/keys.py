"""The values of a private column that many people share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question, check_scale
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.measurement import FoundValues, frozen
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.threshold import key_threshold
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.column import Categorical
from understudy.boundary.tables.table import Table
from understudy.errors import InternalError, MethodError


@dataclass(frozen=True)
class Keys(Ask[FoundValues]):
    """The values of a private column whose noisy counts pass a threshold; seeing any costs a part of δ, too.

    `mechanisms.threshold.key_threshold` proves that keys of one person alone pass with probability δ at most.
    """

    column: str
    amount: Amount

    name = "keys"
    description = Description(
        "the values of a private column that many people share",
        "L2 of a histogram, and δ for keys of one person alone",
        "Gaussian noise, and a threshold",
        "[thresholded keys](../mechanisms/thresholded-keys.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        column = self.column
        if self.amount.pure:
            raise no_pure_keys(column)
        if not (isinstance(facts.schema[column], Categorical) and facts.schema[column].private):
            raise MethodError(f"{column!r} is not a categorical column with private values; use its schema", column)
        if facts.keys is not None and column not in facts.keys:
            raise InternalError(f"column ({column!r}) must be one of the keys that the budget was divided for.", column)
        sigma, delta = self.amount.noise_scale(facts.l2), facts.key_delta
        check_scale(f"values of {column}", sigma)
        asked = f"values of {column} above {_threshold(facts, sigma, delta):,}"
        return [Spend("thresholded-gaussian", asked, facts.l2, sigma, delta)]

    def questions(self, price: Price) -> list[Question]:
        (spend,) = price.spends
        threshold = _threshold(price.facts, spend.scale, spend.delta)
        return [{"ask": self.name, "column": self.column, "scale": spend.scale, "threshold": threshold}]

    def exact(self, table: Table) -> tuple[list[str], NDArray[np.int64]]:
        return table.count_values(self.column)

    def draw(
        self,
        hidden: tuple[list[str], NDArray[np.int64]],
        price: Price,
        randomness: Randomness,
        keep: Keep = at_once,
    ) -> Arrays:
        (spend,), (values, counts) = price.spends, hidden
        threshold = _threshold(price.facts, spend.scale, spend.delta)
        noisy = counts + randomness.noise(spend.mechanism, spend.scale, len(counts))
        # Sorted, since the order in which the table held them is not paid for.
        shown = sorted((v, int(n)) for v, n in zip(values, noisy, strict=True) if n > threshold)
        return [np.array([[v, str(n)] for v, n in shown], dtype=np.str_).reshape(len(shown), 2)]

    def answer(self, values: Arrays, price: Price) -> FoundValues:
        (pairs,) = values
        return FoundValues(tuple(map(str, pairs[:, 0])), frozen(pairs[:, 1].astype(np.int64)))


def _threshold(facts: PublicFacts, sigma: float, delta: float) -> int:
    # Under replace-one either of the two tables may hold keys that the other doesn't.
    return key_threshold(sigma, delta, facts.rows, worlds=2 if facts.replaced else 1)


def no_pure_keys(column: str) -> MethodError:
    """Seeing a value at all may tell that its one holder is there: that has no pure form."""
    return MethodError(
        f"the values of {column!r} are private, and learning them needs a delta above 0; "
        "list them in the schema, or ask with a delta",
        column,
    )
