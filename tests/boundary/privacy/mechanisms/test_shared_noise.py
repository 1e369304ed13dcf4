"""Noise of which sites draw a part each: the sum's law, its distance from a Gaussian, and what that costs."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from understudy.boundary.privacy.budget import SHARED, Spend, compose
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.shared_noise import (
    FINEST,
    bits_of,
    closeness,
    combined,
    drawn_parts,
    part_scale,
)
from understudy.errors import InternalError

SIGMAS, PARTS = st.floats(0.01, 1e6), st.integers(1, 50)
FALSE_ALARM = 1e-9


def shared(sigma, parts, cells=1, sensitivity=1.0):
    return Spend(SHARED, "counts by age", sensitivity, sigma, cells=cells, parts=parts)


@given(SIGMAS, PARTS)
def test_the_parts_that_are_counted_on_reach_sigma(sigma, parts):
    bits, scale = bits_of(sigma, parts), part_scale(sigma, parts)
    assert parts * Fraction(scale) ** 2 >= Fraction(sigma) ** 2 * 4**bits
    assert scale <= math.ldexp(sigma, bits) / math.sqrt(parts) * (1 + 1e-14)
    assert 0 <= bits <= FINEST


def pmf(sigma, reach):
    """Of the discrete Gaussian, on −reach … reach."""
    weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-reach, reach + 1)]
    whole = mpmath.fsum(weights)
    return [w / whole for w in weights]


@pytest.mark.parametrize(("sigma", "parts"), [(0.6, 2), (0.8, 3), (1.0, 2), (1.0, 4)])
def test_a_sum_of_discrete_gaussians_is_as_close_to_one_as_the_theorem_says(sigma, parts):
    """By exact convolution, in every point up to eight deviations: |ln ratio| ≤ 5·Σ exp(−2π²σ²k/(k+1))."""
    mpmath.mp.dps = 60
    reach = math.ceil(30 * sigma)
    one = total = pmf(sigma, reach)
    for _ in range(parts - 1):
        total = [
            mpmath.fsum(total[j] * one[i - j] for j in range(max(0, i - len(one) + 1), min(i + 1, len(total))))
            for i in range(len(total) + len(one) - 1)
        ]
    wanted, middle = pmf(sigma * math.sqrt(parts), len(total) // 2), len(total) // 2
    near = range(middle - math.ceil(8 * sigma * math.sqrt(parts)), middle + math.ceil(8 * sigma * math.sqrt(parts)))
    worst = max(abs(mpmath.log(total[k] / wanted[k])) for k in near)
    bound = 5 * sum(math.exp(-2 * math.pi**2 * sigma**2 * k / (k + 1)) for k in range(1, parts))
    assert bound / 200 <= worst <= bound  # and it is no idle one


@pytest.mark.parametrize("steps", [20.0, 64.0])
def test_a_fine_discrete_gaussian_is_as_close_to_a_rounded_normal_draw_as_closeness_says(steps):
    """|ln ratio| ≤ C²/(8S²) up to C deviations, and so much is charged, with room for the shift."""
    mpmath.mp.dps = 60
    s, c = mpmath.mpf(steps), 9
    discrete = pmf(steps, math.ceil(40 * steps))
    middle = len(discrete) // 2
    worst = 0
    for k in range(0, math.ceil(c * steps), 7):
        rounded = (mpmath.erfc((k - 0.5) / (s * mpmath.sqrt(2))) - mpmath.erfc((k + 0.5) / (s * mpmath.sqrt(2)))) / 2
        worst = max(worst, abs(mpmath.log(discrete[middle + k] / rounded)))
    assert c**2 / (32 * steps**2) < worst <= c**2 / (8 * steps**2)


def test_the_distance_is_paid_in_epsilon_and_in_delta():
    cost = shared(3.0, 2).cost
    assert cost.gdp == Spend("rounded-gaussian", "counts", 1.0, 3.0).cost.gdp
    assert 0 < cost.delta == cost.direct < Fraction(1, 2**50) and cost.epsilon is None
    assert cost.delta >= closeness(shared(3.0, 2)) and shared(3.0, 2, cells=10**6).cost == cost
    assert shared(9.0, 2, cells=50, sensitivity=3.0).cost.delta > 2 * cost.delta
    alone, together = (compose([s] * 40, 1e-6)[0] for s in (Spend("rounded-gaussian", "", 1.0, 9.0), shared(9.0, 2)))
    assert alone < together < alone + 1e-10


def test_parts_that_are_not_said_and_grids_that_are_too_coarse_have_no_price():
    with pytest.raises(InternalError, match="parts"):
        _ = Spend(SHARED, "counts", 1.0, 3.0).cost
    with pytest.raises(InternalError, match="too small for its grid"):
        _ = shared(1e-5, 3).cost


def sums_of(noises, spend, size):
    """Noisy sums of counts of 100 by as many sites as there are sources of noise."""
    parts = [drawn_parts([np.full(size, 100)], [spend], noise)[0] for noise in noises]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    (counts,) = combined([total], [spend])
    return counts - 100 * len(noises)


class NoNoise:
    secure = True

    def noise(self, mechanism, scale, size):
        return np.zeros(size, dtype=np.int64)


@pytest.mark.parametrize("sigma", [0.3, 7.0, 1e5, 1e9])
def test_without_noise_the_sum_is_exact(sigma):
    assert not sums_of([NoNoise()] * 3, shared(sigma, 2), 5).any()


def spread_fits(noises, spend, sites, size=20_000):
    """Whether the spread of the sum is that of `sites` parts, by the quantiles of χ²."""
    found = (sums_of(noises, spend, size).astype(float) ** 2).sum()
    variance = sites * (part_scale(spend.scale, spend.parts) / 2.0 ** bits_of(spend.scale, spend.parts)) ** 2 + 1 / 12
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], size)
    return low <= found / variance <= high


@pytest.mark.noise(false_alarm=2 * FALSE_ALARM / 2, why="the spread of a sum of parts is the claim")
def test_honest_sites_together_have_the_spread_that_is_claimed():
    honest = [ExactRandomness.system()] * 2
    assert spread_fits(honest, shared(40.0, 2), 2)


def test_a_site_that_leaves_its_part_out_is_found():
    honest = [ExactRandomness.system()] * 2
    assert not spread_fits([*honest, NoNoise()], shared(40.0, 3), 3)


def test_noise_that_counts_on_sites_that_are_not_honest_is_found():
    """Parts for three, of which one is made of nothing: the other two fall short of what two should reach."""
    honest = [ExactRandomness.system()] * 2
    assert not spread_fits([*honest, NoNoise()], shared(40.0, 3), 3) and 2 / 3 < 0.9
    assert part_scale(40.0, 3) < part_scale(40.0, 2)
