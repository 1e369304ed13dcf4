"""`published-bsg`: what passes the test, what is kept of a seed, and whose ε the printed one is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.related_columns import SIZES, TREE, along, distance, schema_of
from understudy.boundary.schema.domain import Domain
from understudy.errors import InputError, ReleaseError
from understudy.lab.specimens.published_bsg import codes_of, learn, odds, passed, specimen


def test_only_seeds_that_are_like_enough_others_pass():
    """Sixty rows with one value, five with another: k = 20 with noise of scale 0.001."""
    seeds = {"x": np.array([0] * 60 + [1] * 5), "y": np.arange(65)}
    passing = passed(seeds, ["x"], 500, 20, 1000.0, np.random.default_rng(1))
    assert len(passing) == 500 and set(seeds["x"][passing]) == {0}
    assert len(passed(seeds, ["x", "y"], 500, 20, 1000.0, np.random.default_rng(1))) == 0


def test_the_noise_of_the_threshold_is_that_of_its_epsilon():
    """Twenty like rows against k = 26: P(Laplace of scale 2 ≤ −6) = ½·e⁻³; off by .004 at most once in 10⁹ runs."""
    seeds, wanted = {"x": np.zeros(20, dtype=int)}, 34_000
    tried = 20 * wanted
    assert 2 * math.exp(-2 * tried * 0.004**2) < 1e-9
    passing = passed(seeds, ["x"], wanted, 26, 0.5, np.random.default_rng(2))
    assert abs(len(passing) / tried - math.exp(-3) / 2) < 0.004
    half = passed(seeds, ["x"], wanted, 26, 1.0, np.random.default_rng(2))
    assert abs(len(half) / tried - math.exp(-3) / 2) > 0.004  # half of the noise would be noticed


def test_half_of_epsilon_is_left_for_the_noise():
    t = odds(1.0, 4.0)
    assert math.log(1 + 4.0 / t) <= 0.5 < math.log(1 + 4.0 / (t - 1))


def test_a_table_has_as_many_times_the_epsilon_as_rows():
    made = specimen(along(TREE, SIZES, 4000), schema_of(SIZES), 2.0, n=300, seed=1)
    assert made.table.num_rows == 300
    assert made.parameters["epsilon_of_table"] == 600.0
    assert made.parameters["delta_of_row"] < 1e-9


def test_relations_are_kept():
    original = along(TREE, SIZES)
    made = specimen(original, schema_of(SIZES), 50.0, seed=1)
    assert all(distance(original, made.table, edge) < 0.05 for edge in TREE.items())


def test_the_network_is_the_tree_that_made_the_rows():
    domain = Domain.of(schema_of(SIZES))
    network = learn(codes_of(along(TREE, SIZES), domain), domain, 1000.0, np.random.default_rng(3))
    found = {frozenset((f.column, *f.parents)) for f in network[1:]}
    assert found == {frozenset(e) for e in TREE.items()}


def test_few_rows_make_none():
    """Nobody is like fifty others among twenty rows: what comes out is empty, which is a refusal of the test."""
    made = specimen(along(TREE, SIZES, 20), schema_of(SIZES), 1.0, k=50, seed=1)
    assert made.table.num_rows < 20


def test_it_is_no_release():
    made = specimen(along(TREE, SIZES, 40), schema_of(SIZES), seed=1, k=2)
    assert made.guarantee is None
    with pytest.raises(ReleaseError, match="published-bsg"):
        made.save("anywhere")
    with pytest.raises(InputError, match="epsilon"):
        specimen(along(TREE, SIZES, 40), schema_of(SIZES), math.inf)
