"""The graphical model against brute force: the full joint table, written down."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graphs import COLUMNS, SHAPES, SIZES, dense, fitted, random_potentials, shapes
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree, marginalise


def largest_error(model: GraphicalModel, joint: np.ndarray) -> float:
    """Over every table that the model holds, as a share of the total."""
    pairs = [*zip(model.tree.cliques, model.tables, strict=True)]
    pairs += [(link.shared, table) for link, table in zip(model.tree.links, model.shared, strict=True)]
    return max(float(np.abs(t - marginalise(joint, COLUMNS, c)).max()) for c, t in pairs) / float(joint.sum())


@shapes
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.0, 0.3, 3.0, 30.0]))
@settings(max_examples=12, deadline=None)
def test_inference_equals_brute_force(shape: str, seed: int, scale: float):
    potentials = random_potentials(shape, scale, seed)
    model = fitted(shape, potentials)
    assert largest_error(model, dense(SIZES, potentials, 1000.0)) < 1e-9
    assert model.total == pytest.approx(1000.0)


@shapes
@given(seed=st.integers(0, 10**6))
@settings(max_examples=12, deadline=None)
def test_huge_potentials_neither_overflow_nor_vanish(shape: str, seed: int):
    """Every potential is ±300: one factor e^-600 per potential and link would be far below the smallest float."""
    signs = random_potentials(shape, 1.0, seed)
    potentials = {s: np.where(p < 0, -300.0, 300.0) for s, p in signs.items()}
    model = fitted(shape, potentials)
    assert all(np.isfinite(t).all() for t in (*model.tables, *model.shared))
    assert largest_error(model, dense(SIZES, potentials, 1000.0)) < 1e-9


@shapes
def test_a_model_without_one_of_its_potentials_is_told_apart(shape: str):
    """The mutant of the two tests above."""
    potentials = dict(random_potentials(shape, 3.0, 4))
    joint = dense(SIZES, potentials, 1000.0)
    for columns in list(potentials):
        rest = {s: p for s, p in potentials.items() if s != columns}
        assert largest_error(fitted(shape, rest), joint) > 1e-3, columns


@shapes
def test_marginals_come_in_the_order_asked_for(shape: str):
    potentials = random_potentials(shape, 2.0, 8)
    model, joint = fitted(shape, potentials), dense(SIZES, potentials, 1000.0)
    for clique in model.tree.cliques:
        for n in range(len(clique) + 1):
            for columns in itertools.permutations(clique, n):
                assert np.allclose(model.marginal(columns), marginalise(joint, COLUMNS, columns), atol=1e-9)


@shapes
def test_a_tour_visits_every_clique_and_leaves_a_calibrated_model_as_it_was(shape: str):
    potentials = random_potentials(shape, 2.0, 9)
    model = fitted(shape, potentials)
    assert set(model.tour()) == set(range(len(model.tree.cliques)))
    assert largest_error(model, dense(SIZES, potentials, 1000.0)) < 1e-9


@shapes
def test_a_change_on_the_way_reaches_every_table(shape: str):
    """Each column's table is multiplied once during a tour: afterwards the model is that of the changed potentials."""
    potentials = dict(random_potentials(shape, 2.0, 10))
    model = fitted(shape, potentials)
    todo = set(COLUMNS)
    for clique in model.tour():
        held = model.tree.cliques[clique]
        for column in sorted(todo & set(held)):
            change = np.linspace(-1, 1, SIZES[column])
            potentials[(column,)] = potentials[(column,)] + change
            model.tables[clique] *= np.exp(change).reshape([-1 if c == column else 1 for c in held])
            todo.discard(column)
    for _ in model.tour():
        pass
    scale = model.total / 1000.0
    assert largest_error(model, dense(SIZES, potentials, 1000.0 * scale)) < 1e-9


def test_columns_of_one_value():
    sizes = {"a": 1, "b": 2, "c": 1}
    potentials = {("a", "b"): np.array([[0.0, 1.0]]), ("b", "c"): np.array([[2.0], [0.0]])}
    model = GraphicalModel.from_potentials(sizes, JunctionTree.over(potentials, sizes), potentials, 10.0)
    joint = dense(sizes, potentials, 10.0)
    assert np.allclose(model.marginal(("a", "b")), joint[:, :, 0])
    assert {c: v.shape for c, v in model.sample(7, np.random.default_rng(1)).items()} == dict.fromkeys("abc", (7,))


