"""`rake`, end to end: releases that hold, on tables of every shape; pairs that come back; and a guard that guards.

Where size does not matter, particles are few, and so are the rounds of picks and those of choosing rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import COPIES, along, counts, distance, mean_distance, measured, schema_of, tangled
from helpers.tuning import tune
from understudy.boundary.privacy.mechanisms.exponential import first_admissible
from understudy.boundary.schema.domain import Domain
from understudy.inference.conditional import ConditioningLimits
from understudy.inference.grouping import coarser, merged, refine
from understudy.inference.particles import kernels, vectorised
from understudy.inference.particles.gibbs import sweep as honest_sweep
from understudy.inference.particles.pair_forest import Edge
from understudy.inference.particles.particles import Particles, Snapshot
from understudy.methods.parts.resolution import Resolutions
from understudy.methods.parts.select_measure import Acyclic
from understudy.methods.rake import rake, schedule
from understudy.methods.rake.rake import RakeState, SmallOverlap
from understudy.methods.rake.tuning import TUNING

WHOLE, PARTICLES = "whole domain", "particles"
SIZES = dict.fromkeys("abcdef", 4)
CHAIN = dict(zip("bcdef", "abcde", strict=True))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "rake", particles=2000, final_particles=4000, most_picks=20, exchange_rounds=60)


@pytest.fixture(params=[WHOLE, PARTICLES])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tiny domains are held whole; without that, they are drawn as large ones are."""
    if request.param == PARTICLES:
        tune(monkeypatch, "rake", whole_domain=0)
    return request.param


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "rake", whole_domain=0)


def linked(rows: int = 3000) -> pa.Table:
    return along(CHAIN, SIZES, rows)


def made(frame: pa.Table, schema: us.Schema, **options: Any) -> us.Release:
    options = {"epsilon": 2.0, "seed": 5, "test_only_noise_seed": 1} | options
    return us.synthesize(us.open(frame, schema), method="rake", **options)


# --- Releases ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_verifies_and_replays(delta: float, relation: str, mode: str, tmp_path: Path):
    schema = us.Schema.loads(schema_of(SIZES).dumps().replace("add-remove", relation))
    release = us.synthesize(us.open(linked(), schema), method="rake", epsilon=1.0, delta=delta)
    release.save(tmp_path / "out")
    assert 0.98 <= us.verify(tmp_path / "out").epsilon <= 1.0
    assert us.replay(tmp_path / "out").rows == release.table.num_rows
    assert relation == "add-remove" or release.table.num_rows == 3000


def test_rows_depend_on_the_seed_and_on_the_noise_and_on_nothing_else(mode: str):
    first, again, drawn, noise = (
        made(tangled(1000), schema_of(COPIES), seed=seed, test_only_noise_seed=noise).table
        for seed, noise in ((1, 1), (1, 1), (2, 1), (1, 2))
    )
    assert first.equals(again) and not first.equals(drawn) and not first.equals(noise)


def test_rows_are_the_same_without_numba(drawn, monkeypatch: pytest.MonkeyPatch):
    assert kernels.COMPILED
    compiled = made(linked(), schema_of(SIZES)).table
    for name in kernels.__all__[1:]:
        monkeypatch.setattr(kernels, name, getattr(vectorised, name))
    assert made(linked(), schema_of(SIZES)).table.equals(compiled)


@pytest.mark.parametrize("epsilon, few", [(0.2, True), (12.0, False)])
def test_where_few_sets_can_be_measured_most_of_a_round_are_pairs_with_a_target(
    epsilon: float, few: bool, monkeypatch: pytest.MonkeyPatch
):
    """Two of three, until there are as many as there are such pairs. Where there is more to spend, a round is one
    selection among all sets."""
    tune(monkeypatch, "rake", most_picks=120)
    release = made(linked(), schema_of(SIZES), epsilon=epsilon, target=["a", "c"])
    places = [i for i, a in enumerate(release.record) if a.question["ask"] == "select"][1:]
    asked = [release.record[i].question for i in places]
    found = [all(_with_target(c) for c in q["candidates"]) for q in asked]
    before = [sum(_with_target(a.question["columns"]) for a in _partitions(release.record[:i])) for i in places]
    assert not few or (any(found) and [q["k"] for q in asked][:2] == [2, 1])
    assert few or {q["k"] for q in asked} == {5}
    for question, aimed, known in zip(asked, found, before, strict=True):
        assert aimed == (few and known < len("bdef") * 2 + 1 and question["k"] == 2)


