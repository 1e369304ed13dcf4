"""Conversions between the currencies of privacy: ρ (zCDP), pure ε, and (ε, δ).

Every result is rounded so that a claim is never smaller than the truth: costs, ε and δ go up, capacities go down.
Costs live on the grid of multiples of QUANTUM, so that sums of thousands of spends stay exact and small.

Sources: Bun & Steinke 2016 (arXiv:1605.02065) for zCDP; Canonne, Kamath & Steinke 2020 (arXiv:2004.00010) for the
conversion to (ε, δ) and for the discrete Gaussian; Cesar & Rogers 2021 (arXiv:2004.07223) for bounded range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from understudy.errors import InternalError

Number = Fraction | float

QUANTUM = Fraction(1, 2**80)
"""The grid on which costs are kept: about 8.3e-25, far below any spend that could matter."""

_SLACK = 2.0**-49
"""Each term below suffers at most four half-ulp roundings (2^-53 each); sixteen of them cover term, sum and nudge."""

_CAUTION = 1 + 2.0**-40
"""Left on the table by `rho_from_epsilon`, so that a smaller ρ can't be claimed above ε by rounding noise."""

_LOG_ORDERS = (-45.0, 65.0)
"""Where ln(α − 1) is searched: optimal orders are near √(ln(1/δ)/ρ), inside this range for every ρ on the grid."""

_GOLDEN = (math.sqrt(5) - 1) / 2


def round_up(value: Number) -> Fraction:
    """The smallest multiple of QUANTUM that is at least `value`.

    >>> round_up(0.5)
    Fraction(1, 2)
    """
    return math.ceil(Fraction(value) / QUANTUM) * QUANTUM


def round_down(value: Number) -> Fraction:
    """The largest multiple of QUANTUM that is at most `value`.

    >>> round_down(Fraction(1, 3)) < Fraction(1, 3)
    True
    """
    return math.floor(Fraction(value) / QUANTUM) * QUANTUM


