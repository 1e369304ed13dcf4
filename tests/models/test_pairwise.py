"""Joints of columns that share no clique, against the full joint table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graphical import COLUMNS, dense, fitted, random_potentials
from test_junction import SIZES, shapes

from understudy.models.graphical import GraphicalModel, marginalise
from understudy.models.junction import JunctionTree
from understudy.models.pairwise import Pairwise

TOTAL = 1000.0


def exact(joint: np.ndarray, columns: tuple[str, ...]) -> np.ndarray:
    return marginalise(joint, COLUMNS, columns)


@shapes
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.5, 3.0, 300.0]))
@settings(max_examples=8, deadline=None)
def test_every_pair_equals_brute_force(shape: str, seed: int, scale: float):
    potentials = random_potentials(shape, scale, seed)
    pairwise, joint = Pairwise(fitted(shape, potentials, TOTAL)), dense(SIZES, potentials, TOTAL)
    for pair in itertools.permutations(COLUMNS, 2):
        assert np.abs(pairwise.table(pair) - exact(joint, pair)).max() < 1e-6, pair


@shapes
def test_triples_with_a_source_pair_inside_a_clique_equal_brute_force(shape: str):
    potentials = random_potentials(shape, 2.0, 5)
    model = fitted(shape, potentials, TOTAL)
    pairwise, joint = Pairwise(model), dense(SIZES, potentials, TOTAL)
    pairs = {p for clique in model.tree.cliques for p in itertools.permutations(clique, 2)}
    assert pairs or shape in ("single nodes", "empty")
    for pair in sorted(pairs):
        found = pairwise.joints(pair, COLUMNS)
        assert found.keys() == set(COLUMNS) - set(pair)
        for column, table in found.items():
            expected = exact(joint, (*pair, column))
            assert np.abs(table - expected.reshape(table.shape)).max() < 1e-6
            assert np.array_equal(pairwise.table((*pair, column)), table.reshape(expected.shape))


def test_only_what_is_wanted_is_found():
    pairwise = Pairwise(fitted("chain", random_potentials("chain", 1.0, 1), TOTAL))
    assert {c: t.shape for c, t in pairwise.joints(("a",), ("e", "c", "a")).items()} == {"c": (2, 2), "e": (2, 3)}


def test_a_target_at_the_centre_of_a_star():
    """What `aim` asks with a target: each column with it, and any other."""
    potentials = random_potentials("star", 2.0, 6)
    pairwise, joint = Pairwise(fitted("star", potentials, TOTAL)), dense(SIZES, potentials, TOTAL)
    for a, b in itertools.permutations("abde", 2):
        assert np.abs(pairwise.table((a, "c", b)) - exact(joint, (a, "c", b))).max() < 1e-6


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
    table = Pairwise(model).table(("a", "d"))
    assert table.sum() == pytest.approx(TOTAL) and table[0, 0] == pytest.approx(TOTAL)
