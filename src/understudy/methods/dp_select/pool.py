"""A pool: many rows from another method's model, which was bought with a part of the budget."""

from __future__ import annotations

import numpy as np

from understudy.boundary.privacy.budget import Amount, Budget
from understudy.boundary.privacy.queryable import Queryable, Wrapper
from understudy.errors import BudgetExhausted
from understudy.inference.model import CodeColumns, Model

MOST_TRAINED_DELTA = 0.5
"""A pool that is trained leaves half of δ to what is counted: ε depends on its logarithm alone."""


class Allowance(Wrapper):
    """A curator that speaks of a part of its budget only, so that a method that takes all that is left leaves some."""

    def __init__(self, curator: Queryable, share: float) -> None:
        super().__init__(curator)
        self._share = share
        self._keep(share)

    def remaining(self) -> Amount:
        """What is left, less what is kept for later."""
        left = self._wrapped.remaining()
        if left.value <= self._kept.value:
            raise BudgetExhausted(
                f"{left.currency} ({float(left.value):.4g}) that is left is kept for the selection of rows; "
                "give the pool a larger share",
                self,
            )
        return Amount(left.value - self._kept.value, left.pure)

    def reserve(self, epsilon_share: float, delta_share: float) -> Budget:
        """Shares of the pool's part are smaller shares of the whole; and of what is left to count with, it has less."""
        trained = self._share * epsilon_share
        budget = self._wrapped.reserve(trained, min(delta_share, MOST_TRAINED_DELTA))
        self._keep((self._share - trained) / (1.0 - trained))
        return budget

    def _keep(self, share: float) -> None:
        """All but this share of what is left now."""
        self._kept = self._wrapped.remaining().split([share, 1.0 - share])[1]


def draw_pool(model: Model, rows: int, rng: np.random.Generator) -> CodeColumns:
    """So many rows of the model, in random order; what it was fitted to is all that they depend on."""
    drawn = model.sample(rows, rng)
    order = rng.permutation(len(next(iter(drawn.values()))))
    return {c: np.asarray(v, dtype=np.int32)[order] for c, v in drawn.items()}
