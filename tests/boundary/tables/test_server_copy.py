"""Drafts and checks of a table on a server: what they say of the same rows in a file, by one snapshot, and no trace."""

from __future__ import annotations

import gc
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import understudy as us
from helpers.postgres_cluster import load
from understudy.boundary.tables import connection as spilling
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.server import Server
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import TableError

ROWS = 400
PEOPLE = pa.table(
    {
        "person": [f"p{i % 150}" for i in range(ROWS)],
        "sex": ["Female", "Male", "male", None] * (ROWS // 4),
        "age": [18 + i % 70 for i in range(ROWS)],
        "pay": [round(10.5 + 1.25 * i, 2) for i in range(ROWS)],
        "smoker": [i % 3 == 0 for i in range(ROWS)],
        "note": ['he said "no",\nand left', "", "…", "a, b"] * (ROWS // 4),
        "since": pa.array([1_600_000_000 + 86_400 * i for i in range(ROWS)], pa.int64()).cast(pa.timestamp("s")),
    }
)
SCHEMA = us.Schema.loads("""
[unit]
column = "person"
max_rows = 2
[columns.person]
type = "identifier"
[columns.sex]
type = "categorical"
values = ["Female", "Male"]
[columns.age]
type = "integer"
min = 20
max = 80
[columns.pay]
type = "number"
min = 0
max = 400
decimals = 2
[columns.smoker]
type = "boolean"
[columns.note]
type = "identifier"
[columns.since]
type = "datetime"
min = 2020-10-01
max = 2021-10-01
""")


def test_a_draft_says_what_that_of_a_frame_says(postgres: str) -> None:
    server, frame = us.draft_schema(load(postgres, "drafted", PEOPLE)), us.draft_schema(PEOPLE)
    assert server.columns == frame.columns and server.missing_values == frame.missing_values
    assert server.notes == frame.notes


def test_a_check_says_what_that_of_a_frame_says(postgres: str) -> None:
    on_server = us.check(us.open(load(postgres, "checked", PEOPLE), SCHEMA, name="people"))
    in_memory = us.check(us.open(PEOPLE, SCHEMA, name="people"))
    assert on_server.to_dict() == in_memory.to_dict()
    assert on_server["sex"].strange[0].meant == "Male" and on_server.person is not None


def test_the_copy_is_one_snapshot_and_goes_with_its_reader(postgres: str) -> None:
    url = load(postgres, "moving", PEOPLE)
    rows = Rows.of(url)
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute('DELETE FROM "moving"')
    assert rows.query(f"SELECT count(*) FROM {rows.relation}") == [(ROWS,)]
    folder = spilling._folder().path
    assert (copies := list(folder.glob("*/server.csv")))
    assert folder.stat().st_mode & 0o077 == 0
    del rows
    gc.collect()
    assert not any(c.exists() for c in copies)


def test_values_keep_their_digits_and_what_has_no_text_is_left_out(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(
            'CREATE TABLE odd ("a" double precision, "b c" real, n numeric, l int[], t timestamptz, z text, d text)'
        )
        admin.execute(
            "INSERT INTO odd VALUES (0.1::float8 + 0.2, 0.1, 1e3, '{1}', '2020-01-01 01:00+01', NULL, 'x'), "
            "('NaN', 'Infinity', NULL, NULL, NULL, '', E'\\\\.')"
        )
    table = Rows.of(f"{postgres}::odd").everything().to_pylist()
    assert table[0] | {"t": None} == {
        "a": 0.1 + 0.2, "b c": 0.10000000149011612, "n": 1000.0, "l": None, "t": None, "z": None, "d": "x",
    }  # fmt: skip
    assert str(table[0]["t"]) == "2020-01-01 00:00:00" and table[1]["d"] == r"\."
    assert table[1]["b c"] == float("inf") and table[1]["l"] is None


def test_columns_that_the_schema_leaves_out_are_not_copied(postgres: str) -> None:
    opened = open_table(load(postgres, "partly", PEOPLE), SCHEMA)
    assert "note" not in Rows.of(opened).columns and "person" in Rows.of(opened).columns


def test_names_that_differ_in_case_only_are_refused(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute('CREATE TABLE cases ("a" int, "A" int)')
    with pytest.raises(TableError, match="differ in case only"):
        us.draft_schema(f"{postgres}::cases")


def test_a_full_disk_is_said_and_leaves_nothing(postgres: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(self, statement):
        yield b"c0"
        raise OSError(28, "No space left on device")

    url = load(postgres, "large", PEOPLE)
    monkeypatch.setattr(Server, "copied", full)
    before = set(spilling._folder().path.glob("*/server.csv"))
    with pytest.raises(TableError, match="no room for a copy"):
        us.draft_schema(url)
    assert set(spilling._folder().path.glob("*/server.csv")) == before
