"""The conversions against closed forms, two other accountants, and high-precision arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.privacy.accountant import (
    QUANTUM,
    delta_from_rho,
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
from understudy.errors import InternalError

RHOS = [1e-6, 1e-4, 0.005, 0.05, 0.5, 5.0, 50.0]
DELTAS = [1e-12, 1e-6, 1e-3]


@pytest.mark.parametrize(("rho", "epsilon"), [(0.005, 0.430), (0.05, 1.472), (0.5, 5.222)])
def test_known_values(rho, epsilon):
    assert epsilon_from_rho(rho, 1e-6) == pytest.approx(epsilon, abs=5e-4)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_tighter_than_the_textbook_bound(rho, delta):
    assert epsilon_from_rho(rho, delta) < rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_ends_of_the_scale():
    assert epsilon_from_rho(0, 1e-6) == 0.0
    assert epsilon_from_rho(0, 0) == 0.0
    assert epsilon_from_rho(QUANTUM, 0) == math.inf
    assert epsilon_from_rho(QUANTUM, 1e-6) == 0.0
    assert epsilon_from_rho(math.inf, 1e-6) == math.inf
    assert delta_from_rho(0, 0) == 0.0
    assert delta_from_rho(1.0, 1e4) > 0.0
    assert delta_from_rho(1e4, 0) == 1.0
    assert rho_from_epsilon(1.0, 0) == 0


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_nonsense_is_a_bug_of_ours(bad):
    for call in (
        lambda: epsilon_from_rho(bad, 1e-6),
        lambda: epsilon_from_rho(1.0, bad),
        lambda: rho_from_epsilon(bad, 1e-6),
        lambda: rho_from_gaussian(1.0, bad),
        lambda: rho_from_pure(bad),
    ):
        with pytest.raises(InternalError):
            call()
    with pytest.raises(InternalError, match="sigma"):
        rho_from_gaussian(1.0, 0.0)


# --- against the exact Gaussian curve (Balle & Wang 2018, Theorem 8): Gaussian noise is ρ-zCDP, so no sound conversion
# --- can promise less than what is exactly true of it.


def gaussian_delta(rho: float, epsilon: float) -> float:
    from scipy.stats import norm

    mu = math.sqrt(2 * rho)
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))


def promises_too_little(conversion) -> bool:
    return any(gaussian_delta(rho, conversion(rho, delta)) > delta * (1 + 1e-9) for rho in RHOS for delta in DELTAS)


def test_never_below_the_exact_gaussian_curve():
    assert not promises_too_little(epsilon_from_rho)


def test_mutants_fall_below_the_exact_gaussian_curve():
    assert promises_too_little(lambda rho, delta: epsilon_from_rho(rho / 2, delta))
    assert promises_too_little(lambda rho, delta: epsilon_from_rho(rho, min(1.0, 30 * delta)))
    assert promises_too_little(lambda rho, delta: epsilon_from_rho(rho, delta) * 0.9)


# --- against Google's accountant


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_agrees_with_dp_accounting(rho, delta):
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    orders = [1 + math.exp(step / 200) for step in range(-900, 2400)]
    accountant = RdpAccountant(orders).compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    theirs = accountant.get_epsilon(delta)
    # Below ρ ≈ δ² they use another bound (Bretagnolle–Huber), which gives 0 where ours is merely tiny.
    if theirs > 0:
        assert epsilon_from_rho(rho, delta) <= theirs * (1 + 1e-9)
        assert epsilon_from_rho(rho, delta) == pytest.approx(theirs, rel=1e-4)


# --- against OpenDP


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 30.0])
def test_agrees_with_opendp(scale):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    noise = dp.m.make_gaussian(*space, scale=scale)
    profile = dp.c.make_zCDP_to_approxDP(noise).map(1)
    rho = rho_from_gaussian(1.0, scale)
    assert float(rho) == pytest.approx(noise.map(1), rel=1e-12)
    for delta in DELTAS:
        ours = epsilon_from_rho(rho, delta)
        assert ours == pytest.approx(profile.epsilon(delta), rel=1e-6)
        assert delta_from_rho(rho, ours) == pytest.approx(profile.delta(ours), rel=1e-5)


# --- against sixty digits: the claim is at least the infimum itself, to the last bit


def exact_epsilon(rho: float, delta: float) -> Decimal:
    """The infimum over α, found by golden section in sixty digits; an upper bound of it within about 1e-20."""

    def at(log_excess: Decimal) -> Decimal:
        excess = log_excess.exp()
        order = 1 + excess
        return order * Decimal(rho) + (1 - 1 / order).ln() - (order * Decimal(delta)).ln() / excess

    with localcontext() as context:
        context.prec = 60
        golden = (Decimal(5).sqrt() - 1) / 2
        low, high = Decimal(-12), Decimal(25)
        while high - low > Decimal("1e-13"):
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if at(left) <= at(right) else (left, high)
        return at((low + high) / 2)


@pytest.mark.parametrize("rho", [1e-4, 0.05, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_rounded_up_but_barely(rho, delta):
    exact, ours = exact_epsilon(rho, delta), Decimal(epsilon_from_rho(rho, delta))
    assert exact - Decimal("1e-20") <= ours <= exact * (1 + Decimal("1e-12"))


# --- inverses and roundings


@given(st.floats(1e-4, 1e3), st.floats(1e-15, 0.1))
@settings(max_examples=40, deadline=None)
def test_rho_from_epsilon_is_the_largest_within(epsilon, delta):
    rho = rho_from_epsilon(epsilon, delta)
    assert rho % QUANTUM == 0
    assert epsilon_from_rho(rho, delta) <= epsilon
    assert epsilon_from_rho(rho * Fraction(1_000_001, 1_000_000), delta) > epsilon
    # Rounding noise of a smaller ρ mustn't reach the budget either.
    assert all(epsilon_from_rho(rho * (1 - Fraction(1, 2**step)), delta) <= epsilon for step in range(44, 60))


@given(st.floats(1e-6, 50), st.floats(1e-12, 0.1))
@settings(max_examples=60, deadline=None)
def test_delta_and_epsilon_are_inverses(rho, delta):
    epsilon = epsilon_from_rho(rho, delta)
    if epsilon > 0:
        assert delta_from_rho(rho, epsilon) == pytest.approx(delta, rel=1e-5)


@given(st.fractions(min_value=0, max_value=10**6))
def test_grid_and_floats_round_the_stated_way(value):
    assert round_down(value) <= value <= round_up(value)
    assert round_up(value) - round_down(value) in (0, QUANTUM)
    assert lower_float(value) <= value <= upper_float(value)
    assert upper_float(value) in (lower_float(value), math.nextafter(lower_float(value), math.inf))


def test_floats_end_somewhere():
    assert upper_float(Fraction(10**400)) == math.inf
    assert lower_float(Fraction(10**400)) == math.nextafter(math.inf, 0)


@given(st.floats(1e-6, 1e3), st.floats(1e-3, 1e6))
def test_prices_are_exact_and_rounded_up(sensitivity, scale):
    exact = Fraction(sensitivity) ** 2 / (2 * Fraction(scale) ** 2)
    assert 0 <= rho_from_gaussian(sensitivity, scale) - exact < QUANTUM
    assert 0 <= rho_from_pure(sensitivity) - Fraction(sensitivity) ** 2 / 2 < QUANTUM
    assert 0 <= rho_from_exponential(sensitivity) - Fraction(sensitivity) ** 2 / 8 < QUANTUM


def renyi(probabilities: list[float], others: list[float], order: float) -> float:
    return math.log(sum(p**order * q ** (1 - order) for p, q in zip(probabilities, others, strict=True))) / (order - 1)


def softmax(exponents: list[float]) -> list[float]:
    weights = [math.exp(exponent) for exponent in exponents]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_exponential_mechanism_stays_within_its_price(epsilon):
    """Exact output laws for scores that differ by ±1 in every pattern: no Rényi divergence above αρ."""
    patterns = [[(pattern >> bit & 1) * 2 - 1 for bit in range(4)] for pattern in range(16)]
    worst = 0.0
    for shifts in patterns:
        for base in ([0, 0, 0, 0], [0, 1, 2, 3], [0, 6, 6, 6]):
            here = softmax([epsilon * q / 2 for q in base])
            there = softmax([epsilon * (q + shift) / 2 for q, shift in zip(base, shifts, strict=True)])
            worst = max(worst, *(renyi(here, there, order) / order for order in (1.001, 2.0, 8.0, 32.0)))
    price = float(rho_from_exponential(epsilon))
    assert worst <= price * (1 + 1e-9)
    assert worst > price / 2, "half the price would be a wrong claim, and this check must see it"
