"""The inner loops of particles: what they compute, and that compiled and vectorised forms agree to the last bit."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.inference.particles import compiled, gibbs, kernels, vectorised
from understudy.inference.particles.particles import steps_of

FORMS = [compiled, vectorised]
each_form = pytest.mark.parametrize("form", FORMS, ids=["compiled", "vectorised"])
sizes = st.integers(1, 300)
seeds = st.integers(0, 2**32 - 1)
untimed = settings(deadline=None)
"""The first call of a loop compiles it."""


def rows(size: int, cells: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    # Weights of very different size, so that another order of summation would show.
    return rng.integers(0, cells, size), np.exp(rng.normal(0, 8, size))


# --- What they compute ------------------------------------------------------------------------------------------------


@each_form
def test_cells_are_row_major(form: ModuleType) -> None:
    first, second = steps_of([np.array([0, 1, 2]), np.array([0, 1, 1, 0])])
    cells = np.zeros(3, np.int32)
    form.place(cells, np.array([0, 1, 2]), first)
    form.place(cells, np.array([3, 0, 1]), second)
    assert cells.tolist() == [0 * 2 + 0, 1 * 2 + 0, 2 * 2 + 1]


@each_form
@untimed
@given(size=st.integers(0, 40), seed=seeds)
def test_a_histogram_adds_weights(form: ModuleType, size: int, seed: int) -> None:
    cells, weights = rows(size, 5, seed)
    expected = [weights[cells == c].sum() for c in range(5)]
    np.testing.assert_allclose(form.histogram(cells, weights, 5), expected, rtol=1e-12)


@each_form
def test_weights_change_in_place(form: ModuleType) -> None:
    weights = np.array([1.0, 2.0, 3.0])
    form.rescale(weights, np.array([1, 0, 1]), np.array([10.0, 0.5]))
    assert weights.tolist() == [0.5, 20.0, 1.5]


@each_form
def test_a_draw_falls_where_the_cumulated_weights_pass_its_number(form: ModuleType) -> None:
    # Groups weigh 1 : 2 : 1 in the first row's cell; in the second row's only the last one weighs anything.
    logs = np.rint(np.log([[1.0, 2.0, 1.0], [1e-9, 1e-9, 1.0]]) * gibbs.GRID).astype(np.int32)
    table = np.concatenate([np.zeros((1, 3), np.int32), logs])
    # One column, whose two codes are the two rows below the first one of the table.
    steps, parts, codes = np.array([1, 2], np.int32), np.array([[0, 0, 1]], np.int32), np.array([[0, 0, 0, 0, 1]])
    uniform = np.array([0.0, 0.24, 0.26, 0.76, 0.0])
    drawn = form.draw(table, steps, parts, codes.astype(np.int32), uniform, gibbs.EXPONENTIALS)
    assert drawn.tolist() == [0, 0, 1, 2, 2]


@each_form
def test_a_place_falls_where_the_line_of_its_group_passes_its_number(form: ModuleType) -> None:
    # Two places of the first group weigh 1 : 3, the second group has one place, and in the third the first has nothing.
    first, line = np.array([0, 2, 3, 5]), np.array([0.0, 1.0, 4.0, 9.0, 9.0, 10.0])
    groups, uniform = np.array([0, 0, 0, 1, 2]), np.array([0.0, 0.24, 0.26, 0.9, 0.0])
    assert form.spread(groups, first, line, uniform).tolist() == [0, 0, 1, 2, 4]


@each_form
def test_a_score_adds_up_a_row_of_cells(form: ModuleType) -> None:
    cells = np.array([[0, 1], [2, 2], [1, 2]], dtype=np.int32)
    assert form.score(np.array([1, 10, 100]), cells, np.array([2, 0, 2])).tolist() == [110, 11, 110]
    rows = np.arange(3 * vectorised.CHUNK + 5) % 3  # more than one turn, and one that is not full
    assert form.score(np.array([1, 10, 100]), cells, rows).tolist() == [[11, 200, 110][r] for r in rows]


# --- That they agree --------------------------------------------------------------------------------------------------


@untimed
@given(size=sizes, cells=st.integers(1, 9), seed=seeds)
def test_both_forms_count_and_weigh_alike(size: int, cells: int, seed: int) -> None:
    places, weights = rows(size, cells, seed)
    change = np.exp(np.random.default_rng(seed).normal(size=cells))
    by_form = [weights.copy() for _ in FORMS]
    counts = [form.histogram(places, weights, cells) for form in FORMS]
    for form, own in zip(FORMS, by_form, strict=True):
        form.rescale(own, places, change)
    np.testing.assert_array_equal(*counts, strict=True)
    np.testing.assert_array_equal(*by_form, strict=True)
    # In one pass as in two, and by two columns as by the cells of both.
    others = rows(size, cells, seed + 1)[0]
    for form, own in zip(FORMS, by_form, strict=True):
        again = weights.copy()
        np.testing.assert_array_equal(
            form.recount(again, places, change, others, cells), form.histogram(others, own, cells)
        )
        np.testing.assert_array_equal(again, own, strict=True)
        steps = steps_of([np.arange(cells), np.arange(cells)])
        crossed = form.cross(places, steps[0], others, steps[1], weights, cells**2)
        np.testing.assert_array_equal(crossed, form.histogram(places * cells + others, weights, cells**2))


@untimed
@given(size=sizes, groups=st.integers(1, 40), layers=st.integers(0, 4), seed=seeds)
def test_both_forms_draw_alike(size: int, groups: int, layers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(-9 * gibbs.GRID, 3 * gibbs.GRID, (12, groups)).astype(np.int32)
    # Every second layer by one column, the others by two, of three codes each.
    ends = [1, 0, 1, 1, 0, 1][: (0, 1, 3, 4, 6)[layers]]
    parts = [(int(rng.integers(0, 3)), 3 * i, end) for i, end in enumerate(ends)]
    steps, codes = rng.integers(0, 6, 18).astype(np.int32), rng.integers(0, 3, (3, size)).astype(np.int32)
    told, uniform = np.array(parts, np.int32).reshape(-1, 3), rng.random(size)
    drawn = [form.draw(table, steps, told, codes, uniform, gibbs.EXPONENTIALS) for form in FORMS]
    np.testing.assert_array_equal(*drawn, strict=True)


@untimed
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), size=sizes, seed=seeds)
def test_both_forms_spread_alike(sizes: list[int], size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = np.cumsum([0, *sizes])
    mass = np.where(rng.random(first[-1]) < 0.2, 0.0, np.exp(rng.normal(0, 8, first[-1])))
    line, groups = np.concatenate([[0.0], np.cumsum(mass)]), rng.integers(0, len(sizes), size)
    uniform = rng.random(size)
    found = [form.spread(groups, first, line, uniform) for form in FORMS]
    np.testing.assert_array_equal(*found, strict=True)


def test_summation_in_another_order_would_be_noticed() -> None:
    """The weights of these tests are such that a plain sum has other last bits: the comparison can fail."""
    places, weights = rows(300, 1, seed=0)
    assert np.bincount(places, weights)[0] != compiled.histogram(places, weights, 1)[0]


def test_numpy_steps_in_where_numba_is_missing() -> None:
    """As on a machine without it: the release machinery imports, and loops are numpy's."""
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from understudy.inference.particles import kernels, vectorised\n"
        "print(kernels.COMPILED, kernels.draw is vectorised.draw)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "True"]
    assert kernels.COMPILED