def test_a_greater_weight_comes_before_a_target():
    """No round is kept for pairs that the user weighs less than others; nor is any selection made less sharp by it."""
    release = made(linked(), schema_of(SIZES), epsilon=0.2, target="a", weights={("e", "f"): 40.0})
    asked = [a.question for a in release.record if a.question["ask"] == "select"]
    assert all(["e", "f"] in q["candidates"] for q in asked)


def _with_target(columns: Sequence[str]) -> bool:
    return len(columns) == 2 and bool({"a", "c"} & set(columns))


def _partitions(record: Sequence[Any]) -> list[Any]:
    return [a for a in record if a.question["ask"] == "partition"]


def test_every_ask_is_a_marginal_a_selection_a_grid_or_a_moment(silent, mode: str):
    """The columns; a forest, which has no cycle; moments of numbers; then rounds of a selection and what it picked."""
    release = silent(linked(), schema_of(SIZES), "rake")
    asks = [a.question["ask"] for a in release.record]
    first = asks.index("select")
    assert set(asks[:first]) == {"marginal"} and set(asks[first:]) - {"moment"} == {"select", "partition"}
    assert asks[first : first + 6] == ["select", *["partition"] * 5]
    places = [i for i, ask in enumerate(asks) if ask == "moment"]
    assert places == list(range(first + 6, first + 6 + len(places))) and asks[first + 6 + len(places)] == "select"
    assert set(measured(release)[:5]) == {frozenset(e) for e in CHAIN.items()}
    for start in (i for i, ask in enumerate(asks) if ask == "select"):
        select = release.record[start]
        chosen = [select.question["candidates"][i] for i in select.value]
        assert chosen == [a.question["columns"] for a in release.record[start + 1 : start + 1 + len(chosen)]]


def test_the_start_is_a_forest_where_every_pair_is_strong(silent):
    """Several resolutions of one pair are candidates: none is picked twice, and no cycle is closed."""
    first = [tuple(p) for p in measured(silent(tangled(4000), schema_of(COPIES), "rake"))[: len(COPIES) - 1]]
    every = range(len(first))
    assert first_admissible(every, Acyclic(first), len(first)) == list(every)


