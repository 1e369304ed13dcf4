"""The auditor's looks at people on a PostgreSQL server: honest methods pass, and nothing of them stays there."""

from __future__ import annotations

import pytest

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import ADD_REMOVE
from understudy.errors import TableError
from understudy.lab.audits.checks import server
from understudy.lab.audits.checks.boundary import SERVER, Boundary
from understudy.lab.audits.harness import Harness
from understudy.lab.audits.mutants.broken_boundary import by_raw_id
from understudy.lab.audits.result import FAILED, PASSED
from understudy.lab.audits.subjects import subject_of

BUDGET = Budget(1.0, 1e-6)


def boundary(name: str, postgres: str) -> Boundary:
    return Boundary(subject_of(name, BUDGET), Harness(), BUDGET, ADD_REMOVE, wide=False, postgres=postgres)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["independent", "private-tree", "query-groups"])
def test_people_on_a_server_are_told_apart(name: str, postgres: str) -> None:
    looked = boundary(name, postgres)._server()
    assert (looked.name, looked.outcome) == (SERVER, PASSED)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["independent", "private-tree", "query-groups"])
def test_people_in_spark_are_told_apart(name: str, sail_address: str) -> None:
    looked = boundary(name, sail_address)._server()
    assert (looked.name, looked.outcome) == (SERVER, PASSED)


def test_people_in_spark_who_are_not_are_found(sail_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "opened", lambda frame, schema: by_raw_id(frame.toArrow(), schema))
    assert boundary("independent", sail_address)._server().outcome == FAILED


def test_people_who_are_not_are_found(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ids as they are written: what `raw-ids` does to a frame, on the server's own rows."""
    monkeypatch.setattr(server, "opened", lambda url, schema: by_raw_id(_fetched(url), schema))
    assert boundary("independent", postgres)._server().outcome == FAILED


def test_nothing_stays_on_the_server(postgres: str) -> None:
    import psycopg

    boundary("query-total", postgres)._server()
    with psycopg.connect(postgres) as connection:
        left = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'understudy_audit%'").fetchone()
    assert left == (0,)


def test_a_server_that_is_not_there_is_refused_in_one_sentence() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(TableError, match="can't be reached"):
        boundary("query-total", "postgresql://nobody@127.0.0.1:1/none")._server()


def _fetched(url: str):
    import psycopg
    import pyarrow as pa

    where, _, inside = url.partition("::")
    with psycopg.connect(where) as connection:
        found = connection.execute(f"SELECT * FROM {inside} ORDER BY ctid")
        names = [c.name for c in found.description or ()]
        rows = found.fetchall()
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
