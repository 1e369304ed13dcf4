"""The score of `privbayes` never moves by more than it declares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.privacy.mechanisms.score import STEP, Dependence

SCORE = Dependence(("x", "y"))
tables = st.lists(st.integers(0, 6), min_size=6, max_size=6).map(lambda n: np.array(n, dtype=np.int64).reshape(2, 3))
cells = st.tuples(st.integers(0, 1), st.integers(0, 2))


def moved(table: np.ndarray, added: list[tuple[int, int]], removed: list[tuple[int, int]]) -> float:
    other = table.copy()
    for cell in added:
        other[cell] += 1
    for cell in removed:
        other[cell] -= 1
    return abs(SCORE.score(table) - SCORE.score(other))


@settings(max_examples=500, deadline=None)
@given(tables.filter(lambda t: t.sum() >= 2), st.lists(cells, min_size=1, max_size=3))
def test_added_rows(table: np.ndarray, added: list[tuple[int, int]]):
    assert moved(table, added, []) <= SCORE.sensitivity(len(added), replaced=False)


@settings(max_examples=500, deadline=None)
@given(tables.filter(lambda t: t.sum() >= 2), cells, cells)
def test_a_replaced_row(table: np.ndarray, new: tuple[int, int], old: tuple[int, int]):
    if table[old]:
        assert moved(table, [new], [old]) <= SCORE.sensitivity(1, replaced=True)


def test_a_third_of_the_declared_sensitivity_is_exceeded():
    assert moved(np.array([[50, 0, 0], [0, 0, 0]]), [(1, 1)], []) > (SCORE.sensitivity(1, replaced=False) - STEP) / 3


def test_it_is_the_rows_that_would_have_to_move_to_make_columns_independent():
    assert SCORE.score(np.array([[10, 0, 0], [0, 10, 0]])) == pytest.approx(10.0, abs=2 * STEP)
    assert SCORE.score(np.array([[6, 4, 2], [3, 2, 1]])) == pytest.approx(0.0, abs=2 * STEP)
    assert SCORE.score(np.zeros((2, 3), dtype=np.int64)) == 0.0
