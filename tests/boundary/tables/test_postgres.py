"""What is particular about a server: the same releases as from files, addresses, refusals; and no row leaves it."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.builders import in_csv, in_duckdb
from helpers.postgres_cluster import REQUIRED, cluster, load, skip_without_server
from helpers.randomness import BestRandomness
from understudy.boundary.schema.partition import Grid, Split, Tree
from understudy.boundary.tables import postgres as module
from understudy.boundary.tables.postgres import PostgresTable
from understudy.boundary.tables.server import split_url
from understudy.errors import TableError
from understudy.methods.method import Options
from understudy.releases.synthesis import Plan, synthesize_with

TOML = """
missing_values = ["?"]
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true
[columns.town]
type = "categorical"
values = "private"
[columns.age]
type = "integer"
min = 18
max = 80
bins = 12
[columns.pay]
type = "number"
min = 0
max = 100
bins = 10
decimals = 1
[columns.smoker]
type = "boolean"
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2023-12-31
bins = 8
"""
SCHEMA = us.Schema.loads(TOML)


def people(rows: int = 600) -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.integers(15, 90, rows)
    days = np.datetime64("2019-12-01") + rng.integers(0, 1600, rows)
    return pa.table(
        {
            "job": rng.choice(["clerk", "cook", "nurse", "?"], rows).tolist(),
            "town": rng.choice(["Bonn", "Köln", "Ulm"], rows).tolist(),
            "age": age,
            "pay": np.round(age + rng.normal(0, 5, rows), 1),
            "smoker": (rng.random(rows) < age / 100).tolist(),
            "hired": days.astype(object).tolist(),
        }
    )


PEOPLE = people()


@pytest.mark.parametrize("method", ["independent", "mst", "aim"])
def test_releases_from_csv_duckdb_and_a_server_have_identical_measurements(method: str, postgres: str, tmp_path: Path):
    sources = [
        in_csv(PEOPLE, tmp_path / "people.csv"),
        in_duckdb(PEOPLE, tmp_path / "people.duckdb"),
        load(postgres, f"people {method}", PEOPLE),
    ]
    plan = Plan.of(SCHEMA, us.Budget(3.0, 1e-6), method, Options(), None, 7)
    releases = [synthesize_with(us.open(s, SCHEMA), plan, randomness=BestRandomness()) for s in sources]
    first = releases[0].record
    assert len(first) > 3
    for other in releases[1:]:
        assert [a.question for a in other.record] == [a.question for a in first]
        assert all(np.array_equal(a.value, b.value) for a, b in zip(other.record, first, strict=True))
    assert releases[2].table.equals(releases[0].table)


def test_partitions_large_and_small(postgres: str, monkeypatch: pytest.MonkeyPatch):
    schema = SCHEMA.with_columns([us.Schema.loads(TOML.replace('"private"', '["Bonn", "Ulm"]'))["town"]])
    domain = us.Domain.of(schema)
    frame, server = us.open(PEOPLE, schema), us.open(load(postgres, "partitioned", PEOPLE), schema, pushdown=True)
    tree = Tree(("age", "job"), (12, 4), (Split(0, 0b111000, -1, 1), Split(1, 0b10, -2, -3)))
    grid = Grid(("pay", "smoker"), (tuple(i // 3 for i in range(10)), (0, 1)))
    for most in (1 << 21, 1):  # from joint counts, and from distinct combinations
        monkeypatch.setattr(module, "MOST_JOINT_CELLS", most)
        for one, other in zip(
            frame.count_cells(domain, [tree, grid, tree]), server.count_cells(domain, [tree, grid, tree]), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_sets_inside_of_others_are_not_counted_again(postgres: str, monkeypatch: pytest.MonkeyPatch):
    schema = us.Schema.loads(TOML.replace('"private"', '["Bonn", "Ulm"]'))
    domain = us.Domain.of(schema)
    frame, server = us.open(PEOPLE, schema), us.open(load(postgres, "sets", PEOPLE), schema, pushdown=True)
    sets = [(), ("age",), *itertools.combinations(domain.names, 2), ("smoker", "age"), ("job", "town", "age")]
    monkeypatch.setattr(module, "MOST_SETS", 5)
    for columns, one, other in zip(sets, frame.count_by(domain, sets), server.count_by(domain, sets), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=str(columns))
        assert other.flags.c_contiguous and other.dtype == np.int64
    assert module._largest(sets[:3]) == [("age",), ("job", "town")]


def test_no_row_leaves_the_server_that_counts_by_itself():
    """Every statement of a whole release is an aggregate, and what it returns is groups: far fewer than rows."""
    with cluster(skip_without_server(), "log_statement=all", "log_line_prefix=") as url:
        table = us.open(load(url, "people", PEOPLE), SCHEMA, pushdown=True)
        (folder,) = parse_qs(urlsplit(url).query)["host"]
        log = Path(folder) / "log"
        before = log.stat().st_size
        us.synthesize(table, epsilon=2.0, method="mst", seed=1, ledger=False)
        told = re.findall(r"(?:statement|execute [^:]*): (.*)", log.read_text()[before:])
        del table
    assert len(told) > 3
    for statement in told:
        plain = statement.removeprefix('DECLARE "understudy" CURSOR FOR ')
        assert re.match(
            r"(?i)SELECT .*count\(|BEGIN|ROLLBACK|FETCH FORWARD|CLOSE|SELECT pg_catalog.set_config", plain
        ), statement


def test_of_a_row_nothing_but_its_codes_leaves_the_server():
    with cluster(skip_without_server(), "log_statement=all", "log_line_prefix=") as url:
        table = us.open(load(url, "people", PEOPLE), SCHEMA)
        log = Path(parse_qs(urlsplit(url).query)["host"][0]) / "log"
        before = log.stat().st_size
        us.synthesize(table, epsilon=2.0, method="mst", seed=1, ledger=False)
        del table
        told = re.findall(r"(?:statement|execute [^:]*): (.*)", log.read_text()[before:])
    scans = [s for s in told if "int8send" in s]
    assert len(scans) == 1, "all columns are asked for at once, and only once"
    assert re.match(r"SELECT int8send\(word_0\) FROM \(SELECT coded.code_0|SELECT int8send\(word_0\) FROM", scans[0])
    for statement in set(told) - set(scans):
        assert re.match(r"(?i)SELECT .*count\(|BEGIN|ROLLBACK|SELECT pg_catalog.set_config", statement), statement


def test_the_connection_can_only_read(postgres: str):
    import psycopg

    table = us.open(load(postgres, "guarded", PEOPLE), SCHEMA)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        table._connection.execute('DROP TABLE "guarded"')


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("postgresql://h/db::people", ("people",)),
        ("postgresql://h/db::health.people", ("health", "people")),
        ('postgresql://h/db::"a.b"."say ""hi"""', ("a.b", 'say "hi"')),
        ('postgres://u:p@h:5433/db?sslmode=require::health."the rows"', ("health", "the rows")),
    ],
)
def test_addresses(written: str, expected: tuple[str, ...]):
    assert split_url(written) == (written.partition("::")[0], expected)


