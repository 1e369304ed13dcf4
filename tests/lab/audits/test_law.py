"""The likelihood ratios and laws that the auditor goes by, against sums over the probabilities themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, comb, ndtr

from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.lab.audits.checks.conformance import gaussian, laplace, rounded, tail_bound
from understudy.lab.audits.checks.paired_gate import Noise, PairedExchange, PosteriorSample, Selection, log_ratio


def counts_ask(mechanism: str, here: list[int], there: list[int], value: list[int], scale: float) -> PairedExchange:
    arrays = [np.array(x) for x in (here, there, value)]
    noise = Noise(mechanism, scale, arrays[2] - arrays[0])
    question = {"ask": "marginal", "columns": ["a"], "scale": scale}
    spend = Spend(mechanism, "counts", 1.0, scale)
    return PairedExchange([question], (spend,), [arrays[0]], [arrays[1]], (noise,), [arrays[2]])


def log_mass(x: int, scale: float) -> float:
    """Of the rounded Gaussian, to sixty digits."""
    with mpmath.workdps(60):
        low, high = ((mpmath.mpf(-abs(x)) + half) / scale for half in (mpmath.mpf(-0.5), mpmath.mpf(0.5)))
        return float(mpmath.log(mpmath.ncdf(high) - mpmath.ncdf(low)))


LOG_LAWS: dict[str, Callable[[int, float], float]] = {
    "rounded-gaussian": lambda x, scale: log_mass(x, scale),
    "discrete-gaussian": lambda x, scale: -(x**2) / (2 * scale**2),
    "discrete-laplace": lambda x, scale: -abs(x) / scale,
}


@pytest.mark.parametrize("mechanism", LOG_LAWS)
@given(st.lists(st.tuples(*[st.integers(-50, 50)] * 3), min_size=1, max_size=4), st.floats(0.5, 20))
@settings(max_examples=50, deadline=None)
def test_counts(mechanism: str, cells: list[tuple[int, int, int]], scale: float) -> None:
    here, there, value = (list(x) for x in zip(*cells, strict=True))
    law = LOG_LAWS[mechanism]
    expected = sum(law(v - a, scale) - law(v - b, scale) for a, b, v in cells)
    assert log_ratio(counts_ask(mechanism, here, there, value, scale)) == pytest.approx(expected, abs=1e-9)


def test_choices_without_replacement() -> None:
    here, there, exponent = np.array([0.0, 2.0, 1.0]), np.array([1.0, 1.0, 1.0]), 0.7
    question = {"ask": "select", "candidates": [], "k": 2, "epsilon": 1.0}

    def law(scores: np.ndarray, order: tuple[int, ...]) -> float:
        weights = np.exp(exponent * scores)
        return math.prod(
            weights[i] / weights[[j for j in range(3) if j not in order[:place]]].sum() for place, i in enumerate(order)
        )

    for order in itertools.permutations(range(3), 2):
        ask = PairedExchange([question], (), here, there, (Selection(here, exponent, list(order)),), [np.array(order)])
        assert log_ratio(ask) == pytest.approx(math.log(law(here, order) / law(there, order)))


def test_draws_from_a_posterior_of_two_leaves() -> None:
    """Beta-binomial: the law of m draws of which x fall into the first leaf."""

    def law(x: int, m: int, a: float, n: tuple[int, int]) -> float:
        return math.log(comb(m, x)) + betaln(n[0] + a + x, n[1] + a + m - x) - betaln(n[0] + a, n[1] + a)

    here, there = np.array([5, 2]), np.array([4, 2])
    question = {"ask": "draws", "prior": [1.5], "draws": 3}
    for x in range(4):
        ask = PairedExchange([question], (), [here], [there], (PosteriorSample((1.5,), 3),), [np.array([x, 3 - x])])
        assert log_ratio(ask) == pytest.approx(law(x, 3, 1.5, (5, 2)) - law(x, 3, 1.5, (4, 2)))


def test_keys_that_the_other_table_can_not_show_tell_everything() -> None:
    values = [np.array([["a", "30"], ["z", "25"]])]
    here, there = (["a", "z"], np.array([20, 1])), (["a"], np.array([20]))
    ask = PairedExchange(
        [{"ask": "keys"}], (), here, there, (Noise("thresholded-rounded-gaussian", 5.0, np.array([10, 24])),), values
    )
    assert log_ratio(ask) == 1e3


@pytest.mark.parametrize(
    ("law", "scale"), [(gaussian, 10.0), (gaussian, 1.3), (gaussian, 0.6), (laplace, 10.0), (laplace, 0.7)]
)
def test_the_moments_are_those_of_the_law(law: object, scale: float) -> None:
    k = np.arange(-6_000, 6_001)
    weights = -(k**2) / (2 * scale**2) if law is gaussian else -np.abs(k) / scale
    logs = weights - math.log(np.exp(weights).sum())
    checked = law(scale)  # type: ignore[operator]
    for t in (-0.9, -0.3, -0.01, 0.01, 0.3, 0.44):
        size, value = (np.exp(t * x + logs).sum() for x in (checked.size(k), checked.value(k)))
        assert checked.size_moments(t) == pytest.approx(math.log(size), rel=1e-9, abs=1e-12)
        assert checked.value_moments(t) >= math.log(value) - 1e-12


@pytest.mark.parametrize("scale", [0.6, 2.0])
def test_small_noise_is_told_from_half_of_it(scale: float) -> None:
    """False alarms: below 1e-9."""
    drawn = [ExactRandomness.system().noise("discrete-gaussian", scale * f, 4000) for f in (1.0, 0.5)]
    law = gaussian(scale)
    honest, mutant = (tail_bound(law.size(x), law.size_moments) for x in drawn)
    assert mutant < 1e-10 < honest


@pytest.mark.parametrize("sigma", [0.4, 3.0, 2000.0])
def test_moments_of_the_rounded_gaussian_are_bounded_and_nearly_met(sigma: float) -> None:
    k = np.arange(math.ceil(12 * sigma) + 3)
    masses = 2 * (ndtr(-(k - 0.5) / sigma) - ndtr(-(k + 0.5) / sigma))
    masses[0] /= 2
    law = rounded(sigma)
    for t in (-0.5, -0.01, 0.01, 0.2):
        truth = math.log(np.sum(masses * np.exp(t * (k / sigma) ** 2)))
        assert truth - 1e-9 <= law.size_moments(t) <= truth + 2e-3 * abs(t) + 1e-9
        truth = math.log(np.sum(masses * np.cosh(t * k / sigma)))
        assert truth - 1e-9 <= law.value_moments(t) <= truth + 1e-3 * abs(t) + 1e-9
