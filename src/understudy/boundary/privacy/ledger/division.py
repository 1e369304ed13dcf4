"""The division of a limit: a ceiling of its own for each of the three sums that are added up under it.

Between releases people see answers, and these may decide what comes next. A filter on one sum holds whatever they
decide, if its ceiling was fixed before the first answer (Smith & Thakurta 2022). One ceiling for several sums does not:
answers could decide which of them takes what is left (docs/mechanisms/gaussian-dp.md has the attack). So a limit (ε, δ)
keeps a part F of its δ for failures and a part E of its ε for trainings, and what counts add up to is bounded by what
the rest, (ε − E, δ − F), buys. All releases together are then (ε, δ)-DP by the argument at `budget.Cost`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from understudy.boundary.privacy.accountant import round_down, round_up
from understudy.boundary.privacy.budget import Budget, Cost, capacity
from understudy.errors import InputError

TYPED = Fraction(1, 2**50)
"""What is typed in decimals is stored as a float: three parts of 0.1 must fit into 0.3."""

_ZERO = Fraction(0)


@dataclass(frozen=True)
class Division:
    """What a limit with δ > 0 keeps for failures (private values, trainings) and for trainings; the rest is for counts.

    >>> Division.stated(Budget(3.0, 1e-6), 5e-7, 1.0).covers(Budget(3.0, 1e-6), Cost.zero())
    True
    """

    failure_delta: Fraction
    training_epsilon: Fraction

    @classmethod
    def stated(cls, limit: Budget, failure_delta: float | None, training_epsilon: float | None) -> Division | None:
        """As the steward wants it: half of δ where only the other part is named, no ε likewise; None for neither."""
        if failure_delta is None and training_epsilon is None:
            return None
        if limit.pure:
            stated = f"failure delta ({failure_delta})"
            if failure_delta is None:
                stated = f"training epsilon ({training_epsilon})"
            raise InputError(
                f"{stated} must be left out, since the limit ({limit}) is pure: it allows no failures or trainings.",
                limit,
            )
        if failure_delta is None:
            failure_delta = limit.delta / 2
        return cls(
            _part("failure delta", failure_delta, limit.delta),
            _part("training epsilon", training_epsilon or 0, limit.epsilon),
        )

    @classmethod
    def following(cls, limit: Budget, spent: Cost) -> Division | None:
        """Where nobody stated one: by what the first release is debited, before its first answer.

        A half of δ, as in a release with private values, and a half of ε where there was a training; just what is spent
        where a half leaves too little for the counts. None where no division covers it. A debit follows from public
        facts alone (`PublicFacts.whole`), so that this ceiling is fixed without looking at any answer.
        """
        halves = round_down(Fraction(limit.delta) / 2), round_down(Fraction(limit.epsilon) / 2)
        failed, trained = round_up(spent.delta), round_up(spent.direct)
        failures = (max(failed, halves[0]), failed)
        trainings = (max(trained, halves[1]), trained) if trained else (_ZERO,)
        divisions = (cls(*parts) for parts in product(failures, trainings))
        return next((division for division in divisions if division.covers(limit, spent)), None)

    def counts(self, limit: Budget) -> Fraction:
        """The ceiling of g, or of ρ: what the rest of the limit buys."""
        return capacity(limit, self.failure_delta, self.training_epsilon)

    def covers(self, limit: Budget, spent: Cost) -> bool:
        """Whether each sum is within its own ceiling, decided in exact arithmetic."""
        price = spent.by(limit.accounting)
        return (
            spent.delta <= self.failure_delta <= Fraction(limit.delta)
            and spent.direct <= self.training_epsilon <= Fraction(limit.epsilon)
            and price is not None
            and price <= self.counts(limit)
        )

    def shortage(self, spent: Cost) -> str:
        """Which ceiling is too low for what is spent, as the beginning of a sentence."""
        failures, trainings = plain(self.failure_delta), plain(self.training_epsilon)
        if spent.delta > self.failure_delta:
            return f"failure delta ({failures:g}) must be at least the {rounded_up(spent.delta)} already spent"
        if spent.direct > self.training_epsilon:
            return f"training epsilon ({trainings:g}) must be at least the {rounded_up(spent.direct)} already spent"
        return (
            f"failure delta ({failures:g}) and training epsilon ({trainings:g}) must be less, to leave what is already "
            "spent on counts"
        )


def _part(name: str, value: float, whole: float) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < whole:
        raise InputError(f"{name} ({value}) must be a number from 0 up to, but not including, {whole:g}.", value)
    # Typed in decimals, too. This takes nothing from the claim: what is left for counts follows from what is kept.
    return round_down(min(Fraction(value) * (1 + TYPED), Fraction(whole)))


def rest_of(part: Fraction, spent: Fraction) -> Fraction:
    """What is left of a part, for sentences: none where only the tolerance for what was typed is left."""
    return part - spent if part - spent > 2 * TYPED * part else _ZERO


def plain(value: Fraction) -> float:
    """A part as somebody would type it."""
    return float(f"{float(value):.12g}")


def rounded_up(value: Fraction) -> str:
    """Four figures, so that a part of that size suffices."""
    return _four_figures(value, math.ceil)


def rounded_down(value: Fraction | float) -> str:
    """Four figures, so that what a sentence offers would be accepted."""
    return _four_figures(Fraction(value), math.floor)


def _four_figures(value: Fraction, rounded: Callable[[Fraction], int]) -> str:
    if value <= 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 3)
    return f"{float(rounded(value / unit) * unit):.4g}"