@pytest.mark.parametrize("target", ["id", "nothing"])
def test_a_target_that_is_not_modelled_is_refused_before_anything_is_spent(target: str, tmp_path: Path):
    schema = us.Schema.loads('[columns.id]\ntype = "identifier"\n' + schema_of(COPIES).dumps().partition("\n")[2])
    frame = tangled(100).append_column("id", pa.array([str(i) for i in range(100)]))
    with pytest.raises(us.SchemaError, match=target):
        made(frame, schema, target=target, ledger=tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


# --- What comes back --------------------------------------------------------------------------------------------------


def test_without_noise_pairs_come_back(silent, mode: str):
    original = tangled()
    table = silent(original, schema_of(COPIES), "rake", epsilon=1000.0).table
    far = mean_distance(original, silent(original, schema_of(COPIES), "independent").table, COPIES)
    assert mean_distance(original, table, COPIES) < 0.01 < 0.1 < far


def test_it_comes_closer_than_independent_columns_with_noise(mode: str):
    original, schema = linked(), schema_of(SIZES)
    ours, baseline = (
        mean_distance(
            original,
            us.synthesize(us.open(original, schema), method=m, epsilon=1.0, seed=1, test_only_noise_seed=1).table,
            SIZES,
        )
        for m in ("rake", "independent")
    )
    assert ours < 0.5 * baseline


def parity() -> pa.Table:
    """t is the parity of two columns: no pair says anything of it."""
    a, b, c = np.random.default_rng(6).integers(0, 2, (3, 8000))
    return pa.table({"a": a, "b": b, "c": c, "t": (a + b) % 2})


BINARY = dict.fromkeys("abct", 2)


@pytest.mark.parametrize(
    "options",
    [{"target": "t"}, {"workload": "triples"}, {"weights": {("a", "t", "b"): 5.0}}],
    ids=lambda options: next(iter(options)),
)
def test_triples_are_measured_where_they_are_wanted(options: Mapping[str, Any], silent, mode: str):
    original = parity()
    release = silent(original, schema_of(BINARY), "rake", epsilon=50.0, **options)
    assert frozenset("abt") in measured(release)
    assert distance(original, release.table, ("a", "b", "t"), BINARY) < 0.03
    if "weights" in options:
        assert {s for s in measured(release) if len(s) == 3} == {frozenset("abt")}


@pytest.mark.parametrize("target", ["t", None])
def test_a_relation_that_no_three_columns_show_is_found(target: str | None, silent, mode: str, monkeypatch):
    a, b, c, d, e = np.random.default_rng(6).integers(0, 2, (5, 8000))
    original = pa.table({"a": a, "b": b, "c": c, "d": d, "e": e, "t": (a + b + c) % 2})
    sizes, found = dict.fromkeys("abcdet", 2), []
    for _ in range(2):
        table = silent(original, schema_of(sizes), "rake", epsilon=20.0, target=target).table
        found.append(distance(original, table, ("a", "b", "c", "t"), sizes))
        tune(monkeypatch, "rake", larger_sets=0)  # the counter-example
    assert found[0] < 0.05 < 0.4 < found[1]


def test_larger_sets_keep_the_classes_of_a_target(drawn):
    domain = Domain.of(schema_of(SIZES | {"t": 9}))
    weights = {c: np.full(domain.size(c), 10.0) for c in domain.names}
    found = Resolutions.of(domain, weights, {"t": 12})
    assert found.shape(("a", "b", "c", "t"), 2) == (2, 2, 2, 9)
    assert found.shape(("a", "b", "t"), 2) == (2, 2, 2)


def test_without_a_target_and_without_larger_sets_only_pairs_are_measured(silent, monkeypatch: pytest.MonkeyPatch):
    """The counter-example of the test above."""
    tune(monkeypatch, "rake", larger_sets=0)
    release = silent(parity(), schema_of(BINARY), "rake", epsilon=50.0)
    assert {len(s) for s in measured(release)} == {2}
    assert distance(parity(), release.table, ("a", "b", "t"), BINARY) > 0.3


def test_a_pair_of_great_weight_is_picked_first(silent):
    original = tangled(4000)
    for pair in (("a", "b"), ("c", "t")):
        release = silent(original, schema_of(COPIES), "rake", weights={pair: 100.0})
        assert measured(release)[0] == frozenset(pair)


# --- Linked columns ---------------------------------------------------------------------------------------------------

LINKED = {"a": 20, "b": 5, "c": 20, "d": 4, "e": 10}


def codes_and_categories() -> pa.Table:
    """b and d are functions of a and c, as a place's region is of the place; c and e mostly repeat a."""
    rng = np.random.default_rng(2)
    a = rng.integers(0, 20, 6000)
    c = np.where(rng.random(6000) < 0.8, (a * 7) % 20, rng.integers(0, 20, 6000))
    e = np.where(rng.random(6000) < 0.9, a % 10, rng.integers(0, 10, 6000))
    return pa.table({"a": a, "b": (a * 3) % 5, "c": c, "d": c % 4, "e": e})


@pytest.mark.slow
def test_linked_columns_need_the_forest_start(drawn, monkeypatch: pytest.MonkeyPatch):
    original, edge_of = codes_and_categories(), RakeState._edge

    def error() -> float:
        """Of three releases whose noise is always the same."""
        options = [{"seed": k, "test_only_noise_seed": k, "epsilon": 1.0} for k in range(3)]
        made_of = [made(original, schema_of(LINKED), **o).table for o in options]
        return sum(mean_distance(original, table, LINKED) for table in made_of)

    ours = error()

    def unlinked(self: RakeState, *of: Any) -> Edge:
        edge = edge_of(self, *of)
        return Edge(edge.columns, edge.groups, np.ones_like(edge.factor))

    monkeypatch.setattr(RakeState, "_edge", unlinked)
    assert ours < 0.85 * error()


def test_a_function_of_a_column_is_kept_in_nearly_every_row(silent, drawn):
    original = codes_and_categories()
    table = silent(original, schema_of(LINKED), "rake", epsilon=1000.0).table
    a, b = (table.column(c).to_numpy() for c in "ab")
    assert ((a * 3) % 5 == b).mean() > 0.97


# --- The guard --------------------------------------------------------------------------------------------------------


def ruin(particles: Particles, rng: np.random.Generator, fixed: frozenset[str] = frozenset()) -> None:
    """A sweep that puts every row into one cell."""
    particles.move({c: np.zeros_like(v) for c, v in particles.codes.items()})


def test_a_refresh_that_ruins_the_particles_is_taken_back(silent, drawn, monkeypatch: pytest.MonkeyPatch):
    original, restored, honest = tangled(4000), [], Particles.restore

    def restore(self: Particles, snapshot: Snapshot) -> None:
        assert all((v == 0).all() for v in self.codes.values())
        honest(self, snapshot)
        assert self.codes is snapshot[0] and np.array_equal(self.weights, snapshot[1])
        restored.append(self.count)

    monkeypatch.setattr(Particles, "restore", restore)
    monkeypatch.setattr(rake, "sweep", ruin)
    release = silent(original, schema_of(COPIES), "rake", epsilon=10.0)
    selections = sum(a.question["ask"] == "select" for a in release.record)
    # Every one, and each to the first particles, which are as many as rows; what is refused is tried with more.
    assert restored == [4000] * (selections - 1 + TUNING.final_refreshes)
    assert mean_distance(original, release.table, COPIES) < 0.1


def test_refused_particles_are_drawn_in_greater_number(silent, drawn, monkeypatch: pytest.MonkeyPatch):
    tried: list[int] = []

    def counted(particles: Particles, rng: np.random.Generator, fixed: frozenset[str] = frozenset()) -> None:
        tried.append(particles.count)
        ruin(particles, rng, fixed)

    tune(monkeypatch, "rake", most_redraws=1, most_doubled=9000)
    monkeypatch.setattr(rake, "sweep", counted)
    silent(tangled(4000), schema_of(COPIES), "rake", epsilon=10.0)
    assert tried[:3] == [4000, 8000, 9000]


@pytest.mark.parametrize("epsilon", [1.0, 100.0])
def test_single_columns_are_as_they_were_paid_for(epsilon: float, drawn, monkeypatch: pytest.MonkeyPatch):
    """Whatever becomes of the pairs: here each sweep puts half of the rows into one cell, and no guard objects."""
    monkeypatch.setattr(RakeState, "sweep_particles", lambda self: half_ruin(self.particles))
    tune(monkeypatch, "rake", fewest_effective=0.0, most_loss=math.inf)
    original, errors = tangled(20_000), []
    for _ in range(2):
        table = made(original, schema_of(COPIES), epsilon=epsilon).table
        errors.append(max(distance(original, table, (c,), COPIES) for c in COPIES))
        monkeypatch.setattr(Particles, "fit_columns", lambda self, counts: None)  # what goes without it
    assert errors[0] < 0.005 < 0.015 < errors[1]


def half_ruin(particles: Particles) -> None:
    """Every second row goes into one cell."""
    places = np.arange(particles.count) % 2 == 0
    particles.move({c: np.where(places, 0, v) for c, v in particles.codes.items()})


def test_without_the_guard_the_ruin_stays(silent, drawn, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rake, "sweep", ruin)
    tune(monkeypatch, "rake", fewest_effective=0.0, most_loss=math.inf)
    release = silent(tangled(4000), schema_of(COPIES), "rake", epsilon=10.0)
    assert mean_distance(tangled(4000), release.table, COPIES) > 0.5


def astray(calls: list[int]) -> Callable[..., None]:
    """A sweep that every second time also puts every third row into one cell."""

    def strays(particles: Particles, rng: np.random.Generator, fixed: frozenset[str] = frozenset()) -> None:
        honest_sweep(particles, rng, fixed)
        calls.append(particles.count)
        if len(calls) % 2:
            places = np.arange(particles.count) % 3 == 0
            particles.move({c: np.where(places, 0, v) for c, v in particles.codes.items()})

    return strays


def test_a_sweep_that_goes_astray_is_raked_and_swept_again(drawn, monkeypatch: pytest.MonkeyPatch):
    tune(monkeypatch, "rake", particles=20_000, final_particles=20_000)
    original, usual = tangled(10_000), TUNING.most_redraws
    for redraws in (usual, 1):
        calls: list[int] = []
        tune(monkeypatch, "rake", most_redraws=redraws)
        monkeypatch.setattr(rake, "sweep", astray(calls))
        release = made(original, schema_of(COPIES), epsilon=10.0)
        refreshes = sum(a.question["ask"] == "select" for a in release.record) - 1 + TUNING.final_refreshes
        assert len(calls) == refreshes if redraws == 1 else len(calls) >= 2 * refreshes


def test_honest_refreshes_are_kept(drawn, monkeypatch: pytest.MonkeyPatch):
    """With noise, and with particles enough to see no less than it."""
    tune(monkeypatch, "rake", particles=20_000, final_particles=20_000)
    monkeypatch.setattr(Particles, "restore", lambda *_: pytest.fail("a refresh was taken back"))
    made(tangled(10_000), schema_of(COPIES), epsilon=1.0)


# --- Tables of every shape --------------------------------------------------------------------------------------------

KINDS = """
[columns.age]
type = "integer"
min = 0
max = 99
bins = 20
missing = true
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true
[columns.seen]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 53
[columns.well]
type = "boolean"
[columns.pay]
type = "number"
min = 0
max = 100
decimals = 1
bins = 10
"""
RULE = '[[constraints]]\nif = "age < 30"\nthen = "well"\n'


def people(rows: int = 3000) -> pa.Table:
    rng = np.random.default_rng(3)
    age, job = rng.integers(0, 100, rows), rng.choice(["clerk", "cook", "nurse"], rows)
    days = rng.integers(0, 366, rows) * np.timedelta64(86400, "s")
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(rows) < 0.2),
            "job": pa.array(job, mask=rng.random(rows) < 0.1),
            "seen": np.datetime64("2020-01-01", "s") + days,
            "well": (age < 30) | np.where(job == "cook", rng.random(rows) < 0.9, rng.random(rows) < 0.2),
            "pay": np.clip(age + rng.normal(0, 5, rows), 0, 100),
        }
    )


