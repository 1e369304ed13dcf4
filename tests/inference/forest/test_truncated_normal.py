"""The normal distribution between bounds: against exact values far out, and by the law of its draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from understudy.inference.forest.density import draw_between, log_between

FALSE_ALARM = 1e-9
DRAWS = 20_000


def exact(low: float, high: float) -> float:
    """log(Φ(high) − Φ(low)) by erfc, which loses no digits on one side of 0."""
    if low > 0:
        low, high = -high, -low
    if high > 0:
        return math.log(1 - math.erfc(high / 2**0.5) / 2 - math.erfc(-low / 2**0.5) / 2)
    return math.log(math.erfc(-high / 2**0.5) / 2 - math.erfc(-low / 2**0.5) / 2)


@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-math.inf, 0), (2, 3), (8, 9), (-9, -8), (-0.5, 7), (20, 21), (-math.inf, math.inf)]
)
def test_intervals_agree_with_exact_values(low: float, high: float) -> None:
    assert log_between(np.array([low]), np.array([high]))[0] == pytest.approx(exact(low, high), rel=1e-9, abs=1e-12)


def test_a_narrow_interval_has_the_density_times_its_width() -> None:
    width = 1e-9
    found = log_between(np.array([-width / 2, 3.0]), np.array([width / 2, 3.0 + width]))
    assert found == pytest.approx(
        [math.log(width / math.sqrt(2 * math.pi)), math.log(width) - 4.5 - 0.918938533], abs=1e-6
    )


def test_an_interval_far_out_is_finite_and_an_empty_one_is_impossible() -> None:
    assert np.isfinite(log_between(np.array([60.0]), np.array([61.0])))[0]
    assert log_between(np.array([1.0, 2.0]), np.array([1.0, 1.0])).tolist() == [-math.inf, -math.inf]


def distance(values: np.ndarray, low: float, high: float) -> float:
    """Kolmogorov's distance from the law."""
    from scipy.stats import kstest

    def law(x: np.ndarray) -> np.ndarray:
        return np.exp(log_between(np.full(len(x), low), x) - log_between(np.array([low]), np.array([high])))

    return float(kstest(values, law).statistic)


def limit(draws: int) -> float:
    """Massart's bound: a correct sampler is farther off with a probability of at most 1e-9."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * draws))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (-math.inf, -2.0), (4.0, 5.0), (30.0, math.inf), (-0.1, 40.0)])
def test_draws_follow_the_law(low: float, high: float) -> None:
    drawn = draw_between(np.full(DRAWS, low), np.full(DRAWS, high), np.random.default_rng(1))
    assert ((drawn >= low) & (drawn <= high)).all()
    assert distance(drawn, low, high) < limit(DRAWS)


def test_the_test_rejects_a_sampler_that_clips_instead() -> None:
    drawn = np.clip(np.random.default_rng(1).normal(size=DRAWS), -1.0, 0.5)
    assert distance(drawn, -1.0, 0.5) > limit(DRAWS)
