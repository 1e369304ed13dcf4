"""Gaussian differential privacy: conversions between g = μ²/2 and (ε, δ), and what pure mechanisms cost in g.

A mechanism is μ-GDP if telling two neighbours apart by its answer is no easier than telling N(0, 1) from N(μ, 1) (Dong,
Roth & Su 2022, arXiv:1905.02383). It is counted as g = μ²/2 and not as μ, since μ² adds up, and since g is also the ρ
of the zCDP that follows from it. Every result is rounded so that a claim is never smaller than the truth, as in
`accountant`. The proofs stand in docs/mechanisms/gaussian-dp.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from understudy.boundary.privacy.accountant import QUANTUM, Number, lower_float, round_up, upper_float
from understudy.errors import InternalError

__all__ = ["delta_from_gdp", "epsilon_from_gdp", "gdp_from_bounded_range", "gdp_from_epsilon", "gdp_from_pure"]

PI_ABOVE = Fraction(355, 113)
"""Above π by less than a ten-millionth of it."""

_SLACK = 2.0**-44
"""scipy documents no bound for `erfcx`; a test finds it within 2⁻⁴⁷ of sixty-digit values, relatively. The factors and
sums around it add a few units of 2⁻⁵³."""

_CAUTION = 1 + 2.0**-32
"""Left unspent by `gdp_from_epsilon`, so that a smaller g can't be claimed above ε by the noise of evaluation."""


def delta_from_gdp(gdp: Number, epsilon: Number) -> float:
    """The δ such that μ-GDP implies (ε, δ)-DP, rounded up.

    Dong, Roth & Su 2022, Corollary 2.13 (Balle & Wang 2018, Theorem 8): δ = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2).

    >>> delta_from_gdp(0.05, 1.368) < 1e-6
    True
    """
    return min(1.0, math.nextafter(math.exp(_log_delta(gdp, epsilon)) * (1 + _SLACK), math.inf))


def epsilon_from_gdp(gdp: Number, delta: Number) -> float:
    """The ε such that μ-GDP implies (ε, δ)-DP, rounded up.

    >>> round(epsilon_from_gdp(0.05, 1e-6), 3)
    1.368
    """
    failure = lower_float(_checked("delta", delta))
    if _checked("g", gdp) == 0 or failure >= 1:
        return 0.0
    if failure == 0 or math.isinf(upper_float(gdp)):
        return math.inf
    goal = math.log(failure) - _SLACK * abs(math.log(failure))
    if _log_delta(gdp, 0.0) <= goal:
        return 0.0
    above = 1.0
    while _log_delta(gdp, above) > goal:
        above *= 2.0
    below = above / 2.0 if above > 1.0 else 0.0
    # Whatever the search does, δ was computed at the ε that is returned, and was small enough.
    while (middle := 0.5 * (below + above)) not in (below, above):
        if _log_delta(gdp, middle) > goal:
            below = middle
        else:
            above = middle
    return above


def gdp_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """The largest g on the grid whose `epsilon_from_gdp` stays within ε (less one part in 2³²), rounded down.

    >>> epsilon_from_gdp(gdp_from_epsilon(1.0, 1e-6), 1e-6) <= 1.0
    True
    """
    claim, failure = lower_float(_checked("epsilon", epsilon)), lower_float(_checked("delta", delta))
    if math.isinf(claim) or failure >= 1:
        raise InternalError(f"epsilon ({epsilon}) must be finite and delta ({delta}) below 1 to bound g.")
    return _largest(claim, failure)


def gdp_from_pure(epsilon: Number) -> Fraction:
    """g = π/4·ε² for any ε-DP mechanism, rounded up to the grid: twice the range below.

    >>> float(gdp_from_pure(1.0)) / 0.785398 - 1 < 1e-6
    True
    """
    return gdp_from_bounded_range(2 * Fraction(_checked("epsilon", epsilon)))


def gdp_from_bounded_range(epsilon: Number) -> Fraction:
    """g = π/16·ε² for a mechanism whose privacy loss has a range of ε, such as the exponential mechanism with exponent
    ε·q/(2Δ); rounded up to the grid.

    The chances p and q of any event then have logits that differ by ε at most, hence quantiles of the normal law that
    differ by μ = √(2π)/4·ε at most: the slope of one scale in the other is steepest at 1/2.
    """
    return round_up(PI_ABOVE / 16 * Fraction(_checked("epsilon", epsilon)) ** 2)


def _checked(name: str, value: Number) -> Number:
    if not value >= 0:
        raise InternalError(f"{name} ({value}) must be at least 0.")
    return value


def _log_delta(gdp: Number, epsilon: Number) -> float:
    """ln δ, rounded up.

    With a = ε/μ − μ/2 and b = ε/μ + μ/2, e^ε times the normal density at b is that at a. So δ = φ(a)·(R(a) − R(b)),
    where R is Mills' ratio: nothing underflows, and little cancels.
    """
    mu = math.sqrt(2.0 * upper_float(_checked("g", gdp))) * (1 + 2.0**-51)  # δ grows with μ
    claim = lower_float(_checked("epsilon", epsilon))
    if mu == 0 or math.isinf(claim):
        return -math.inf
    if math.isinf(mu):
        return 0.0
    near, far = claim / mu - mu / 2.0, claim / mu + mu / 2.0
    # Where both terms of `near` are large and alike, its own rounding is what counts: move it down, which is up for δ.
    near -= 2.0**-51 * far
    if near < -8.0:  # δ is within 10⁻¹⁵ of 1, and Mills' ratio loses its digits there
        return 0.0
    left, right = _mills(near), _mills(far)
    rest = left - right + _SLACK * (left + right)
    log = -0.5 * near * near - 0.5 * math.log(2.0 * math.pi) + math.log(rest)
    return min(0.0, log + _SLACK * (1.0 + near * near))


def _mills(x: float) -> float:
    """(1 − Φ(x))/φ(x)."""
    from scipy.special import erfcx  # when it is needed: it takes longer to load than all of the package

    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


@lru_cache(maxsize=256)
def _largest(epsilon: float, delta: float) -> Fraction:
    """Bisection over the grid, remembered because every debit of a budget asks for the same one."""
    if delta == 0:
        return Fraction(0)
    goal, claim = math.log(delta), epsilon / _CAUTION
    fits, exceeds = 0, 1
    while _log_delta(exceeds * QUANTUM, claim) <= goal:
        fits, exceeds = exceeds, 2 * exceeds
    while exceeds - fits > 1 + (fits >> 60):  # below a float's precision the conversion can't tell them apart
        middle = (fits + exceeds) // 2
        if _log_delta(middle * QUANTUM, claim) <= goal:
            fits = middle
        else:
            exceeds = middle
    while fits and not _within(fits, epsilon, delta):  # the noise of evaluation, at budgets that nobody has
        fits -= 1 + (fits >> 40)
    return fits * QUANTUM


def _within(quanta: int, epsilon: float, delta: float) -> bool:
    return epsilon_from_gdp(quanta * QUANTUM, delta) <= epsilon
