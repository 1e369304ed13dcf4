"""What a method will measure and with how much noise, by its own rules and from public facts: nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Amount, Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.inference.discovery import provisional
from understudy.methods import aim, mst, mwem
from understudy.methods.dp_select import dp_select
from understudy.methods.parts.groundwork import FIRST_SHARE, MORE_SHARE, MOST_SHARE, NOISY, VERY_NOISY
from understudy.methods.parts.share import error_weights
from understudy.methods.parts.workload import Workload
from understudy.methods.privbayes import privbayes
from understudy.methods.rake.rake import Schedule

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
        whole = amount.noise_scale(self.change)
        return math.sqrt(2.0) * whole / shares if amount.pure else whole / np.sqrt(shares)

    def noise_of_columns(self, amount: Amount) -> Floats:
        """The total variation that noise puts into each column, where all of the amount goes to them."""
        sizes = self.sizes
        weights = np.array(error_weights([int(s) for s in sizes], amount.pure))
        return np.asarray(SHARE_OF_NOISE * sizes * self.deviation(amount, weights / weights.sum()) / self.rows)


@dataclass(frozen=True)
class Spending:
    """What a method buys: single columns, and sets of columns with so much noise in each cell."""

    columns: Floats
    """The total variation that noise puts into each of them."""
    sets: int
    noise: float


def spending(method: str, public: Public) -> Spending:
    """By the method's own rules; a method that measures nothing spends as `rake` would, for want of a better guess."""
    columns = len(public.domain.names)
    if method == "independent" or columns == 1:
        return Spending(public.noise_of_columns(public.amount), 0, 0.0)
    if method == "marginals":
        return _equally(public, public.amount.part(FIRST_SHARE), public.amount, columns - 1)
    first = public.amount.part(_share_of_columns(public, most=method != "privbayes"))
    left = Amount(public.amount.value - first.value, public.amount.pure)
    return BUYING.get(method, _rake)(public, first, left)


def _share_of_columns(public: Public, most: bool) -> float:
    """As `groundwork.measure_columns` has it, but from the expected noise."""
    error = float(public.noise_of_columns(public.amount.part(FIRST_SHARE)).mean())
    if error <= NOISY:
        return FIRST_SHARE
    return FIRST_SHARE + (MOST_SHARE if error > VERY_NOISY and most else MORE_SHARE)


def _equally(public: Public, first: Amount, measuring: Amount, sets: int) -> Spending:
    return Spending(public.noise_of_columns(first), sets, float(public.deviation(measuring, 1 / sets)))


def _mst(public: Public, first: Amount, left: Amount) -> Spending:
    return _equally(public, first, left.part(1 - mst.SELECTION_SHARE), len(public.domain.names) - 1)


def _privbayes(public: Public, first: Amount, left: Amount) -> Spending:
    measuring = left.part(1 - privbayes.TREE_SHARE).part(1 - privbayes.PARENTS_SHARE)
    return _equally(public, first, measuring, len(public.domain.names) - 1)


def _mwem(public: Public, first: Amount, left: Amount) -> Spending:
    rounds = mwem.Mwem().calibrate(public.domain, public.amount).rounds
    return _equally(public, first, left.part(1 - mwem.SELECTION_SHARE), rounds)


def _aim(public: Public, first: Amount, left: Amount) -> Spending:
    method = aim.CalibratedAim(public.domain, public.amount, aim.Aim(), Workload.of(public.domain))
    picks = method._count_picks(public.rows / left.noise_scale(public.change))
    return _equally(public, first, left.part(1 - aim.SELECTION_SHARE), picks)


def _rake(public: Public, first: Amount, left: Amount, keen: bool = True) -> Spending:
    schedule = Schedule.of(public.rows, Purse.of(left, public.change), len(public.domain.names), keen)
    picks = schedule.edges + schedule.per_round * len(schedule.rounds)
    return Spending(public.noise_of_columns(first), picks, schedule.noise)


def _select(public: Public, first: Amount, left: Amount) -> Spending:
    """As `rake` does with what the pool leaves."""
    return _rake(public, first, left.part(1 - dp_select.POOL_SHARE), keen=False)


BUYING: dict[str, Callable[[Public, Amount, Amount], Spending]] = {
    "mst": _mst,
    "privbayes": _privbayes,
    "mwem": _mwem,
    "aim": _aim,
    "dp-select": _select,
}


@dataclass(frozen=True)
class Purse:
    """As much of a curator as a schedule looks at: what is left, and how far one unit moves a count."""

    left: Amount
    change: float

    @classmethod
    def of(cls, left: Amount, change: float) -> Curator:
        return cast(Curator, cls(left, change))

    def remaining(self) -> Amount:
        return self.left

    def count_sensitivity(self, amount: Amount) -> float:
        return self.change
