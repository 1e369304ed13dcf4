"""Budgets as exact facts: what was asked for, what a piece of it buys, what each ask cost, and what is left.

A cost is known in several currencies at once: pure ε, Gaussian differential privacy (g = μ²/2) and zCDP (ρ), each with
a failure probability δ beside it. All of them compose by adding up, and all are multiples of QUANTUM. A budget is spent
in one of them from beginning to end: ε where it is pure, else ρ or g (`ACCOUNTING`). Which theorem stands behind which
sum: docs/mechanisms/composition.md and gaussian-dp.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, reduce
from numbers import Real
from typing import Any

from understudy.boundary.privacy.accountant import (
    Number,
    epsilon_from_rho,
    lower_float,
    rho_from_epsilon,
    rho_from_exponential,
    rho_from_gaussian,
    rho_from_pure,
    round_down,
    round_up,
    upper_float,
)
from understudy.boundary.privacy.gaussian_dp import (
    PI_ABOVE,
    epsilon_from_gdp,
    gdp_from_bounded_range,
    gdp_from_epsilon,
    gdp_from_pure,
)
from understudy.boundary.privacy.mechanisms.posterior import epsilon_of_draws
from understudy.boundary.privacy.mechanisms.shared_noise import closeness
from understudy.boundary.privacy.mechanisms.subsampling import Course, epsilon_of_course
from understudy.errors import BudgetExhausted, InputError, InternalError, MethodError

DEFAULT_DELTA = 1e-6
"""The δ of a budget for which nobody named one: small beside 1/n for any table of fewer than some 100,000 people."""
MAX_EPSILON = 1e4
"""Beyond this a budget protects nobody, and it is more likely a slip than a wish."""

_ZERO = Fraction(0)


@dataclass(frozen=True)
class Accounting:
    """How costs are added up, and what a budget buys, where it is not pure."""

    name: str
    currency: str
    """The field of `Cost` that is added up."""
    symbol: str
    """What sentences call it."""
    noise: str
    """The mechanism of noisy counts."""
    keys: str
    """The same for counts of private values, of which only those above a threshold are shown."""
    ranged: Fraction
    """What a privacy loss with a range of ε costs, over ε²."""
    claim: Callable[[Number, Number], float]
    """The ε of a cost at a δ, rounded up."""
    buy: Callable[[Number, Number], Fraction]
    """The largest cost of an (ε, δ), rounded down."""
    margin: float
    """What `buy` leaves unspent, about, as a share of ε, so that a claim can't pass it by rounding."""


_RULES = {
    "gdp": Accounting(
        "gdp",
        "gdp",
        "g",
        noise="rounded-gaussian",
        keys="thresholded-rounded-gaussian",
        ranged=PI_ABOVE / 16,
        claim=epsilon_from_gdp,
        buy=gdp_from_epsilon,
        margin=2.0**-34,
    ),
    "zcdp": Accounting(
        "zcdp",
        "rho",
        "rho",
        noise="discrete-gaussian",
        keys="thresholded-gaussian",
        ranged=Fraction(1, 8),
        claim=epsilon_from_rho,
        buy=rho_from_epsilon,
        margin=2.0**-42,
    ),
}
GDP, ZCDP = _RULES
SHARED = "shared-gaussian"
"""The mechanism of noisy counts to which several sites add a part of the noise each."""
ACCOUNTING = GDP
"""Of what is new. A ledger, and a release that goes on or is replayed, keeps the one that it was begun with."""


