"""What Python debits when nobody names a ledger: the one beside the data, as the command line does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import understudy as us
from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.ledger import ledger_beside, ledger_for
from understudy.boundary.tables.table import Table
from understudy.cli import run
from understudy.errors import BudgetExhausted, InputError
from understudy.lab.studies.method_comparison import compare

SCHEMA = us.Schema.loads("""
[columns.age]
type = "integer"
min = 0
max = 99
[columns.ill]
type = "boolean"
""")
ROWS = pa.table({"age": [31, 47, 52, 65] * 20, "ill": [True, False, False, True] * 20})
KINDS = ("csv", "parquet", "duckdb")


def write(folder: Path, kind: str) -> str:
    """The rows in a file of this kind, with their schema beside it; what a user would type to open them."""
    path = folder / f"people.{kind}"
    if kind == "csv":
        pyarrow.csv.write_csv(ROWS, path)
    elif kind == "parquet":
        pyarrow.parquet.write_table(ROWS, path)
    else:
        with duckdb.connect(str(path)) as database:
            database.register("rows", ROWS)
            database.execute("CREATE TABLE people AS SELECT * FROM rows")
    inside = "::people" if kind == "duckdb" else ""
    SCHEMA.save(folder / ("people.people.toml" if inside else "people.toml"))
    return f"{path}{inside}"


def synthesize(table: Table, **options: object) -> Any:
    return us.synthesize(table, epsilon=0.5, delta=0, method="independent", rows=5, **options)


def ask(table: Table, **options: object) -> Any:
    return us.query(table, "SELECT count(*) FROM data WHERE age > 40", epsilon=0.5, delta=0, **options)


def fit(table: Table, **options: object) -> Any:
    return us.PrivateDecisionTree(epsilon=0.5, depth=1, **options).fit(table, target="ill")


def update(table: Table, **options: object) -> Any:
    fitted = us.PrivateDecisionTree(epsilon=0.5, depth=1, ledger=False).fit(table, target="ill")
    return fitted.set_params(**({"ledger": None} | options)).update(table, epsilon=0.5)


WAYS = (synthesize, ask, fit, update)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_file_has_its_ledger_beside_it(way: Callable[..., object], kind: str, tmp_path: Path):
    data = write(tmp_path, kind)
    way(us.open(data, SCHEMA))
    (entry,) = us.Ledger.open(ledger_beside(data), create=False).entries()
    assert entry.asked == us.Budget(0.5, 0.0)
    assert run(["budget", "show", data]) == 0, "it is where the command line looks"


@pytest.mark.parametrize("way", WAYS)
def test_a_limit_of_the_command_line_binds_python(way: Callable[..., object], tmp_path: Path):
    data = write(tmp_path, "csv")
    assert run(["budget", "set", data, "--epsilon", "0.4", "--delta", "0"]) == 0
    with pytest.raises(BudgetExhausted, match=r"people\.csv\.ledger\.sqlite"):
        way(us.open(data, SCHEMA))
    assert us.Ledger.open(ledger_beside(data)).entries() == []


@pytest.mark.parametrize("way", WAYS)
def test_false_debits_none_and_a_name_debits_that_one(way: Callable[..., object], tmp_path: Path):
    data = write(tmp_path, "csv")
    way(us.open(data, SCHEMA), ledger=False)
    assert not ledger_beside(data).exists()
    way(us.open(data, SCHEMA), ledger=str(tmp_path / "other"))
    assert not ledger_beside(data).exists() and len(us.Ledger.open(tmp_path / "other").entries()) == 1
    with pytest.raises(InputError, match=r"ledger \(True\) must be"):
        way(us.open(data, SCHEMA), ledger=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [None, "people"])
def test_a_frame_has_none(way: Callable[..., object], name: str | None, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    way(us.open(ROWS, SCHEMA, name=name))
    assert list(tmp_path.iterdir()) == []


def test_the_place_is_that_of_the_opening(tmp_path: Path, monkeypatch):
    """A relative path means what it meant when the table was opened; a link has the ledger of what it leads to."""
    write(tmp_path, "csv")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.csv").symlink_to(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    table, linked = us.open("people.csv", SCHEMA), us.open("elsewhere/link.csv", SCHEMA)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ledger_for(table, None) == tmp_path / "people.csv.ledger.sqlite"
    assert ledger_for(linked, None) == tmp_path / "people.csv.ledger.sqlite"
    assert table.identity == linked.identity == str((tmp_path / "people.csv").resolve())


def test_the_certificate_says_which_debit_paid(tmp_path: Path):
    data = write(tmp_path, "csv")
    table, ledger = us.open(data, SCHEMA), us.Ledger.open(ledger_beside(data))
    first = synthesize(table)
    ledger.set_limit(us.Budget(2.0, 0.0), "add-remove")
    second, asked, fitted = synthesize(table), ask(table), fit(table)
    paid = [c.ledger for c in (first.certificate, second.certificate, asked, fitted.certificate_)]
    assert [p.entry for p in paid] == [1, 2, 3, 4]
    assert {p.name for p in paid} == {"people.csv.ledger.sqlite"} and {p.identity for p in paid} == {ledger.identity()}
    assert [p.limit for p in paid] == [None, *[us.Budget(2.0, 0.0)] * 3]
    written = json.loads(first.files()["certificate.json"])["ledger"]
    assert written == {"name": "people.csv.ledger.sqlite", "identity": ledger.identity(), "entry": 1, "limit": None}
    assert str(tmp_path) not in first.files()["certificate.json"].decode() + first.files()["report.html"].decode()


def test_a_release_that_goes_on_names_the_debit_that_paid(tmp_path: Path, monkeypatch):
    table, journal = us.open(write(tmp_path, "csv"), SCHEMA), tmp_path / "journal"
    monkeypatch.setattr(Journal, "finish", lambda *_: None)
    first = synthesize(table, journal=journal)
    again = synthesize(table, journal=journal, resume=True)
    assert again.certificate.ledger == first.certificate.ledger and first.certificate.ledger.entry == 1
    assert again.arrow == first.arrow and len(us.Ledger.open(ledger_beside(table.source)).entries()) == 1


@pytest.mark.parametrize("options", [{"ledger": False}, {}])
def test_the_certificate_says_that_nothing_paid(options: dict[str, bool], tmp_path: Path):
    table = us.open(write(tmp_path, "csv"), SCHEMA) if options else us.open(ROWS, SCHEMA)
    release = synthesize(table, **options)
    assert release.certificate.ledger is None
    assert json.loads(release.files()["certificate.json"])["ledger"] is None
    assert b"no ledger was debited" in release.files()["report.html"]
    folder = release.save(tmp_path / "out")
    assert us.verify(folder).claimed and us.replay(folder).rows == 5


def test_the_command_line_says_who_paid_and_that_there_is_no_limit(tmp_path: Path, capsys):
    data = write(tmp_path, "csv")
    synth = ["synth", data, "--epsilon", "0.5", "--overwrite"]
    assert run(synth) == 0
    said = capsys.readouterr().out
    assert "debit 1 of ledger people.csv.ledger.sqlite" in said
    assert "none is set: the ledger records, and refuses nothing" in said
    assert run(["budget", "set", data, "--epsilon", "3"]) == run(synth) == 0
    assert "all releases together may reach epsilon 3 at delta 1e-06" in capsys.readouterr().out


def test_a_table_on_a_server_needs_a_word():
    class Server:
        name, source = "people", "postgresql://"

    with pytest.raises(InputError, match="no folder for a ledger; name one with ledger=, or debit none with ledger="):
        ledger_for(Server(), None)  # type: ignore[arg-type]
    assert ledger_for(Server(), False) is None  # type: ignore[arg-type]
    assert ledger_for(Server(), "there") == Path("there")  # type: ignore[arg-type]


@pytest.mark.slow
def test_studies_debit_nobody(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    data = write(tmp_path, "csv")
    before = {path.name for path in tmp_path.iterdir()}
    out = tmp_path_factory.mktemp("study") / "made"
    compare(data, SCHEMA, methods=["independent"], epsilons=[1.0], seeds=1, jobs=1, out=out)
    us.evaluate(data, ROWS, schema=SCHEMA)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_link_and_another_case_of_a_name_have_no_ledger_of_their_own(tmp_path: Path):
    data, link = tmp_path / "people.csv", tmp_path / "linked.csv"
    data.touch()
    link.symlink_to(data)
    assert ledger_beside(str(link)) == ledger_beside(str(data)) == tmp_path / "people.csv.ledger.sqlite"
    assert (
        ledger_beside("t.duckdb::People") == ledger_beside("t.duckdb::PEOPLE") == Path("t.duckdb.people.ledger.sqlite")
    )
    old = tmp_path / "linked.csv.ledger.sqlite"
    old.touch()
    assert ledger_beside(str(link)) == old  # made by an earlier version; a fresh one would forget what it holds
