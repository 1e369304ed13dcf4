"""Bad input: one sentence on standard error, exit 2, nothing spent, nothing half-written.

The fixture `refused` compares every byte below the working directory before and after: so no ledger appeared or
changed, no release folder and no temporary file stayed behind.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Refused = Callable[..., str]
Edit = Callable[[Path], object]

SYNTH = ("synth", "people.csv", "--epsilon", "1")


def edit_schema(old: str, new: str) -> Edit:
    def edit(desk: Path) -> None:
        text = (desk / "people.toml").read_text()
        assert old in text
        (desk / "people.toml").write_text(text.replace(old, new, 1))

    return edit


def edit_data(change: Callable[[bytes], bytes]) -> Edit:
    return lambda desk: (desk / "people.csv").write_bytes(change((desk / "people.csv").read_bytes()))


def first_lines(count: int) -> Edit:
    return edit_data(lambda raw: b"".join(raw.splitlines(keepends=True)[:count]))


WRONG_SCHEMAS = {
    "column that the data lacks": (edit_schema("columns.age", "columns.height"), "'height'"),
    "column that the schema lacks": (edit_schema('[columns.smoker]\ntype = "boolean"\n', ""), "'smoker'"),
    "min above max": (edit_schema("min = 18", "min = 81"), "min (81) must not be above max (80)"),
    "number without width": (edit_schema("max = 100", "max = 0"), "min (0) must be below max (0)"),
    "bound that is no number": (edit_schema("min = 18", 'min = "young"'), "'young'"),
    "bound left out": (edit_schema("min = 18\n", ""), "min must be stated"),
    "unknown type": (edit_schema('"integer"', '"int"'), "'int'"),
    "unknown key": (edit_schema("min = 18", "minimum = 18"), "'minimum'"),
    "unknown relation": (edit_schema("[columns.name]", 'neighbours = "swap"\n[columns.name]'), "'swap'"),
    "value twice": (edit_schema('"cook"', '"clerk"'), "'clerk' is listed twice"),
    "no values": (edit_schema('["clerk", "cook", "nurse"]', "[]"), "at least one value"),
    "not TOML": (edit_schema("[columns.age]", "[columns.age"), "not valid TOML"),
    "not text": (lambda desk: (desk / "people.toml").write_bytes(b"\xff\xfe\x00"), "not UTF-8"),
    "a folder": (lambda desk: [(desk / "people.toml").unlink(), (desk / "people.toml").mkdir()], "people.toml"),
    "missing": (lambda desk: (desk / "people.toml").unlink(), "does not exist; draft a schema"),
    "empty": (lambda desk: (desk / "people.toml").write_text(""), "at least one column"),
    "unit without its column": (
        edit_schema("[columns.name]", '[unit]\ncolumn = "who"\nmax_rows = 3\n[columns.name]'),
        "'who'",
    ),
    "constraint on an unknown column": (
        edit_schema("[columns.name]", '[[constraints]]\nthen = "height > 3"\n[columns.name]'),
        "height",
    ),
    "constraint that nothing satisfies": (
        edit_schema("[columns.name]", '[[constraints]]\nthen = "age < 18"\n[columns.name]'),
        "satisfy all constraints",
    ),
    "decimals coarser than bins": (edit_schema("bins = 10", "bins = 5000"), "'pay'"),
}


@pytest.mark.parametrize("case", WRONG_SCHEMAS)
def test_wrong_schema(case: str, desk: Path, refused: Refused):
    edit, expected = WRONG_SCHEMAS[case]
    edit(desk)
    assert expected in refused(*SYNTH)


def test_category_with_too_many_values(desk: Path, refused: Refused):
    many = ", ".join(f'"{i}"' for i in range(100_001))
    edit_schema('["clerk", "cook", "nurse"]', f"[{many}]")(desk)
    told = refused(*SYNTH)
    assert "'job'" in told and "100,001" in told and "identifier" in told and len(told) < 200


WRONG_DATA = {
    "missing": (lambda desk: (desk / "people.csv").unlink(), "does not exist"),
    "missing, as its schema": (
        lambda desk: [(desk / f"people.{ending}").unlink() for ending in ("csv", "toml")],
        "'people.csv' does not exist; name the file",
    ),
    "empty": (lambda desk: (desk / "people.csv").write_text(""), "no header line"),
    "header only": (first_lines(1), "at least 2 rows"),
    "one row": (first_lines(2), "at least 2 rows"),
    "column twice": (edit_data(lambda raw: raw.replace(b"name,job", b"job,job", 1)), "'job' stands twice"),
    "nameless column": (edit_data(lambda raw: raw.replace(b"name,job", b",job", 1)), "column 1 of the header"),
    "extra column": (
        edit_data(lambda raw: raw.replace(b"\n", b",x\n")),
        "'x' is not in the schema",
    ),
    "line too short, late": (edit_data(lambda raw: raw + b"someone,cook\n"), "line 302"),
    "line too long, late": (edit_data(lambda raw: raw + b"someone,cook,20,1.0,true,1,2\n"), "line 302"),
    "invalid UTF-8, late": (edit_data(lambda raw: raw + b"someone,co\xffok,20,1.0,true\n"), "not UTF-8"),
    "binary": (edit_data(lambda raw: bytes(range(256)) * 40), "people.csv"),
    "binary below the header": (edit_data(lambda raw: raw[:24] + bytes(range(128, 256)) * 40), "people.csv"),
    "quote that never closes": (edit_data(lambda raw: raw + b'someone,"cook,20,1.0,true\n'), "people.csv"),
    "a folder": (lambda desk: [(desk / "people.csv").unlink(), (desk / "people.csv").mkdir()], "is a folder"),
}


@pytest.mark.parametrize("case", WRONG_DATA)
def test_wrong_data(case: str, desk: Path, refused: Refused):
    edit, expected = WRONG_DATA[case]
    edit(desk)
    assert expected in refused(*SYNTH)


@pytest.mark.parametrize("case", [c for c in WRONG_DATA if "late" in c])
def test_wrong_data_never_repeats_a_row(case: str, desk: Path, refused: Refused):
    WRONG_DATA[case][0](desk)
    assert "someone" not in refused(*SYNTH)


@pytest.mark.parametrize("name", ["people.parquet", "people.duckdb::people", "people.duckdb", "people.xls"])
def test_files_that_are_not_what_their_ending_says(name: str, desk: Path, refused: Refused):
    shutil.copy(desk / "people.csv", desk / name.partition("::")[0])
    assert "people." in refused("synth", name, "--schema", "people.toml", "--epsilon", 1)


WRONG_OPTIONS = {
    "epsilon of zero": (("--epsilon", "0"), "epsilon (0"),
    "epsilon below zero": (("--epsilon=-1",), "epsilon (-1"),
    "epsilon not a number": (("--epsilon", "nan"), "epsilon (nan"),
    "epsilon infinite": (("--epsilon", "inf"), "epsilon (inf"),
    "delta below zero": (("--delta=-0.1",), "delta (-0.1"),
    "delta of one": (("--delta", "1"), "delta (1"),
    "delta not a number": (("--delta", "nan"), "delta (nan"),
    "unknown method": (("--method", "marginal"), "did you mean 'marginals'?"),
    "marginals without a list": (("--method", "marginals"), "needs marginals or a target"),
    "unknown target": (("--target", "height"), "'height'"),
    "identifier as target": (("--target", "name"), "'name' is an identifier"),
    "unknown marginal": (("--marginal", "age,height"), "'height'"),
    "empty name in a marginal": (("--marginal", "age,,pay"), "'age,,pay'"),
    "column twice in a marginal": (("--marginal", "age,age"), "each once"),
    "marginal twice": (("--marginal", "age,pay", "--marginal", "age,pay"), "named twice"),
    "unknown column in a weight": (("--weight", "age,height=2"), "'height'"),
    "weight without a number": (("--weight", "age,pay"), "'age,pay'"),
    "weight of zero": (("--weight", "age,pay=0"), "weight (0.0) of age, pay must be above 0"),
    "weight of one column": (("--weight", "age=2"), "two or three columns"),
    "weight twice": (("--weight", "age,pay=2", "--weight", "pay,age=3"), "(pay, age) is weighted twice"),
    "weights and marginals": (("--weight", "age,pay=2", "--marginal", "age,pay"), "marginals can't weigh"),
    "unknown workload": (("--workload", "quads", "--method", "mst"), "workload ('quads') must be one of pairs"),
    "triple for a tree": (("--weight", "age,pay,job=2", "--method", "mst"), "use aim or mwem"),
    "triples for a baseline": (("--workload", "triples", "--method", "independent"), "independent can't weigh"),
    "unknown format": (("--format", "xlsx"), "'xlsx'"),
    "no rows": (("--rows", "0"), "rows (0)"),
    "rows below zero": (("--rows=-5",), "rows (-5)"),
    "rows without end": (("--rows", "1000000000000"), "rows (1000000000000)"),
    "seed below zero": (("--seed=-1",), "seed (-1)"),
    "noise seed below zero": (("--test-only-noise-seed=-1",), "noise seed (-1)"),
    "schema elsewhere": (("--schema", "nowhere.toml"), "'nowhere.toml' does not exist"),
    "ledger below a file": (("--ledger", "people.csv/ledger"), "ledger (people.csv/ledger)"),
    "ledger that is the data": (("--ledger", "people.csv"), "isn't a ledger"),
    "out is a file": (("--out", "people.csv"), "'people.csv' exists already"),
    "out is a file, overwritten": (("--out", "people.csv", "--overwrite"), "'people.csv' is a file"),
    "out below a file": (("--out", "people.csv/release"), "'people.csv/release' can't be written"),
    "out deep below a file": (("--out", "people.csv/a/b/release"), "can't be written"),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS)
def test_wrong_option(case: str, refused: Refused):
    options, expected = WRONG_OPTIONS[case]
    given = SYNTH if not any(o.startswith("--epsilon") for o in options) else SYNTH[:2]
    assert expected in refused(*given, *options)


@pytest.mark.parametrize(
    "command", [(), ("synth",), ("synth", "people.csv"), (*SYNTH[:2], "--epsilon", "much"), ("sing",)]
)
def test_usage_errors_of_the_parser(command: tuple[str, ...], desk: Path, understudy):
    outcome = understudy(*command)
    assert outcome.code == 2 and "Traceback" not in outcome.err
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system in which nobody can write")
def test_folder_without_write_permission(refused: Refused):
    assert "can't be written" in refused(*SYNTH, "--out", "/proc/release")
    assert "can't be created" in refused(*SYNTH, "--ledger", "/proc/ledger.sqlite")


def test_an_existing_folder_is_left_alone(desk: Path, refused: Refused):
    (desk / "out").mkdir()
    (desk / "out" / "thesis.tex").write_text("years of work")
    assert "'out' exists already" in refused(*SYNTH, "--out", "out")
    assert "'thesis.tex', which is no part of a release" in refused(*SYNTH, "--out", "out", "--overwrite")


def test_missing_parents_of_out_are_not_made_by_a_refused_run(desk: Path, refused: Refused):
    first_lines(2)(desk)
    assert "at least 2 rows" in refused(*SYNTH, "--out", "deep/down/release")


def test_a_foreign_sqlite_file_is_no_ledger(desk: Path, refused: Refused):
    with sqlite3.connect(desk / "other.sqlite") as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    assert "isn't a ledger" in refused(*SYNTH, "--ledger", "other.sqlite")


def test_a_marginal_of_a_billion_cells(desk: Path, refused: Refused):
    names = ("a", "b", "c")
    columns = "".join(f'[columns.{n}]\ntype = "integer"\nmin = 0\nmax = 9999\nbins = 1000\n' for n in names)
    (desk / "wide.toml").write_text(columns)
    (desk / "wide.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    told = refused("synth", "wide.csv", "--epsilon", 1, "--marginal", "a,b,c")
    assert "a, b, c" in told and "1,000,000,000 cells" in told


def test_an_unconfirmed_draft(desk: Path, refused: Refused, understudy):
    assert understudy("schema", "people.csv", "--out", "draft.toml").code == 0
    told = refused(*SYNTH, "--schema", "draft.toml")
    assert "draft" in told and "--accept-draft-as-public" in told


def test_private_values_need_a_delta(desk: Path, refused: Refused):
    edit_schema('["clerk", "cook", "nurse"]', '"private"')(desk)
    assert "needs a delta above 0" in refused(*SYNTH, "--delta", 0)


@pytest.mark.parametrize(
    "command",
    [
        ("schema", "nowhere.csv"),
        ("schema", "people.csv", "--out", "people.toml"),
        ("schema", "people.csv", "--out", "nowhere/people.toml"),
        ("verify", "nowhere"),
        ("verify", "people.csv"),
        ("verify", "."),
        ("replay", "."),
        ("budget", "show", "people.csv"),
        ("budget", "history", "people.csv"),
        ("budget", "set", "nowhere.csv", "--epsilon", "1"),
        ("budget", "set", "people.csv", "--epsilon", "0"),
        ("budget", "set", "people.csv", "--epsilon", "nan"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--delta", "1"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--neighbours", "swap"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--failure-delta", "1e-6"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--training-epsilon", "1"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--training-epsilon", "nan"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--delta", "0", "--failure-delta", "0"),
        ("budget", "set", "people.csv", "--epsilon", "1", "--ledger", "people.csv"),
    ],
)
def test_other_commands(command: tuple[str, ...], refused: Refused):
    refused(*command)


@pytest.mark.parametrize(
    "edit", [first_lines(0), first_lines(1), WRONG_DATA["binary"][0], WRONG_DATA["column twice"][0]]
)
def test_a_draft_of_what_is_no_table(edit: Edit, desk: Path, refused: Refused):
    edit(desk)
    refused("schema", "people.csv")


def test_a_draft_of_an_unreadable_file_names_it(desk: Path, refused: Refused):
    WRONG_DATA["line too short, late"][0](desk)
    assert "people.csv can't be read at line 302" in refused("schema", "people.csv")


def no_room(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_disk_full_before_the_spend(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "posix_fallocate", no_room)
    assert "No space left on device" in refused(*SYNTH)


def test_disk_full_at_the_last_write(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    """The noise was drawn, so the debit stays, and the sentence says so; no part of a release stays but its journal."""
    real = os.fsync

    def fsync(handle: int) -> None:
        no_room() if [*desk.glob(".people-release.tmp-*/schema.toml")] else real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    outcome = understudy(*SYNTH)
    assert outcome.code == 2 and outcome.out == "" and outcome.err.count("\n") == 1
    assert "No space left on device" in outcome.err
    assert "budget was spent" in outcome.err and "epsilon 1 at delta 1e-06" in outcome.err
    assert "people.csv.ledger.sqlite" in outcome.err
    left = {"people.csv", "people.toml", "people.csv.ledger.sqlite", "people-release.journal"}
    assert {p.name for p in desk.iterdir()} == left
    assert "debits      1" in understudy("budget", "show", "people.csv").out


def test_a_failed_overwrite_keeps_the_old_release(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    assert understudy(*SYNTH, "--out", "out").code == 0
    before = {p.name: p.read_bytes() for p in (desk / "out").iterdir()}
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if str(target) == "out" and "certificate.json" in {p.name for p in self.iterdir()} and self.name != "old":
            no_room()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    assert understudy(*SYNTH, "--out", "out", "--overwrite").code == 2
    assert {p.name: p.read_bytes() for p in (desk / "out").iterdir()} == before
    assert not [p for p in desk.iterdir() if ".tmp-" in p.name]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from understudy.cli import run
sys.exit(run(["synth", "people.csv", "--epsilon", "1"]))
"""


