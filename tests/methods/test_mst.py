"""`mst`: without noise, the tree that made the table; and what every release of `mst` and `aim` must keep to."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import ROWS, SIZES, TREE, along, distance, mean_distance, measured, schema_of
from understudy.boundary.privacy.mechanisms.exponential import first_admissible
from understudy.boundary.schema.column import Boolean, Categorical
from understudy.boundary.schema.domain import Domain
from understudy.errors import SchemaError
from understudy.methods.mst import Mst
from understudy.methods.parts.select_measure import Acyclic

METHODS = ("mst", "aim")


def test_the_tree_that_made_the_table_is_found(silent):
    original = along(TREE, SIZES)
    release = silent(original, schema_of(SIZES), "mst")
    edges = {frozenset(e) for e in TREE.items()}
    assert len(measured(release)) == len(edges) and set(measured(release)) == edges
    assert all(distance(original, release.table, edge) < 0.01 for edge in TREE.items())
    # Along the tree everything else follows; what is left is the sampling error of the original itself.
    assert mean_distance(original, release.table) < 0.01


def test_mutant_another_tree_is_told_apart(silent):
    """The same check fails where the relations are made along another tree."""
    original = along(TREE, SIZES)
    other = silent(along({**TREE, "f": "b"}, SIZES), schema_of(SIZES), "mst")
    assert set(measured(other)) != {frozenset(e) for e in TREE.items()}
    assert distance(original, other.table, ("e", "f")) > 0.1


def test_it_asks_one_way_counts_then_one_selection_then_the_edges(silent):
    release = silent(along(TREE, SIZES), schema_of(SIZES), "mst")
    asks = [a.question["ask"] for a in release.record]
    assert asks == ["marginal"] * 6 + ["select"] + ["partition"] * 5
    assert [s.mechanism for s in release.certificate.spends].count("exponential") == 5


def test_a_target_draws_the_tree_to_it(silent):
    """Of two copies of one column, equally related to a third, the pair with the target is kept."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, ROWS)
    t = np.where(rng.random(ROWS) < 0.55, x, rng.integers(0, 3, ROWS))
    y = np.where(rng.random(ROWS) < 0.7, x, rng.integers(0, 3, ROWS))
    sizes = {"x": 3, "y": 3, "t": 3}
    frame = pa.table({"x": x, "y": y, "t": t})
    plain, aimed = (silent(frame, schema_of(sizes), "mst", target=target) for target in (None, "t"))
    assert set(measured(plain)) == {frozenset("xy"), frozenset("xt")}
    assert set(measured(aimed)) == {frozenset("xt"), frozenset("yt")}


def test_the_forest_never_closes_a_cycle():
    pairs = [("a", "b"), ("c", "d"), ("b", "a"), ("b", "c"), ("a", "d"), ("d", "b"), ("a", "c")]
    assert first_admissible(range(len(pairs)), Acyclic(pairs), len(pairs)) == [0, 1, 3]