@pytest.mark.parametrize("written", ["postgresql://h/db", "postgresql://h/db::", "postgresql://h/db::a.b.c", 'x::"a'])
def test_addresses_that_name_no_table(written: str):
    with pytest.raises(TableError, match="must end with the table"):
        split_url(written)


def test_errors_are_one_sentence_without_the_password(postgres: str, tmp_path: Path):
    nowhere = f"postgresql://me:s3cret@/x?host={tmp_path}::people"
    with pytest.raises(TableError, match="the PostgreSQL server can't be read: the connection failed") as refusal:
        us.open(nowhere, SCHEMA)
    assert "s3cret" not in str(refusal.value) and refusal.value.__cause__ is None
    with pytest.raises(TableError, match="people there can't be read: there is no table of that name"):
        us.open(f'{postgres}::"people there"', SCHEMA)
    with pytest.raises(TableError, match="there is no schema of that name"):
        us.open(f"{postgres}::nowhere.people", SCHEMA)


def made(url: str, name: str, columns: str, values: str) -> str:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.execute(f"INSERT INTO {name} VALUES {values}")
    return f"{url}::{name}"


def counts_of(url: str, toml: str) -> list[int]:
    schema = us.Schema.loads(toml)
    (counts,) = us.open(url, schema).count_by(us.Domain.of(schema), [tuple(schema.names)])
    return counts.tolist()


INTEGER = '[columns.x]\ntype = "integer"\nmin = 0\nmax = 3\nmissing = true'


@pytest.mark.parametrize(
    ("columns", "values", "toml", "expected"),
    [
        ("x numeric", "(1), (1e300), (-1e400), (1e-400), ('NaN'), (NULL), (2.5)", INTEGER, [2, 1, 0, 2, 2]),
        ("x numeric", "('Infinity'), ('-Infinity')", INTEGER, [1, 0, 0, 1, 0]),
        ("x double precision", "('NaN'), ('Infinity'), (1.4), (1.5)", INTEGER, [0, 1, 1, 1, 1]),
        ("x bigint", "(9223372036854775807), (-9223372036854775808), (2)", INTEGER, [1, 0, 1, 1, 0]),
        ("x boolean", "(true), (false), (NULL)", INTEGER, [1, 1, 0, 0, 1]),
        ("x text", "('1e5000'), ('-1e5000'), ('1e-5000'), ('0e5000')", INTEGER, [3, 0, 0, 1, 0]),
        ("x text", "(repeat('9', 2000)), ('1'), (repeat('9', 200000))", INTEGER, [0, 1, 0, 1, 1]),
        ("x varchar(9)", "(' 2 '), ('2.'), ('x'), ('0x1'), ('')", INTEGER, [0, 0, 2, 0, 3]),
        ("x char(5)", "('a'), ('b')", '[columns.x]\ntype = "categorical"\nvalues = ["a", "b"]', [1, 1]),
        ("x uuid", "('{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}')",
         '[columns.x]\ntype = "categorical"\nvalues = ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "b"]', [1, 0]),
        ("x timestamptz", "('2020-01-01 00:30+02'), ('2020-01-02 00:30+00'), ('infinity')",
         '[columns.x]\ntype = "datetime"\nmin = 2019-12-31\nmax = 2020-01-03', [1, 0, 1, 1]),
    ],
)  # fmt: skip
def test_types_of_the_server(columns: str, values: str, toml: str, expected: list[int], postgres: str):
    name = f"typed_{abs(hash((columns, values)))}"
    assert counts_of(made(postgres, name, columns, values), toml) == expected


