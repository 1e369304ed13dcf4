"""Joints of columns that share no clique, against the full joint table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graphs import COLUMNS, SIZES, dense, fitted, random_potentials, shapes
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree, marginalise, spread
from understudy.inference.graphical.marginals import every_pair, every_triple_with

TOTAL = 1000.0


def exact(joint: np.ndarray, columns: tuple[str, ...]) -> np.ndarray:
    return marginalise(joint, COLUMNS, columns)


@shapes
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.5, 3.0, 300.0]))
@settings(max_examples=8, deadline=None)
def test_every_pair_equals_brute_force(shape: str, seed: int, scale: float):
    potentials = random_potentials(shape, scale, seed)
    found, joint = every_pair(fitted(shape, potentials, TOTAL)), dense(SIZES, potentials, TOTAL)
    assert list(found) == list(itertools.combinations(COLUMNS, 2))
    for pair, table in found.items():
        assert np.abs(table - exact(joint, pair)).max() < 1e-6, pair


@pytest.mark.parametrize("seed", range(5))
def test_a_wide_model_of_overlapping_cliques_equals_brute_force(seed: int):
    """Links that share two columns, several links that share the same ones, and links that share none."""
    names = tuple("abcdefgh")
    sizes = dict(zip(names, (2, 3, 2, 2, 3, 2, 2, 2), strict=True))
    sets = [("a", "b", "c"), ("b", "c", "d"), ("b", "c", "e"), ("c", "f"), ("g", "h")]
    rng = np.random.default_rng(seed)
    potentials = {s: rng.normal(size=tuple(sizes[c] for c in s)) for s in sets}
    model = GraphicalModel.from_potentials(sizes, JunctionTree.over(sets, sizes), potentials, TOTAL)
    joint = np.exp(sum(spread(t, s, names) for s, t in potentials.items()))
    joint *= TOTAL / joint.sum()
    found = every_pair(model)
    assert len(found) == 28
    for pair, table in found.items():
        assert np.abs(table - marginalise(joint, names, pair)).max() < 1e-6, pair


@pytest.mark.parametrize("seed", range(3))
def test_triples_with_a_target_that_every_clique_holds_equal_brute_force(seed: int):
    potentials = random_potentials("star", 2.0, seed)
    found, joint = every_triple_with(fitted("star", potentials, TOTAL), "c"), dense(SIZES, potentials, TOTAL)
    assert list(found) == [(a, "c", b) for a, b in itertools.combinations("abde", 2)]
    for triple, table in found.items():
        assert np.abs(table - exact(joint, triple)).max() < 1e-6, triple


def test_mutant_of_independent_columns_is_told_apart():
    potentials = random_potentials("chain", 2.0, 5)
    joint = dense(SIZES, potentials, TOTAL)
    product = np.outer(exact(joint, ("a",)), exact(joint, ("e",))) / TOTAL
    assert np.abs(product - exact(joint, ("a", "e"))).max() > 1e-3


@pytest.mark.parametrize("values", [1, 2])
def test_a_long_chain_through_cells_without_mass(values: int):
    """Where a shared cell can't occur there is no P(… | cell); it adds nothing, and no NaN."""
    sizes = dict.fromkeys("abcd", values)
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    potentials = {e: np.array([[0.0, -1e4], [-1e4, -1e4]])[:values, :values] for e in edges}
    model = GraphicalModel.from_potentials(sizes, JunctionTree.over(edges, sizes), potentials, TOTAL)
    table = every_pair(model)["a", "d"]
    assert table.sum() == pytest.approx(TOTAL) and table[0, 0] == pytest.approx(TOTAL)


def test_a_model_of_one_column_has_no_pairs():
    model = GraphicalModel.from_potentials({"a": 2}, JunctionTree.over([], {"a": 2}), {}, TOTAL)
    assert every_pair(model) == {}
