"""Gaussian differential privacy: conversions against eighty digits and a privacy loss distribution, and prices."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx, expit
from scipy.stats import norm

from understudy.boundary.privacy.accountant import QUANTUM, epsilon_from_rho, rho_from_epsilon
from understudy.boundary.privacy.budget import GDP, ZCDP, Spend, compose
from understudy.boundary.privacy.gaussian_dp import (
    delta_from_gdp,
    epsilon_from_gdp,
    gdp_from_bounded_range,
    gdp_from_epsilon,
    gdp_from_pure,
)
from understudy.errors import InternalError

COSTS = [1e-8, 1e-4, 0.005, 0.05, 0.5, 5.0, 50.0]
DELTAS = [1e-30, 1e-12, 1e-6, 1e-3]


def exact_delta(gdp: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(80):
        mu, claim = mpmath.sqrt(2 * mpmath.mpf(gdp)), mpmath.mpf(epsilon)
        return mpmath.ncdf(-claim / mu + mu / 2) - mpmath.exp(claim) * mpmath.ncdf(-claim / mu - mu / 2)


@pytest.mark.parametrize(("gdp", "epsilon"), [(0.005, 0.397), (0.05, 1.368), (0.5, 4.887)])
def test_known_values(gdp, epsilon):
    assert epsilon_from_gdp(gdp, 1e-6) == pytest.approx(epsilon, abs=5e-4)


@pytest.mark.parametrize(("epsilon", "more"), [(0.1, 1.18), (1.0, 1.15), (10.0, 1.109)])
def test_the_same_claim_buys_more_than_by_zcdp(epsilon, more):
    assert float(gdp_from_epsilon(epsilon, 1e-6) / rho_from_epsilon(epsilon, 1e-6)) == pytest.approx(more, abs=2e-3)


@given(st.floats(-12, 3), st.floats(-4, 3))
@settings(max_examples=300, deadline=None)
def test_delta_is_never_below_the_truth_and_barely_above(log_gdp, log_epsilon):
    gdp, epsilon = 10.0**log_gdp, 10.0**log_epsilon
    truth = exact_delta(gdp, epsilon)
    if truth < mpmath.mpf("1e-290"):
        return
    found = delta_from_gdp(gdp, epsilon)
    assert found >= min(truth, 1)
    assert found <= truth * (1 + 1e-4 * (1 + epsilon / gdp * 1e-9)) or found - truth < 1e-12


@pytest.mark.parametrize("gdp", COSTS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_never_below_the_truth_and_barely_above(gdp, delta):
    epsilon = epsilon_from_gdp(gdp, delta)
    assert exact_delta(gdp, epsilon) <= delta
    if epsilon > 1e-6:
        assert exact_delta(gdp, epsilon * (1 - 1e-6)) > delta


def test_a_conversion_that_forgets_half_of_the_cost_is_caught():
    assert exact_delta(0.05, epsilon_from_gdp(0.05 * 0.99, 1e-6)) > 1e-6


@pytest.mark.parametrize("gdp", COSTS)
@pytest.mark.parametrize("delta", DELTAS)
def test_never_above_what_zcdp_makes_of_it(gdp, delta):
    """μ-GDP implies μ²/2-zCDP, so that the exact curve can't be worse."""
    assert epsilon_from_gdp(gdp, delta) <= epsilon_from_rho(gdp, delta)


@given(st.floats(1e-3, 1e3), st.floats(1e-15, 0.5))
@settings(max_examples=60, deadline=None)
def test_the_way_back_is_the_largest_within(epsilon, delta):
    gdp = gdp_from_epsilon(epsilon, delta)
    assert epsilon_from_gdp(gdp, delta) <= epsilon
    assert epsilon_from_gdp(gdp * (1 + QUANTUM * 2**50), delta) > epsilon * (1 - 1e-6)


def test_ends_of_the_scale():
    assert epsilon_from_gdp(0, 1e-6) == 0.0
    assert epsilon_from_gdp(QUANTUM, 0) == math.inf
    assert epsilon_from_gdp(math.inf, 1e-6) == math.inf
    assert epsilon_from_gdp(1.0, 1.0) == 0.0
    assert epsilon_from_gdp(1e-14, 1e-3) == 0.0
    assert delta_from_gdp(1e4, 0) == 1.0
    assert delta_from_gdp(0, 0) < 1e-300
    assert gdp_from_epsilon(1.0, 0) == 0


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_nonsense_is_a_bug_of_ours(bad):
    for call in (
        lambda: epsilon_from_gdp(bad, 1e-6),
        lambda: epsilon_from_gdp(1.0, bad),
        lambda: delta_from_gdp(bad, 1.0),
        lambda: delta_from_gdp(1.0, bad),
        lambda: gdp_from_epsilon(bad, 1e-6),
        lambda: gdp_from_pure(bad),
        lambda: gdp_from_bounded_range(bad),
    ):
        with pytest.raises(InternalError):
            call()


def test_scipy_keeps_the_accuracy_that_is_relied_on():
    """`erfcx` within 2⁻⁴⁷, where the conversions ask for it; they allow it 2⁻⁴⁴ with everything around it."""
    for x in map(float, np.linspace(-5.7, 30, 700)):
        with mpmath.workdps(60):
            truth = mpmath.erfc(mpmath.mpf(x)) * mpmath.exp(mpmath.mpf(x) ** 2)
            assert abs(mpmath.mpf(float(erfcx(x))) / truth - 1) < 2.0**-47


