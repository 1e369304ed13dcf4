"""Weighted triples and workloads of triples, as `aim` and `mwem` measure them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import distance, measured, schema_of
from understudy.boundary.privacy.mechanisms.score import STEP
from understudy.boundary.schema.column import Categorical
from understudy.errors import MethodError

ROWS = 20_000
SIZES = dict.fromkeys("abcde", 2)
PARITY = ("a", "b", "c")
adaptive = pytest.mark.parametrize("method", ["aim", "mwem"])


def parity(rows: int = ROWS) -> pa.Table:
    """c is the parity of a and b, and e of b and d: no pair says anything of either."""
    rng = np.random.default_rng(6)
    a, b, d = rng.integers(0, 2, (3, rows))
    return pa.table({"a": a, "b": b, "c": (a + b) % 2, "d": d, "e": (b + d) % 2})


def candidates(release: us.Release) -> list[tuple[str, ...]]:
    """What the first selection chose from."""
    return [tuple(c) for c in next(a for a in release.record if a.question["ask"] == "select").question["candidates"]]


@adaptive
def test_only_pairs_are_candidates_without_weights(silent, method: str):
    release = silent(parity(), schema_of(SIZES), method)
    assert sorted(map(sorted, candidates(release))) == sorted(map(list, itertools.combinations(SIZES, 2)))
    assert distance(parity(), release.table, PARITY, SIZES) > 0.3


@adaptive
@pytest.mark.parametrize("weight", [1, 5])
def test_a_weighted_triple_is_a_candidate_and_is_measured(silent, method: str, weight: float):
    release = silent(parity(), schema_of(SIZES), method, weights={("c", "a", "b"): weight})
    assert {frozenset(c) for c in candidates(release) if len(c) == 3} == {frozenset(PARITY)}
    assert len(candidates(release)) == 11
    assert frozenset(PARITY) in measured(release)
    assert distance(parity(), release.table, PARITY, SIZES) < 0.01
    assert distance(parity(), release.table, ("b", "d", "e"), SIZES) > 0.3


@adaptive
def test_a_workload_of_triples_finds_all_of_them_without_a_target(silent, method: str):
    release = silent(parity(), schema_of(SIZES), method, workload="triples")
    assert len(candidates(release)) == len(set(map(frozenset, candidates(release)))) == 10 + 10
    for columns in (PARITY, ("b", "d", "e")):
        assert frozenset(columns) in measured(release)
        assert distance(parity(), release.table, columns, SIZES) < 0.01


@pytest.mark.parametrize("wish", [{"weights": {PARITY: 2, ("d", "e", "b"): 2}}, {"workload": "triples"}])
def test_triples_with_the_target_are_candidates_once(silent, wish: dict):
    """`aim` has every triple with the target anyway; what is wanted besides is added, and nothing stands twice."""
    release = silent(parity(), schema_of(SIZES), "aim", target="c", **wish)
    triples = [frozenset(c) for c in candidates(release) if len(c) == 3]
    with_target = {frozenset(t) for t in itertools.combinations(SIZES, 3) if "c" in t}
    wanted = set(map(frozenset, itertools.combinations(SIZES, 3))) if "workload" in wish else {frozenset("deb")}
    assert len(triples) == len(set(triples)) and set(triples) == with_target | wanted


def test_the_heavier_of_two_equal_triples_is_measured_first(silent):
    """Both relations are a parity, equally strong: the weight alone decides."""
    for first, second in (("abc", "bde"), ("bde", "abc")):
        weights = {tuple(first): 2, tuple(second): 1}
        order = [s for s in measured(silent(parity(), schema_of(SIZES), "mwem", weights=weights)) if len(s) == 3]
        assert order[:2] == [frozenset(first), frozenset(second)]


@adaptive
@pytest.mark.parametrize("wish", [{"weights": {PARITY: 40}}, {"workload": "triples"}])
def test_the_sensitivity_of_a_selection_stays_one_row(silent, method: str, wish: dict):
    spends = silent(parity(), schema_of(SIZES), method, **wish).certificate.spends
    selected = {s.sensitivity for s in spends if s.mechanism == "exponential"}
    assert len(selected) == 1 and selected.pop() <= 1 + STEP


@adaptive
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("wish", [{"weights": {PARITY: 5, ("a", "d"): 2}}, {"workload": "triples", "target": "e"}])
def test_a_release_with_triples_replays(method: str, delta: float, wish: dict, tmp_path: Path):
    table = us.open(parity(2000), schema_of(SIZES))
    release = us.synthesize(table, epsilon=1.0, delta=delta, method=method, **wish)
    folder = release.save(tmp_path / "release")
    assert 0.98 <= us.verify(folder).epsilon <= 1.0
    assert us.replay(folder).rows == release.table.num_rows


def test_triples_that_share_no_clique_are_estimated_along_the_tree(silent):
    """A chain of copies: of the triple a, c, e no two share a clique, and the chain alone says what to expect of it.

    So with the chain measured there is nothing left to learn from it, and it is measured late or never.
    """
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 2, ROWS)]
    for _ in range(4):
        columns.append(np.where(rng.random(ROWS) < 0.8, columns[-1], rng.integers(0, 2, ROWS)))
    original = pa.table(dict(zip("abcde", columns, strict=True)))
    release = silent(original, schema_of(SIZES), "mwem", weights={("a", "c", "e"): 0.9})
    assert {frozenset(p) for p in ("ab", "bc", "cd", "de")} <= set(measured(release)[:5])
    assert distance(original, release.table, ("a", "c", "e"), SIZES) < 0.02


@adaptive
def test_too_many_triples_spend_nothing(method: str, tmp_path: Path):
    sizes = {f"c{i}": 2 for i in range(51)}
    rows = np.random.default_rng(1).integers(0, 2, (51, 20))
    table = us.open(pa.table(dict(zip(sizes, rows, strict=True))), schema_of(sizes))
    with pytest.raises(MethodError, match="20,825 sets of three and may have at most 20,000"):
        us.synthesize(table, epsilon=1.0, method=method, workload="triples", ledger=tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("method", ["aim", "mwem", "auto"])
def test_an_unknown_workload_is_refused(method: str):
    with pytest.raises(MethodError, match=r"workload \('quads'\) must be one of pairs, triples"):
        us.synthesize(us.open(parity(50), schema_of(SIZES)), epsilon=1.0, method=method, workload="quads")


@pytest.mark.parametrize(
    ("method", "wish"),
    [("mwem", {"weights": {("a", "b", "c"): 9}}), ("aim", {"target": "c"}), ("aim", {"workload": "triples"})],
)
def test_a_triple_that_is_too_large_is_passed_over_before_it_is_counted(silent, method: str, wish: dict):
    """Three columns of 130 values: 2.2 million cells, more than the model may have. A release is made all the same."""
    schema = us.Schema(tuple(Categorical(c, values=tuple(map(str, range(130)))) for c in "abc"))
    rng = np.random.default_rng(2)
    every = np.tile(np.arange(130), 12)
    frame = pa.table({c: rng.permutation(every).astype(str) for c in "abc"})
    release = silent(frame, schema, method, epsilon=20.0, rows=10, **wish)
    assert all(len(c) == 2 for c in candidates(release)) and release.table.num_rows == 10
