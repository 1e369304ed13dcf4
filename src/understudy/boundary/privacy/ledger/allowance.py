"""What a limit, or an analyst's share of it, admits: decided in exact arithmetic, and told in sentences."""

from __future__ import annotations

import math
from fractions import Fraction

from understudy.boundary.privacy.accountant import lower_float
from understudy.boundary.privacy.budget import Amount, Budget, Cost, bought_by, capacity, claim, largest_bought
from understudy.boundary.privacy.ledger.division import TYPED, Division, plain, rest_of, rounded_down, rounded_up
from understudy.errors import InputError


def fits(limit: Budget, division: Division | None, spent: Cost) -> bool:
    """Whether a limit covers a composed cost; pure limits are read with the precision they were typed in.

    A limit with δ > 0 that nobody has divided yet covers nothing: the first debit divides it.
    """
    if limit.pure:
        return spent.pure and (spent.epsilon or 0) <= _pure_ceiling(limit)
    return division is not None and division.covers(limit, spent)


def _pure_ceiling(limit: Budget) -> Fraction:
    return Fraction(limit.epsilon) * (1 + TYPED)


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
    whole = _share_of(limit, share)
    if spent.direct:  # the ε of a training adds to that of all counts together
        reached = claim(Cost(whole, None, Fraction(0), gdp=whole), limit.delta, limit.accounting)
        whole = capacity(Budget(reached, limit.delta, limit.accounting), spent.delta, spent.direct)
    return min(limit.epsilon, largest_bought(max(Fraction(0), whole - _price(limit, spent)), limit.delta))


def share_used(limit: Budget, share: float, spent: Cost) -> float:
    """The part of the share that is used up, from 0 to 1; all of it where there is none."""
    if limit.pure:
        whole, part = Fraction(share) * Fraction(limit.epsilon), spent.epsilon or Fraction(0)
    else:
        whole, part = _share_of(limit, share), _share_spent(limit, spent)
    return min(1.0, float(part / whole)) if whole else 1.0


def refusal(cost: Cost, asked: Budget, limit: Budget, *, division: Division | None, spent: Cost, ledger: str) -> str:
    """Which part of a limit ran out, and by how much; `ledger` is what the sentence calls the ledger."""
    if limit.pure and not cost.pure:
        return (
            f"delta ({asked.delta:g}) must be 0, since the limit ({limit}) in ledger {ledger} is pure; "
            "ask with delta 0 and a pure method."
        )
    whole = f"limit ({limit}) in ledger {ledger}"
    if limit.pure:
        return _epsilon_refusal(asked, limit_left(limit, None, spent), whole, "raise the limit")
    if spent == Cost.zero() and division is None:
        return _first_refusal(cost, asked, limit, whole)
    division = division or Division(spent.delta, spent.direct)
    return _part_refusal(cost, asked, limit, division=division, spent=spent, whole=whole)


def _first_refusal(cost: Cost, asked: Budget, limit: Budget, whole: str) -> str:
    """Of the first debit, which no division of the limit covers."""
    remedy = "raise the limit"
    if cost.delta and cost.delta >= Fraction(limit.delta):  # of which a part must be left over for the conversion of g
        return _delta_refusal(asked, cost, f"less than the delta {limit.delta:g} of the {whole}", f"{remedy}'s delta")
    if cost.direct:
        reached = claim(cost, limit.delta, limit.accounting)
        return (
            f"{asked} must be less, since it would reach epsilon {reached:.4g} at delta {limit.delta:g}, above the "
            f"{whole}; ask for less, or {remedy}."
        )
    room = capacity(limit, cost.delta)
    return _epsilon_refusal(
        asked, _affordable(room, asked, cost, limit.accounting), whole, remedy, _impure(room, limit)
    )


def _part_refusal(cost: Cost, asked: Budget, limit: Budget, *, division: Division, spent: Cost, whole: str) -> str:
    """Trainings first: a method that has none may need nothing else of what ran out."""
    remedy, room = _remedy(limit, spent + cost), rest_of(division.training_epsilon, spent.direct)
    if cost.direct > room and not division.training_epsilon:
        return (
            f"training epsilon ({rounded_up(cost.direct)}) must be 0, since the {whole} keeps no epsilon for "
            f"trainings; choose a method without one, or {remedy}."
        )
    if cost.direct > room:
        return (
            f"training epsilon ({rounded_up(cost.direct)}) must be at most the {rounded_down(room)} left of the "
            f"{plain(division.training_epsilon):.4g} that the {whole} keeps for trainings; ask for less, or {remedy}."
        )
    room = rest_of(division.failure_delta, spent.delta)
    if cost.delta > room:
        kept = f"the delta {plain(division.failure_delta):.4g} that the {whole} keeps for these"
        return _delta_refusal(asked, cost, f"at most the {rounded_down(room)} left of {kept}", remedy)
    left = division.counts(limit) - _price(limit, spent)
    if cost.direct:
        return (
            f"{limit.capacity.currency} ({rounded_up(_price(limit, cost))}) of what is counted beside a training must "
            f"be at most the {rounded_down(left)} left for counts of the {whole}; ask for less, or {remedy}."
        )
    return _epsilon_refusal(
        asked, _affordable(left, asked, cost, limit.accounting), whole, remedy, _impure(left, limit)
    )