@dataclass(frozen=True)
class Cost:
    """What one ask, or many, costs: zCDP `rho`, pure `epsilon` (None when not pure), failure probability `delta`, and
    `gdp`, half the square of the μ of Gaussian differential privacy (None where none is known).

    `direct` is the summed ε of parts that are known to be (ε, δ)-DP and no better, such as a training by noisy
    gradients; their δ is in `delta`. It stays beside ρ instead of becoming ε²/2 of it, and a claim adds it as it is:

    Let P and Q be the laws of all answers for two neighbours, each answer drawn given those before it. Each (ε, δ)-DP
    part is, but for a probability δ, drawn from laws whose ratio is at most e^ε (Kairouz, Oh & Viswanath 2015; Murtagh
    & Vadhan 2016). Leaving the failures out, P = Z·T and Q = Z'·T' with T ≤ e^E·T' pointwise, E being the sum. Then
    ∫ (P − e^(E+ε) Q)₊ ≤ ∫ (Z·T − e^ε Z'·T)₊: both sides draw those parts from T, which is a way of asking the other
    parts adaptively, so that it is at most the δ at which their ρ or g gives ε. In all: (E + ε(ρ, δ'), δ' + Σδ)-DP.

    >>> (Cost.zero() + Cost(Fraction(1, 8), None, Fraction(0))).rho
    Fraction(1, 8)
    """

    rho: Fraction
    epsilon: Fraction | None
    delta: Fraction
    direct: Fraction = _ZERO
    gdp: Fraction | None = None

    def __post_init__(self) -> None:
        parts = {"rho": self.rho, "epsilon": self.epsilon, "delta": self.delta, "direct": self.direct, "gdp": self.gdp}
        for name, value in parts.items():
            if value is not None and value < 0:
                raise InternalError(f"{name} ({value}) of a cost must be at least 0.", self)

    @classmethod
    def zero(cls) -> Cost:
        """The cost of asking nothing; pure."""
        return cls(_ZERO, _ZERO, _ZERO, gdp=_ZERO)

    @property
    def pure(self) -> bool:
        """Whether pure ε-DP holds: every part is pure, and nothing may fail."""
        return self.epsilon is not None and self.delta == 0 and self.direct == 0

    @property
    def accounting(self) -> str:
        """GDP where all parts have a g of their own to add up, else zCDP, which all have."""
        return ZCDP if self.gdp is None else GDP

    def by(self, accounting: str) -> Fraction | None:
        """The cost by one accounting; None where it bounds nothing."""
        price: Fraction | None = getattr(self, _RULES[accounting].currency)
        return price

    def __add__(self, other: Cost) -> Cost:
        """Adaptive composition: g, ρ and δ add up, as pure ε do (docs/mechanisms/gaussian-dp.md, composition.md)."""
        # One part that isn't pure spoils the pure claim of all, and only that; the same for g.
        pure = gdp = None
        if self.epsilon is not None and other.epsilon is not None:
            pure = self.epsilon + other.epsilon
        if self.gdp is not None and other.gdp is not None:
            gdp = self.gdp + other.gdp
        return Cost(self.rho + other.rho, pure, self.delta + other.delta, self.direct + other.direct, gdp)


