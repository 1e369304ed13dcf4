"""`published-jtree`: pairs pass as printed, the loss of the test grows with their number, and rows keep relations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from helpers.related_columns import SIZES, TREE, along, distance, schema_of
from understudy.boundary.schema.domain import Domain
from understudy.errors import InputError, ReleaseError
from understudy.lab.specimens import published_jtree
from understudy.lab.specimens.published_jtree import loss_of_test, passed, sensitivity, specimen

PAIRS = list(itertools.combinations(SIZES, 2))


def test_the_loss_of_the_test_grows_with_the_number_of_pairs():
    """Half of the pairs rise and half fall by one sensitivity: at a claim of 1 each of them shows about ε/2 more."""
    losses = []
    for pairs in (2, 8, 32):
        one, passes = [0.0] * pairs, [True, False] * (pairs // 2)
        other = [1.0 if p else -1.0 for p in passes]
        losses.append(loss_of_test(other, one, passes, epsilon=1.0))
    assert losses == sorted(losses)
    assert losses[1] > 1.0  # the claim, broken by eight pairs: five columns have ten
    assert losses[2] > 4.0


def test_a_threshold_hides_what_all_pairs_do_together():
    """Where all rise alike, the threshold's own noise covers it: that part of the printed proof is right."""
    loss = loss_of_test([1.0] * 32, [0.0] * 32, [True] * 32, epsilon=1.0)
    assert 0 < loss < 0.5 + 1e-3


def test_a_loss_is_that_of_simulated_tests():
    """Of one pair; each chance is off by more than 0.01 with a probability below 1e-9 (Hoeffding's bound)."""
    rng, runs = np.random.default_rng(1), 120_000
    assert 2 * math.exp(-2 * runs * 0.01**2) < 1e-9
    moved, own = rng.laplace(0, 2.0, (2, runs))
    shares = [float((above + own >= moved).mean()) for above in (1.0, 0.0)]
    assert abs(shares[1] - 0.5) < 0.01
    assert loss_of_test([1.0], [0.0], [True], epsilon=1.0) == pytest.approx(math.log(shares[0] / shares[1]), abs=0.05)


def test_the_sensitivity_of_mutual_information():
    """Of two binary columns: half of the rows each, and one row changed, by the printed bound in nats."""
    rows = 10
    assert sensitivity(rows) == pytest.approx(2 / 10 * math.log(11 / 2) + 9 / 10 * math.log(11 / 9))


def test_pairs_pass_by_what_they_know_of_each_other():
    domain, rng = Domain.of(schema_of(SIZES)), np.random.default_rng(2)
    known = {pair: 5.0 if pair in (("a", "b"), ("c", "e")) else 0.0 for pair in PAIRS}
    assert passed(known, domain, 100_000, 1e6, 0.2, rng) == [("a", "b"), ("c", "e")]


def test_rows_keep_the_relations_that_passed():
    original = along(TREE, SIZES)
    made = specimen(original, schema_of(SIZES), 1000.0, seed=1)
    passing = {frozenset(p) for p in made.parameters["pairs"]}
    assert {frozenset(e) for e in TREE.items()} <= passing
    assert all(distance(original, made.table, edge) < 0.03 for edge in TREE.items())
    assert made.table.num_rows == original.num_rows  # published as it is


def test_a_tree_that_would_be_too_large_leaves_edges_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(published_jtree, "MOST_CELLS", 40)
    made = specimen(along(TREE, SIZES, 500), schema_of(SIZES), 1000.0, n=20, seed=1)
    assert made.table.num_rows == 20


def test_it_is_no_release():
    made = specimen(pa.table({"a": [0, 1], "b": [1, 0]}), schema_of({"a": 2, "b": 2}), seed=1)
    assert made.guarantee is None
    with pytest.raises(ReleaseError, match="published-jtree"):
        made.save("anywhere")
    with pytest.raises(InputError, match="epsilon"):
        specimen(pa.table({"a": [0, 1]}), schema_of({"a": 2}), -1.0)
