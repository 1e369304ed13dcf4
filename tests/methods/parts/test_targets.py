"""Several targets: what each method makes of them, what they cost, and what is refused before anything is spent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import SIZES, TREE, along, distance, measured, schema_of
from helpers.tuning import tune
from understudy.boundary.privacy.budget import Budget, total
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.score import STEP
from understudy.boundary.schema.domain import Domain
from understudy.cli import run
from understudy.errors import InputError, MethodError, SchemaError
from understudy.methods.aim import Aim, AimTuning
from understudy.methods.method import Options
from understudy.methods.parts.workload import Workload, stated_targets, stated_weights, triples_with
from understudy.methods.rake import rake
from understudy.methods.rake.rake import Rake
from understudy.methods.registry import METHODS
from understudy.releases.certificate import digest

DOMAIN = Domain.of(schema_of(SIZES))
AIMED = ("marginals", "mwem", "mst", "aim", "rake")
every_method = pytest.mark.parametrize("method", AIMED)
by_triples = pytest.mark.parametrize("method", ["aim", "rake"])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "rake", particles=2000, final_particles=4000, most_picks=20, exchange_rounds=60)


def selections(release: us.Release) -> list[list[tuple[str, ...]]]:
    """What each selection chose from."""
    asked = [a.question["candidates"] for a in release.record if a.question["ask"] == "select"]
    return [[tuple(columns) for columns in candidates] for candidates in asked]


def two_parities(rows: int = 8000) -> pa.Table:
    """c is the parity of a and b, and e of b and d: no pair says anything of either."""
    a, b, d = np.random.default_rng(6).integers(0, 2, (3, rows))
    return pa.table({"a": a, "b": b, "c": (a + b) % 2, "d": d, "e": (b + d) % 2})


BINARY = dict.fromkeys("abcde", 2)


# --- What is weighed --------------------------------------------------------------------------------------------------


def test_pairs_with_any_target_weigh_the_same_and_the_largest_weight_is_one():
    workload = Workload.of(DOMAIN, ("a", "e"))
    for pair in itertools.combinations(SIZES, 2):
        assert workload.weight(pair) == (1.0 if {"a", "e"} & set(pair) else 1 / 3)


def test_a_stated_weight_comes_before_that_of_two_targets():
    workload = Workload.of(DOMAIN, ("a", "e"), stated_weights({("e", "a"): 1.5}))
    assert [workload.weight(s) for s in (("a", "e"), ("a", "c"), ("b", "c"))] == [0.5, 1.0, 1 / 3]


def test_triples_with_a_target_are_listed_once():
    found = triples_with(tuple("abcde"), ("d", "b"))
    assert found == tuple(t for t in itertools.combinations("abcde", 3) if "b" in t or "d" in t)
    assert len(found) == len(set(map(frozenset, found))) == 9
    assert triples_with(tuple("abcde"), ()) == ()


# --- What is asked ----------------------------------------------------------------------------------------------------


def test_marginals_measures_each_column_with_each_target_once(silent):
    release = silent(two_parities(), schema_of(BINARY), "marginals", target=["c", "a"], marginals=[("a", "d")])
    asked = [tuple(a.question["columns"]) for a in release.record]
    assert asked == [("a", "d"), ("a", "c"), ("b", "c"), ("d", "c"), ("e", "c"), ("b", "a"), ("e", "a")]


def test_marginals_keeps_each_relation_to_each_target(silent):
    original = along(TREE, SIZES, 6000)
    pairs = [(c, "a") for c in "bcdef"] + [(c, "c") for c in "bdef"]
    made = silent(original, schema_of(SIZES), "marginals", target=("a", "c")).table
    alone = silent(original, schema_of(SIZES), "marginals", target="a").table
    assert max(distance(original, made, p) for p in pairs) < 0.03 < 0.1 < distance(original, alone, ("d", "c"))


@pytest.mark.parametrize(
    ("targets", "tree"), [(None, ["xy", "xt", "xu"]), ("t", ["xt", "yt", "tu"]), (["t", "u"], ["xt", "xu"])]
)
def test_mst_draws_the_tree_to_every_target(silent, targets: Any, tree: list[str]):
    """y, t and u repeat x, y the most often. With one target its pairs are kept; with two, either's, and not x and y.

    Three times the weight makes t and u, of which one says 0.3 of the other, dearer than x and y with 0.7.
    """
    rng = np.random.default_rng(4)
    x = rng.integers(0, 3, 20_000)
    shares = {"y": 0.7, "t": 0.55, "u": 0.55}
    made = {c: np.where(rng.random(x.size) < s, x, rng.integers(0, 3, x.size)) for c, s in shares.items()}
    release = silent(pa.table({"x": x} | made), schema_of(dict.fromkeys("xytu", 3)), "mst", target=targets)
    assert set(map(frozenset, tree)) <= set(measured(release))
    assert (frozenset("xy") in measured(release)) == (targets is None)


def test_aim_measures_every_pair_with_each_target_first(silent):
    release = silent(two_parities(), schema_of(BINARY), "aim", target=["c", "a"])
    first = [frozenset(p) for p in ("ac", "bc", "dc", "ec", "ba", "da", "ea")]
    assert measured(release)[:7] == first
    asks = [a.question["ask"] for a in release.record]
    assert asks.index("select") == len(BINARY) + 7


@by_triples
def test_every_triple_with_any_target_is_a_candidate(silent, method: str):
    """`aim` has each once, and `rake` at the one level that columns of two values have."""
    release = silent(two_parities(), schema_of(BINARY), method, target=["c", "a"], weights={("b", "d", "e"): 2.0})
    for sets in selections(release)[-3:]:
        triples = [frozenset(s) for s in sets if len(s) == 3]
        assert len(triples) == len(set(triples))
        assert set(triples) == set(map(frozenset, triples_with(tuple(BINARY), ("c", "a")))) | {frozenset("bde")}


@by_triples
def test_what_two_columns_say_of_a_target_only_together_is_found_for_every_target(silent, method: str, monkeypatch):
    tune(monkeypatch, "rake", larger_sets=0)  # they would find it without a target
    original, schema = two_parities(), schema_of(BINARY)
    both, one = (silent(original, schema, method, target=t, epsilon=10.0).table for t in (["c", "d"], "c"))
    for columns in (("a", "b", "c"), ("b", "d", "e")):
        assert distance(original, both, columns, BINARY) < 0.03
    assert distance(original, one, ("b", "d", "e"), BINARY) > 0.3


# --- Targets that would make the model of `aim` too large -------------------------------------------------------------

FINE = {"a": 40, "b": 40, "c": 40, "d": 2, "e": 2}


def fine_table(rows: int = 4000) -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table({c: rng.permutation(np.arange(rows) % size) for c, size in FINE.items()})


def fitted(silent: Callable[..., us.Release], targets: Any, megabytes: float, monkeypatch: pytest.MonkeyPatch):
    """A release of `aim` in two rounds, whose model may have so many megabytes, a fifth of it for these pairs."""
    tuning = AimTuning(most_rounds_per_column=0.4)
    small = replace(
        METHODS["aim"],
        build=lambda options, params: Aim(options.targets, model_megabytes=megabytes, tuning=tuning),
    )
    monkeypatch.setitem(METHODS, "aim", small)
    return silent(fine_table(), schema_of(FINE), "aim", target=targets, epsilon=20.0, rows=10)


@pytest.mark.parametrize(("megabytes", "first"), [(16.0, 9), (1.0, 7), (0.1, 4)])
def test_aim_leaves_pairs_to_the_rounds_where_the_model_has_no_room(silent, monkeypatch, megabytes: float, first: int):
    """The pairs with a alone take 3,360 cells, those with a and d twice as many, and with b too more than 40³ · 2.

    A fifth of 16, 1 and 0.1 megabytes are 400,000, 25,000 and 2,500 cells; the first target is never left out.
    """
    release = fitted(silent, ["a", "d", "b"], megabytes, monkeypatch)
    asks = [a.question["ask"] for a in release.record]
    assert asks[asks.index("partition") :].index("select") == first
    pairs = [p for t in "adb" for p in ({c, t} for c in FINE if c != t)]
    assert measured(release)[:first] == [frozenset(p) for p in dict.fromkeys(map(frozenset, pairs))][:first]


def test_triples_with_a_target_outside_the_cliques_are_candidates_all_the_same(silent, monkeypatch):
    small = fitted(silent, ["a", "d"], 0.1, monkeypatch)
    wanted = set(map(frozenset, triples_with(tuple(FINE), ("a", "d"))))
    last = [frozenset(s) for s in selections(small)[-1] if len(s) == 3]
    assert len(last) == len(set(last)) and set(last) <= wanted
    assert {frozenset("ade"), frozenset("bde"), frozenset("cde")} <= set(last)


# --- What it costs ----------------------------------------------------------------------------------------------------


@every_method
def test_two_targets_do_not_raise_the_sensitivity_of_a_selection(silent, method: str):
    release = silent(along(TREE, SIZES, 1000), schema_of(SIZES), method, target=["a", "d"])
    found = {s.sensitivity for s in release.certificate.spends if s.mechanism == "exponential"}
    assert found == (set() if method == "marginals" else {1 + STEP})


@pytest.mark.slow_after(3)
@every_method
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_two_targets_spend_the_budget_and_no_more_and_replay(method: str, delta: float, tmp_path: Path):
    table, budget = us.open(along(TREE, SIZES, 1000), schema_of(SIZES)), Budget(1.0, delta)
    ledger = tmp_path / "ledger.sqlite"
    release = us.synthesize(table, epsilon=1.0, delta=delta, method=method, target=["a", "d"], ledger=ledger)
    spends = release.certificate.spends
    with Ledger.open(ledger) as book:
        (entry,) = book.entries()
    spent, debited = (c.epsilon if delta == 0 else c.gdp for c in (total(s.cost for s in spends), entry.cost))
    assert spent is not None and debited == budget.capacity.value
    assert 1 - 1e-6 < spent / debited <= 1
    folder = release.save(tmp_path / "release")
    assert us.verify(folder).epsilon <= 1.0
    assert us.replay(folder).rows == release.table.num_rows


# --- What is recorded -------------------------------------------------------------------------------------------------

WRITTEN = {"none": (None, None), "one": ("d", "d"), "list of one": (["d"], "d"), "two": (("d", "a"), ["d", "a"])}


def rewritten(folder: Path, target: Any) -> Path:
    """The release with another target on its certificate, and the digest that belongs to it."""
    path = folder / "certificate.json"
    body = json.loads(path.read_bytes())
    del body["digest"]
    body["method"]["parameters"]["target"] = target
    path.write_text(json.dumps(body | {"digest": digest(body)}, indent=2, ensure_ascii=False) + "\n")
    return folder


@pytest.mark.parametrize("case", WRITTEN)
def test_targets_survive_the_certificate(case: str, tmp_path: Path):
    """None or one are written as they were before there could be several, so those releases replay as they are."""
    given, written = WRITTEN[case]
    table = us.open(along(TREE, SIZES, 300), schema_of(SIZES))
    folder = us.synthesize(table, epsilon=1.0, method="mst", target=given).save(tmp_path / "release")
    parameters = json.loads((folder / "certificate.json").read_bytes())["method"]["parameters"]
    assert parameters["target"] == written
    assert Options.from_dict(parameters).targets == stated_targets(given)
    assert us.replay(folder).answers > 0


def test_a_certificate_that_knows_of_no_target_loads():
    assert Options.from_dict({}).targets == Options.from_dict({"target": None}).targets == ()


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("forged", ["d", ["a", "c"], ["d", "a"], None, [], ["a", "a"], 3, {"a": 1}, ["a", None], ""])
def test_other_targets_on_the_certificate_do_not_replay(forged: Any, tmp_path: Path):
    table = us.open(along(TREE, SIZES, 300), schema_of(SIZES))
    folder = us.synthesize(table, epsilon=1.0, method="aim", target=["a", "d"]).save(tmp_path / "release")
    assert us.replay(rewritten(folder, ["a", "d"])).answers > 0
    with pytest.raises(us.CheckFailed):
        us.replay(rewritten(folder, forged))


def test_several_targets_are_named_in_the_report(tmp_path: Path):
    table = us.open(along(TREE, SIZES, 300), schema_of(SIZES))
    folder = us.synthesize(table, epsilon=1.0, method="mst", target=["a", "d"]).save(tmp_path / "release")
    assert "a; d" in (folder / "report.html").read_text()


# --- What is refused --------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, str]] = {
    "twice": (["a", "d", "a"], r"target \('a'\) is named 2 times; name it once"),
    "empty name": ("", r"target \(''\) must be the name of a column, or a list of such names"),
    "empty name among others": (["a", ""], r"target \(\['a', ''\]\) must be the name"),
    "unknown column": (["a", "height"], "'height' is not in the schema"),
    "names with a comma": ("a,d", "'a,d' is not in the schema"),
    "number": (3, r"target \(3\) must be the name"),
    "number among names": (["a", 3], r"target \(\['a', 3\]\) must be the name"),
    "nothing among names": (["a", None], "must be the name"),
    "bytes": (b"a", "must be the name"),
    "list of lists": ([["a"]], "must be the name"),
    "set": ({"a", "d"}, "must be the name"),
    "mapping": ({"a": 1}, "must be the name"),
}


@pytest.mark.parametrize("method", ["auto", "rake", "independent"])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_targets_spend_nothing(case: str, method: str, tmp_path: Path):
    target, words = WRONG[case]
    table, ledger = us.open(along(TREE, SIZES, 50), schema_of(SIZES)), tmp_path / "ledger.sqlite"
    with pytest.raises((InputError, SchemaError), match=words):
        us.synthesize(table, epsilon=1.0, method=method, target=target, ledger=ledger)
    assert not ledger.exists()


@every_method
def test_an_identifier_among_the_targets_is_refused(method: str, tmp_path: Path):
    """Also where the targets are more than the columns that are modelled."""
    text = schema_of({"a": 2}).dumps() + "".join(f'[columns.{c}]\ntype = "identifier"\n' for c in ("who", "where"))
    frame = pa.table({"a": [0, 1], "who": ["x", "y"], "where": ["x", "y"]})
    with pytest.raises(SchemaError, match="'who' is an identifier"):
        us.synthesize(us.open(frame, us.Schema.loads(text)), epsilon=1.0, method=method, target=["a", "who", "where"])


# --- Very many columns ------------------------------------------------------------------------------------------------

MANY = {f"c{i}": 2 for i in range(120)}


@pytest.mark.parametrize(
    ("recipe", "most", "triples", "bound"), [(Aim, 2, "20,710", "20,000"), (Rake, 5, "40,376", "36,000")]
)
def test_more_triples_than_can_be_counted_are_refused(recipe: Any, most: int, triples: str, bound: str):
    domain, capacity, names = Domain.of(schema_of(MANY)), Budget(1.0, 1e-6).capacity, tuple(MANY)
    recipe(names[:most]).calibrate(domain, capacity)
    words = f"{most + 1} targets among 120 columns have {triples} sets of three and may have at most {bound}; name"
    with pytest.raises(MethodError, match=words):
        recipe(names[: most + 1]).calibrate(domain, capacity)


@pytest.mark.parametrize("recipe", [Aim, Rake])
def test_one_target_may_have_any_number_of_triples(recipe: Any):
    domain = Domain.of(schema_of({f"c{i}": 2 for i in range(300)}))
    assert recipe(("c7",)).calibrate(domain, Budget(1.0, 1e-6).capacity).domain == domain


@pytest.mark.parametrize(("most", "levels"), [(54, 3), (27, 2), (18, 1), (9, 1), (1, 1)])
def test_rake_offers_fewer_levels_of_each_triple_where_there_are_many(silent, monkeypatch, most: int, levels: int):
    """Columns of 4 values have levels 2, 3 and 4. Nine triples at six levels are 54: within the bound, all are there.

    With thinning by two these are 2 and 4, and beyond that the finest alone; pairs keep all of theirs.
    """
    tune(monkeypatch, "rake", most_triple_candidates=most)
    monkeypatch.setattr(rake, "check_target_triples", lambda *given: None)
    sizes = dict.fromkeys("abcde", 4)
    release = silent(along({"b": "a"}, sizes, 4000), schema_of(sizes), "rake", target=["b", "d"], epsilon=50.0)
    offered = [next(a for a in release.record[::-1] if a.question["ask"] == "select")]
    sets = [tuple(c) for c in offered[0].question["candidates"]]
    assert {sets.count(t) for t in triples_with(tuple(sizes), ("b", "d"))} == {levels}
    assert {sets.count(p) for p in itertools.combinations(sizes, 2)} == {3}


# --- On the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a table and its schema in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.toml").write_text(schema_of(SIZES).dumps())
    along(TREE, SIZES, 300).to_pandas().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(("targets", "written"), [((), None), (("a",), "a"), (("d", "a"), ["d", "a"])])
def test_the_option_may_be_repeated(targets: tuple[str, ...], written: Any, desk: Path):
    options = [word for name in targets for word in ("--target", name)]
    assert run(["synth", "t.csv", "--epsilon", "1", "--method", "mst", "--out", "out", *options]) == 0
    parameters = json.loads((desk / "out" / "certificate.json").read_bytes())["method"]["parameters"]
    assert parameters["target"] == written
    assert run(["replay", "out"]) == 0


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (("a", "a"), "target ('a') is named 2 times; name it once."),
        (("a", ""), "target (('a', '')) must be the name of a column, or a list of such names."),
        (("a", "height"), "column 'height' is not in the schema"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(
    targets: tuple[str, ...], words: str, desk: Path, capsys: pytest.CaptureFixture[str]
):
    before = sorted(p.name for p in desk.iterdir())
    assert run(["synth", "t.csv", "--epsilon", "1", *(w for t in targets for w in ("--target", t))]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and words in told.err
    assert sorted(p.name for p in desk.iterdir()) == before