def _impure(left: Fraction, limit: Budget) -> Budget | None:
    """What a request at the limit's own δ could still have, which is far more than a pure one could."""
    return Budget(epsilon, limit.delta) if left > 0 and (epsilon := largest_bought(left, limit.delta)) > 0 else None


def _remedy(limit: Budget, reached: Cost) -> str:
    """Another division, if one would admit the release, or else a larger limit, with the parts that it has to name."""
    failures, trainings = rounded_up(reached.delta), rounded_up(reached.direct)
    try:
        other = Division.stated(limit, float(failures), float(trainings))
    except InputError:
        other = None
    kept, trained = f"--failure-delta {failures}", f"--training-epsilon {trainings}" if reached.direct else ""
    if fits(limit, other, reached):
        return f"divide the limit anew with `understudy budget set` and {' '.join(filter(None, [kept, trained]))}"
    # Where it isn't named, half of δ is kept.
    named = " ".join(filter(None, [kept if reached.delta > Fraction(limit.delta) / 2 else "", trained]))
    above = f", its delta above {failures}," if other is None and reached.delta >= Fraction(limit.delta) else ""
    return f"raise the limit{above} with `understudy budget set` and {named}" if named else "raise the limit"


def share_refusal(cost: Cost, asked: Budget, limit: Budget, share: float, spent: Cost, whole: str) -> str:
    """Which of an analyst's ε and δ ran out, and by how much."""
    remedy = "for a larger share"
    if limit.pure:
        return _epsilon_refusal(asked, min(share_left(limit, share, spent), limit.epsilon), whole, remedy)
    room = Fraction(share) * Fraction(limit.delta) - spent.delta
    # A share may be used up to the last of its δ: the conversion to ε is the limit's affair, and has the limit's δ.
    if cost.delta > room:
        return _delta_refusal(asked, cost, f"at most the delta {rounded_down(room)} left of the {whole}", remedy)
    if cost.direct or spent.direct:
        part = _share_spent(limit, spent + cost) / _share_of(limit, share) if share else math.inf
        used = f"{100 * float(part):.4g} % of the {whole}"
        return f"{asked} must be less, since with it {used} would be used up; ask for less, or {remedy}."
    left = _share_of(limit, share) - _price(limit, spent)
    return _epsilon_refusal(asked, _affordable(left, asked, cost, limit.accounting), whole, remedy)


def _epsilon_refusal(asked: Budget, left: float, whole: str, remedy: str, impure: Budget | None = None) -> str:
    # A pure ε is dear among Gaussian ones: whoever is refused one learns that a delta would have had room.
    other = ""
    if asked.pure and impure is not None and impure.epsilon >= asked.epsilon:
        other = f"ask with delta {impure.delta:g}, at which epsilon {rounded_down(impure.epsilon)} is left, "
    return (
        f"{asked} must be at most the epsilon {rounded_down(left)} at delta {asked.delta:g} left of the {whole}; "
        f"ask for less, {other}or {remedy}."
    )


def _delta_refusal(asked: Budget, cost: Cost, bound: str, remedy: str) -> str:
    return (
        f"delta ({asked.delta:g}) is too large: what it pays for private values or a training "
        f"({float(cost.delta):.4g}) must be {bound}; ask with a smaller delta, or {remedy}."
    )


def _affordable(left: Fraction, asked: Budget, cost: Cost, accounting: str) -> float:
    """The largest ε of the same request, at its own δ and with its own keys, that costs no more than what is left."""
    if left <= 0:
        return 0.0
    if asked.pure:
        return lower_float(Amount(left, pure=False, accounting=accounting).pure_epsilon())
    return largest_bought(left, lower_float(Fraction(asked.delta) - cost.delta))


def limit_left(limit: Budget, division: Division | None, spent: Cost) -> float:
    """The largest ε of one more release at the limit's δ, without private values or a training, that would be admitted.

    Before the first debit that is all of the limit: it is divided so that this debit fits.
    """
    if limit.pure:
        if not fits(limit, None, spent):
            return 0.0
        return min(limit.epsilon, lower_float(_pure_ceiling(limit) - (spent.epsilon or 0)))
    division = division or Division(Fraction(0), Fraction(0))
    if not division.covers(limit, spent):
        return 0.0
    return min(limit.epsilon, largest_bought(division.counts(limit) - _price(limit, spent), limit.delta))
