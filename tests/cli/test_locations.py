"""Which command the steward is sent to is one that works, and shows no password."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from understudy.cli import run
from understudy.cli.locations import check_command


@pytest.mark.parametrize(
    "data",
    ["flower://127.0.0.1:9092?sites=3", "sc://host:15002/;token=secret::people", "folder/people.SQLITE::people"],
)
def test_no_check_is_named_where_nobody_can_look(data: str):
    assert check_command(data) is None


@pytest.mark.parametrize(
    ("data", "command"),
    [
        ("people.csv", "understudy check people.csv"),
        ("my people.csv", "understudy check 'my people.csv'"),
        ("town.duckdb::people", "understudy check town.duckdb::people"),
        ("postgresql://ada:secret@host/town::people", "understudy check 'postgresql://…@host/town::people'"),
        (None, "understudy check DATA"),
    ],
)
def test_a_check_is_named_without_its_password(data: str | None, command: str):
    assert check_command(data) == command


def test_check_refuses_what_it_is_not_named_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, schema = tmp_path / "people.sqlite", tmp_path / "people.toml"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (age INTEGER)")
        database.executemany("INSERT INTO people VALUES (?)", [(a,) for a in range(20, 60)])
    schema.write_text('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99\n')
    assert run(["check", f"{path}::people", "--schema", str(schema)]) == 2
    assert "can't be looked at" in capsys.readouterr().err
    made = run(["synth", f"{path}::people", "--schema", str(schema), "--epsilon", "1", "--out", str(tmp_path / "out")])
    assert made == 0 and "understudy check" not in capsys.readouterr().out