def upper_float(value: Number) -> float:
    """The smallest float that is at least `value`.

    >>> upper_float(Fraction(1, 4))
    0.25
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    # Python rounds a fraction to the nearest float, so that one step up is always enough.
    if nearest < value:
        return math.nextafter(nearest, math.inf)
    return nearest


def lower_float(value: Number) -> float:
    """The largest float that is at most `value`.

    >>> lower_float(Fraction(1, 4))
    0.25
    """
    return -upper_float(-value)


def epsilon_from_rho(rho: Number, delta: Number) -> float:
    """The ε such that ρ-zCDP implies (ε, δ)-DP, rounded up.

    Canonne, Kamath & Steinke 2020, Proposition 12: for every order α > 1, ρ-zCDP gives (ε, δ)-DP with
    ε = αρ + ln(1 − 1/α) − ln(αδ)/(α − 1). Any α is a valid bound, so a search that stops early is still sound.

    >>> round(epsilon_from_rho(0.05, 1e-6), 3)
    1.472
    """
    # Both inputs are rounded to where they claim more: ε grows with ρ, and falls as δ grows.
    loss, failure = upper_float(_checked("rho", rho)), lower_float(_checked("delta", delta))
    if loss == 0 or failure >= 1:
        return 0.0
    if failure == 0 or math.isinf(loss):
        return math.inf
    return max(0.0, _minimum(lambda excess: _epsilon_at(excess, loss, failure)))


def delta_from_rho(rho: Number, epsilon: Number) -> float:
    """The δ such that ρ-zCDP implies (ε, δ)-DP, rounded up.

    The same proposition, not yet solved for ε: ln δ = (α − 1)(αρ − ε) + α ln(1 − 1/α) − ln(α − 1), convex in α.

    >>> delta_from_rho(0.05, 1.4723) < 1.0001e-6
    True
    """
    loss, claim = upper_float(_checked("rho", rho)), lower_float(_checked("epsilon", epsilon))
    if loss == 0 or math.isinf(claim):
        return 0.0
    if math.isinf(loss):
        return 1.0
    log_delta = _minimum(lambda excess: _log_delta_at(excess, loss, claim))
    if log_delta >= 0:
        return 1.0
    # exp() errs by an ulp, and may underflow to zero although δ isn't zero: both are covered by going up.
    return min(1.0, math.nextafter(math.exp(log_delta) * (1 + _SLACK), math.inf))


def rho_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """The largest ρ on the grid whose `epsilon_from_rho` stays within ε (less one part in 2^40), rounded down.

    >>> epsilon_from_rho(rho_from_epsilon(1.0, 1e-6), 1e-6) <= 1.0
    True
    """
    claim, failure = lower_float(_checked("epsilon", epsilon)), lower_float(_checked("delta", delta))
    if math.isinf(claim) or failure >= 1:
        raise InternalError(f"epsilon ({epsilon}) must be finite and delta ({delta}) below 1 to bound rho.")
    return _largest_rho(claim, failure)


def rho_from_pure(epsilon: Number) -> Fraction:
    """ρ = ε²/2 for any ε-DP mechanism (Bun & Steinke 2016, Proposition 1.4), rounded up to the grid.

    >>> rho_from_pure(1.0)
    Fraction(1, 2)
    """
    return round_up(Fraction(_checked("epsilon", epsilon)) ** 2 / 2)


def rho_from_exponential(epsilon: Number) -> Fraction:
    """ρ = ε²/8 for the exponential mechanism with exponent ε·q/(2Δ), rounded up to the grid.

    The mechanism has ε-bounded range, and ε-bounded range implies ε²/8-zCDP (Cesar & Rogers 2021).

    >>> rho_from_exponential(1.0)
    Fraction(1, 8)
    """
    return round_up(Fraction(_checked("epsilon", epsilon)) ** 2 / 8)


def rho_from_gaussian(sensitivity: Number, sigma: Number) -> Fraction:
    """ρ = Δ₂²/(2σ²) for Gaussian noise, continuous or discrete, rounded up to the grid.

    Bun & Steinke 2016, Proposition 1.6; Canonne, Kamath & Steinke 2020, Theorem 4 for the discrete Gaussian.

    >>> rho_from_gaussian(1.0, 2.0)
    Fraction(1, 8)
    """
    width = Fraction(_checked("sigma", sigma))
    if width == 0:
        raise InternalError("sigma (0) must be greater than 0.")
    return round_up((Fraction(_checked("sensitivity", sensitivity)) / width) ** 2 / 2)


def _checked(name: str, value: Number) -> Number:
    """`value`, unless it is negative or NaN: the callers validate what users type, so this is a bug of ours."""
    if not value >= 0:
        raise InternalError(f"{name} ({value}) must be at least 0.")
    return value


def _epsilon_at(excess: float, rho: float, delta: float) -> float:
    """The bound on ε at order α = 1 + excess, plus the rounding error of its own evaluation."""
    # Written in α − 1, so that no term cancels: ln(1 − 1/α) = −ln(1 + 1/(α − 1)).
    terms = (rho, excess * rho, -math.log1p(1 / excess), -math.log(delta) / excess, -math.log1p(excess) / excess)
    return _padded(terms)


def _log_delta_at(excess: float, rho: float, epsilon: float) -> float:
    """The bound on ln δ at order α = 1 + excess, plus the rounding error of its own evaluation."""
    folded = math.log1p(1 / excess)
    terms = (excess * rho, excess * excess * rho, -excess * epsilon, -folded, -excess * folded, -math.log(excess))
    return _padded(terms)


def _padded(terms: tuple[float, ...]) -> float:
    return math.fsum((*terms, _SLACK * math.fsum(map(abs, terms))))


def _minimum(bound: Callable[[float], float]) -> float:
    """The least value of `bound(α − 1)` met by golden-section search over ln(α − 1).

    ln δ is convex in α, so its sublevel sets, and with them those of ε(α), are intervals: both bounds have one valley.
    """
    low, high = _LOG_ORDERS
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(math.exp(left)), bound(math.exp(right))
    best = min(at_left, at_right)
    # 60 steps leave 110 × 0.618^60 < 1e-10 of ln(α − 1). However near it comes, `best` is a true bound at its own α.
    for _ in range(60):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = bound(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = bound(math.exp(right))
        best = min(best, at_left, at_right)
    return best


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float) -> Fraction:
    """Bisection over the grid, remembered because every debit of a budget asks for the same one."""
    if delta == 0:
        return Fraction(0)  # no ρ above 0 is pure
    fits, exceeds = 0, 1
    while _within(exceeds, epsilon, delta):
        fits, exceeds = exceeds, 2 * exceeds
    while exceeds - fits > 1 + (fits >> 60):  # below a float's precision the conversion can't tell them apart
        middle = (fits + exceeds) // 2
        if _within(middle, epsilon, delta):
            fits = middle
        else:
            exceeds = middle
    return fits * QUANTUM


def _within(quanta: int, epsilon: float, delta: float) -> bool:
    return epsilon_from_rho(quanta * QUANTUM, delta) * _CAUTION <= epsilon
