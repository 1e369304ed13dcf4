"""Intervals against scipy, printed examples and exact enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from understudy.lab.attacks.confidence import clopper_pearson, newcombe, ranked_above, ranking, welch, wilson

COUNTS = [(0, 10), (1, 10), (5, 10), (10, 10), (3, 1000), (999, 1000)]


@pytest.mark.parametrize(("hits", "trials"), COUNTS)
def test_shares_agree_with_scipy(hits: int, trials: int):
    for ours, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
        theirs = stats.binomtest(hits, trials).proportion_ci(0.95, method=method)
        assert ours(hits, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_newcombe_is_the_printed_example():
    assert newcombe(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)  # Newcombe 1998, example (a)
    assert newcombe(10, 10, 0, 10) == pytest.approx((0.6075, 1.0), abs=5e-5)  # the same, example (g)


@pytest.mark.parametrize(("a", "b", "p"), [(40, 30, 0.5), (60, 30, 0.1), (50, 50, 0.03)])
def test_newcombe_rarely_sees_a_difference_that_is_not_there(a: int, b: int, p: float):
    """Every outcome is enumerated: at most 3 % lie wholly above zero, where 2.5 % may."""
    chance = np.outer(stats.binom.pmf(np.arange(a + 1), a, p), stats.binom.pmf(np.arange(b + 1), b, p))
    pairs = itertools.product(range(a + 1), range(b + 1))
    above = np.array([newcombe(x, a, y, b)[0] > 0 for x, y in pairs]).reshape(chance.shape)
    assert chance[above].sum() < 0.03


def test_welch_agrees_with_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 2, 30), rng.normal(0, 1, 50)
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert welch(a, b) == pytest.approx((theirs.low, theirs.high))
    assert welch(np.ones(5), np.zeros(4)) == (1.0, 1.0)


def test_ranked_above_counts_pairs():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 6, 40).astype(float), rng.integers(0, 6, 30).astype(float)
    pairs = [(x > y) + 0.5 * (x == y) for x in a for y in b]
    assert ranked_above(a, b) == pytest.approx(sum(pairs) / len(pairs))


def test_the_interval_of_a_ranking_has_the_exact_width_under_no_advantage():
    """The end at which 0.5 is just not rejected is where the variance of Mann and Whitney puts it, but for one row."""
    m, n = 200, 100
    end = 0.5 + stats.norm.ppf(0.975) * math.sqrt((m + n + 1) / (12 * m * n))
    assert ranking(end, m, n)[0] == pytest.approx(0.5, abs=2e-3)
    assert ranking(1.0, 20, 20)[0] < 0.95 and ranking(1.0, 20, 20)[1] == 1.0
    assert ranking(0.0, 20, 20) == pytest.approx(tuple(1 - e for e in reversed(ranking(1.0, 20, 20))))