def share(table: pa.Table, column: str, value: object) -> float:
    return table[column].to_pylist().count(value) / table.num_rows


def test_missing_values_and_dates_come_back(tmp_path: Path):
    schema = us.Schema.loads(KINDS)
    release = made(people(), schema, epsilon=10.0)
    table = release.table
    for column, value in (("age", None), ("job", None), ("job", "cook"), ("well", True)):
        assert abs(share(table, column, value) - share(people(), column, value)) < 0.03
    days = [str(v) for v in table["seen"].to_pylist()]
    assert {d[:4] for d in days} == {"2020"} and len(set(days)) > 50
    assert max(v for v in table["age"].to_pylist() if v is not None) <= 99
    release.save(tmp_path / "out")
    assert us.replay(tmp_path / "out").rows == table.num_rows


def test_rules_hold_in_every_row():
    free, ruled = (made(people(), us.Schema.loads(KINDS + rule)).table for rule in ("", RULE))

    def broken(table: pa.Table) -> int:
        rows = zip(table["age"].to_pylist(), table["well"].to_pylist(), strict=True)
        return sum(age is not None and age < 30 and not well for age, well in rows)

    assert broken(free) > 0 == broken(ruled) and abs(ruled.num_rows - 3000) < 200


def test_given_values_are_kept_and_the_others_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tune(monkeypatch, "rake", conditioning=ConditioningLimits(pool=5000))
    release = made(people(), us.Schema.loads(KINDS), epsilon=20.0, rows=800, given={"job": "cook"})
    assert share(release.table, "job", "cook") == 1.0
    cooks = people().filter(np.array(people()["job"].to_pylist()) == "cook")
    wanted, anyone = share(cooks, "well", True), share(people(), "well", True)
    assert abs(share(release.table, "well", True) - wanted) < 0.1 < 0.3 < wanted - anyone
    release.save(tmp_path / "out")
    assert us.replay(tmp_path / "out").rows == 800


