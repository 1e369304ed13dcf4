"""What a method will measure and with how much noise, by its own rules and from public facts: nothing is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Amount, Budget
from understudy.boundary.privacy.queryable import BudgetView
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.inference.discovery import provisional
from understudy.methods.parts.one_ways import (
    FIRST_SHARE,
    MORE_SHARE,
    error_weights,
    further_share,
)

Floats = NDArray[np.float64]

SHARE_OF_NOISE = 0.4
"""Half of the mean absolute value of a standard normal: what a cell's noise adds to a total variation distance."""


@dataclass(frozen=True)
class Public:
    """What everybody knows before a spend: the columns, the budget, and a guess of the rows."""

    domain: Domain
    amount: Amount
    change: float
    """How far one unit moves a histogram, in the norm of the noise."""
    rows: float

    @classmethod
    def of(cls, schema: Schema, budget: Budget, rows: int) -> Public:
        """A column whose values are private counts with the fewest that it may have."""
        # Replacing a row moves two cells by one each: 2 in L1, for Laplace noise, and √2 in L2, for Gaussian noise.
        cells = 2 if schema.neighbours == "replace-one" else 1
        change = schema.rows_per_unit * (cells if budget.pure else math.sqrt(cells))
        return cls(Domain.of(provisional(schema)), budget.capacity, float(change), float(rows))

    @property
    def sizes(self) -> Floats:
        return np.array([self.domain.size(name) for name in self.domain.names], dtype=np.float64)

    @property
    def signal(self) -> float:
        """How many times the rows exceed the noise that the whole budget would put on one count."""
        return float(self.rows / self.deviation(self.amount))

    def deviation(self, amount: Amount, shares: float | Floats = 1.0) -> Any:
        """The standard deviation of the noise that shares of an amount buy, each for one histogram.

        As it is before a scale is rounded to the grid of the ledger, which nobody would see here.
        """
        # Laplace noise has a deviation of √2·b, and b is inverse to ε; that of a Gaussian is inverse to √ρ.
        whole = amount.noise_scale(self.change)
        if amount.pure:
            return math.sqrt(2.0) * whole / shares
        return whole / np.sqrt(shares)

    def noise_of_columns(self, amount: Amount, power: float = 1.0) -> Floats:
        """The total variation that noise puts into each column, where all of the amount goes to them.

        `power`: that of `error_weights`.
        """
        sizes = self.sizes
        weights = np.array(error_weights([int(s) for s in sizes], amount.pure, power))
        return np.asarray(SHARE_OF_NOISE * sizes * self.deviation(amount, weights / weights.sum()) / self.rows)


@dataclass(frozen=True)
class Spending:
    """What a method buys: single columns, and sets of columns with so much noise in each cell."""

    columns: Floats
    """The total variation that noise puts into each of them."""
    sets: int
    noise: float


def spend_on_columns(public: Public) -> Spending:
    """All on single columns."""
    return Spending(public.noise_of_columns(public.amount), 0, 0.0)


def after_columns(public: Public, most: bool = True) -> tuple[Amount, Amount]:
    """What single columns take first, as `one_ways.measure_columns` has it but by the expected noise, and the rest.

    `most`: whether they may take the largest share where they are hardly known.
    """
    error = float(public.noise_of_columns(public.amount.part(FIRST_SHARE)).mean())
    further = further_share(error, len(public.domain.names))
    if not most:
        further = min(further, MORE_SHARE)
    return parted(public, FIRST_SHARE + further)


def parted(public: Public, share: float) -> tuple[Amount, Amount]:
    """A share of the budget, and the rest."""
    first = public.amount.part(share)
    return first, replace(public.amount, value=public.amount.value - first.value)


def spend_equally(public: Public, first: Amount, measuring: Amount, sets: int) -> Spending:
    """The first part on single columns, and equal parts of the second on so many sets of columns."""
    return Spending(public.noise_of_columns(first), sets, float(public.deviation(measuring, 1 / sets)))


@dataclass(frozen=True)
class PlannedBudget(BudgetView):
    """What would be left of a budget that is only planned with."""

    left: Amount
    change: float

    def remaining(self) -> Amount:
        return self.left

    def count_sensitivity(self, amount: Amount) -> float:
        return self.change
