"""Systematic draws: every count as expected, rounded; and no two columns in step beyond what the model says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.inference.sampling import draw_given, draw_rows

weights = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 100.0)), min_size=1, max_size=6)
three_weights = st.lists(st.floats(0.0, 9.0), min_size=3, max_size=3)


@settings(max_examples=150, deadline=None)
@given(weights, st.integers(0, 300), st.integers(0, 2**32))
def test_counts_are_rounded_expectations(given_weights: list[float], rows: int, seed: int):
    shares = np.array(given_weights)
    drawn = np.bincount(draw_rows(shares, rows, np.random.default_rng(seed)), minlength=len(shares))
    expected = rows * (shares / shares.sum() if shares.any() else np.full(len(shares), 1 / len(shares)))
    assert drawn.sum() == rows and np.all(np.abs(drawn - expected) < 1 + 1e-6)
    assert np.all(drawn[expected == 0] == 0)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), three_weights), min_size=1, max_size=5), st.integers(0, 2**32))
def test_counts_are_rounded_within_each_parent(groups: list[tuple[int, list[float]]], seed: int):
    rng = np.random.default_rng(seed)
    table = np.array([w for _, w in groups])
    table[table < 0.01] = 0.0
    parents = rng.permutation(np.repeat(np.arange(len(groups)), [n for n, _ in groups]))
    children = draw_given(parents, table, rng)
    for parent, (size, _) in enumerate(groups):
        row = table[parent]
        share = row / row.sum() if row.any() else np.full(3, 1 / 3)
        drawn = np.bincount(children[parents == parent], minlength=3)
        assert drawn.sum() == size and np.all(np.abs(drawn - size * share) < 1 + 1e-6)


def test_parents_without_weight_draw_uniformly():
    parents = np.repeat([0, 1], 300)
    children = draw_given(parents, np.array([[0.0, 0.0, 0.0], [0.0, 5.0, 0.0]]), np.random.default_rng(1))
    assert np.bincount(children[:300]).tolist() == [100, 100, 100] and set(children[300:]) == {1}


def test_no_rows():
    assert len(draw_rows(np.array([1.0, 2.0]), 0, np.random.default_rng(1))) == 0


GROUPS, SIZE = 100, 40


def joint(first: np.ndarray, second: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """Per parent group, the number of rows in which both children are 1."""
    return np.bincount(parents[(first == 1) & (second == 1)], minlength=GROUPS)


def in_step(both: np.ndarray) -> bool:
    """Whether two siblings, each 1 in half of every group, are related given their parent.

    Unrelated, each group's count is hypergeometric with mean SIZE/4 and variance SIZE²/(16(SIZE−1)), so the sum over
    GROUPS is nearly normal with deviation 10 · 1.6 = 16. Its false-alarm rate beyond 7 deviations is below 1e-9
    (hypergeometric tails are lighter than binomial ones; Hoeffding 1963, Theorem 4).
    """
    deviation = np.sqrt(GROUPS * SIZE**2 / (16 * (SIZE - 1)))
    return abs(both.sum() - GROUPS * SIZE / 4) > 7 * deviation


@pytest.fixture
def parents() -> np.ndarray:
    return np.tile(np.arange(GROUPS), SIZE)


def test_siblings_are_independent_given_their_parent(parents: np.ndarray):
    rng, table = np.random.default_rng(2), np.ones((GROUPS, 2))
    first, second = draw_given(parents, table, rng), draw_given(parents, table, rng)
    assert not in_step(joint(first, second, parents))


def test_mutant_that_does_not_shuffle_is_rejected(parents: np.ndarray):
    """Rounding without shuffling inside the parent's group: each column alone is perfect, and siblings are equal."""

    class InOrder:
        def __init__(self) -> None:
            self._rng = np.random.default_rng(2)

        def permutation(self, rows: np.ndarray) -> np.ndarray:
            return rows

        def random(self, size: int) -> np.ndarray:
            return self._rng.random(size)

    rng, table = InOrder(), np.ones((GROUPS, 2))
    first, second = draw_given(parents, table, rng), draw_given(parents, table, rng)
    assert np.all(np.abs(np.bincount(first) - GROUPS * SIZE / 2) <= GROUPS)
    assert in_step(joint(first, second, parents))


def test_the_same_generator_gives_the_same_rows():
    table = np.random.default_rng(0).random((5, 7))
    parents = np.arange(500) % 5
    one, two = (draw_given(parents, table, np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(one, two)