def test_a_kernel_that_refuses_to_write(desk: Path):
    """No simulation: a process whose files may not grow beyond 1,000 bytes."""
    done = subprocess.run([sys.executable, "-c", LIMITED], cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "can't be written: File too large" in done.stderr
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml"}


def test_a_column_that_is_read_later_is_checked_before_the_debit(desk, refused):
    # Under replace-one the row count is asked first, which reads no column; the damage is in the last one.
    (desk / "late.csv").write_bytes(b"a,b\n" + b"1,x\n" * 50 + b"2,\xff\xfe\n")
    (desk / "late.toml").write_text(
        'neighbours = "replace-one"\n[columns.a]\ntype = "integer"\nmin = 0\nmax = 3\n'
        '[columns.b]\ntype = "categorical"\nvalues = ["x", "y"]\n'
    )
    assert "not UTF-8" in refused("synth", "late.csv", "--epsilon", 1)


def test_a_private_column_does_not_put_off_the_refusal(desk, refused):
    (desk / "job.csv").write_text("job,age\n" + "cook,30\n" * 40)
    (desk / "job.toml").write_text(
        '[columns.job]\ntype = "categorical"\nvalues = "private"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 99\n'
    )
    assert "needs marginals or a target" in refused("synth", "job.csv", "--epsilon", 1, "--method", "marginals")
