"""What a limit, or an analyst's share of it, admits: decided in exact arithmetic, and told in sentences."""

from __future__ import annotations

import math
from fractions import Fraction

from understudy.boundary.privacy.accountant import lower_float
from understudy.boundary.privacy.budget import Amount, Budget, Cost, bought_by, capacity, claim, covers, largest_bought

_TYPED = Fraction(1, 2**50)
"""Pure limits are typed in decimals and stored as floats: three debits of 0.1 must fit into 0.3."""


def fits(limit: Budget, spent: Cost) -> bool:
    """Whether a limit covers a composed cost; pure limits are read with the precision they were typed in."""
    if limit.pure:
        return spent.pure and (spent.epsilon or 0) <= _pure_ceiling(limit)
    return covers(limit, spent)


def _pure_ceiling(limit: Budget) -> Fraction:
    return Fraction(limit.epsilon) * (1 + _TYPED)


def share_fits(limit: Budget, share: float, spent: Cost) -> bool:
    """Whether a share covers what its analyst spent: of ε if pure, else of the g (or ρ) and of the δ of the limit."""
    if limit.pure:
        return spent.pure and (spent.epsilon or 0) <= Fraction(share) * _pure_ceiling(limit)
    failed = spent.delta / Fraction(limit.delta)
    return _share_spent(limit, spent) <= _share_of(limit, share) and failed <= Fraction(share)


def _share_spent(limit: Budget, spent: Cost) -> Fraction:
    """What counts against a share of the limit: trainings count as what would be claimed as their (ε, δ) is.

    That is a way to share, no claim: the limit holds for all together, whatever the shares.
    """
    price = _price(limit, spent)
    if not spent.direct:
        return price
    reached = claim(spent, limit.delta, limit.accounting)
    if not math.isfinite(reached):
        return max(price, _share_of(limit, 1.0) + 1)  # more than any share
    return max(price, bought_by(reached, limit.delta, limit.accounting))


def _price(limit: Budget, spent: Cost) -> Fraction:
    """In the currency of the ledger, in which all of its debits have a price."""
    price = spent.by(limit.accounting)
    assert price is not None
    return price


def _share_of(limit: Budget, share: float) -> Fraction:
    return Fraction(share) * capacity(limit, Fraction(0))


def share_left(limit: Budget, share: float, spent: Cost) -> float:
    """The largest ε of one more request that the share would admit."""
    if not share_fits(limit, share, spent):
        return 0.0
    if limit.pure:
        return lower_float(Fraction(share) * _pure_ceiling(limit) - (spent.epsilon or 0))
    return min(limit.epsilon, largest_bought(_share_of(limit, share) - _share_spent(limit, spent), limit.delta))


def share_used(limit: Budget, share: float, spent: Cost) -> float:
    """The part of the share that is used up, from 0 to 1; all of it where there is none."""
    if limit.pure:
        whole, part = Fraction(share) * Fraction(limit.epsilon), spent.epsilon or Fraction(0)
    else:
        whole, part = _share_of(limit, share), _share_spent(limit, spent)
    return min(1.0, float(part / whole)) if whole else 1.0


def refusal(cost: Cost, asked: Budget, limit: Budget, spent: Cost, ledger: str) -> str:
    """Which of ε and δ of a limit ran out, and by how much; `ledger` is what the sentence calls the ledger."""
    if limit.pure and not cost.pure:
        return (
            f"delta ({asked.delta:g}) must be 0, since the limit ({limit}) in ledger {ledger} is pure; "
            "ask with delta 0 and a pure method."
        )
    whole, remedy = f"limit ({limit}) in ledger {ledger}", "raise the limit"
    if limit.pure:
        return _epsilon_refusal(asked, limit_left(limit, spent), whole, remedy)
    room = Fraction(limit.delta) - spent.delta
    if cost.delta and cost.delta >= room:  # of which a part must be left over for the conversion of g
        return _delta_refusal(asked, cost, room, whole, remedy)
    if cost.direct:
        reached = claim(spent + cost, limit.delta, limit.accounting)
        return (
            f"{asked} must be less, since with it all releases together would reach epsilon {reached:.4g} at delta "
            f"{limit.delta:g}, above the {whole}; ask for less, or {remedy}."
        )
    left = capacity(limit, spent.delta + cost.delta, spent.direct) - _price(limit, spent)
    return _epsilon_refusal(asked, _affordable(left, asked, cost, limit.accounting), whole, remedy)


def share_refusal(cost: Cost, asked: Budget, limit: Budget, share: float, spent: Cost, whole: str) -> str:
    """Which of an analyst's ε and δ ran out, and by how much."""
    remedy = "for a larger share"
    if limit.pure:
        return _epsilon_refusal(asked, min(share_left(limit, share, spent), limit.epsilon), whole, remedy)
    room = Fraction(share) * Fraction(limit.delta) - spent.delta
    # A share may be used up to the last of its δ: the conversion to ε is the limit's affair, and has the limit's δ.
    if cost.delta > room:
        return _delta_refusal(asked, cost, room, whole, remedy)
    if cost.direct:
        part = _share_spent(limit, spent + cost) / _share_of(limit, share) if share else math.inf
        used = f"{100 * float(part):.4g} % of the {whole}"
        return f"{asked} must be less, since with it {used} would be used up; ask for less, or {remedy}."
    left = _share_of(limit, share) - _share_spent(limit, spent)
    return _epsilon_refusal(asked, _affordable(left, asked, cost, limit.accounting), whole, remedy)


def _epsilon_refusal(asked: Budget, left: float, whole: str, remedy: str) -> str:
    return (
        f"{asked} must be at most the epsilon {_floor4(left)} at delta {asked.delta:g} left of the {whole}; "
        f"ask for less, or {remedy}."
    )


def _delta_refusal(asked: Budget, cost: Cost, room: Fraction, whole: str, remedy: str) -> str:
    return (
        f"delta ({asked.delta:g}) is too large: what it pays for private values or a training "
        f"({float(cost.delta):.4g}) must be less than the delta {_floor4(float(room))} left of the {whole}; "
        f"ask with a smaller delta, or {remedy}."
    )


def _affordable(left: Fraction, asked: Budget, cost: Cost, accounting: str) -> float:
    """The largest ε of the same request, at its own δ and with its own keys, that costs no more than what is left."""
    if left <= 0:
        return 0.0
    if asked.pure:
        return lower_float(Amount(left, pure=False, accounting=accounting).pure_epsilon())
    return largest_bought(left, lower_float(Fraction(asked.delta) - cost.delta))


def limit_left(limit: Budget, spent: Cost) -> float:
    """The largest ε of one more release at the limit's δ that would be admitted."""
    if not fits(limit, spent):
        return 0.0
    if limit.pure:
        return min(limit.epsilon, lower_float(_pure_ceiling(limit) - (spent.epsilon or 0)))
    epsilon, delta = Fraction(limit.epsilon) - spent.direct, Fraction(limit.delta) - spent.delta
    if epsilon <= 0 or delta <= 0:
        return 0.0
    left = capacity(limit, spent.delta, spent.direct) - _price(limit, spent)
    return min(limit.epsilon, largest_bought(left, limit.delta))


def _floor4(value: float) -> str:
    """Four figures, rounded down, so that what the sentence offers would be accepted."""
    if value <= 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 3)
    return f"{float(math.floor(Fraction(value) / unit) * unit):.4g}"
