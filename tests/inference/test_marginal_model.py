"""The parts of the marginal model: projection, consistency, order of drawing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from understudy.boundary.privacy.measurement import Measurement
from understudy.inference.marginal_model import drawing_order, make_consistent, marginalise, overlaps
from understudy.inference.noisy_table import estimate_total, project_to_simplex

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True).map(tuple)
set_lists = st.lists(names, min_size=1, max_size=6, unique=True)


def by_brute_force(point: np.ndarray, total: float) -> np.ndarray:
    """Tries every support: on the right one the projection subtracts the same amount from each entry."""
    best, nearest = np.inf, None
    for size in range(1, len(point) + 1):
        for support in map(list, itertools.combinations(range(len(point)), size)):
            candidate = np.zeros(len(point))
            candidate[support] = point[support] - (point[support].sum() - total) / size
            gap = float(((candidate - point) ** 2).sum())
            if candidate.min() >= -1e-12 and gap < best:
                best, nearest = gap, candidate
    assert nearest is not None
    return nearest


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=7), st.floats(0.5, 100))
def test_projection_is_the_nearest_point(values: list[float], total: float):
    found = project_to_simplex(np.array(values), total)
    assert found.min() >= 0 and found.sum() == pytest.approx(total)
    assert np.allclose(found, by_brute_force(np.array(values), total), atol=1e-7)


def test_projection_against_a_general_optimiser():
    point = np.random.default_rng(1).normal(2, 5, 12)
    solved = minimize(
        lambda x: ((x - point) ** 2).sum(), np.full(12, 10 / 12), jac=lambda x: 2 * (x - point), method="SLSQP",
        bounds=[(0, None)] * 12, constraints={"type": "eq", "fun": lambda x: x.sum() - 10.0}, options={"ftol": 1e-14},
    )  # fmt: skip
    assert np.allclose(project_to_simplex(point.reshape(3, 4), 10.0).ravel(), solved.x, atol=1e-5)


def test_projection_keeps_a_point_that_is_there_already():
    counts = np.array([[3, 0], [5, 2]])
    assert np.array_equal(project_to_simplex(counts, 10.0), counts)


def measured(
    columns: tuple[str, ...], counts: list[int], scale: float, mechanism: str = "discrete-gaussian"
) -> Measurement:
    return Measurement(columns, np.array(counts), mechanism, scale)


def test_the_total_weighs_each_sum_by_its_precision():
    fine, coarse = measured(("a",), [60, 40], 1.0), measured(("b",), [50, 50, 50, 50], 10.0)
    # Sums 100 and 200 with variances 2·1² and 4·10²: precisions 1/2 and 1/400.
    assert estimate_total([fine, coarse]) == pytest.approx((100 / 2 + 200 / 400) / (1 / 2 + 1 / 400))
    assert estimate_total([fine, measured((), [123], 0.0, "public")]) == 123
    assert estimate_total([measured(("a",), [-60, 4], 1.0)]) == 1.0


def noisy_tables(sets: list[tuple[str, ...]], total: float | None = None) -> dict[tuple[str, ...], np.ndarray]:
    rng = np.random.default_rng(6)
    tables = {s: rng.normal(50, 10, [SIZES[c] for c in s]) for s in sets}
    return tables if total is None else {s: t * total / t.sum() for s, t in tables.items()}


def disagreement(tables: dict[tuple[str, ...], np.ndarray]) -> float:
    """The largest gap between two tables in any margin that they share."""
    return max(
        float(np.abs(marginalise(tables[s], s, shared) - marginalise(tables[u], u, shared)).max())
        for s, u in itertools.combinations(tables, 2)
        for shared in [tuple(c for c in s if c in u)]
    )


CLOSED = {
    "star": [("a", "d"), ("b", "d"), ("c", "d")],
    "chain": [("a", "b"), ("c", "d"), ("b", "c")],
    "order of columns": [("a", "b", "c"), ("c", "a")],
    "apart": [("a",), ("b", "c"), ("d",)],
}
OPEN = {
    "cycle": [("a", "b"), ("b", "c"), ("c", "a")],
    "overlaps that overlap": [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d")],
}


@pytest.mark.parametrize("sets", CLOSED.values(), ids=CLOSED)
def test_tables_agree_on_what_they_share(sets: list[tuple[str, ...]]):
    tables = noisy_tables(sets)
    assert disagreement(tables) > 1
    make_consistent(tables, {s: 1.0 + i for i, s in enumerate(sets)})
    assert disagreement(tables) < 1e-9


def test_a_cycle_of_equal_totals_agrees():
    tables = noisy_tables(OPEN["cycle"], total=600.0)
    make_consistent(tables, dict.fromkeys(tables, 1.0))
    assert disagreement(tables) < 1e-9


@pytest.mark.parametrize("sets", OPEN.values(), ids=OPEN)
def test_tables_agree_though_their_overlaps_overlap(sets: list[tuple[str, ...]]):
    """What two overlaps share must be settled before them (Qardaji, Yang & Li 2014, Section 4.4)."""
    tables = noisy_tables(sets)
    make_consistent(tables, dict.fromkeys(tables, 1.0))
    assert disagreement(tables) < 1e-9


def test_the_more_precise_table_weighs_more():
    tables = {("a",): np.array([10.0, 20.0, 30.0]), ("a", "b"): np.full((3, 4), 10.0)}
    make_consistent(tables, {("a",): 1.0, ("a", "b"): 1.0})
    # Margins 10, 20, 30 of variance 1 against 40, 40, 40 of variance 4·1: means 4/5 and 1/5.
    assert np.allclose(tables[("a",)], [16, 24, 32]) and np.allclose(tables[("a", "b")].sum(axis=1), [16, 24, 32])


def test_marginalise_orders_its_axes():
    table = np.random.default_rng(0).random((3, 4, 2))
    assert np.array_equal(marginalise(table, ("a", "b", "c"), ("c", "a")), table.sum(axis=1).T)
    assert marginalise(table, ("a", "b", "c"), ()) == pytest.approx(table.sum())


@settings(max_examples=200, deadline=None)
@given(set_lists)
def test_order_of_drawing(sets: list[tuple[str, ...]]):
    """Each set once; each column drawn once, given what is drawn already; `faithful` as its definition says."""
    steps = drawing_order(sets)
    assert sorted(s.columns for s in steps) == sorted(sets)
    done: set[str] = set()
    for i, step in enumerate(steps):
        assert set(step.given) == done & set(step.columns) and set(step.new) == set(step.columns) - done
        earlier = [set(s.columns) for s in steps[:i]]
        assert step.faithful == (not step.given or any(set(step.given) <= e for e in earlier))
        done |= set(step.columns)
    assert done == {c for s in sets for c in s}


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(2, 8))
def test_trees_are_drawn_faithfully_in_any_order(random, size: int):
    """Pairs that form a tree have no cycle, so every step can follow its marginal."""
    edges = [(f"x{random.randrange(i)}", f"x{i}") for i in range(1, size)]
    random.shuffle(edges)
    assert all(step.faithful for step in drawing_order([tuple(random.sample(e, 2)) for e in edges]))


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 7), st.randoms(use_true_random=False))
def test_cycles_never_are(size: int, random):
    edges = [(f"x{i}", f"x{(i + 1) % size}") for i in range(size)]
    random.shuffle(edges)
    assert not all(step.faithful for step in drawing_order(edges))


@settings(max_examples=100, deadline=None)
@given(set_lists)
def test_overlaps_are_listed_once_and_smallest_first(sets: list[tuple[str, ...]]):
    found = overlaps(sets)
    assert len({frozenset(s) for s in found}) == len(found)
    assert [len(s) for s in found] == sorted(len(s) for s in found)
    for one, other in itertools.combinations(sets, 2):
        assert frozenset(one) & frozenset(other) in {frozenset(s) for s in found}
