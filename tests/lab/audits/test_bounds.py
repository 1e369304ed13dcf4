"""Bounds against known tables, against brute force, and against worlds whose distance is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, multinomial, norm

from understudy.lab.audits.checks.canaries import OneRun, guessed, tossed
from understudy.lab.audits.games.bounds import ORDERS, LowerBounds, best_event, by_event, lower_share, upper_share

PERFECT = {50: 2.57, 100: 3.28, 200: 3.98, 500: 4.91, 1000: 5.60}
"""Runs of each world, and the ε that a perfect attack proves at 95 %."""


@pytest.mark.parametrize("runs", PERFECT)
def test_a_perfect_attack_proves_what_is_known(runs: int) -> None:
    assert by_event((0, runs), (runs, runs), 0.05, 0.0).epsilon == pytest.approx(PERFECT[runs], abs=0.005)


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (400, 1000)])
def test_shares_are_bounded_as_clopper_and_pearson_do(hits: int, runs: int) -> None:
    """At the bound itself, what was seen has exactly the probability of the level."""
    low, high = lower_share(hits, runs, 0.025), upper_share(hits, runs, 0.025)
    assert low == 0 if hits == 0 else binom.sf(hits - 1, runs, low) == pytest.approx(0.025)
    assert high == 1 if hits == runs else binom.cdf(hits, runs, high) == pytest.approx(0.025)


def test_an_attack_that_guesses_proves_nothing() -> None:
    assert by_event((50, 50), (100, 100), 0.05, 0.0) == LowerBounds()
    assert LowerBounds.by_twos(250, 250, 1000, 0.05, 0.0) == LowerBounds()


@pytest.mark.parametrize(("gained", "lost"), [(0.1, 0.0), (0.3, 0.2), (0.25, 0.25), (0.02, 0.01)])
def test_twos_prove_too_much_no_more_often_than_the_level(gained: float, lost: float) -> None:
    """Over all that thirty of them can show, summed exactly."""
    twos, level, truth = 30, 0.2, gained - lost
    wrong = 0.0
    for a in range(twos + 1):
        for b in range(twos + 1 - a):
            proved = LowerBounds.by_twos(a, b, twos, level, 0.0).mu
            if proved > 2 * norm.ppf((1 + truth) / 2):
                wrong += multinomial.pmf([a, b, twos - a - b], twos, [gained, lost, 1 - gained - lost])
    assert wrong <= level


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_bounds_reach_what_a_gaussian_pair_has(mu: float) -> None:
    """With so many runs that chance is small, the best guess of a Gaussian pair gives its μ, and less than its ρ."""
    runs = 10**8
    gained = round(runs * (2 * norm.cdf(mu / 2) - 1))
    proved = LowerBounds.by_twos(gained, 0, runs, 1e-6, 0.0)
    assert 0.98 * mu < proved.mu <= mu
    assert 0.5 * mu**2 / 2 < proved.rho <= mu**2 / 2


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_bounds_reach_what_randomised_response_has(delta: float) -> None:
    epsilon, runs = 1.0, 10**8
    gained = round(runs * (1 - 2 * (1 - delta) / (1 + math.exp(epsilon))))
    assert 0.995 < LowerBounds.by_twos(gained, 0, runs, 1e-6, delta).epsilon <= 1.0


@pytest.mark.parametrize(("p", "q"), [(0.6, 0.4), (0.9, 0.3), (0.02, 0.01)])
def test_rho_is_the_largest_divergence_per_order(p: float, q: float) -> None:
    def divergence(a: float, x: float, y: float) -> float:
        return math.log(x**a * y ** (1 - a) + (1 - x) ** a * (1 - y) ** (1 - a)) / (a - 1) / a

    expected = max(divergence(a, *pair) for a in ORDERS for pair in ((p, q), (q, p)))
    assert LowerBounds.of(p, q, 0.0).rho == pytest.approx(expected, rel=1e-6)


def test_the_chosen_event_is_the_one_that_differs() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    first, second = rng.normal(size=(200, 5)), rng.normal(size=(200, 5))
    second[:, 3] += 4
    column, at, above = best_event(first, second, 0.0, LowerBounds(1.0, 0.5))
    assert column == 3 and 0 < at < 4
    assert above in (True, False)


# --- One run with many canaries ---------------------------------------------------------------------------------------


def test_nine_hundred_right_of_a_thousand_prove_two() -> None:
    assert OneRun(1000, 1000, 900).epsilon(0.05, 0.0) == pytest.approx(2.02, abs=0.005)


def test_a_delta_costs_something() -> None:
    run = OneRun(1000, 1000, 900)
    assert run.epsilon(0.05, 1e-3) < run.epsilon(0.05, 1e-5) < run.epsilon(0.05, 0.0)


Train = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""From which canaries are in, to a score of each: high where the run looks as if it had been there."""


def play(train: Train, canaries: int) -> OneRun:
    """One run of any training, of which half of the canaries are guessed."""
    coins = tossed(canaries)
    return guessed(coins, train(coins), 0.5)


def noisy_mean(noise: float, rng: np.random.Generator) -> Train:
    """A mechanism with as many directions as canaries: each canary adds 1 to its own coordinate."""
    return lambda coins: coins + rng.normal(scale=noise, size=len(coins))


def test_a_noisy_sum_is_not_called_a_violation_and_one_with_a_tenth_of_its_noise_is() -> None:
    """With σ = 4 six coins of ten are seen, and ε = 1 allows for seven; with σ = 0.4 nearly all are.

    781 right of 1,000 would be called a violation, which is more than ten deviations away: false alarms below 1e-9.
    """
    rng = np.random.Generator(np.random.PCG64(7))
    honest, mutant = (play(noisy_mean(s, rng), 2000) for s in (4.0, 0.4))
    assert honest.epsilon(1e-4, 1e-6) < 1.0 < mutant.epsilon(1e-4, 1e-6)
