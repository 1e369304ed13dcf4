"""Every command, as a person or a program would use it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import understudy as us
from helpers.old_ledgers import old_ledger
from understudy.cli.app import command
from understudy.datasets import schema_path

FILES = {"synthetic.csv", "certificate.json", "measurements.npz", "schema.toml", "report.html"}
TABLES = {
    "adult": ("adult.train.csv", "income"),
    "covertype": ("covertype.csv", None),
    "healthcare": ("healthcare.csv", "Test Results"),
    "insurance": ("insurance.csv", "smoker"),
    "mushroom": ("mushroom.csv", "class"),
    "nursery": ("nursery.csv", "classification"),
    "votes": ("votes.csv", "Class"),
}


def certificate_of(folder: Path) -> dict:
    return json.loads((folder / "certificate.json").read_bytes())


def prepend(path: Path, text: str) -> None:
    path.write_text(text + path.read_text())


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", TABLES)
def test_the_public_tables(name: str, shared_data: Path, desk: Path, understudy):
    """Synthesised at ε = 1, verified, replayed, claimed honestly; and a changed byte in any file is found and named."""
    file, target = TABLES[name]
    wish = ("--epsilon", 1, "--schema", schema_path(name), "--out", "out", "--ledger", "ledger.sqlite", "--json")
    method = ("--method", "marginals", "--target", target) if target else ("--method", "independent")
    made = understudy("synth", shared_data / file, *wish, *method)
    assert made.code == 0 and made.err == "", made.err
    checked = understudy("verify", "out", "--json")
    assert checked.code == 0 and understudy("replay", "out").code == 0
    claimed, found = json.loads(made.out), json.loads(checked.out)
    assert claimed["guarantee"]["epsilon"] == found["epsilon"] == 1
    assert claimed["spent"]["epsilon"] == found["spent"] and 0.98 <= found["spent"] <= 1
    released = [c.name for c in us.datasets.schema(name).released]
    assert pacsv.read_csv("out/synthetic.csv").column_names == released
    for path in sorted((desk / "out").iterdir()):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        whole = path.read_bytes()
        path.write_bytes(content)
        found = understudy("verify", "out")
        path.write_bytes(whole)
        assert found.code == 1 and path.name in found.err


def test_synth_writes_beside_the_data(desk: Path, understudy):
    made = understudy("synth", "people.csv", "--epsilon", 1, "--method", "independent")
    assert made.code == 0 and made.err == "" and "(1, 1e-06)-differential privacy" in made.out
    assert {p.name for p in (desk / "people-release").iterdir()} == FILES
    assert {p.name for p in desk.iterdir()} == {
        "people.csv", "people.toml", "people-release", "people.csv.ledger.sqlite",
    }  # fmt: skip
    verified = understudy("verify", "people-release").out
    assert "verified: 4 spends" in verified and "`understudy replay` checks more" in verified
    assert "byte for byte from 4 measurements" in understudy("replay", "people-release").out


def test_a_release_obeys_its_schema(desk: Path, understudy):
    assert understudy("synth", "people.csv", "--epsilon", 1, "--rows", 500).code == 0
    with (desk / "people-release" / "synthetic.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 500 and set(rows[0]) == {"job", "age", "pay", "smoker"}
    assert {r["job"] for r in rows} == {"clerk", "cook", "nurse", "?"}
    assert all(18 <= int(r["age"]) <= 80 and 0 <= float(r["pay"]) <= 100 for r in rows)
    assert {r["smoker"] for r in rows} == {"true", "false"}


def test_json_is_the_certificate_on_disk(desk: Path, understudy):
    made = understudy("synth", "people.csv", "--epsilon", 0.5, "--json")
    assert made.err == ""
    printed = json.loads(made.out)
    assert isinstance(printed.pop("cautions"), list)
    assert printed.pop("out") == "people-release" and printed == certificate_of(desk / "people-release")
    assert json.loads(understudy("verify", "people-release", "--json").out)["claimed"] is True
    assert json.loads(understudy("replay", "people-release", "--json").out)["file"] == "synthetic.csv"


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("options", "head", "least"),
    [
        ((), "", 0.98),
        (("--target", "smoker"), "", 0.98),
        (("--marginal", "job,smoker", "--marginal", "age"), "", 0.98),
        (("--epsilon", "0.1", "--delta", "1e-9"), "", 0.98),
        (("--delta", "0"), "", 0.999),
        (("--delta", "0", "--target", "smoker"), "", 0.999),
        (("--delta", "0", "--method", "independent"), "", 0.999),
        (("--method", "marginals", "--target", "smoker"), "", 0.98),
        (("--weight", "age,pay=40", "--target", "smoker"), "", 0.98),
        (("--weight", "age,pay=0.01", "--method", "mst"), 'neighbours = "replace-one"\n', 0.98),
        ((), 'neighbours = "replace-one"\n', 0.98),
        (("--delta", "0"), 'neighbours = "replace-one"\n', 0.999),
        ((), '[unit]\ncolumn = "name"\nmax_rows = 3\n', 0.98),
        (("--delta", "0"), '[unit]\ncolumn = "name"\nmax_rows = 3\n', 0.999),
    ],
)
def test_the_claim(options: tuple[str, ...], head: str, least: float, desk: Path, understudy):
    """Claimed = asked ≥ recomputed, and nearly all of what was asked is used."""
    text = (desk / "people.toml").read_text()
    (desk / "people.toml").write_text(text.replace("\n\n", "\n" + head, 1))
    given = options if "--epsilon" in options else ("--epsilon", "1", *options)
    assert understudy("synth", "people.csv", *given, "--out", "out").code == 0
    certificate = certificate_of(desk / "out")
    found = json.loads(understudy("verify", "out", "--json").out)
    claim, asked = certificate["guarantee"], certificate["asked"]
    assert claim["epsilon"] == found["epsilon"] == asked["epsilon"]
    assert claim["delta"] == found["delta"] == asked["delta"]
    assert least * asked["epsilon"] <= certificate["spent"]["epsilon"] == found["spent"] <= asked["epsilon"]
    assert understudy("replay", "out").code == 0
    pure, replaced, unit = asked["delta"] == 0, "replace-one" in head, "unit" in head
    rows = 3 if unit else 1
    counted, selected = rows * ((2 if pure else 2**0.5) if replaced else 1), rows * (2 if replaced else 1) + 2**-20
    for spend in certificate["spends"]:  # weights are relative, so the largest of them is 1 in every selection
        expected = {"public": 0, "exponential": selected}.get(spend["mechanism"], counted)
        assert spend["sensitivity"] == pytest.approx(expected, rel=1e-9)
    assert (claim["delta"] == 0) is pure
    assert claim["neighbours"] == ("replace-one" if replaced else "add-remove")
    assert claim["unit"] == ({"what": "person", "column": "name", "max_rows": 3} if unit else {"what": "row"})
    assert certificate["rows"]["rule"] == (
        "the number of private rows, public under replace-one" if replaced else "noisy total"
    )


def test_replace_one_releases_the_public_number_of_rows(desk: Path, understudy):
    prepend(desk / "people.toml", 'neighbours = "replace-one"\n')
    assert understudy("synth", "people.csv", "--epsilon", 1, "--out", "out").code == 0
    assert certificate_of(desk / "out")["rows"]["synthetic"] == 300


def test_what_is_private_is_bought(desk: Path, understudy):
    text = (desk / "people.toml").read_text()
    text = text.replace('["clerk", "cook", "nurse"]', '"private"').replace(
        "min = 18\nmax = 80", 'min = "private"\nmax = "private"'
    )
    (desk / "people.toml").write_text(text)
    made = understudy("synth", "people.csv", "--epsilon", 5, "--out", "out", "--json")
    assert made.code == 0, made.err
    certificate = json.loads(made.out)
    assert certificate["columns"] == {
        "name": "never read", "job": "bought", "age": "bought", "pay": "declared", "smoker": "declared",
    }  # fmt: skip
    assert certificate["spends"][0]["mechanism"] == "thresholded-rounded-gaussian"
    assert 0.98 * 5 <= certificate["spent"]["epsilon"] <= certificate["guarantee"]["epsilon"] == 5
    assert understudy("verify", "out").code == 0 and understudy("replay", "out").code == 0
    saved = us.Schema.load(desk / "out" / "schema.toml")
    assert saved["job"].private and saved["age"].private  # the schema holds public facts only


def test_private_bounds_can_be_pure(desk: Path, understudy):
    text = (desk / "people.toml").read_text().replace("min = 18\nmax = 80", 'min = "private"\nmax = "private"')
    (desk / "people.toml").write_text(text)
    assert understudy("synth", "people.csv", "--epsilon", 2, "--delta", 0, "--out", "out").code == 0
    assert certificate_of(desk / "out")["guarantee"]["delta"] == 0
    assert understudy("replay", "out").code == 0


def test_parquet(desk: Path, understudy):
    assert understudy("synth", "people.csv", "--epsilon", 1, "--out", "out", "--format", "parquet").code == 0
    assert {p.name for p in (desk / "out").iterdir()} == FILES - {"synthetic.csv"} | {"synthetic.parquet"}
    kinds = {f.name: str(f.type) for f in pq.read_schema(desk / "out" / "synthetic.parquet")}
    assert kinds == {"job": "string", "age": "int64", "pay": "double", "smoker": "bool"}
    assert understudy("verify", "out").code == 0 and understudy("replay", "out").code == 0


def test_a_release_can_stand_in_for_its_original(desk: Path, understudy):
    """The synthetic table is a table: in Parquet, with the schema of the original, it can be synthesised in turn."""
    assert understudy("synth", "people.csv", "--epsilon", 1, "--out", "out", "--format", "parquet").code == 0
    text = (desk / "people.toml").read_text().replace('[columns.name]\ntype = "identifier"\n', "")
    (desk / "again.toml").write_text(text)
    again = understudy(
        "synth", "out/synthetic.parquet", "--schema", "again.toml", "--epsilon", 1, "--out", "again", "--ledger", "l"
    )
    assert again.code == 0, again.err


def test_a_noise_seed_repeats_everything_and_guarantees_nothing(desk: Path, understudy):
    wish = ("synth", "people.csv", "--epsilon", 1, "--test-only-noise-seed", 5, "--target", "smoker")
    first = understudy(*wish, "--seed", 3, "--out", "first")
    assert first.code == 0 and "TEST-ONLY" in first.out
    assert understudy(*wish, "--seed", 3, "--out", "second").code == 0
    assert understudy(*wish, "--seed", 4, "--out", "third").code == 0
    one, two, other = ({p.name: p.read_bytes() for p in (desk / n).iterdir()} for n in ("first", "second", "third"))
    for name in ("synthetic.csv", "measurements.npz", "schema.toml"):
        assert one[name] == two[name]
    assert one["measurements.npz"] == other["measurements.npz"] and one["synthetic.csv"] != other["synthetic.csv"]
    certificate = certificate_of(desk / "first")
    assert certificate["stamp"] == "TEST-ONLY" and certificate["guarantee"] is None
    assert certificate["secure_randomness"] is False and certificate["postprocessing_seed"] == 3
    assert "guarantees nothing" in understudy("verify", "first").out
    assert json.loads(understudy("verify", "first", "--json").out)["claimed"] is False
    assert understudy("replay", "first").code == 0


def test_real_noise_is_never_repeated(desk: Path, understudy):
    for name in ("first", "second"):
        assert understudy("synth", "people.csv", "--epsilon", 1, "--seed", 3, "--out", name).code == 0
        assert certificate_of(desk / name)["stamp"] is None
    assert (desk / "first" / "measurements.npz").read_bytes() != (desk / "second" / "measurements.npz").read_bytes()


def test_overwriting(desk: Path, understudy):
    assert understudy("synth", "people.csv", "--epsilon", 1, "--out", "out").code == 0
    assert understudy("synth", "people.csv", "--epsilon", 1, "--out", "out", "--overwrite", "--rows", 9).code == 0
    assert certificate_of(desk / "out")["rows"] == {"synthetic": 9, "rule": "as asked"}
    assert understudy("verify", "out").code == 0
    assert not [p for p in desk.iterdir() if ".tmp-" in p.name]


def test_an_accepted_draft_is_recorded(desk: Path, understudy):
    drafted = understudy("schema", "people.csv", "--out", "draft.toml")
    assert drafted.code == 0 and drafted.out == "" and "name" in drafted.err and "confirmed" in drafted.err
    assert (desk / "draft.toml").read_text().startswith("# DRAFT")
    wish = ("synth", "people.csv", "--schema", "draft.toml", "--epsilon", 1)
    assert understudy(*wish, "--accept-draft-as-public", "--out", "out").code == 0
    columns = certificate_of(desk / "out")["columns"]
    assert columns.pop("name") == "never read" and set(columns.values()) == {"draft accepted as public"}
    assert understudy("verify", "out").code == 0 and understudy("replay", "out").code == 0


def test_a_draft_can_be_used_as_it_is(desk: Path, understudy):
    """Few decimals over a short range, one value only, tiny numbers, infinite dates: no draft may be refused later."""
    lines = [f"3.5,{i % 50 / 10},{i}e-9,infinity,{i % 3}" for i in range(1, 100)]
    (desk / "odd.csv").write_text("one,rating,tiny,ends,n\n" + "\n".join(lines) + "\n")
    assert understudy("schema", "odd.csv", "--out", "odd.toml").code == 0
    made = understudy("synth", "odd.csv", "--epsilon", 1, "--accept-draft-as-public")
    assert made.code == 0, made.err


def test_a_confirmed_draft(desk: Path, understudy):
    drafted = understudy("schema", "people.csv")
    (desk / "draft.toml").write_text(drafted.out.replace('status = "draft"', 'status = "confirmed"'))
    wish = ("synth", "people.csv", "--schema", "draft.toml", "--epsilon", 1, "--out", "out")
    assert understudy(*wish).code == 0
    assert certificate_of(desk / "out")["columns"]["age"] == "confirmed unchanged"


def test_a_column_of_missing_values_is_no_error(desk: Path, understudy):
    """A refusal would tell that nobody answered; so declared missing values are counted like any others."""
    (desk / "gone.csv").write_text("a,b\n" + "".join(f",{i % 5}\n" for i in range(60)))
    drafted = us.Schema.loads(understudy("schema", "gone.csv").out)
    assert drafted["a"].type == "identifier" and drafted["b"].type == "integer"
    (desk / "gone.toml").write_text(
        '[columns.a]\ntype = "number"\nmin = 0\nmax = 1\nmissing = true\n'
        '[columns.b]\ntype = "integer"\nmin = 0\nmax = 4\n'
    )
    assert understudy("synth", "gone.csv", "--epsilon", 50, "--out", "out", "--rows", 60).code == 0
    column = pacsv.read_csv("out/synthetic.csv").column("a")
    assert column.null_count > 50


def test_an_identifier_may_have_any_number_of_values(desk: Path, understudy):
    (desk / "people.csv").write_text((desk / "people.csv").read_text() + "".join(
        f"{'x' * (i % 50)}{i},cook,20,1.0,true\n" for i in range(20_000)
    ))  # fmt: skip
    made = understudy("synth", "people.csv", "--epsilon", 1, "--rows", 10, "--out", "out")
    assert made.code == 0, made.err
    assert understudy("schema", "people.csv").code == 0


def test_duckdb_table(desk: Path, understudy):
    import duckdb

    with duckdb.connect(str(desk / "town.duckdb")) as database:
        database.execute("CREATE TABLE people AS FROM read_csv('people.csv', all_varchar = true)")
    made = understudy("synth", "town.duckdb::people", "--schema", "people.toml", "--epsilon", 1)
    assert made.code == 0, made.err
    assert (desk / "town.people-release").is_dir() and (desk / "town.duckdb.people.ledger.sqlite").is_file()


def test_budget_of_a_data_set(desk: Path, understudy, refused):
    assert understudy("budget", "set", "people.csv", "--epsilon", 1, "--delta", 0).code == 0
    for i in range(2):
        wish = ("synth", "people.csv", "--epsilon", 0.4, "--delta", 0, "--analyst", "Ada [/b]", "--out", f"out{i}")
        assert understudy(*wish).code == 0
    told = refused("synth", "people.csv", "--epsilon", 0.4, "--delta", 0, "--out", "out2", code=3)
    assert "epsilon 0.2 at delta 0 left" in told and "people.csv.ledger.sqlite" in told
    told = refused("synth", "people.csv", "--epsilon", 0.1, "--out", "out2", code=3)
    assert "delta (1e-06) must be 0" in told
    assert understudy("synth", "people.csv", "--epsilon", 0.2, "--delta", 0, "--out", "out2").code == 0
    shown = understudy("budget", "show", "people.csv")
    assert shown.code == 0 and "100 % of epsilon" in shown.out
    standing = json.loads(understudy("budget", "show", "people.csv", "--json").out)
    assert standing["entries"] == 3 and standing["epsilon"] == pytest.approx(1) and standing["left"] == pytest.approx(0)
    assert standing["limit"] == {"epsilon": 1.0, "delta": 0.0} and standing["neighbours"] == "add-remove"
    told = refused("budget", "set", "people.csv", "--epsilon", 0.5, "--delta", 0)
    assert "already spent" in told


def test_the_parts_of_a_limit(desk: Path, understudy, refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "300")
    text = (desk / "people.toml").read_text().replace('["clerk", "cook", "nurse"]', '"private"')
    (desk / "private.toml").write_text(text)
    said = understudy("budget", "set", "people.csv", "--epsilon", 3)
    assert "is settled by the first release; or give --failure-delta and --training-epsilon" in said.out
    assert "kept        what is kept for private values" in understudy("budget", "show", "people.csv").out
    parts = ("failure_delta", "failure_delta_left", "training_epsilon", "training_epsilon_left")
    told = json.loads(understudy("budget", "show", "people.csv", "--json").out)
    assert [told[name] for name in parts] == [None] * 4

    ask = ("query", "people.csv", "SELECT job, count(*) FROM people GROUP BY job", "--schema", "private.toml")
    assert understudy(*ask, "--epsilon", 0.2, "--delta", 4e-7).code == 0
    told = json.loads(understudy("budget", "show", "people.csv", "--json").out)
    assert [told[name] for name in parts] == pytest.approx([5e-7, 3e-7, 0, 0])
    shown = understudy("budget", "show", "people.csv").out
    assert "delta left  3e-07 of 5e-07; private values and trainings use it up for good" in shown
    assert "trainings   no epsilon is kept for them" in shown
    told = refused(*ask, "--epsilon", 0.3, "--delta", 8e-7, code=3)
    assert "(4e-07) must be at most the 2.999e-07 left of the delta 5e-07 that the limit" in told
    assert told.endswith("or divide the limit anew with `understudy budget set` and --failure-delta 6e-07.")

    said = understudy("budget", "set", "people.csv", "--epsilon", 3, "--failure-delta", 6e-7, "--training-epsilon", 1)
    assert "of it, delta 6e-07 is kept for private values and trainings, and epsilon 1 for trainings" in said.out
    assert "it is a strict guarantee only if their answers had no part in choosing it" in said.out
    assert understudy(*ask, "--epsilon", 0.3, "--delta", 8e-7).code == 0
    assert "trainings   epsilon 1 left of 1" in understudy("budget", "show", "people.csv").out
    assert "3 at 1e-06, of it 1 at 6e-07 kept" in understudy("budget", "history", "people.csv").out
    assert understudy("budget", "export", "people.csv", "history.csv").code == 0
    first, limit = (desk / "history.csv").read_text().splitlines()[:2]
    assert first.endswith(",failure_delta,training_epsilon") and limit.endswith(",5e-07,0.0")
    told = refused("budget", "set", "people.csv", "--epsilon", 3, "--failure-delta", 5e-7)
    assert "failure delta (5e-07) must be at least the 6e-07 already spent" in told


def test_a_limit_that_keeps_no_epsilon_for_trainings_refuses_them(desk: Path, understudy, refused):
    assert understudy("budget", "set", "people.csv", "--epsilon", 3).code == 0
    assert understudy("synth", "people.csv", "--epsilon", 1, "--method", "independent", "--out", "first").code == 0
    told = refused("synth", "people.csv", "--epsilon", 1, "--method", "dp-gan", "--out", "second", "--quiet", code=3)
    assert told.startswith("training epsilon (0.85) must be 0, since the limit (epsilon 3 at delta 1e-06) in ledger")
    assert "`understudy budget set` and --failure-delta 9e-07 --training-epsilon 0.85" in told


def test_a_limit_has_the_unit_of_the_schema(desk: Path, understudy, refused, monkeypatch: pytest.MonkeyPatch):
    by_name = (desk / "people.toml").read_text().replace("[columns.name]", '[unit]\ncolumn = "name"\n\n[columns.name]')
    (desk / "persons.toml").write_text(by_name)
    said = understudy("budget", "set", "people.csv", "--epsilon", 3, "--schema", "persons.toml")
    assert "neighbours add-remove, unit a person by column 'name'" in said.out
    assert "unit        a person by column 'name'" in understudy("budget", "show", "people.csv").out
    told = refused("synth", "people.csv", "--epsilon", 1, "--quiet")
    assert told.startswith("unit (a row) must be a person by column 'name'") and not (desk / "people-release").exists()
    assert understudy("synth", "people.csv", "--epsilon", 1, "--quiet", "--schema", "persons.toml").code == 0
    assert "unit (a row) must be" in refused("query", "people.csv", "SELECT count(*) FROM people", "--epsilon", 0.1)
    assert "unit (a row) must be" in refused("budget", "set", "people.csv", "--epsilon", 3)
    told = json.loads(understudy("budget", "show", "people.csv", "--json").out)
    assert told["unit"] == {"what": "person", "column": "name", "max_rows": 1}
    monkeypatch.setenv("COLUMNS", "300")
    assert "person by name, rows ≤ 1" in understudy("budget", "history", "people.csv").out


def test_a_limit_without_a_schema_takes_the_unit_of_the_first_release(desk: Path, understudy):
    (desk / "people.toml").rename(desk / "elsewhere.toml")
    said = understudy("budget", "set", "people.csv", "--epsilon", 3)
    assert said.code == 0 and "the unit will be that of the first release" in said.out
    assert understudy("synth", "people.csv", "--epsilon", 1, "--quiet", "--schema", "elsewhere.toml").code == 0
    assert "unit        a row" in understudy("budget", "show", "people.csv").out


def test_an_old_ledger_needs_a_word_of_the_steward(desk: Path, understudy, refused):
    old_ledger(desk / "people.csv.ledger.sqlite", 1, limit=3.0, debits=2, delta=1e-6)
    assert "unit        not recorded" in understudy("budget", "show", "people.csv").out
    told = refused("synth", "people.csv", "--epsilon", 1, "--quiet")
    assert "holds 2 debits from before units were recorded" in told and "understudy budget unit DATA" in told
    said = understudy("budget", "unit", "people.csv")
    assert said.code == 0 and "2 earlier debits protected a row, as stated now" in said.out
    assert understudy("synth", "people.csv", "--epsilon", 1, "--quiet").code == 0
    assert "nothing to state" in refused("budget", "unit", "people.csv")
    assert [r["kind"] for r in json.loads(understudy("budget", "history", "people.csv", "--json").out)] == [
        "limit", "debit", "debit", "unit", "debit",
    ]  # fmt: skip


def test_budget_history(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert understudy("budget", "set", "people.csv", "--epsilon", 2).code == 0
    wish = ("--epsilon", 0.5, "--method", "independent", "--analyst", "Ada [/b]")
    assert understudy("synth", "people.csv", *wish).code == 0
    rows = json.loads(understudy("budget", "history", "people.csv", "--json").out)
    assert [(r["kind"], r["epsilon"], r["delta"]) for r in rows] == [("limit", 2.0, 1e-6), ("debit", 0.5, 1e-6)]
    assert rows[1]["analyst"] == "Ada [/b]" and rows[1]["purpose"] == "synth independent of people.csv"
    shown = understudy("budget", "history", "people.csv")
    assert shown.code == 0 and "Ada [/b]" in shown.out and "0.5 at 1e-06" in shown.out


def test_relations_are_never_mixed(desk: Path, understudy, refused):
    assert understudy("synth", "people.csv", "--epsilon", 0.5).code == 0
    assert "add-remove" in refused("budget", "set", "people.csv", "--epsilon", 2, "--neighbours", "replace-one")
    prepend(desk / "people.toml", 'neighbours = "replace-one"\n')
    assert "neighbours (replace-one) must be add-remove" in refused("synth", "people.csv", "--epsilon", 1, "--out", "o")


def test_methods(understudy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    listed = json.loads(understudy("methods", "--json").out)
    assert [m["method"] for m in listed] == list(us.METHODS)
    assert all(m["guarantee"] and m["good for"] and m["limits"] for m in listed)
    assert all(name in understudy("methods").out for name in us.METHODS)


def commands(group=None, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    group = group or command()
    found = {path: group}
    for name, sub in getattr(group, "commands", {}).items():
        found |= commands(sub, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_mentions_every_option(path: tuple[str, ...], understudy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = understudy(*path, "--help")
    assert shown.code == 0 and shown.err == ""
    for parameter in commands()[path].params:
        for option in parameter.opts:
            assert option in shown.out, option
        assert parameter.help


def test_help_states_the_defaults(understudy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = understudy("synth", "--help").out
    assert "[default: DATA-release]" in shown and "[default: beside the data]" in shown and "\\[" not in shown


def test_version(understudy):
    assert understudy("--version").out == f"understudy {us.__version__}\n"


def test_debug_shows_the_traceback(desk: Path, understudy):
    with pytest.raises(us.InputError):
        understudy("synth", "people.csv", "--epsilon", 0, "--debug")


def test_an_interrupted_run_says_what_stays(understudy, desk: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.cli.synth.synthesize", interrupt)
    outcome = understudy("synth", "people.csv", "--epsilon", 1)
    assert outcome.code == 130 and outcome.err == "understudy: interrupted; nothing was debited.\n"


def test_as_a_module_of_python(desk: Path):
    made = subprocess.run(
        [sys.executable, "-m", "understudy", "synth", "people.csv", "--epsilon", "1", "--json"],
        cwd=desk, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0 and made.stderr == "" and json.loads(made.stdout)["out"] == "people-release"
    failed = subprocess.run(
        [sys.executable, "-m", "understudy", "verify", "nowhere"],
        cwd=desk, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert failed.returncode == 2 and failed.stdout == "" and failed.stderr.startswith("understudy: 'nowhere'")


def test_completion(desk: Path, monkeypatch: pytest.MonkeyPatch):
    """Typer looks for the shell that it was started from; the tests may have been started from none."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    script = subprocess.run(
        [sys.executable, "-m", "understudy", "--show-completion", "bash"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert script.returncode == 0 and "complete" in script.stdout and "understudy" in script.stdout


def test_measurements_hold_no_objects(desk: Path, understudy):
    """Reading a release runs nothing: plain arrays only, and no pickle."""
    assert understudy("synth", "people.csv", "--epsilon", 1, "--out", "out").code == 0
    with np.load(desk / "out" / "measurements.npz", allow_pickle=False) as arrays:
        assert {arrays[n].dtype.kind for n in arrays.files} <= set("iuU")


def test_a_draft_on_disk_has_notes_and_is_for_its_owner_alone(desk: Path, understudy):
    done = understudy("schema", "people.csv", "--out", "draft.toml")
    assert done.code == 0 and "check every line" in done.err
    text = (desk / "draft.toml").read_text(encoding="utf-8")
    assert "Whom does the guarantee protect?" in text and "different values" in text and 'draft = "sha256:' in text
    assert (desk / "draft.toml").stat().st_mode & 0o077 == 0
    assert understudy("schema", "people.csv").out == text