@pytest.mark.parametrize("pushdown", [False, True])
def test_no_number_is_so_small_that_the_server_raises_on_it(postgres: str, pushdown: bool):
    """The server raises where a product of doubles underflows; a refusal would tell of the one row that has it."""
    schema = us.Schema.loads('[columns.x]\ntype = "number"\nmin = 0\nmax = 100000')
    rows = pa.table({"x": [5e-324, 1e-310, 1e-101, 3.0]})
    table = us.open(load(postgres, f"tiny {pushdown}", rows), schema, pushdown=pushdown)
    for asked in ("median(x)", "sum(x)", "avg(x)"):
        us.query(table, f"SELECT {asked} FROM data", epsilon=1.0, ledger=False)


def test_a_view_has_no_order_to_cap_by(postgres: str):
    import psycopg

    made(postgres, "visits", "who text, x int", "('a', 1), ('a', 2), ('b', 3)")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")
    plain = us.Schema.loads('[columns.who]\ntype = "identifier"\n' + INTEGER)
    capped = us.Schema.loads('unit = {column = "who", max_rows = 1}\n[columns.who]\ntype = "identifier"\n' + INTEGER)
    assert us.open(f"{postgres}::seen", plain).count_rows() == 3
    assert us.open(f"{postgres}::visits", capped).count_rows() == 2
    with pytest.raises(TableError, match="seen is a view or a partitioned table"):
        us.open(f"{postgres}::seen", capped)


def test_an_enum_and_a_domain(postgres: str):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        connection.execute("CREATE DOMAIN grade AS int CHECK (value > 0)")
    url = made(postgres, "moods", "x mood, y grade", "('sad', 1), ('ok', 2), ('ok', 2)")
    toml = '[columns.x]\ntype = "categorical"\nvalues = ["ok", "sad"]\n[columns.y]\ntype = "integer"\nmin = 1\nmax = 2'
    assert counts_of(url, toml) == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("columns", "values", "toml", "said"),
    [
        ("x int[]", "('{1}')", INTEGER, "holds array values"),
        ("x bytea", "('a')", INTEGER, "holds bytea values"),
        ("x int", "(1)", '[columns.x]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-01-02', "read as datetime"),
        (
            "x text",
            "('')",
            '[columns.x]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-01-02\nformat = "%b %d"',
            "%b",
        ),
    ],
)
def test_types_that_are_refused(columns: str, values: str, toml: str, said: str, postgres: str):
    url = made(postgres, f"refused_{abs(hash((columns, toml)))}", columns, values)
    with pytest.raises(TableError, match=re.escape(said)):
        us.open(url, us.Schema.loads(toml))


def test_a_server_is_required_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch):
    from helpers import postgres_cluster

    monkeypatch.setattr(postgres_cluster, "binaries", lambda: None)
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no PostgreSQL server is installed"):
        skip_without_server()
    monkeypatch.setitem(os.environ, REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="no PostgreSQL server is installed"):
        skip_without_server()


def test_kind_and_name(postgres: str):
    table = us.open(load(postgres, "named", PEOPLE), SCHEMA)
    assert isinstance(table, PostgresTable) and (table.kind, table.name) == ("postgresql", "named")
    assert isinstance(table, us.Table)


QUESTIONS = [
    "SELECT job, count(*), sum(age), avg(pay) FROM data WHERE smoker GROUP BY job",
    "SELECT median(age) FROM data",
    "SELECT quantile(pay, 0.9) FROM data WHERE job = 'cook'",
]


@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_query_has_one_answer_whoever_counts(asked: str, postgres: str):
    address = load(postgres, f"asked {QUESTIONS.index(asked)}", PEOPLE)
    schema = us.Schema.loads(TOML.replace('"private"', '["Bonn", "Ulm"]'))
    tables = [us.open(PEOPLE, schema), us.open(address, schema), us.open(address, schema, pushdown=True)]
    told = [us.query(t, asked, epsilon=1.0, test_only_noise_seed=3, ledger=False).to_dict() for t in tables]
    assert told[0] == told[1] == told[2]
