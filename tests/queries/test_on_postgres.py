"""The same questions, without noise, of a frame and of a server: the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import understudy as us
from helpers.randomness import BestRandomness
from understudy.boundary.tables.table import Table
from understudy.errors import InputError
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.query import names_of, query_with
from understudy.queries.query_plan import QueryPlan

AGES = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')


def test_tables_of_one_name_in_two_schemas_are_two(server: str, tmp_path: Path):
    """`y2024.people` once got the recorded answer of `y2023.people`."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        for schema, rows in (("y2023", 400), ("y2024", 30)):
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(
                f"CREATE TABLE {schema}.people AS SELECT i % 90 AS age FROM generate_series(1, {rows}) i"
            )
    asked = {"epsilon": 100.0, "delta": 0, "ledger": tmp_path / "ledger"}
    tables = [us.open(f"{server}::{name}", AGES) for name in ("y2023.people", "y2024.people", "y2023.people")]
    answers = [us.query(t, "SELECT count(*) FROM people", **asked) for t in tables]
    assert [a.value for a in answers] == [400, 30, 400]
    assert [a.recorded for a in answers] == [False, False, True]
    assert tables[0].identity == tables[2].identity != tables[1].identity


def test_the_identity_holds_no_password(server: str):
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS plain AS SELECT i AS age FROM generate_series(1, 9) i")
    separator = "&" if "?" in server else "?"
    identity = us.open(f"{server}{separator}password=s3cret::plain", AGES).identity
    assert identity.endswith('::"public"."plain"') and "s3cret" not in identity
    with pytest.raises(InputError, match="no folder for a ledger"):
        us.query(us.open(f"{server}::plain", AGES), "SELECT count(*) FROM plain", epsilon=1.0)


QUESTIONS = [
    "select count(*), count(distinct person), sum(pay), avg(weight) from people",
    "select sex, smoker, count(*), sum(age) from people where job <> 'cook' group by sex, smoker",
    "select ill, median(pay), quantile(hired, 0.2) from people where age > 30 group by ill",
    "select hired, count(*) from people where hired - 10 < '2022-02-02' group by hired",
    "select avg(pay) from people where pay * age > 3 * weight + 0.1 or job = 'x; --'",
    "select job, avg(age) from people where not (smoker and sex is not null) group by job",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_server_answers_as_a_frame_does(sql: str, table: Table, on_server: Table):
    answers = []
    for source in (table, on_server):
        plan = QueryPlan(AggregateQuery.of(sql, source.schema, names_of(source)), source.schema, 0.95)
        answers.append(query_with(source, plan, us.Budget(3.0, 1e-6), randomness=BestRandomness()))
    assert answers[0].groups == answers[1].groups
