"""Rows drawn from a forest: the columns' own counts, and pairs by their factors.

Every test of a law errs once in 10⁹ runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from understudy.inference.particles.pair_forest import Edge, draw_forest

ROWS, ALPHA = 100_000, 1e-9
SIZES = {"a": 3, "b": 4, "c": 5, "d": 2, "e": 3}
GROUPS = {"a": np.arange(3), "b": np.array([0, 1, 1, 0]), "c": np.array([0, 0, 1, 2, 1]), "d": np.arange(2)}


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {c: rng.dirichlet(np.full(n, 4.0)) * 5000 for c, n in SIZES.items()}


def edge(columns: str, seed: int) -> Edge:
    """A factor that leaves both columns' counts as they are, by balancing a random one."""
    groups = tuple(GROUPS[c] for c in columns)
    rows, others = (np.bincount(g, weights()[c]) / 5000 for c, g in zip(columns, groups, strict=True))
    table = np.random.default_rng(seed).gamma(1.5, size=(rows.size, others.size)) + 0.1
    for _ in range(500):
        table *= (rows / table.sum(axis=1))[:, None]
        table *= others / table.sum(axis=0)
    return Edge(tuple(columns), groups, table / np.outer(rows, others))


EDGES = [edge("ba", 2), edge("bc", 3), edge("cd", 4)]


def pair_law(of: Edge) -> np.ndarray:
    a, b = (weights()[c] / 5000 for c in of.columns)
    return np.outer(a, b) * of.factor[np.ix_(*of.groups)]


def joint_law(edges: list[Edge]) -> np.ndarray:
    """The tree's law over the first four columns: every column's weight times every edge's factor."""
    joint = np.ones(tuple(SIZES[c] for c in "abcd"))
    for i, c in enumerate("abcd"):
        joint *= (weights()[c] / 5000).reshape([-1 if j == i else 1 for j in range(4)])
    for e in edges:
        axes = ["abcd".index(c) for c in e.columns]
        table = e.factor[np.ix_(*e.groups)]
        table = table if axes[0] < axes[1] else table.T
        joint *= table.reshape([SIZES[c] if i in axes else 1 for i, c in enumerate("abcd")])
    return joint


def statistic(codes: dict[str, np.ndarray], columns: str, law: np.ndarray) -> float:
    counts = np.zeros(law.shape)
    np.add.at(counts, tuple(codes[c] for c in columns), 1.0)
    return float(((counts - ROWS * law) ** 2 / (ROWS * law)).sum())


def agrees(codes: dict[str, np.ndarray], columns: str, law: np.ndarray) -> bool:
    """Pearson's test; draws are systematic, so the statistic is smaller than that of independent rows, if anything."""
    return statistic(codes, columns, law) < chi2.isf(ALPHA, law.size - 1)


def test_single_columns_follow_their_weights_and_pairs_their_factors():
    codes = draw_forest(weights(), EDGES, ROWS, np.random.default_rng(5))
    assert list(codes) == list(SIZES) and {v.shape for v in codes.values()} == {(ROWS,)}
    for column in SIZES:
        law = weights()[column] / 5000
        assert np.abs(np.bincount(codes[column], minlength=law.size) / ROWS - law).max() < 0.01
        assert agrees(codes, column, law)
    for e in EDGES:
        assert agrees(codes, "".join(e.columns), pair_law(e))
    assert agrees(codes, "abcd", joint_law(EDGES))


@pytest.mark.parametrize("dropped", range(len(EDGES)))
def test_a_draw_without_an_edge_is_found_out(dropped: int):
    codes = draw_forest(weights(), EDGES[:dropped] + EDGES[dropped + 1 :], ROWS, np.random.default_rng(5))
    assert not agrees(codes, "".join(EDGES[dropped].columns), pair_law(EDGES[dropped]))


def test_columns_without_an_edge_are_independent():
    codes = draw_forest(weights(), EDGES[:1], ROWS, np.random.default_rng(6))
    for a, b in ("ac", "bd", "ce"):
        assert agrees(codes, a + b, np.outer(weights()[a], weights()[b]) / 5000**2)
    none = draw_forest(weights(), [], ROWS, np.random.default_rng(6))
    assert agrees(none, "ab", np.outer(weights()["a"], weights()["b"]) / 5000**2)


def test_an_edge_may_be_given_either_way_round():
    codes = draw_forest(weights(), [e.turned() for e in EDGES], ROWS, np.random.default_rng(7))
    assert agrees(codes, "abcd", joint_law(EDGES))


def test_a_column_that_is_a_function_of_another_agrees_in_every_row():
    """Where the factor is nothing, no row is drawn, even from a column whose counts are nothing."""
    every = np.arange(4)
    same = Edge(("x", "y"), (every, every), np.eye(4) * 4)
    codes = draw_forest({"x": np.full(4, 25.0), "y": np.full(4, 25.0)}, [same], 1000, np.random.default_rng(1))
    assert np.array_equal(codes["x"], codes["y"])
    empty = {"x": np.array([0.0, 50.0, 50.0, 0.0]), "y": np.array([100.0, 0.0, 0.0, 0.0])}
    codes = draw_forest(empty, [same], 1000, np.random.default_rng(1))
    assert np.array_equal(codes["x"], codes["y"]) and set(codes["x"]) == {1, 2}


def test_the_same_seed_draws_the_same_rows():
    first, again, other = (draw_forest(weights(), EDGES, 500, np.random.default_rng(s)) for s in (1, 1, 2))
    assert all(np.array_equal(first[c], again[c]) for c in SIZES)
    assert any(not np.array_equal(first[c], other[c]) for c in SIZES)