# --- Drawing ----------------------------------------------------------------------------------------------------------

ROWS = 100_000


def drawn_error(model: GraphicalModel, codes: Mapping[str, np.ndarray], rows: int) -> float:
    """The largest difference between a clique's drawn and expected counts, in rows."""
    worst = 0.0
    for clique, table in zip(model.tree.cliques, model.tables, strict=True):
        cells = np.ravel_multi_index([codes[c] for c in clique], table.shape)
        counts = np.bincount(cells, minlength=table.size).reshape(table.shape)
        worst = max(worst, float(np.abs(counts - table * rows / model.total).max()))
    return worst


def rounding_bound(model: GraphicalModel) -> float:
    """Each group of rows that share what is given is rounded once: a cell is off by 1 and by what its group is off.

    Rounding of a group moves a shared cell by 1 for each of the cells summed into it.
    """
    off = {0: 1.0}
    for link in model.tree.links:
        merged = model.tables[link.parent].size / np.prod([model.sizes[c] for c in link.shared])
        off[link.child] = 1.0 + merged * off[link.parent]
    return max(off.values())


@pytest.mark.parametrize("shape", ["chain", "star", "tree"])
@pytest.mark.parametrize("seed", range(3))
def test_drawn_rows_follow_every_clique_to_within_rounding(shape: str, seed: int):
    model = fitted(shape, random_potentials(shape, 1.0, seed), 123.4)
    bound = rounding_bound(model)
    assert drawn_error(model, model.sample(ROWS, np.random.default_rng(seed)), ROWS) <= bound < 100


def test_mutant_independent_draws_are_not_within_rounding():
    """Ordinary draws of a million rows are off by hundreds."""
    model = fitted("chain", random_potentials("chain", 1.0, 0), 1.0)
    joint = dense(SIZES, random_potentials("chain", 1.0, 0), 1.0)
    cells = np.random.default_rng(0).choice(joint.size, 10 * ROWS, p=joint.ravel())
    codes = dict(zip(COLUMNS, np.unravel_index(cells, joint.shape), strict=True))
    assert drawn_error(model, codes, 10 * ROWS) > rounding_bound(model)


@shapes
def test_drawn_rows_follow_the_whole_joint(shape: str):
    """Not only its margins. Of independent draws, the mean of Σ|n − E n| is at most Σ√E, and one row moves it by 2 at
    most: it exceeds 3·Σ√E with a chance below e^-100 (McDiarmid 1989). These draws are steadier, and seeded."""
    potentials = random_potentials(shape, 1.0, 21)
    joint = dense(SIZES, potentials, float(ROWS))
    codes = fitted(shape, potentials).sample(ROWS, np.random.default_rng(2))

    def off(rows: Mapping[str, np.ndarray]) -> float:
        cells = np.ravel_multi_index([rows[c] for c in COLUMNS], joint.shape)
        return float(np.abs(np.bincount(cells, minlength=joint.size) - joint.ravel()).sum())

    bound = joint.size + 3 * float(np.sqrt(joint).sum())
    assert off(codes) < bound
    if any(len(s) > 1 for s in SHAPES[shape]):
        rng = np.random.default_rng(3)
        assert off({c: rng.permutation(v) for c, v in codes.items()}) > bound


def test_a_million_rows_of_fifteen_columns():
    names = [f"c{i}" for i in range(15)]
    sizes = {c: 3 + i % 4 for i, c in enumerate(names)}
    edges = [(names[i // 2], names[i]) for i in range(1, 15)]
    rng = np.random.default_rng(6)
    potentials = {e: rng.normal(size=[sizes[c] for c in e]) for e in edges}
    model = GraphicalModel.from_potentials(sizes, JunctionTree.over(edges, sizes), potentials, 1.0)
    codes = model.sample(1_000_000, rng)
    assert {len(v) for v in codes.values()} == {1_000_000}
    assert drawn_error(model, codes, 1_000_000) < 100  # an ordinary draw of a cell of a tenth is off by 300
