"""The density of leaves: by hand, against loops over rows, and as a law that sums to one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from understudy.inference.forest.adversarial_forest import FittedForest, Growth, grow
from understudy.inference.forest.density import CategoryShares, ForestDensity, Normal
from understudy.inference.forest.trees import LeafBoxes

TWO = LeafBoxes(
    np.array([0, 0]),
    np.array([[-np.inf, -np.inf], [2.5, -np.inf]]),
    np.array([[2.5, np.inf], [np.inf, np.inf]]),
    np.array([-1, 0, 1]),
)
"""One tree, cut at 2.5 in its first column."""


def table(rng: np.random.Generator, rows: int = 400) -> np.ndarray:
    """Two numbers and two categories that depend on each other."""
    kind = rng.integers(0, 3, rows)
    return np.column_stack([np.rint(rng.normal(4 * kind, 1)), kind, rng.integers(0, 4, rows), rng.integers(0, 3, rows)])


SIZES = (0, 3, 4, 0)
STEPS = np.ones(4)


def grown(seed: int = 0) -> tuple[np.ndarray, FittedForest]:
    rng = np.random.default_rng(seed)
    points = table(rng)
    return points, grow(points, Growth(num_trees=4), rng)


def test_means_deviations_shares_and_coverage_by_hand() -> None:
    points = np.array([[1.0, 0], [2.0, 1], [2.0, 1], [5.0, 1], [7.0, 1]])
    leaf = np.array([[0], [0], [0], [1], [1]])
    density = ForestDensity.fit(TWO, points, (0, 2), leaf)
    normal, shares = density.columns
    assert isinstance(normal, Normal) and isinstance(shares, CategoryShares)
    assert density.coverage == pytest.approx([3 / 5, 2 / 5])
    assert normal.mean == pytest.approx([5 / 3, 6])
    assert normal.deviation == pytest.approx([math.sqrt((4 / 9 + 1 / 9 + 1 / 9) / 2), math.sqrt(2)])
    leaves, codes = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert shares.weigh(leaves, codes) == pytest.approx([1 / 3, 2 / 3, 0, 1])


def test_smoothing_adds_alpha_to_every_category_in_the_box() -> None:
    leaves = LeafBoxes(np.array([0, 0]), np.array([[-np.inf], [1.5]]), np.array([[1.5], [np.inf]]), np.array([0, 1]))
    density = ForestDensity.fit(
        leaves, np.array([[0.0], [0], [1], [3]]), (4,), np.array([[0], [0], [0], [1]]), alpha=0.5
    )
    shares = density.columns[0]
    assert isinstance(shares, CategoryShares)
    each = [shares.weigh(np.full(4, leaf), np.arange(4)).tolist() for leaf in (0, 1)]
    # (2 + ½)/(3 + 1) and (1 + ½)/(3 + 1); then ½/(1 + 1) and (1 + ½)/(1 + 1).
    assert each == [pytest.approx([0.625, 0.375, 0, 0]), pytest.approx([0, 0, 0.25, 0.75])]
    filled = shares.filled(leaves, 0)
    assert filled.alpha == 0
    assert [filled.weigh(np.full(4, leaf), np.arange(4)).tolist() for leaf in (0, 1)] == [
        pytest.approx(e) for e in each
    ]


def test_a_leaf_of_one_row_counts_for_nothing_where_there_are_numbers() -> None:
    points, leaf = np.array([[1.0, 0], [2.0, 1], [5.0, 1]]), np.array([[0], [0], [1]])
    assert ForestDensity.fit(TWO, points, (0, 2), leaf).coverage.tolist() == [1, 0]
    assert ForestDensity.fit(TWO, points, (6, 2), leaf).coverage == pytest.approx([2 / 3, 1 / 3])


def test_missing_numbers_have_their_share() -> None:
    points = np.array([[1.0, 0], [np.nan, 0], [2.0, 0], [np.nan, 0], [np.nan, 0]])
    density = ForestDensity.fit(TWO, points, (0, 1), np.array([[0], [0], [0], [1], [1]]))
    normal = density.columns[0]
    assert isinstance(normal, Normal)
    assert normal.missing.tolist() == pytest.approx([1 / 3, 1])
    asked = np.array([np.nan, np.nan, 6.0])
    assert density.log_probability(0, np.array([0, 1, 1]), asked, 1.0) == pytest.approx([math.log(1 / 3), 0, -np.inf])


@pytest.mark.parametrize("seed", range(3))
def test_parameters_agree_with_loops_over_leaves(seed: int) -> None:
    points, found = grown(seed)
    density = ForestDensity.fit(found.leaves, points, SIZES, found.leaf)
    for number in range(len(found.leaves)):
        rows = points[(found.leaf == number).any(axis=1)]
        assert density.coverage[number] == pytest.approx(len(rows) / len(points) / 4)
        for j, size in enumerate(SIZES):
            column = density.columns[j]
            if isinstance(column, Normal):
                assert column.mean[number] == pytest.approx(rows[:, j].mean())
                assert column.deviation[number] == pytest.approx(rows[:, j].std(ddof=1), abs=1e-9)
            else:
                shares = [(rows[:, j] == code).mean() for code in range(size)]
                assert column.weigh(np.full(size, number), np.arange(size)) == pytest.approx(shares)


def test_weights_are_numbers_of_rows() -> None:
    points, found = grown()
    times = np.random.default_rng(3).integers(1, 4, len(points))
    repeated = np.repeat(np.arange(len(points)), times)
    by_weight = ForestDensity.fit(found.leaves, points, SIZES, found.leaf, weights=times.astype(float))
    by_rows = ForestDensity.fit(found.leaves, points[repeated], SIZES, found.leaf[repeated])
    assert by_weight.coverage == pytest.approx(by_rows.coverage)
    for one, other in zip(by_weight.columns, by_rows.columns, strict=True):
        if isinstance(one, Normal) and isinstance(other, Normal):
            assert one.mean == pytest.approx(other.mean)
            # Weights are scaled to n rows in all, so that n − 1 differs a little.
            assert one.deviation == pytest.approx(other.deviation, rel=0.15, abs=1e-9)


HALVES = np.array([0.5, 1, 1, 0.5])


def everything() -> np.ndarray:
    """Every row that there can be. Numbers stand for steps of ½: no leaf of whole numbers ends within one."""
    axes = [np.arange(-20, 30, 0.5) + 0.25, np.arange(3), np.arange(4), np.arange(-8, 12, 0.5) + 0.25]
    return np.array(list(itertools.product(*axes)), dtype=float)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_probabilities_of_all_rows_sum_to_one(alpha: float) -> None:
    points, found = grown()
    density = ForestDensity.fit(found.leaves, points, SIZES, found.leaf, alpha=alpha)
    rows = everything()
    total = np.exp(density.log_likelihood(rows, found.locate(rows), HALVES)).sum()
    assert total == pytest.approx(1.0, abs=1e-6)


def test_without_the_bounds_they_would_not_sum_to_one() -> None:
    """The test above is able to fail: a density that forgets to divide by what lies inside the bounds."""
    points, found = grown()
    density = ForestDensity.fit(found.leaves, points, SIZES, found.leaf)
    density.__dict__["_log_wholes"] = {0: np.zeros(len(found.leaves)), 3: np.zeros(len(found.leaves))}
    rows = everything()
    assert np.exp(density.log_likelihood(rows, found.locate(rows), HALVES)).sum() < 0.99


def test_likelihood_agrees_with_a_loop_over_trees() -> None:
    from scipy.stats import truncnorm

    points, found = grown()
    density = ForestDensity.fit(found.leaves, points, SIZES, found.leaf, alpha=0.1)
    asked = points[:25]
    leaf = found.locate(asked)
    for row, leaves, log_found in zip(asked, leaf, density.log_likelihood(asked, leaf, STEPS), strict=True):
        total = 0.0
        for number in leaves:
            part = density.coverage[number]
            for j in range(4):
                column = density.columns[j]
                if isinstance(column, CategoryShares):
                    part *= column.weigh(np.array([number]), np.array([int(row[j])]))[0]
                elif column.deviation[number] == 0:
                    part *= abs(row[j] - column.mean[number]) <= 0.5
                else:
                    low, high = found.leaves.low[number, j], found.leaves.high[number, j]
                    mean, deviation = column.mean[number], column.deviation[number]
                    law = truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
                    part *= law.cdf(row[j] + 0.5) - law.cdf(row[j] - 0.5)
            total += part
        assert log_found == pytest.approx(math.log(total), rel=1e-6)


def test_an_unknown_category_is_impossible_and_none_is_mistaken_for_a_neighbour() -> None:
    points, found = grown()
    density = ForestDensity.fit(found.leaves, points, SIZES, found.leaf, alpha=1.0)
    strange = points[:3].copy()
    strange[0, 1], strange[1, 1], strange[2, 2] = -1, 3, 4
    assert np.isneginf(density.log_likelihood(strange, found.leaf[:3], STEPS)).all()


def test_hundreds_of_categories_in_hundreds_of_leaves() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 900, 2000)
    leaf = rng.integers(0, 300, (2000, 1))
    leaves = LeafBoxes(np.zeros(300, dtype=int), np.full((300, 1), -np.inf), np.full((300, 1), np.inf), np.arange(300))
    shares = ForestDensity.fit(leaves, codes[:, None].astype(float), (900,), leaf).columns[0]
    assert isinstance(shares, CategoryShares)
    assert len(shares.keys) == len({*zip(leaf[:, 0].tolist(), codes.tolist(), strict=True)})  # only what occurs
    for number in (0, 17, 299):
        mine = codes[leaf[:, 0] == number]
        expected = np.bincount(mine, minlength=900) / len(mine)
        assert shares.weigh(np.full(900, number), np.arange(900)) == pytest.approx(expected)
    drawn = shares.draw(leaf[:, 0], rng)
    assert (shares.weigh(leaf[:, 0], drawn) > 0).all()
