"""Which sets of columns matter: weights are relative and public, wrong ones are refused before anything is spent."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import SIZES, TREE, along, schema_of
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.score import STEP, Candidate, error_sensitivity
from understudy.boundary.schema.domain import Domain
from understudy.errors import InputError, MethodError, SchemaError
from understudy.methods.forecast.forecast import ASSUMED_ROWS, Forecast, forecasts
from understudy.methods.method import Options
from understudy.methods.parts.workload import MOST_TRIPLES, TRIPLES, Workload, parse_weight, stated_weights
from understudy.methods.registry import METHODS, choose, general_methods, recommended

DOMAIN = Domain.of(schema_of(SIZES))
WEIGHING = ("mwem", "mst", "aim", "rake")


# --- Weights ----------------------------------------------------------------------------------------------------------


def test_weights_are_relative_to_the_largest():
    workload = Workload.of(DOMAIN, ("a",), stated_weights({("c", "b"): 6, ("b", "c", "d"): 2}))
    wanted = [("b", "c"), ("c", "b"), ("a", "b"), ("b", "a"), ("d", "c"), ("d", "c", "b"), ("a", "b", "c")]
    assert [workload.weight(s) for s in wanted] == [1, 1, 3 / 6, 3 / 6, 1 / 6, 2 / 6, 1 / 6]


def test_a_stated_weight_comes_before_that_of_the_target():
    workload = Workload.of(DOMAIN, ("a",), stated_weights({("a", "b"): 1.5}))
    assert [workload.weight(s) for s in (("a", "b"), ("a", "c"), ("b", "c"))] == [0.5, 1.0, 1 / 3]


def test_without_weights_every_set_counts_the_same():
    workload = Workload.of(DOMAIN)
    assert {workload.weight(s) for k in (2, 3) for s in itertools.combinations(SIZES, k)} == {1.0}


@pytest.mark.parametrize("weight", [1e-300, 1e-3, 0.5, 7, 1e6])
def test_the_largest_weight_is_one_and_none_is_lost_to_the_grid(weight: float):
    workload = Workload.of(DOMAIN, ("a",), stated_weights({("a", "b"): weight, ("c", "d"): 1e6}))
    found = [workload.weight(p) for p in itertools.combinations(SIZES, 2)]
    assert max(found) == workload.weight(("c", "d")) == 1.0 and min(found) >= STEP


def exponents(weights: Mapping[tuple[str, str], float]) -> np.ndarray:
    """Score over twice its sensitivity: all that a selection's law knows of the scores and their weights."""
    rng = np.random.default_rng(5)
    candidates = [Candidate(p, 100 * rng.random((3, 4)), w, offset=-7 * w) for p, w in weights.items()]
    scores = np.array([c.score(rng.integers(0, 200, (3, 4))) for c in candidates])
    return scores / (2 * error_sensitivity(candidates, 1))


def test_a_common_factor_changes_nothing_in_the_law_of_a_selection():
    """Up to the grid of the scores, 2⁻²⁰ of a row and of a weight of about a tenth."""
    stated = {("a", "b"): 9.0, ("b", "c"): 0.7}
    workload = Workload.of(DOMAIN, ("d",), stated_weights(stated))
    raw = {p: stated.get(p, 3.0 if "d" in p else 1.0) for p in itertools.combinations(SIZES, 2)}
    relative = {p: workload.weight(p) for p in raw}
    assert exponents(relative) == pytest.approx(exponents(raw), rel=2e-5)
    assert exponents(dict.fromkeys(raw, 1.0)) != pytest.approx(exponents(raw), rel=0.5)


@pytest.mark.parametrize("method", ["mst", "aim", "mwem"])
@pytest.mark.parametrize("weight", [0.01, 50.0])
def test_a_weight_does_not_raise_what_a_selection_is_charged_for(silent, method: str, weight: float):
    release = silent(along(TREE, SIZES, 1000), schema_of(SIZES), method, weights={("a", "f"): weight})
    selections = [s for s in release.certificate.spends if s.mechanism == "exponential"]
    assert {s.sensitivity for s in selections} == {1 + STEP}
    assert 0.98 <= release.certificate.composed[0] <= 1.0


