"""What a training costs, against two other accountants; and the coins that choose its batches."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")

import dp_accounting as dp
from dp_accounting.pld import PLDAccountant

from understudy.boundary.privacy.mechanisms import subsampling
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.subsampling import (
    Course,
    coin_scale,
    discreteness,
    epsilon_of_course,
    noise_for,
    poisson_rows,
)
from understudy.errors import InternalError, MethodError

ALPHA = 1e-9
"""The false-alarm rate of each statistical test."""


def by_hand(course: Course, delta: float) -> float:
    relation = dp.NeighboringRelation.REPLACE_ONE if course.replace_one else dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = PLDAccountant(relation)
    for _ in range(course.steps):  # step by step, where ours composes at once
        accountant.compose(dp.PoissonSampledDpEvent(course.rate, dp.GaussianDpEvent(course.noise)))
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize("replace_one", [False, True])
def test_the_cost_is_that_of_the_privacy_loss_distribution(replace_one: bool) -> None:
    course = Course(0.1, 3.0, 6, replace_one)
    ours, theirs = epsilon_of_course(course, 1e-5, cells=1000), by_hand(course, 1e-5)
    assert theirs <= ours <= theirs * 1.001


def test_a_known_figure() -> None:
    assert epsilon_of_course(Course(0.01, 1.0, 2000), 1e-5) == pytest.approx(2.58, abs=0.01)
    assert epsilon_of_course(Course(0.01, 1.0, 2000, replace_one=True), 1e-5) == pytest.approx(4.19, abs=0.01)


@pytest.mark.slow
def test_opacus_agrees() -> None:
    opacus = pytest.importorskip("opacus.accountants", reason="the extra gan is not installed")
    accountant = opacus.PRVAccountant()
    accountant.history = [(2.0, 0.05, 300)]
    assert epsilon_of_course(Course(0.05, 2.0, 300), 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=0.05)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("epsilon", "replace_one"), [(0.3, False), (2.0, False), (8.0, False), (2.0, True)])
def test_calibrated_noise_fits_and_hardly_less_would(epsilon: float, replace_one: bool) -> None:
    noise = noise_for(0.1, 30, epsilon, 1e-5, replace_one, cells=5000)
    assert epsilon_of_course(Course(0.1, noise, 30, replace_one), 1e-5, 5000) <= epsilon
    assert epsilon_of_course(Course(0.1, noise * 0.99, 30, replace_one), 1e-5, 5000) > epsilon


def test_more_of_anything_costs_more() -> None:
    base = epsilon_of_course(Course(0.05, 2.0, 50), 1e-5)
    for worse in (Course(0.06, 2.0, 50), Course(0.05, 1.9, 50), Course(0.05, 2.0, 60), Course(0.05, 2.0, 50, True)):
        assert epsilon_of_course(worse, 1e-5) > base


def test_the_discrete_law_is_as_close_to_the_rounded_normal_one_as_stated() -> None:
    from scipy.stats import norm

    for scale in (2.0, 4.0, 8.0, 32.0):
        k = np.arange(-int(12 * scale), int(12 * scale) + 1)
        discrete = np.exp(-(k**2) / (2 * scale**2))
        rounded = norm.cdf((k + 0.5) / scale) - norm.cdf((k - 0.5) / scale)
        distance = 0.5 * np.abs(discrete / discrete.sum() - rounded).sum()
        assert distance <= 1 / (24 * scale**2)
    assert discreteness(10**8, 2.0) < 1e-10


def test_too_many_draws_for_the_grid_are_never_free() -> None:
    assert epsilon_of_course(Course(0.1, 3.0, 10), 1e-12, cells=10**12) == math.inf


@pytest.mark.parametrize("bad", [{"rate": 0.0}, {"rate": 0.6}, {"noise": 0.0}, {"steps": 0}, {"noise": math.nan}])
def test_impossible_courses_are_bugs(bad: dict[str, float]) -> None:
    with pytest.raises(InternalError):
        Course(**({"rate": 0.1, "noise": 1.0, "steps": 10} | bad))


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsampling.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MethodError, match=r"torch must be installed.*pip install '\.\[gan\]' in a clone"):
        subsampling.check_installed("torch")


def joined_as_asked(rate: float, drawn: int, rows: int) -> bool:
    """Whether a number of rows is a likely outcome of that many coins, two-sided and exact."""
    from scipy.stats import binom

    return bool(min(binom.cdf(drawn, rows, rate), binom.sf(drawn - 1, rows, rate)) > ALPHA / 2)


def least_and_most(rate: float, rows: int) -> tuple[float, float]:
    """The numbers of rows between which all lie that pass."""
    from scipy.stats import binom

    return float(binom.ppf(ALPHA / 2, rows, rate)), float(binom.isf(ALPHA / 2, rows, rate))


@pytest.mark.noise(false_alarm=ALPHA, why="two binomial tails, whose quantiles the mutant's do not meet")
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 0.5])
def test_rows_join_at_the_rate_and_not_at_another(rate: float) -> None:
    """Both are sure at once: what passes for the rate is a range of numbers that half of the rate has no part in."""
    rows = 1_000_000
    drawn = len(poisson_rows(rate, rows, ExactRandomness.system()))
    assert joined_as_asked(rate, drawn, rows)
    assert not joined_as_asked(rate * 0.5, drawn, rows)
    assert least_and_most(rate, rows)[0] > least_and_most(rate * 0.5, rows)[1]


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 0.5])
def test_coins_never_favour_joining(rate: float) -> None:
    odds = math.exp(-1 / coin_scale(rate))
    assert odds / (1 + odds) <= rate
    assert odds / (1 + odds) == pytest.approx(rate, rel=1e-6)


def independent(together: int, draws: int, rate: float) -> bool:
    return joined_as_asked(rate * rate, together, draws)


@pytest.mark.noise(false_alarm=ALPHA, why="two binomial tails")
def test_two_rows_join_independently_of_each_other() -> None:
    rate, draws = 0.3, 20_000
    randomness = ExactRandomness.system()
    together = sum(len(poisson_rows(rate, 2, randomness)) == 2 for _ in range(draws))
    assert independent(together, draws, rate)
    # The mutant: a batch of a fixed size, here one of the two rows, never has both.
    assert not independent(0, draws, rate)


def test_no_rows_make_an_empty_batch() -> None:
    assert len(poisson_rows(0.1, 0, ExactRandomness.system())) == 0
