"""What is particular about SQLite: any value in any column, views, places of rows, and texts that are none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.builders import in_csv, in_sqlite
from helpers.randomness import BestRandomness
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.tables.sqlite_dialect import bound_query, prepare
from understudy.errors import TableError
from understudy.methods.method import Options
from understudy.releases.synthesis import Plan, synthesize_with

INTEGER = '[columns.x]\ntype = "integer"\nmin = 0\nmax = 3\nmissing = true'


def made(path: Path, columns: str, rows: list[tuple[object, ...]], *statements: str) -> str:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t ({columns})")
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO t VALUES ({places})", rows)
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return f"{path}::t"


def counts(address: str, toml: str) -> list[int]:
    schema = us.Schema.loads(toml)
    return us.open(address, schema).count_by(us.Domain.of(schema), [us.Domain.of(schema).names])[0].tolist()


@pytest.mark.parametrize("declared", ["INTEGER", "TEXT", "REAL", "BLOB", "BOOLEAN", "NUMERIC", ""])
def test_a_value_is_read_alike_in_a_column_of_any_type(declared: str, tmp_path: Path):
    """The type of a column changes what SQLite stores, and must not change what is read."""
    values = [
        1,
        1.4,
        "1",
        " 1 ",
        "1.0",
        "x",
        None,
        2.5,
        "2.5",
        9**30 / 1e20,
        "abc",
        b"3",
        float("inf"),
        float("nan"),
        "",
    ]
    address = made(tmp_path / "a.sqlite", f"x {declared}", [(v,) for v in values])
    assert counts(address, INTEGER) == [0, 5, 0, 5, 5]


def test_bytes_that_are_no_text_are_read_as_one(tmp_path: Path):
    toml = '[columns.x]\ntype = "categorical"\nvalues = ["a", "b"]\nother = "rest"'
    address = made(
        tmp_path / "a.db", "x TEXT", [("a",)], "INSERT INTO t VALUES (CAST(x'ff61' AS TEXT)), (CAST(x'6100' AS TEXT))"
    )
    assert counts(address, toml) == [1, 0, 2]
    private = us.Schema.loads(toml.replace('["a", "b"]\nother = "rest"', '"private"'))
    values, found = us.open(address, private).count_values("x")
    assert values == ["a", "a\0", "\ufffda"] and found.tolist() == [1, 1, 1]


def test_a_database_of_another_encoding(tmp_path: Path):
    path = tmp_path / "a.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.close()
    address = made(path, "x TEXT", [("é",), ("☃",), ("é",)])
    assert counts(address, '[columns.x]\ntype = "categorical"\nvalues = ["é", "☃"]') == [2, 1]


CAPPED = 'unit = {column = "who", max_rows = 1}\n[columns.who]\ntype = "identifier"\n' + INTEGER
PLAIN = '[columns.who]\ntype = "identifier"\n' + INTEGER


def test_the_first_rows_of_a_person_count(tmp_path: Path):
    address = made(tmp_path / "a.sqlite", "who, x", [("a", 1), (" a", 2), (7, 3), ("7", 0), (7.0, 0), (None, 1)])
    assert counts(address, CAPPED) == [0, 1, 0, 1, 0]
    hidden = made(tmp_path / "b.sqlite", "who, x, rowid", [("a", 1, 9), ("a", 2, 1)])
    assert counts(hidden, CAPPED + '\n[columns.rowid]\ntype = "identifier"') == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "statement",
    ["CREATE VIEW seen AS SELECT * FROM t", "CREATE TABLE seen (who PRIMARY KEY, x) WITHOUT ROWID"],
)
def test_what_has_no_order_can_not_be_capped(statement: str, tmp_path: Path):
    made(tmp_path / "a.sqlite", "who, x", [("a", 1), ("a", 2)], statement)
    assert us.open(f"{tmp_path}/a.sqlite::seen", us.Schema.loads(PLAIN)).count_rows() in (0, 2)
    with pytest.raises(TableError, match="is a view, or a table without row ids"):
        us.open(f"{tmp_path}/a.sqlite::seen", us.Schema.loads(CAPPED))


def test_ids_that_were_rounded_are_refused(tmp_path: Path):
    address = made(tmp_path / "a.sqlite", "who REAL, x", [(2.0**53, 1), (2.0**53 + 2, 2)])
    with pytest.raises(TableError, match="ids in 'who' are stored as floating-point numbers"):
        us.open(address, us.Schema.loads(CAPPED))


def test_the_file_can_only_be_read(tmp_path: Path):
    table = us.open(made(tmp_path / "a.sqlite", "x", [(1,)]), us.Schema.loads(INTEGER))
    for statement in ("DELETE FROM t", "CREATE TEMP TABLE s (x)", "PRAGMA journal_mode = wal"):
        with pytest.raises((sqlite3.OperationalError, AssertionError)):
            assert table._connection.execute(statement).fetchone() == ("wal",)
    assert table.count_rows() == 1


def test_refusals_are_one_sentence(tmp_path: Path):
    schema = us.Schema.loads(INTEGER)
    address = made(tmp_path / "a.sqlite", "x", [(1,)])
    (tmp_path / "b.sqlite").write_bytes(b"no database at all, whatever its name is" * 50)
    told = {
        str(tmp_path / "a.sqlite"): "is a database; name one of its tables",
        f"{tmp_path}/c.sqlite::t": "does not exist",
        f"{tmp_path}/a.sqlite::s": "there is no table of that name in it",
        f"{tmp_path}/b.sqlite::t": "the file is damaged or not of its kind",
    }
    for given, reason in told.items():
        with pytest.raises(TableError, match=reason):
            us.open(given, schema)
    with pytest.raises(TableError, match="pushdown is for tables on a PostgreSQL server"):
        us.open(address, schema, pushdown=True)


def test_a_release_is_that_of_the_same_rows_in_a_csv_file(tmp_path: Path):
    rng = np.random.default_rng(1)
    rows = pa.table({"a": rng.integers(0, 5, 300), "b": rng.choice(["x", "y"], 300).tolist()})
    schema = us.Schema.loads(
        '[columns.a]\ntype = "integer"\nmin = 0\nmax = 4\n[columns.b]\ntype = "categorical"\nvalues = "private"'
    )
    plan = Plan.of(schema, us.Budget(3.0, 1e-6), "mst", Options(), None, 7)
    sources = [in_csv(rows, tmp_path / "rows.csv"), in_sqlite(rows, tmp_path / "rows.sqlite")]
    one, other = [synthesize_with(us.open(s, schema), plan, randomness=BestRandomness()) for s in sources]
    assert all(np.array_equal(a.value, b.value) for a, b in zip(one.record, other.record, strict=True))
    assert one.table.equals(other.table)
    answer = us.query(us.open(sources[1], schema), "SELECT avg(a) FROM data WHERE b = 'x'", epsilon=50.0, ledger=False)
    assert 1 < answer.value < 3


def test_parts_of_a_moment_are_those_of_the_calendar():
    connection = sqlite3.connect(":memory:")
    prepare(connection)
    query = exp.select(
        *(
            exp.Extract(this=exp.var(part), expression=exp.cast(exp.Literal.string("2024-02-29 23:00:00"), "timestamp"))
            for part in ("YEAR", "MONTH", "ISODOW", "HOUR", "EPOCH")
        )
    )
    bound = bound_query(query)
    assert connection.execute(bound.text, bound.values).fetchone() == (2024, 2, 4, 23, 1709247600.0)
    assert connection.execute("SELECT understudy_part('YEAR', 9e18)").fetchone() == (None,)
    connection.close()