# --- Triples ----------------------------------------------------------------------------------------------------------


def test_weighted_triples_are_listed_in_the_order_of_the_columns():
    stated = stated_weights({("f", "b", "a"): 2, ("a", "d"): 3, "c,b,a": 1})
    assert Workload.of(DOMAIN, (), stated).triples() == (("a", "b", "c"), ("a", "b", "f"))
    assert Workload.of(DOMAIN, ("a",)).triples() == ()


def test_a_workload_of_triples_has_all_of_them():
    workload = Workload.of(DOMAIN, (), stated_weights({("f", "b", "a"): 2}), TRIPLES)
    assert workload.triples() == tuple(itertools.combinations(SIZES, 3))
    assert [workload.weight(t) for t in (("a", "b", "f"), ("a", "b", "c"))] == [1.0, 0.5]


@pytest.mark.parametrize(("columns", "triples"), [(1, 0), (2, 0), (50, 19_600)])
def test_all_triples_up_to_the_cap(columns: int, triples: int):
    domain = Domain.of(schema_of({f"c{i}": 2 for i in range(columns)}))
    assert len(Workload.of(domain, kind=TRIPLES).triples()) == triples <= MOST_TRIPLES


def test_too_many_triples_are_refused():
    domain = Domain.of(schema_of({f"c{i}": 2 for i in range(51)}))
    with pytest.raises(MethodError, match=r"51 columns has 20,825 sets of three and may have at most 20,000; give"):
        Workload.of(domain, kind=TRIPLES)
    assert len(Workload.of(domain, stated=stated_weights({"c1,c2,c50": 2})).triples()) == 1


# --- What is refused --------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, str]] = {
    "unknown column": ({("a", "height"): 2}, "'height'"),
    "column twice": ({("a", "a"): 2}, r"\(a, a\) must be two or three columns, each once"),
    "column twice in three": ({("a", "b", "a"): 2}, r"\(a, b, a\) must be two or three columns, each once"),
    "one column": ({("a",): 2}, r"\(a\) must be two or three columns"),
    "one column as text": ({"a": 2}, r"\(a\) must be two or three columns"),
    "four columns": ({("a", "b", "c", "d"): 2}, r"\(a, b, c, d\) must be two or three columns"),
    "no column": ({(): 2}, "must be two or three columns"),
    "empty name": ({"a,,b": 2}, "'a,,b'"),
    "name that is no text": ({("a", 3): 2}, r"\('a', 3\)"),
    "set that is no tuple": ({frozenset("ab"): 2}, "must be column names"),
    "weight of zero": ({("a", "b"): 0}, r"weight \(0\) of a, b must be above 0 and at most 1e6"),
    "weight below zero": ({("a", "b"): -1.5}, r"weight \(-1.5\)"),
    "weight not a number": ({("a", "b"): float("nan")}, r"weight \(nan\)"),
    "weight without end": ({("a", "b"): float("inf")}, r"weight \(inf\)"),
    "weight too large": ({("a", "b"): 1e6 + 1}, r"weight \(1000001.0\)"),
    "weight beyond any float": ({("a", "b"): 10**400}, "must be above 0 and at most 1e6"),
    "weight as text": ({("a", "b"): "5"}, r"weight \('5'\) of a, b must be a number"),
    "weight that is true": ({("a", "b"): True}, r"weight \(True\) of a, b must be a number"),
    "set twice": ({("a", "b"): 2, ("b", "a"): 3}, r"\(b, a\) is weighted twice"),
    "triple twice": ({("a", "b", "c"): 2, "c,a,b": 2}, r"\(c, a, b\) is weighted twice"),
    "no mapping": ([("a", "b")], "must map columns to numbers"),
}


