"""Rows from leaves: freely drawn and completed rows follow the law of the density. False alarms: one in 10⁹ runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from understudy.inference.forest.adversarial_forest import Growth, grow
from understudy.inference.forest.density import ForestDensity, Normal, complete, fill, forge

ALPHA = 1e-9
ROWS = 40_000
SIZES = (3, 4, 0)


def density(alpha: float = 0.0) -> ForestDensity:
    rng = np.random.default_rng(2)
    kind = rng.integers(0, 3, 500)
    second = np.where(rng.random(500) < 0.6, kind, rng.integers(0, 4, 500))
    points = np.column_stack([kind, second, np.rint(rng.normal(3 * kind, 1))]).astype(float)
    found = grow(points, Growth(num_trees=5), rng)
    return ForestDensity.fit(found.leaves, points, SIZES, found.leaf, alpha=alpha)


def law(of: ForestDensity) -> np.ndarray:
    """P(first, second) by summing over all leaves."""
    leaf = np.arange(len(of.leaves))
    first, second = of.columns[0], of.columns[1]
    assert not isinstance(first, Normal) and not isinstance(second, Normal)
    one = np.array([first.weigh(leaf, np.full(len(leaf), code)) for code in range(3)])
    two = np.array([second.weigh(leaf, np.full(len(leaf), code)) for code in range(4)])
    return (one * of.coverage) @ two.T


def too_far(counts: np.ndarray, expected: np.ndarray) -> bool:
    """Pearson's χ² above its 1 − 1e-9 quantile, or a row where none can be."""
    from scipy.stats import chi2

    possible = expected > 0
    if counts[~possible].any():
        return True
    statistic = ((counts[possible] - expected[possible]) ** 2 / expected[possible]).sum()
    return bool(statistic > chi2.isf(ALPHA, max(1, possible.sum() - 1)))


def pairs(rows: np.ndarray) -> np.ndarray:
    return np.bincount((rows[:, 0] * 4 + rows[:, 1]).astype(int), minlength=12).reshape(3, 4)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_pairs_of_categories_follow_the_law(alpha: float) -> None:
    of = density(alpha)
    rows = forge(of, ROWS, np.random.default_rng(3))
    assert not too_far(pairs(rows), ROWS * law(of))


def test_the_test_rejects_rows_whose_columns_come_from_different_leaves() -> None:
    of = density()
    rows = forge(of, ROWS, np.random.default_rng(3))
    rows[:, 1] = np.random.default_rng(4).permutation(rows[:, 1])
    assert too_far(pairs(rows), ROWS * law(of))


def test_every_tree_has_its_part_of_the_rows() -> None:
    """Leaves are drawn systematically, so that each tree makes n/T rows, rounded up or down."""
    of = density()
    marked = of.with_columns([of.columns[0], of.columns[1], _tree_as_number(of)])
    made = forge(marked, 1003, np.random.default_rng(5))[:, 2]
    counts = np.bincount(made.astype(int), minlength=5)
    assert counts.sum() == 1003
    assert (np.abs(counts - 1003 / 5) <= 2).all()


def _tree_as_number(of: ForestDensity) -> Normal:
    zeros = np.zeros(len(of.leaves))
    return Normal(2, of.leaves.tree.astype(float), zeros, zeros)


def test_numbers_stay_in_their_leaf_and_equal_ones_stay_equal() -> None:
    of = density()
    normal = of.columns[2]
    assert isinstance(normal, Normal)
    leaf = np.random.default_rng(6).integers(0, len(of.leaves), 5000)
    made = fill(of, leaf, {}, np.random.default_rng(7))[:, 2]
    spread = normal.deviation[leaf] > 0
    assert (made[spread] >= of.leaves.low[leaf, 2][spread]).all()
    assert (made[spread] <= of.leaves.high[leaf, 2][spread]).all()
    assert np.array_equal(made[~spread], normal.mean[leaf][~spread])


def test_missing_numbers_come_as_often_as_in_the_leaf() -> None:
    of = density()
    normal = of.columns[2]
    assert isinstance(normal, Normal)
    half = Normal(2, normal.mean, normal.deviation, np.full(len(of.leaves), 0.5))
    made = forge(of.with_columns([*of.columns[:2], half]), ROWS, np.random.default_rng(8))
    missing = np.isnan(made[:, 2]).sum()
    # Hoeffding: farther off once in 10⁹ runs.
    assert abs(missing - ROWS / 2) < math.sqrt(ROWS * math.log(2 / ALPHA) / 2)


def test_completed_rows_keep_what_is_given_and_follow_the_law_given_it() -> None:
    of = density()
    given = np.random.default_rng(9).integers(0, 3, ROWS).astype(float)
    rows = complete(of, {0: given}, np.ones(3), np.random.default_rng(10))
    assert np.array_equal(rows[:, 0], given)
    joint = law(of)
    for code in range(3):
        counts = pairs(rows)[code]
        assert not too_far(counts, counts.sum() * joint[code] / joint[code].sum())


def test_the_test_rejects_completion_that_forgets_what_is_given() -> None:
    of = density()
    rows = forge(of, ROWS, np.random.default_rng(10))
    joint = law(of)
    rows[:, 0] = 0
    counts = pairs(rows)[0]
    assert too_far(counts, counts.sum() * joint[0] / joint[0].sum())


def test_completion_given_a_number_weighs_leaves_by_its_probability() -> None:
    of = density()
    leaf = np.arange(len(of.leaves))
    weight = of.coverage * np.exp(of.log_probability(2, leaf, np.full(len(leaf), 4.0), 1.0))
    first = of.columns[0]
    assert not isinstance(first, Normal)
    expected = np.array([(weight * first.weigh(leaf, np.full(len(leaf), code))).sum() for code in range(3)])
    rows = complete(of, {2: np.full(ROWS, 4.0)}, np.ones(3), np.random.default_rng(11))
    assert (rows[:, 2] == 4.0).all()
    counts = np.bincount(rows[:, 0].astype(int), minlength=3)
    assert not too_far(counts, ROWS * expected / expected.sum())


def test_what_no_leaf_allows_for_is_completed_all_the_same() -> None:
    rows = complete(density(), {0: np.full(5, 2.0), 2: np.full(5, -500.0)}, np.ones(3), np.random.default_rng(12))
    assert (rows[:, 2] == -500.0).all()
    assert np.isin(rows[:, 1], range(4)).all()