def test_weights_draw_the_tree_to_a_pair_or_away_from_it(silent):
    """Without weights the tree is the two strongest pairs, xy and xt."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, ROWS)
    t = np.where(rng.random(ROWS) < 0.55, x, rng.integers(0, 3, ROWS))
    y = np.where(rng.random(ROWS) < 0.7, x, rng.integers(0, 3, ROWS))
    sizes = {"x": 3, "y": 3, "t": 3}
    plain, drawn, pushed = (
        silent(pa.table({"x": x, "y": y, "t": t}), schema_of(sizes), "mst", weights=weights)
        for weights in (None, {("t", "y"): 3}, {"x,y": 0.2})
    )
    assert set(measured(plain)) == {frozenset("xy"), frozenset("xt")}
    assert set(measured(drawn)) == {frozenset("xy"), frozenset("yt")}
    assert set(measured(pushed)) == {frozenset("xt"), frozenset("yt")}


def test_a_target_must_be_a_column():
    with pytest.raises(SchemaError, match="'nobody'"):
        Mst(("nobody",)).calibrate(Domain.of(schema_of(SIZES)), us.Budget(1.0, 0.0).capacity)


# --- What both methods keep to ----------------------------------------------------------------------------------------

both = pytest.mark.parametrize("method", METHODS)


@both
@pytest.mark.parametrize("columns", [1, 2])
def test_narrow_tables(silent, method: str, columns: int):
    sizes = dict(itertools.islice(SIZES.items(), columns))
    original = along(TREE, sizes)
    release = silent(original, schema_of(sizes), method)
    assert distance(original, release.table, tuple(sizes), sizes) < 0.001
    assert 0.98 <= release.certificate.composed[0] <= 1.0


@both
def test_columns_of_one_value_and_tables_of_two_rows(silent, method: str):
    sizes = {"a": 1, "b": 3, "c": 1}
    release = silent(pa.table({"a": [0, 0], "b": [0, 2], "c": [0, 0]}), schema_of(sizes), method, rows=20)
    assert release.table.num_rows == 20
    assert set(release.table.column("a").to_pylist()) == {0}


@both
def test_a_column_of_three_thousand_values(silent, method: str):
    """Rare values are merged, so that no joint table is large; opened again, their one-way counts are kept."""
    rng = np.random.default_rng(3)
    many = np.minimum(rng.zipf(1.3, ROWS) - 1, 2999)
    labels = [f"v{i}" for i in range(3000)]
    schema = us.Schema((Categorical("many", values=labels), Categorical("other", values=labels), Boolean("flag")))
    names = np.array(labels)
    frame = pa.table({"many": names[many], "other": names[rng.permutation(many)], "flag": many < 3})
    release = silent(frame, schema, method)
    assert max(a.value.size for a in release.record if a.question["ask"] == "partition") < 50_000
    made = np.array([int(v[1:]) for v in release.table.column("many").to_pylist()])
    # The noise is silent but believed: values that it would hide are shrunk (half of this), and cells a little towards
    # independence, where this would be .5.
    off = np.bincount(made, minlength=3000) / len(made) - np.bincount(many, minlength=3000) / ROWS
    assert np.abs(off).sum() / 2 < 0.1
    assert np.mean(np.array(release.table.column("flag").to_pylist()) == (made < 3)) > 0.95


@pytest.mark.slow_after(1)
@both
def test_forty_binary_columns(silent, method: str):
    sizes = {f"c{i}": 2 for i in range(40)}
    tree = {f"c{i}": f"c{(i - 1) // 2}" for i in range(1, 40)}
    original = along(tree, sizes, 5000)
    release = silent(original, schema_of(sizes), method)
    assert np.mean([distance(original, release.table, edge, sizes) for edge in tree.items()]) < 0.01
    assert {frozenset(e) for e in tree.items()} <= set(measured(release))


def with_person(frame: pa.Table) -> pa.Table:
    return frame.append_column("person", pa.array([f"p{i // 3}" for i in range(frame.num_rows)]))


PERSON = '\n[unit]\ncolumn = "person"\nmax_rows = 3\n[columns.person]\ntype = "identifier"\n'
CLAIMS = {
    "with delta": ("add-remove", 1e-6, False),
    "pure": ("add-remove", 0.0, False),
    "replace-one": ("replace-one", 1e-6, False),
    "pure, replace-one": ("replace-one", 0.0, False),
    "persons": ("add-remove", 1e-6, True),
}


@both
@pytest.mark.parametrize("claim", CLAIMS)
def test_releases_claim_what_was_asked_and_verify_and_replay(method: str, claim: str, tmp_path: Path):
    neighbours, delta, persons = CLAIMS[claim]
    schema = us.Schema.loads(schema_of(SIZES).dumps() + PERSON) if persons else schema_of(SIZES)
    schema = dataclasses.replace(schema, neighbours=neighbours)
    frame = along(TREE, SIZES, 900)
    table = us.open(with_person(frame) if persons else frame, schema)
    target = "d" if claim == "with delta" else None
    release = us.synthesize(table, method=method, epsilon=1.0, delta=delta, target=target)
    assert 0.98 <= release.certificate.composed[0] <= 1.0 and release.certificate.delta == delta
    mechanisms = {s.mechanism for s in release.certificate.spends}
    noise = "discrete-laplace" if delta == 0 else "rounded-gaussian"
    assert mechanisms - {"public"} == {noise, "exponential"}
    assert {s.sensitivity for s in release.certificate.spends if s.mechanism == noise} == {
        release.certificate.spends[-1].sensitivity
    }
    if neighbours == "replace-one":
        assert release.arrow.num_rows == 900
    folder = release.save(tmp_path / "release")
    assert us.verify(folder).claimed
    assert us.replay(folder).rows == release.certificate.rows


@both
def test_a_seed_repeats_a_release(method: str):
    table = us.open(along(TREE, SIZES, 900), schema_of(SIZES))
    one, two = (us.synthesize(table, method=method, epsilon=1.0, seed=4, test_only_noise_seed=5) for _ in range(2))
    assert one.arrow.equals(two.arrow)
