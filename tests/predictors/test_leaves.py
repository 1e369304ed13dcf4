"""What the leaves say: exact where there is no noise, the parent's word where there is nothing else."""

from __future__ import annotations

import numpy as np

from understudy.inference.noisy_table import NoisyTable
from understudy.predictors.decision_tree import LEAF, DecisionTree, LeafCounts, mean_shares, votes
from understudy.predictors.splits import ColumnSplit

TREE = DecisionTree((ColumnSplit("sex", (0, 1)), ColumnSplit("age", (0, 1))), (0, 1, LEAF, LEAF, LEAF))
"""Leaves in order: the second sex; the two ages of the first."""
MANY = np.array([[9000.0, 1000.0], [2000.0, 8000.0], [5000.0, 5000.0]])


def leaf_counts(counts: np.ndarray, variance: float) -> LeafCounts:
    return LeafCounts(TREE, NoisyTable(("sex", "age"), counts, variance))


def test_many_rows_without_noise_are_believed() -> None:
    shares = leaf_counts(MANY, 1e-12).shares(2)
    assert np.allclose(shares, MANY / 10_000, atol=5e-3)
    assert np.allclose(shares.sum(axis=1), 1.0)


def test_much_noise_is_not_believed() -> None:
    shares = leaf_counts(MANY, 1e12).shares(2)
    assert np.allclose(shares, shares[0], atol=1e-3)


def test_a_leaf_without_rows_says_what_its_parent_says() -> None:
    counts = MANY.copy()
    counts[1] = [-30.0, 10.0]
    shares = leaf_counts(counts, 100.0).shares(2)
    assert np.allclose(shares[1], shares[2], atol=2e-3)  # the other leaf is all that their parent has


def test_the_printed_form_takes_each_leaf_at_its_word() -> None:
    counts = np.array([[6.0, -2.0], [-1.0, -4.0], [1.0, 3.0]])
    shares = leaf_counts(counts, 1.0).plain_shares(2)
    assert shares[0].tolist() == [1.0, 0.0] and shares[2].tolist() == [0.25, 0.75]
    assert shares[1, 0] > 0.999  # 6 of class 0 and none of class 1 in all: the prior


def test_a_missing_class_is_left_out() -> None:
    counts = np.hstack([MANY, np.full((3, 1), 10_000.0)])
    assert np.allclose(leaf_counts(counts, 1e-12).shares(2), leaf_counts(MANY, 1e-12).shares(2))


def test_more_rows_add_up_and_the_same_rows_are_averaged() -> None:
    leaves = leaf_counts(MANY, 3.0)
    more = leaves.with_more(leaf_counts(np.ones_like(MANY), 1.0).table)
    assert np.array_equal(more.counts, MANY + 1) and more.variance == 4.0
    again = leaves.with_again(leaf_counts(MANY + 8, 1.0).table)
    assert np.allclose(again.counts, MANY + 6) and np.isclose(again.variance, 0.75)  # three quarters of the better one


def test_votes_and_means() -> None:
    said = [np.array([[0.9, 0.1]]), np.array([[0.4, 0.6]]), np.array([[0.4, 0.6]])]
    assert np.allclose(mean_shares(said), [[1.7 / 3, 1.3 / 3]])
    assert np.allclose(votes(said), [[1 / 3, 2 / 3]])