@pytest.mark.parametrize("method", ["aim", "mwem", "auto"])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_weights_spend_nothing(case: str, method: str, tmp_path: Path):
    weights, words = WRONG[case]
    table = us.open(along(TREE, SIZES, 50), schema_of(SIZES))
    with pytest.raises((InputError, SchemaError), match=words):
        us.synthesize(table, epsilon=1.0, method=method, weights=weights, ledger=tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("method", WEIGHING)
def test_an_identifier_has_no_weight(method: str):
    schema = us.Schema.loads(schema_of(SIZES).dumps() + '[columns.who]\ntype = "identifier"\n')
    table = us.open(along(TREE, SIZES, 50).append_column("who", pa.array(["x"] * 50)), schema)
    with pytest.raises(SchemaError, match="'who' is an identifier"):
        us.synthesize(table, epsilon=1.0, method=method, weights={("a", "who"): 2})


@pytest.mark.parametrize("wish", [{"weights": {("a", "b", "c"): 2}}, {"workload": "triples"}])
def test_mst_refuses_triples(wish: dict[str, Any]):
    table = us.open(along(TREE, SIZES, 50), schema_of(SIZES))
    with pytest.raises(MethodError, match="mst measures pairs only; for sets of three columns use aim or mwem"):
        us.synthesize(table, epsilon=1.0, method="mst", **wish)


@pytest.mark.parametrize("wish", [{"weights": {("a", "b"): 2}}, {"workload": "triples"}])
@pytest.mark.parametrize("method", sorted(METHODS.keys() - set(WEIGHING)))
def test_methods_that_would_ignore_weights_refuse_them(method: str, wish: dict[str, Any]):
    table = us.open(along(TREE, SIZES, 50), schema_of(SIZES))
    words = f"method {method} can't weigh sets of columns; .* use aim or mst or mwem or rake"
    with pytest.raises(MethodError, match=words):
        us.synthesize(table, epsilon=1.0, method=method, target="a", **wish)


def test_every_method_says_whether_it_weighs():
    assert {m.name for m in METHODS.values() if m.traits.weighs} == set(WEIGHING)


@pytest.mark.parametrize("text", ["a,b", "a,b=", "a,b=much", "=5", "", "a,,b=5", ",=5"])
def test_weights_that_cannot_be_read(text: str):
    with pytest.raises(MethodError, match="such as age,income"):
        parse_weight(text)


def test_a_typed_weight_may_have_spaces_and_a_column_an_equals_sign():
    assert parse_weight(" a , b=c = 0.5") == (("a", "b=c"), 0.5)


# --- What is recorded -------------------------------------------------------------------------------------------------


def test_options_survive_the_certificate():
    options = Options(("a",), (("a", "b"),), stated_weights({("c", "b"): 6, ("b", "c", "d"): 0.1}), TRIPLES)
    assert Options.from_dict(options.to_dict()) == options
    assert options.to_dict()["weights"] == [[["c", "b"], 6.0], [["b", "c", "d"], 0.1]]


def test_a_certificate_that_knows_of_no_weights_still_loads():
    assert Options.from_dict({"target": "a", "marginals": [["a", "b"]]}) == Options(("a",), (("a", "b"),))
    assert Options.from_dict({}) == Options()


def test_a_weighted_release_is_recorded_shown_and_replayed(tmp_path: Path):
    table = us.open(along(TREE, SIZES, 500), schema_of(SIZES))
    release = us.synthesize(table, epsilon=1.0, method="mst", weights={"f,a": 2.5, ("b", "c"): 1})
    folder = release.save(tmp_path / "release")
    assert us.replay(folder).rows == release.table.num_rows
    parameters = us.Certificate.from_bytes((folder / "certificate.json").read_bytes()).parameters
    assert parameters["weights"] == [[["f", "a"], 2.5], [["b", "c"], 1.0]] and parameters["workload"] == "pairs"
    page = (folder / "report.html").read_text()
    assert "f, a = 2.5; b, c = 1" in page and ">Workload<" not in page


# --- What `auto` chooses ----------------------------------------------------------------------------------------------


def schema_with(columns: int) -> us.Schema:
    return schema_of({f"c{i}": 4 for i in range(columns)})


@pytest.mark.parametrize(
    ("options", "columns", "method", "reason"),
    [
        (Options(), 1, "independent", "there is one column, so there are no relations to keep"),
        (Options(("c0",)), 1, "independent", "there is one column, so there are no relations to keep"),
        (Options(marginals=(("c0", "c1"),)), 2, "marginals", "marginals were named"),
        (Options(("c0",), marginals=(("c0", "c1"),)), 99, "marginals", "marginals were named"),
        (Options(marginals=(("c0",),)), 1, "marginals", "marginals were named"),
    ],
)
def test_auto_follows_what_was_said(options: Options, columns: int, method: str, reason: str):
    choice = choose("auto", options, schema_with(columns), Budget(1.0, 1e-6))
    assert (choice.method.name, choice.reason) == (method, reason)


@pytest.mark.parametrize("columns", [2, 12, 60])
def test_auto_takes_what_its_forecasts_expect_most_of(columns: int):
    schema, budget = schema_with(columns), Budget(1.0, 1e-6)
    choice = choose("auto", Options(), schema, budget)
    expected = {f.method: f for f in forecasts(schema, budget, ASSUMED_ROWS, general_methods())}
    best = expected[choice.method.name]
    assert all(best.error <= expected[m].error for m in (g.name for g in general_methods()))
    assert (
        choice.reason.startswith("of the general methods it is expected to err least")
        and "10,000 rows" in choice.reason
    )


def test_a_method_that_would_take_hours_is_not_taken():
    slow, quick = Forecast("rake", 0.01, 0.01, 0.02, 1e5, 100.0), Forecast("mst", 0.05, 0.04, 0.06, 10.0, 100.0)
    large = Forecast("aim", 0.02, 0.01, 0.03, 10.0, 1e5)
    unfit = Forecast("mwem", 0.001, 0.001, 0.001, 1.0, 1.0)
    assert recommended([slow, large, quick, unfit], 1000).method.name == "mst"
    assert recommended([slow, replace(large, seconds=1e4)], 1000).reason.startswith(
        "of the general methods it is the fastest"
    )


def test_a_name_is_taken_at_its_word():
    for name in METHODS:
        choice = choose(name, Options(marginals=(("c0", "c1"),)), schema_with(99), Budget(1.0, 1e-6))
        assert choice.method.name == name


@pytest.mark.parametrize(
    ("columns", "wishes", "epsilon", "method"),
    [
        (16, {"targets": ("c0",)}, 1.0, "rake"),
        (15, {"targets": ("c0",)}, 1.0, "rake"),
        (16, {}, 1.0, "rake"),
        (16, {"targets": ("c0",)}, 0.9, "rake"),
        (16, {"targets": ("c0",), "workload": "triples"}, 1.0, "rake"),
        (16, {"targets": ("c0",), "weights": ((("c0", "c1"), 2.0),)}, 1.0, "rake"),
    ],
)
def test_a_target_and_many_columns_change_no_choice(columns: int, wishes: dict, epsilon: float, method: str):
    choice = choose("auto", Options(**wishes), schema_with(columns), Budget(epsilon, 1e-6))
    assert choice.method.name == method


@pytest.mark.parametrize(("columns", "method"), [("a", "independent"), ("ab", "rake")])
def test_identifiers_do_not_count_as_columns(columns: str, method: str):
    sizes = {c: SIZES[c] for c in columns}
    schema = us.Schema.loads(schema_of(sizes).dumps() + '[columns.who]\ntype = "identifier"\n')
    rows = along(TREE, sizes, 60).append_column("who", pa.array(["x"] * 60))
    assert us.synthesize(us.open(rows, schema), epsilon=1.0, rows=5).certificate.method == method


def test_auto_with_marginals_has_no_weights():
    with pytest.raises(MethodError, match="method marginals can't weigh"):
        choose(
            "auto",
            Options(marginals=(("c0", "c1"),), weights=((("c0", "c1"), 2.0),)),
            schema_with(5),
            Budget(1.0, 1e-6),
        )
