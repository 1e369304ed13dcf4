"""`privsyn`: without noise, rows that hold the chosen pairs; pairs that are worth their noise, and no others."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import ROWS, SIZES, TREE, along, distance, measured, schema_of
from understudy.inference.gradual_update import GraduallyUpdated
from understudy.inference.noisy_table import NoisyTable
from understudy.methods.privsyn import affordable


def test_the_related_pairs_are_chosen_and_kept(silent):
    original = along(TREE, SIZES)
    release = silent(original, schema_of(SIZES), "privsyn")
    edges = {frozenset(e) for e in TREE.items()}
    assert edges <= set(measured(release))
    # Rows are moved by chance, so that no pair is met exactly.
    assert all(distance(original, release.table, edge) < 0.02 for edge in TREE.items())


def test_mutant_another_table_is_told_apart(silent):
    """The same check fails where rows are made along another tree."""
    original = along(TREE, SIZES)
    other = silent(along({**TREE, "f": "b"}, SIZES), schema_of(SIZES), "privsyn")
    assert distance(original, other.table, ("e", "f")) > 0.1


def test_unrelated_columns_are_not_measured_together(silent):
    rng = np.random.default_rng(4)
    frame = pa.table({c: rng.integers(0, size, ROWS) for c, size in SIZES.items()})
    release = silent(frame, schema_of(SIZES), "privsyn")
    assert measured(release) == []
    assert all(distance(frame, release.table, (c,)) < 0.02 for c in SIZES)


def test_it_asks_one_way_counts_then_one_selection_then_the_pairs(silent):
    release = silent(along(TREE, SIZES), schema_of(SIZES), "privsyn")
    asks = [a.question["ask"] for a in release.record]
    assert asks[:7] == ["marginal"] * 6 + ["select"] and set(asks[7:]) == {"partition"}


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_narrow_tables(silent, columns: int, delta: float):
    sizes = dict(itertools.islice(SIZES.items(), columns))
    original = along(TREE, sizes)
    release = silent(original, schema_of(sizes), "privsyn", delta=delta)
    assert distance(original, release.table, tuple(sizes), sizes) < 0.02
    assert release.certificate.composed[0] <= 1.0


def test_no_more_pairs_than_were_asked_for(silent):
    frame, schema = along(TREE, SIZES), schema_of(SIZES)
    release = us.synthesize(us.open(frame, schema), method="privsyn", epsilon=50.0, options={"pairs": 2}, ledger=False)
    assert len(measured(release)) <= 2


def test_tables_share_a_budget_by_their_law():
    """Noise grows by the number of tables if it is Laplace, by its root if it is Gaussian; there is always one."""
    assert affordable(3.0, pure=True) == 3 and affordable(3.0, pure=False) == 9
    assert affordable(0.01, pure=True) == affordable(0.01, pure=False) == 1


def test_rows_are_moved_until_overlapping_marginals_hold():
    """A cycle of three pairs, which no order of draws follows; three values each, from one table of all columns."""
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.full(27, 0.5)).reshape(3, 3, 3) * 1000
    sizes = {"x": 3, "y": 3, "z": 3}
    axes = {"x": 0, "y": 1, "z": 2}
    sets = [*((c,) for c in sizes), *itertools.combinations(sizes, 2)]
    tables = [NoisyTable(s, joint.sum(axis=tuple(a for c, a in axes.items() if c not in s)), 1e-9) for s in sets]
    model = GraduallyUpdated.fit(sizes, tables, 1000.0)
    codes = model.sample(20_000, rng)
    for pair in sets[3:]:
        held = np.histogram2d(codes[pair[0]], codes[pair[1]], bins=(3, 3), range=((0, 3), (0, 3)))[0] / 20
        wanted = joint.sum(axis=next(a for c, a in axes.items() if c not in pair))
        # Of unrelated columns the distance is far above a tenth.
        assert np.abs(held - wanted).sum() / 2000 < 0.01


def test_evidence_is_kept():
    tables = [NoisyTable(("x",), np.array([5.0, 5.0]), 1.0), NoisyTable(("y",), np.array([5.0, 5.0]), 1.0)]
    tables.append(NoisyTable(("x", "y"), np.array([[5.0, 0.0], [0.0, 5.0]]), 1.0))
    model = GraduallyUpdated.fit({"x": 2, "y": 2}, tables, 10.0)
    given = {"x": np.array([0, 1] * 50)}
    rows = model.complete(given, np.random.default_rng(1))
    assert np.array_equal(rows["x"], given["x"])
    assert (rows["y"] == rows["x"]).mean() > 0.8