def numbers(sizes: Mapping[str, int], rows: int = 1000) -> pa.Table:
    rng = np.random.default_rng(9)
    return pa.table({c: rng.integers(0, n, rows) for c, n in sizes.items()})


SHAPES = {
    "one column": {"a": 12},
    "two columns": {"a": 12, "b": 3},
    "one value": {"a": 1, "b": 5, "c": 1},
    "nothing but one value": {"a": 1, "b": 1},
    "one column of one value": {"a": 1},
    "many values": {"a": 1000, "b": 2, "c": 30},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_any_shape(shape: str, mode: str, tmp_path: Path):
    sizes = SHAPES[shape]
    release = made(numbers(sizes), schema_of(sizes), epsilon=1.0)
    assert release.table.column_names == list(sizes)
    for column, size in sizes.items():
        values = release.table.column(column).to_numpy()
        assert values.min() >= 0 and values.max() < size
    release.save(tmp_path / "out")
    assert us.verify(tmp_path / "out").epsilon >= 0.98
    assert us.replay(tmp_path / "out").rows == release.table.num_rows


def test_one_column_gets_the_whole_budget_in_one_measurement(silent):
    release = silent(numbers({"a": 12}), schema_of({"a": 12}), "rake")
    assert [a.question["ask"] for a in release.record] == ["marginal"]
    assert distance(numbers({"a": 12}), release.table, ("a",), {"a": 12}) < 0.02


def test_a_column_that_is_all_missing_stays_so(silent, mode: str):
    text = '[columns.a]\ntype = "integer"\nmin = 0\nmax = 20\nmissing = true\n'
    text += '[columns.b]\ntype = "boolean"\nmissing = true\n'
    rows = pa.table({"a": pa.nulls(800, pa.int64()), "b": pa.nulls(800, pa.bool_())})
    table = silent(rows, us.Schema.loads(text), "rake", epsilon=10.0).table
    assert share(table, "a", None) > 0.99 and share(table, "b", None) > 0.99


@pytest.mark.parametrize("rows", [None, 77])
def test_a_handful_of_rows_and_hardly_any_budget(rows: int | None, mode: str):
    table = made(linked(3), schema_of(SIZES), epsilon=0.01, rows=rows).table
    assert table.num_rows == rows if rows else table.num_rows >= 1


def test_twelve_binary_columns_are_held_whole(silent, monkeypatch: pytest.MonkeyPatch):
    """4,096 cells: no particle is ever drawn or moved."""
    monkeypatch.setattr(rake, "sweep", lambda *_: pytest.fail("the whole domain needs no sweep"))
    monkeypatch.setattr(rake, "draw_forest", lambda *_: pytest.fail("the whole domain is not drawn"))
    sizes = {f"c{i}": 2 for i in range(12)}
    rng = np.random.default_rng(1)
    hidden = rng.integers(0, 2, 6000)
    original = pa.table({c: np.where(rng.random(6000) < 0.5, hidden, rng.integers(0, 2, 6000)) for c in sizes})
    table = silent(original, schema_of(sizes), "rake", epsilon=10.0).table
    far = mean_distance(original, silent(original, schema_of(sizes), "independent").table, sizes)
    assert mean_distance(original, table, sizes) < 0.03 < 0.1 < far  # about half of the pairs were measured


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_sets_of_one_round_share_at_most_one_column():
    asked = [("a", "b"), ("b", "a"), ("b", "c"), ("a", "b", "t"), ("a", "c", "t"), ("c", "t"), ("d", "e", "t")]
    picked = first_admissible(range(len(asked)), SmallOverlap(asked), len(asked))
    assert [asked[i] for i in picked] == [("a", "b"), ("b", "c"), ("a", "c", "t"), ("d", "e", "t")]


def test_merged_sums_by_groups_along_every_axis():
    rng = np.random.default_rng(1)
    frame, sizes = numbers({"a": 6, "b": 4, "c": 3}), {"a": 6, "b": 4, "c": 3}
    groups = (np.array([2, 0, 1, 1, 0, 2]), np.arange(4), np.zeros(3, dtype=np.intp))
    table = counts(frame, ("a", "b", "c"), sizes).reshape(6, 4, 3) * rng.random((6, 4, 3))
    expected = np.zeros((3, 4, 1))
    for cell in itertools.product(range(6), range(4), range(3)):
        expected[tuple(g[i] for g, i in zip(groups, cell, strict=True))] += table[cell]
    assert np.allclose(merged(table, groups), expected)


def test_each_fine_group_finds_its_coarser_one():
    fine, coarse = np.array([3, 0, 0, 1, 2, 4]), np.array([1, 0, 0, 0, 1, 2])
    found = coarser(fine, coarse)
    assert np.array_equal(found[fine], coarse) and len(refine([fine, coarse])[1]) == 5


@pytest.mark.parametrize("columns", [5, 14, 120])
@pytest.mark.parametrize("signal", [1e4, 1e5, 1e6])
def test_as_many_sets_are_picked_as_err_least_in_sum(signal: float, columns: int):
    """The same two errors with either noise: of measured sets, a·noise(k)/signal, of the others, b·columns/k^1.5."""
    sets = np.geomspace(1.0, 1e4, 200_000)
    at_best = schedule.worthwhile_sets(signal, 14, pure=False)
    b = at_best**2 / (3 * signal * 14)  # where the slope of √k/signal + b·14/k^1.5 is 0
    for pure, noise in ((False, np.sqrt(sets)), (True, math.sqrt(2) * sets)):
        least = sets[np.argmin(noise / signal + b * columns / sets**1.5)]
        assert schedule.worthwhile_sets(signal, columns, pure) == pytest.approx(least, rel=0.02)
