"""DuckDB reads what it was given and nothing else: no other file, no extension, no variable, no setting."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.boundary.tables.connection import connect
from understudy.boundary.tables.sources import csv_relation
from understudy.errors import TableError

SCHEMA = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 9')
ROWS = pa.table({"age": [1, 2, 2]})
VIEWS = {
    "plain": "SELECT age FROM people",
    "qualified": 'SELECT age FROM "the town".main.people',
    "csv": "SELECT age FROM read_csv('{folder}/other.csv')",
    "parquet": "SELECT age FROM '{folder}/other.parquet'",
    "text": "SELECT length(content) AS age FROM read_text('{folder}/other.csv')",
    "listing": "SELECT length(file) AS age FROM glob('{folder}/*')",
}
READABLE = ("plain", "qualified")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("age\n1\n2\n2\n")
    (tmp_path / "other.csv").write_text("age\n7\n")
    pq.write_table(pa.table({"age": [7]}), tmp_path / "other.parquet")
    with duckdb.connect(str(tmp_path / "the town.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT unnest([1, 2, 2]) AS age")
        for name, query in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {query.format(folder=tmp_path)}")
    return tmp_path


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_reaches_its_own_database_only(folder: Path, view: str):
    source = f"{folder / 'the town.duckdb'}::{view}"
    if view in READABLE:
        assert us.open(source, SCHEMA).count_rows() == 3
        assert us.draft_schema(source).names == ("age",)
    else:
        for reads in (lambda: us.open(source, SCHEMA).count_rows(), lambda: us.draft_schema(source)):
            with pytest.raises(TableError, match="it reads another file, which is not allowed"):
                reads()


FORBIDDEN = [
    "SELECT * FROM read_csv('{folder}/other.csv')",
    "SELECT * FROM '{folder}/other.csv'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/*')",
    "COPY (SELECT 1) TO '{folder}/written.csv'",
    "ATTACH '{folder}/the town.duckdb' AS again",
    "ATTACH '{folder}/new.duckdb' AS new",
    "INSTALL spatial",
    "LOAD spatial",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "SET temp_directory = '{folder}'",
    "SET autoload_known_extensions = true",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SELECT * FROM ROWS",  # the variable of this module
]


@pytest.mark.parametrize("kind", ["memory", "csv", "database"])
@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_connection_reaches_and_changes_nothing_else(folder: Path, kind: str, statement: str):
    opened = {"memory": {}, "csv": {"path": folder / "rows.csv"}, "database": {"database": folder / "the town.duckdb"}}
    with connect(**opened[kind]) as connection, pytest.raises(duckdb.Error):
        connection.execute(statement.format(folder=folder)).fetchall()
    assert not (folder / "written.csv").exists() and not (folder / "new.duckdb").exists()


def test_what_was_given_is_read(folder: Path):
    path = folder / "rows.csv"
    with connect(path) as connection:
        scan = csv_relation(path).sql(dialect="duckdb")
        assert connection.sql(f"SELECT count(*) FROM {scan}").fetchall() == [(3,)]
    with connect() as connection:
        connection.register("frame", ROWS)
        assert connection.sql("SELECT sum(age), current_setting('TimeZone') FROM frame").fetchall() == [(5, "UTC")]


@pytest.mark.parametrize("name", ["memory.duckdb", "main.duckdb", "temp.duckdb", "system.ddb", 'a"b.c.duckdb', "1.ddb"])
def test_a_database_of_any_name(tmp_path: Path, name: str):
    with duckdb.connect(str(tmp_path / name)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS age; CREATE VIEW seen AS SELECT * FROM people")
    for inside in ("people", "seen"):
        first = us.open(f"{tmp_path / name}::{inside}", SCHEMA)
        again = us.open(f"{tmp_path / name}::{inside}", SCHEMA)  # while the first is open
        assert first.count_rows() == again.count_rows() == 1


def test_a_database_that_the_caller_has_open_for_reading(folder: Path):
    path = folder / "the town.duckdb"
    with duckdb.connect(str(path), read_only=True):
        assert us.open(f"{path}::people", SCHEMA).count_rows() == 3


def test_every_connection_is_made_here():
    """A second way to the engine would have none of the limits; a mutant of the auditor has one for just that."""
    package = Path(us.__file__).parent
    mutants = package / "lab" / "audits" / "mutants" / "broken_boundary.py"
    found = [p for p in package.rglob("*.py") if "duckdb.connect(" in p.read_text() or "duckdb.sql(" in p.read_text()]
    assert set(found) - {mutants} == {Path(sys.modules["understudy.boundary.tables.connection"].__file__)}