@dataclass(frozen=True)
class Spend:
    """The record of one ask, from which anybody can recompute its cost.

    `sensitivity` is in the norm of the mechanism: L2 for Gaussian noise, L1 for Laplace noise, L∞ of the scores for
    the exponential mechanism. `scale` is σ, b or ε in that order. `cells` says how many numbers came back; it is free.
    Draws from a posterior have no noise: their `sensitivity` is the rows of one person, their `scale` the number of
    draws, and `prior` the pseudo-counts of the levels of their tree. A training adds Gaussian noise to `steps` sums
    over random batches that each row joins with probability `rate`: `scale` is the noise in units of the longest
    gradient of a row, `sensitivity` how many of these a neighbour can differ by in one batch, `delta` all it costs.
    Noise that sites share is the sum of `parts` parts that are counted on.

    >>> Spend("rounded-gaussian", "count by age", sensitivity=1.0, scale=2.0).cost.gdp
    Fraction(1, 8)
    """

    mechanism: str
    asked: str
    sensitivity: float
    scale: float
    delta: float = 0.0
    cells: int = 1
    prior: tuple[float, ...] = ()
    rate: float = 0.0
    steps: int = 0
    parts: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", tuple(self.prior))
        for name in ("sensitivity", "scale", "delta", "rate"):
            value = getattr(self, name)
            self._demand(name, _is_real(value) and math.isfinite(value) and value >= 0, "a finite number, at least 0")
            object.__setattr__(self, name, float(value))
        for name in ("cells", "steps", "parts"):
            value = getattr(self, name)
            self._demand(name, isinstance(value, int) and value >= 0, "a whole number, at least 0")
        self._demand("mechanism", isinstance(self.mechanism, str), "a name")

    def _demand(self, name: str, holds: bool, bound: str) -> None:
        if not holds:
            raise InternalError(f"{name} ({getattr(self, name)}) of spend '{self.asked}' must be {bound}.", self)

    @cached_property
    def cost(self) -> Cost:
        """The cost, recomputed from the record; an unknown mechanism is a bug and never free."""
        price = _PRICES.get(self.mechanism)
        if price is None:
            known = ", ".join(sorted(_PRICES))
            raise InternalError(f"mechanism ({self.mechanism}) of spend '{self.asked}' must be one of {known}.", self)
        return price(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, where Python's floats come back exactly."""
        record = asdict(self) | {"prior": list(self.prior)}
        return {k: v for k, v in record.items() if v or k not in ("prior", "rate", "steps", "parts")}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Spend:
        """The inverse of `to_dict`, for records that may have been edited by hand."""
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        try:
            return cls(**known)
        except (InternalError, TypeError) as error:
            raise InputError(f"spend ({data}) must have the fields of a recorded spend: {error}", data) from error


def _gaussian_price(spend: Spend) -> Cost:
    # Δ₂²/(2σ²), as for continuous noise (Canonne, Kamath & Steinke 2020, Theorem 4); no finite ε is pure. It is no
    # post-processing of a Gaussian, though: its g is a little larger, and not known in closed form.
    _demand_scale(spend)
    return Cost(rho_from_gaussian(spend.sensitivity, spend.scale), None, round_up(spend.delta))


def _rounded_price(spend: Spend) -> Cost:
    # A whole number and a normal draw, rounded: that is the Gaussian mechanism, rounded. So μ = Δ₂/σ (Dong, Roth & Su
    # 2022, Theorem 2.7), and rounding is post-processing. g = μ²/2 is the ρ that zCDP gives it, too.
    cost = _gaussian_price(spend)
    return replace(cost, gdp=cost.rho)


def _shared_price(spend: Spend) -> Cost:
    # Within (η, η) of the rounded Gaussian that it is in place of, whatever else is asked (docs/mechanisms/
    # shared-noise.md): that distance is paid beside the price of that Gaussian.
    if spend.parts == 0:
        raise InternalError(f"parts (0) of shared spend '{spend.asked}' must be at least 1.", spend)
    cost = _rounded_price(spend)
    away = round_up(closeness(spend))
    return replace(cost, delta=cost.delta + away, direct=away)


def _thresholded_price(spend: Spend) -> Cost:
    # A key that only one person holds may pass the threshold, so this mechanism can't have δ = 0
    # (Korolova et al. 2009; Swanberg et al. 2023 for Gaussian noise).
    if spend.delta == 0:
        raise InternalError(f"delta (0) of thresholded spend '{spend.asked}' must be greater than 0.", spend)
    if spend.mechanism == _RULES[GDP].keys:
        return _rounded_price(spend)
    return _gaussian_price(spend)


def _laplace_price(spend: Spend) -> Cost:
    # Geometric noise of scale b on integers of L1 sensitivity Δ is (Δ/b)-DP (Ghosh, Roughgarden & Sundararajan 2009).
    _demand_scale(spend)
    return pure_cost(round_up(Fraction(spend.sensitivity) / Fraction(spend.scale)), round_up(spend.delta))


def pure_cost(epsilon: Fraction, delta: Fraction = _ZERO) -> Cost:
    """Of any ε-DP mechanism."""
    return Cost(rho_from_pure(epsilon), epsilon, delta, gdp=gdp_from_pure(epsilon))


def _exponential_price(spend: Spend) -> Cost:
    # `scale` is the ε itself, of exponent ε·q/(2Δ): pure by McSherry & Talwar 2007, ε²/8 by bounded range.
    _demand_scale(spend)
    return Cost(
        rho_from_exponential(spend.scale),
        round_up(spend.scale),
        round_up(spend.delta),
        gdp=gdp_from_bounded_range(spend.scale),
    )


def _draws_price(spend: Spend) -> Cost:
    # The closed form of `mechanisms.posterior` for one row; a person's rows are changed one after the other.
    if not (spend.prior and spend.scale.is_integer() and spend.sensitivity > 0):
        raise InternalError(f"draws ({spend.scale}) of spend '{spend.asked}' must be whole, with a prior.", spend)
    epsilon = round_up(Fraction(spend.sensitivity) * epsilon_of_draws(spend.prior, int(spend.scale)))
    return pure_cost(epsilon, round_up(spend.delta))


def _training_price(spend: Spend) -> Cost:
    # (ε, δ)-DP by the privacy loss distribution of all steps, and no better known: it stays beside ρ (see `Cost`).
    if spend.delta == 0:
        raise InternalError(f"delta (0) of training '{spend.asked}' must be greater than 0.", spend)
    if spend.sensitivity not in (1.0, 2.0):
        raise InternalError(f"sensitivity ({spend.sensitivity}) of training '{spend.asked}' must be 1 or 2.", spend)
    course = Course(spend.rate, spend.scale, spend.steps, replace_one=spend.sensitivity == 2.0)
    direct = round_up(epsilon_of_course(course, spend.delta, spend.cells))
    return Cost(_ZERO, None, round_up(spend.delta), direct, gdp=_ZERO)


def _public_price(spend: Spend) -> Cost:
    if spend.delta != 0:
        raise InternalError(f"delta ({spend.delta}) of public fact '{spend.asked}' must be 0.", spend)
    return Cost.zero()


def _demand_scale(spend: Spend) -> None:
    if spend.scale == 0:
        raise InternalError(f"scale (0) of {spend.mechanism} spend '{spend.asked}' must be greater than 0.", spend)


_PRICES: dict[str, Callable[[Spend], Cost]] = {
    "discrete-gaussian": _gaussian_price,
    "discrete-laplace": _laplace_price,
    "exponential": _exponential_price,
    "posterior-draws": _draws_price,
    "public": _public_price,
    "rounded-gaussian": _rounded_price,
    "sampled-gaussian": _training_price,
    SHARED: _shared_price,
    "thresholded-gaussian": _thresholded_price,
    "thresholded-rounded-gaussian": _thresholded_price,
}


@dataclass(frozen=True)
class Budget:
    """The (ε, δ) that the user asked for, and how it is spent; δ = 0 asks for pure ε.

    >>> Budget(1.0, 0.0).pure
    True
    """

    epsilon: float
    delta: float
    accounting: str = ACCOUNTING

    def __post_init__(self) -> None:
        if self.accounting not in _RULES:
            raise InputError(f"accounting ({self.accounting}) must be one of {', '.join(_RULES)}.", self.accounting)
        if not (_is_real(self.epsilon) and 0 < self.epsilon <= MAX_EPSILON):
            raise InputError(
                f"epsilon ({self.epsilon}) must be a number greater than 0 and at most {MAX_EPSILON:g}.", self.epsilon
            )
        if not (_is_real(self.delta) and 0 <= self.delta < 1):
            raise InputError(
                f"delta ({self.delta}) must be a number from 0 (pure epsilon) up to, but not including, 1.", self.delta
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        if self.pure:
            object.__setattr__(self, "accounting", ACCOUNTING)  # of which it makes no use

    @property
    def pure(self) -> bool:
        """Whether pure ε-DP was asked for."""
        return self.delta == 0

    @property
    def capacity(self) -> Amount:
        """All that this budget can buy, in its own currency."""
        value = capacity(self, _ZERO)
        if value <= 0:
            raise InputError(f"epsilon ({self.epsilon}) is too small to buy any measurement; ask for more.", self)
        return Amount(value, self.pure, self.accounting)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g} at delta {self.delta:g}"


@dataclass(frozen=True)
class Amount:
    """A piece of budget in its currency: ε when `pure`, else that of its accounting.

    >>> Amount(Fraction(1, 8), pure=False).noise_scale(1.0)
    2.0
    """

    value: Fraction
    pure: bool
    accounting: str = ACCOUNTING

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", round_down(self.value))  # a cost can't end between two points of the grid
        if self.value <= 0:
            raise InternalError(f"amount ({self.value}) of {self.currency} must be greater than 0.", self)

    @property
    def currency(self) -> str:
        """The unit of `value`, as sentences call it."""
        return "epsilon" if self.pure else _RULES[self.accounting].symbol

    @property
    def mechanism(self) -> str:
        """The noise that this currency buys."""
        return "discrete-laplace" if self.pure else _RULES[self.accounting].noise

    @property
    def key_mechanism(self) -> str:
        """The noise of counts of private values, which no pure currency buys."""
        return _RULES[self.accounting].keys

    def part(self, share: float) -> Amount:
        """The given share of it, rounded down to the grid."""
        if not 0 < share <= 1:
            raise InternalError(f"share ({share}) must be in (0, 1].", self)
        return replace(self, value=self.value * Fraction(share))

    def split(self, weights: Sequence[float]) -> list[Amount]:
        """Pieces in proportion to `weights`, each rounded down, so that their sum never exceeds the whole."""
        if not weights or not all(math.isfinite(weight) and weight > 0 for weight in weights):
            raise InternalError(f"weights ({list(weights)}) must be finite and greater than 0.", self)
        exact = [Fraction(weight) for weight in weights]
        whole = sum(exact, _ZERO)
        return [replace(self, value=self.value * weight / whole) for weight in exact]

    def noise_scale(self, sensitivity: float) -> float:
        """The σ of Gaussian or the b of Laplace noise, the least whose recorded cost is within this amount."""
        if not (math.isfinite(sensitivity) and sensitivity > 0):
            raise InternalError(f"sensitivity ({sensitivity}) must be finite and greater than 0.", self)
        # The price solved for the noise, b = Δ₁/ε or σ = Δ₂/√(2ρ), in floats; `_first_within` makes it true exactly.
        whole = float(self.value)
        if not self.pure:
            whole = math.sqrt(2 * whole)
        scale = sensitivity / whole
        return _first_within(scale, math.inf, lambda at: self._buys(self.mechanism, sensitivity, at))

    def selection_epsilon(self) -> float:
        """The ε of one exponential mechanism, √(16g/π), √(8ρ) or ε, whose recorded cost is within this amount."""
        epsilon = float(self.value) if self.pure else math.sqrt(self.value / _RULES[self.accounting].ranged)
        return _first_within(epsilon, 0.0, lambda at: self._buys("exponential", 1.0, at))

    def pure_epsilon(self) -> Fraction:
        """The ε of one pure mechanism, √(4g/π), √(2ρ) or ε, whose recorded cost is within this amount."""
        if self.pure:
            return self.value
        epsilon = math.sqrt(self.value / _RULES[self.accounting].ranged) / 2
        return round_down(_first_within(epsilon, 0.0, lambda at: self._covers(pure_cost(round_up(at)))))

    def _buys(self, mechanism: str, sensitivity: float, scale: float) -> bool:
        return self._covers(Spend(mechanism, "", sensitivity, scale).cost)

    def _covers(self, cost: Cost) -> bool:
        price = cost.epsilon if self.pure else cost.by(self.accounting)
        return price is not None and price <= self.value


def _first_within(guess: float, towards: float, fits: Callable[[float], bool]) -> float:
    """The guess, moved by whole ulps (then doubling steps) until it fits: the exact check has the last word."""
    step = 1
    while not fits(guess):
        for _ in range(step):
            guess = math.nextafter(guess, towards)
        step = min(2 * step, 1024)
        if guess in (0.0, math.inf):
            raise InternalError(f"scale ({guess}) for this amount must be a positive, finite number.")
    return guess


class Meter:
    """The running total of one curator: dry-runs every debit, and refuses whole batches or none.

    The budget is a filter: each spend may depend on all earlier answers, and (ε, δ) still holds as long as the sum
    stays within it (Smith & Thakurta 2022 for Gaussian differential privacy; Feldman & Zrnic 2021 for Rényi
    divergences; Whitehouse, Ramdas, Rogers & Wu 2023 with failures). Where failures or trainings add up, too, each sum
    needs a ceiling of its own: the curator holds them to `PublicFacts.whole`, fixed before the first answer.

    >>> meter = Meter(Budget(1.0, 0.0))
    >>> meter.debit([Spend("exponential", "root split", sensitivity=1.0, scale=0.25)])
    >>> meter.guarantee()
    (0.25, 0.0)
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._spent = Cost.zero()
        self._spends: list[Spend] = []

    @property
    def spent(self) -> Cost:
        """The composed cost of everything debited so far."""
        return self._spent

    @property
    def spends(self) -> tuple[Spend, ...]:
        """Every ask so far, in order."""
        return tuple(self._spends)

    def admits(self, costs: Iterable[Cost]) -> bool:
        """Whether all of these would be accepted together; changes nothing."""
        return covers(self.budget, total((self._spent, *costs)))

    def check(self, spends: Sequence[Spend]) -> None:
        """The dry run of a debit: raises what `debit` would raise, and changes nothing either way."""
        costs = [spend.cost for spend in spends]
        self._demand_pure(spends, costs)
        if not self.admits(costs):
            raise BudgetExhausted(self._refusal(total(costs)), tuple(spends))

    def debit(self, spends: Sequence[Spend]) -> None:
        """Records all of these, or refuses all of them and changes nothing."""
        self.check(spends)
        self._spent = total((self._spent, *(spend.cost for spend in spends)))
        self._spends.extend(spends)

    def remaining(self) -> Amount:
        """What is left in the budget's own currency, given the δ already spent."""
        left = capacity(self.budget, self._spent.delta, self._spent.direct) - self._used
        if left <= 0:
            raise BudgetExhausted(f"nothing is left of the budget ({self.budget}); ask for a larger one.", self)
        return Amount(left, self.budget.pure, self.budget.accounting)

    def guarantee(self) -> tuple[float, float]:
        """The composed (ε, δ) of the actual spends, rounded up; at most the budget.

        Where prices followed answers, a release claims its budget, and not this (docs/mechanisms/composition.md).
        """
        return claim(self._spent, self.budget.delta, self.budget.accounting), self.budget.delta

    @property
    def _used(self) -> Fraction:
        if self.budget.pure:
            return self._spent.epsilon or _ZERO
        return self._spent.by(self.budget.accounting) or _ZERO

    def _demand_pure(self, batch: Sequence[Spend], costs: Sequence[Cost]) -> None:
        impure = [spend for spend, cost in zip(batch, costs, strict=True) if not cost.pure]
        if self.budget.pure and impure:
            raise MethodError(
                f"mechanism ({impure[0].mechanism}) for '{impure[0].asked}' isn't pure, but delta is 0; "
                "ask with a delta greater than 0, or choose a pure method.",
                impure[0],
            )

    def _refusal(self, asked: Cost) -> str:
        failing = Fraction(self.budget.delta) - self._spent.delta
        if asked.delta and asked.delta >= failing:  # of which a part must be left over for the conversion of g
            return (
                f"delta ({float(asked.delta):.4g}) must be less than the {float(failing):.4g} left of the budget "
                f"({self.budget}); ask for less, or for a larger budget."
            )
        left = max(_ZERO, capacity(self.budget, self._spent.delta + asked.delta, self._spent.direct) - self._used)
        wanted = f"{_RULES[self.budget.accounting].symbol} ({float(asked.by(self.budget.accounting) or 0):.4g})"
        if self.budget.pure:
            wanted = f"epsilon ({float(asked.epsilon or 0):.4g})"
        if asked.direct:
            wanted += f" and epsilon {float(asked.direct):.4g}"
        if asked.delta:
            wanted += f" and delta {float(asked.delta):.4g}"
        return (
            f"{wanted} must be at most the {float(left):.4g} left of the "
            f"budget ({self.budget}); ask for less, or for a larger budget."
        )


def total(costs: Iterable[Cost]) -> Cost:
    """The composed cost of all of these.

    >>> total([]) == Cost.zero()
    True
    """
    return reduce(Cost.__add__, costs, Cost.zero())


def covers(budget: Budget, cost: Cost) -> bool:
    """Whether a composed cost is within a budget, decided in exact arithmetic.

    That is one ceiling for all sums of a cost, and no filter where answers decide which of them grows: see
    `ledger.division`.

    >>> covers(Budget(1.0, 0.0), Cost(Fraction(1, 2), Fraction(1), Fraction(0)))
    True
    """
    if budget.pure:
        return cost.pure and (cost.epsilon or _ZERO) <= capacity(budget, _ZERO)
    # Without these two a capacity of 0 would still cover a cost that has δ or direct ε alone, and no ρ.
    within = cost.delta <= Fraction(budget.delta) and cost.direct <= Fraction(budget.epsilon)
    price = cost.by(budget.accounting)
    return within and price is not None and price <= capacity(budget, cost.delta, cost.direct)


def claim(cost: Cost, delta: float, accounting: str = ACCOUNTING) -> float:
    """The ε that a composed cost guarantees at this δ, rounded up; infinite when it guarantees none.

    >>> claim(Cost(Fraction(1, 2), Fraction(1), Fraction(0)), 0.0)
    1.0
    """
    if delta == 0:
        if cost.epsilon is None or not cost.pure:
            return math.inf
        return upper_float(cost.epsilon)
    # What may fail with δ, and is else ρ-zCDP or g-GDP, is (ε(ρ, δ'), δ' + δ)-DP: so the δ that is spent already isn't
    # there for the conversion.
    left, price = Fraction(delta) - cost.delta, cost.by(accounting)
    if left < 0 or price is None:
        return math.inf
    counted = _RULES[accounting].claim(price, left)
    if not cost.direct or not math.isfinite(counted):
        return counted
    return upper_float(Fraction(counted) + cost.direct)


def compose(spends: Iterable[Spend], delta: float, accounting: str = ACCOUNTING) -> tuple[float, float]:
    """The (ε, δ) that recorded spends amount to, recomputed from nothing but the record.

    >>> compose([Spend("discrete-laplace", "count", sensitivity=1.0, scale=2.0)] * 2, 0.0)
    (1.0, 0.0)
    """
    return claim(total(spend.cost for spend in spends), delta, accounting), delta


def capacity(budget: Budget, failed: Fraction, direct: Fraction = _ZERO) -> Fraction:
    """ε of a pure budget, or the ρ or g that fits into the δ that earlier failures, and the ε that trainings left over.

    >>> capacity(Budget(1.0, 0.0), Fraction(0))
    Fraction(1, 1)
    """
    if budget.pure:
        return round_down(budget.epsilon)
    left, epsilon = Fraction(budget.delta) - failed, Fraction(budget.epsilon) - direct
    if left <= 0 or epsilon <= 0:
        return _ZERO
    return bought_by(lower_float(epsilon), lower_float(left), budget.accounting)


def bought_by(epsilon: float, delta: float, accounting: str) -> Fraction:
    """The largest cost whose claim at δ is ε, be it larger than any budget may be."""
    return _RULES[accounting].buy(epsilon, delta)


def largest_bought(left: Fraction, delta: float) -> float:
    """The largest ε of a new release at this δ that costs no more than what is left."""
    rules = _RULES[ACCOUNTING]
    # `buy` keeps four margins that `claim` doesn't know of; try with them first, then with fewer and fewer.
    steps = (5, 4, 3.95, 3, 0, -4)
    candidates = (rules.claim(left, delta) * (1 + step * rules.margin) for step in steps)
    return next((epsilon for epsilon in candidates if rules.buy(epsilon, delta) <= left), 0.0)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