# What mechanisms cost that are not Gaussian.


def test_logits_are_steepest_in_normal_quantiles_at_a_half():
    """u(1 − u)/φ(Φ⁻¹(u)) is largest at u = 1/2: the whole price of pure mechanisms rests on it."""
    u = np.concatenate([np.geomspace(1e-300, 0.5, 20_000), 1 - np.geomspace(1e-15, 0.5, 20_000)])
    slope = u * (1 - u) / norm.pdf(norm.ppf(u))
    assert slope.max() <= math.sqrt(2 * math.pi) / 4 * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 8.0])
def test_a_range_of_losses_is_within_its_price(epsilon):
    """Chances whose logits differ by ε have normal quantiles that differ by μ at most, and nearly by that."""
    q = np.linspace(-40, 2, 4001)  # the upper half mirrors the lower one, where no digits are lost
    apart = norm.ppf(expit(q + epsilon)) - norm.ppf(expit(q))
    mu = math.sqrt(2 * float(gdp_from_bounded_range(epsilon)))
    assert apart.max() <= mu * (1 + 1e-9)
    assert epsilon > 4 or apart.max() > 0.9 * mu


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_pure_mechanism_is_within_its_price(epsilon):
    """Randomised response is the worst ε-DP mechanism there is, and its best test has these two chances."""
    right = expit(epsilon)
    mu = math.sqrt(2 * float(gdp_from_pure(epsilon)))
    assert norm.ppf(right) - norm.ppf(1 - right) <= mu
    assert mu <= (norm.ppf(right) - norm.ppf(1 - right)) * 1.2


def test_many_spends_agree_with_a_privacy_loss_distribution():
    """Gaussian parts of any σ add up to one: Google's accountant must say the same of a list that is fixed."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    rng = np.random.default_rng(5)
    for _ in range(6):
        sigmas = rng.uniform(3, 40, rng.integers(1, 12))
        composed = None
        for sigma in sigmas:
            part = pld.from_gaussian_mechanism(float(sigma), value_discretization_interval=1e-4)
            composed = part if composed is None else composed.compose(part)
        theirs = composed.get_epsilon_for_delta(1e-6)
        ours = epsilon_from_gdp(sum(0.5 / s**2 for s in sigmas), 1e-6)
        assert ours <= theirs * (1 + 1e-9) <= ours * 1.01 + 1e-3


# Whole lists of spends, as releases have them: against zCDP, and against the truth.


GAUSSIANS = st.builds(
    lambda sensitivity, scale: Spend("rounded-gaussian", "count", sensitivity, sensitivity * scale),
    st.sampled_from([1.0, math.sqrt(2.0), 3.0]),
    st.floats(0.5, 1e3),
)


@given(st.lists(GAUSSIANS, max_size=30), st.sampled_from([1e-12, 1e-6, 1e-3]))
@settings(max_examples=100, deadline=None)
def test_lists_of_gaussian_spends_are_never_claimed_above_zcdp(spends, delta):
    assert compose(spends, delta, GDP)[0] <= compose(spends, delta, ZCDP)[0]


def pair_of(spend):
    """What is known of the privacy loss of a spend, by Google's library; of a choice, one of those that it may have."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    common = pytest.importorskip("dp_accounting.pld.common")
    if spend.mechanism == "rounded-gaussian":
        sigma = spend.scale / spend.sensitivity
        return pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    # A loss with a range of ε may be that of randomised response of ε/2; a pure one that of ε.
    epsilon = spend.scale / 2 if spend.mechanism == "exponential" else spend.sensitivity / spend.scale
    parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
    return pld.from_privacy_parameters(parameters, value_discretization_interval=1e-4)


def true_epsilon(spends, delta):
    return functools.reduce(lambda a, b: a.compose(b), map(pair_of, spends)).get_epsilon_for_delta(delta)


def mixed(rng):
    """Between one and a dozen spends of three kinds; each may be nearly all, or next to nothing, of the whole."""
    kinds = {
        "rounded-gaussian": lambda: Spend("rounded-gaussian", "count", 1.0, float(rng.uniform(2, 40))),
        "exponential": lambda: Spend("exponential", "choice", 1.0, float(rng.uniform(0.05, 1))),
        "discrete-laplace": lambda: Spend("discrete-laplace", "count", 1.0, float(rng.uniform(2, 40))),
    }
    return [kinds[str(rng.choice(list(kinds)))]() for _ in range(rng.integers(1, 12))]


@pytest.mark.parametrize("seed", range(8))
def test_no_list_is_claimed_below_its_privacy_loss_distribution(seed):
    """They are exact for a fixed list, but for a grid of 1e-4, to which each of at most a dozen parts is rounded up."""
    spends = mixed(np.random.default_rng(seed))
    for delta in (1e-9, 1e-6, 1e-3, 0.1):
        assert compose(spends, delta, GDP)[0] >= true_epsilon(spends, delta) - 12e-4


def test_the_same_check_rejects_a_cheaper_choice():
    """The mutant: a choice at what it costs by zCDP, ε²/8 instead of π/16·ε², counted as g. Large δ tell them apart."""
    choice = Spend("exponential", "choice", 1.0, 1.0)
    truth = true_epsilon([choice], 0.2)
    assert compose([choice], 0.2, GDP)[0] >= truth - 1e-4
    assert epsilon_from_gdp(choice.cost.rho, 0.2) < truth - 1e-4
