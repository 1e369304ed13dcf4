"""One release is of one state of its table: what is written meanwhile is not seen, or the release is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.builders import in_csv, in_duckdb, in_parquet, in_sqlite
from helpers.postgres_cluster import load
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.asks import Marginals
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.errors import TableError
from understudy.methods.method import Options
from understudy.releases.interruption import journal_at
from understudy.releases.synthesis import Plan, synthesize_with

TOML = """
[columns.a]
type = "integer"
min = 0
max = 3
[columns.b]
type = "integer"
min = 0
max = 3
[columns.c]
type = "integer"
min = 0
max = 3
[columns.word]
type = "categorical"
values = "private"
"""
SCHEMA = us.Schema.loads(TOML)
KNOWN = us.Schema.loads(TOML.replace('"private"', '["x", "y"]'))
DOMAIN = us.Domain.of(KNOWN)
ROWS = pa.table({n: pa.array(np.arange(40) % k) for n, k in (("a", 2), ("b", 3), ("c", 4))}).append_column(
    "word", pa.array(["x", "y"] * 20)
)
MORE = pa.concat_tables([ROWS, ROWS])
BUDGET = Budget(8.0, 1e-6)


def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def served(postgres: str, request: pytest.FixtureRequest):
    """The address of a table on a server, and a way to write into it."""
    name = f"moving {abs(hash(request.node.nodeid))}"
    address = load(postgres, name, ROWS)
    return address, lambda: run(postgres, f'INSERT INTO "{name}" SELECT * FROM "{name}"')


def asked(curator: Curator, *columns: str) -> np.ndarray:
    """Marginals without noise."""
    (found,) = curator.ask(Marginals(DOMAIN, [columns], curator.remaining().part(0.3)))
    return found.counts


@pytest.mark.parametrize("pushdown", [False, True])
def test_all_questions_of_a_release_see_one_state_of_a_server(served: tuple[str, Callable[[], object]], pushdown: bool):
    address, write = served
    table = us.open(address, KNOWN, pushdown=pushdown)
    before = Curator.on(table, BUDGET, randomness=BestRandomness())
    assert asked(before, "a").sum() == len(ROWS)
    write()
    assert asked(before, "b", "c").sum() == len(ROWS)
    after = Curator.on(table, BUDGET, randomness=BestRandomness())
    assert asked(after, "b", "c").sum() == 2 * len(ROWS)


def test_a_table_without_snapshots_would_be_seen_in_two_states(served: tuple[str, Callable[[], object]]):
    """The mutant: each question in a transaction of its own."""
    address, write = served
    table = us.open(address, KNOWN)
    assert table.count_by(DOMAIN, [("a",)])[0].sum() == len(ROWS)
    write()
    assert table.count_by(DOMAIN, [("b",)])[0].sum() == 2 * len(ROWS)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_release_sees_one_state_of_a_sqlite_file(journal: str, tmp_path: Path):
    address, path = in_sqlite(ROWS, tmp_path / "rows.sqlite"), tmp_path / "rows.sqlite"
    writer = sqlite3.connect(path, timeout=0, isolation_level=None)
    writer.execute(f"PRAGMA journal_mode = {journal}")
    table = us.open(address, KNOWN)
    curator = Curator.on(table, BUDGET, randomness=BestRandomness())
    assert asked(curator, "a").sum() == len(ROWS)
    double = 'INSERT INTO "the rows" SELECT * FROM "the rows"'
    if journal == "wal":
        writer.execute(double)
    else:  # without such a log a writer waits until the release has ended
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.execute(double)
    assert asked(curator, "b", "c").sum() == len(ROWS)
    del curator
    if journal == "delete":
        writer.execute(double)
    assert asked(Curator.on(table, BUDGET, randomness=BestRandomness()), "b", "c").sum() == 2 * len(ROWS)
    writer.close()


FILES = {
    "csv": lambda rows, stem: in_csv(rows, stem.with_suffix(".csv")),
    "parquet": lambda rows, stem: in_parquet(rows, stem.with_suffix(".parquet")),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_changes_is_refused_before_anything_more_is_drawn(kind: str, tmp_path: Path, monkeypatch):
    from understudy.boundary.tables import cache

    monkeypatch.setattr(cache, "MOST_CODE_BYTES", 0)  # as of a large file, whose codes aren't kept
    path = FILES[kind](ROWS, tmp_path / "rows")
    ledger = Ledger.open(tmp_path / "a.ledger")
    table = us.open(path, KNOWN)
    curator = Curator.on(table, BUDGET, ledger=ledger, randomness=BestRandomness())
    assert asked(curator, "a").sum() == len(ROWS)
    FILES[kind](MORE, tmp_path / "rows")
    with pytest.raises(TableError, match="was changed while it was released"):
        asked(curator, "b")
    assert len(curator.record) == 1 and len(ledger.entries()) == 1
    # The next release is of the file as it is then.
    again = Curator.on(us.open(path, KNOWN), BUDGET, randomness=BestRandomness())
    assert asked(again, "b").sum() == len(MORE)


def test_nobody_writes_into_a_duckdb_file_that_is_being_released(tmp_path: Path):
    address = in_duckdb(ROWS, tmp_path / "rows.duckdb")
    curator = Curator.on(us.open(address, KNOWN), BUDGET, randomness=BestRandomness())
    assert asked(curator, "a").sum() == len(ROWS)
    refused = _written_elsewhere(tmp_path / "rows.duckdb")
    if refused:
        assert asked(curator, "b").sum() == len(ROWS)
        return
    with pytest.raises(TableError, match="was changed while it was released"):
        asked(curator, "b")


def _written_elsewhere(path: Path) -> bool:
    """Whether the engine refused a writer in another process."""
    import subprocess
    import sys

    code = f'import duckdb; duckdb.connect({str(path)!r}).execute(\'INSERT INTO "the rows" SELECT * FROM "the rows"\')'
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode != 0


def ended(url: str) -> None:
    """Ends every other connection to the server."""
    others = "pid <> pg_backend_pid() AND datname = current_database()"
    run(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")


def test_a_lost_connection_is_a_clean_refusal(served: tuple[str, Callable[[], object]], postgres: str, tmp_path: Path):
    address, _ = served
    table = us.open(address, KNOWN)
    ledger = Ledger.open(tmp_path / "a.ledger")
    unpaid = Curator.on(table, BUDGET, ledger=ledger, randomness=BestRandomness())
    ended(postgres)
    with pytest.raises(TableError, match="can't be read: the server was stopped, or somebody ended the connection"):
        asked(unpaid, "a")
    assert ledger.entries() == []
    paid = Curator.on(table, BUDGET, ledger=ledger, randomness=BestRandomness())
    assert asked(paid, "a").sum() == len(ROWS)
    ended(postgres)
    with pytest.raises(TableError, match="can't be read"):
        asked(paid, "b")
    assert len(ledger.entries()) == 1 and len(paid.record) == 1


def test_a_connection_that_is_lost_in_mid_scan_is_a_clean_refusal(postgres: str, tmp_path: Path, monkeypatch):
    from understudy.boundary.tables import packing, server

    run(
        postgres,
        "CREATE TABLE many AS SELECT i % 4 AS a, i % 3 AS b, i % 2 AS c, 'x' AS word FROM generate_series(1, 600000) i",
    )
    ledger = Ledger.open(tmp_path / "a.ledger")
    curator = Curator.on(us.open(f"{postgres}::many", KNOWN), BUDGET, ledger=ledger, randomness=BestRandomness())
    monkeypatch.setattr(server, "CHUNK", 10_000)
    plain, seen = packing.joined, []

    def joined(parts, words):
        if not seen:
            ended(postgres)
        seen.append(len(parts))
        return plain(parts, words)

    monkeypatch.setattr(packing, "joined", joined)
    with pytest.raises(TableError, match=r"can't be read: the (server was stopped|connection was lost)"):
        asked(curator, "a")
    assert 0 < sum(seen) < 600_000 and ledger.entries() == []


class Interrupted(Exception):  # noqa: N818 - it is no mistake
    pass


@pytest.mark.parametrize("changed", [False, True])
def test_a_release_is_resumed_on_the_rows_that_it_began_with(
    served: tuple[str, Callable[[], object]], changed: bool, tmp_path: Path
):
    address, write = served
    ledger, path = Ledger.open(tmp_path / "a.ledger"), tmp_path / "release.journal"
    plan = Plan.of(SCHEMA, BUDGET, "mst", Options(), None, 7)

    def stopped(part: str) -> None:
        if part == "measuring":
            raise Interrupted

    with pytest.raises(Interrupted):
        _released(us.open(address, SCHEMA), plan, ledger, path, resume=False, progress=stopped)
    if not changed:
        release = _released(us.open(address, SCHEMA), plan, ledger, path, resume=True)
        assert release.table.num_rows == len(ROWS)
    else:
        write()
        with pytest.raises(TableError, match="has changed since this release began"):
            _released(us.open(address, SCHEMA), plan, ledger, path, resume=True)
    assert len(ledger.entries()) == 1


def _released(table, plan, ledger, path, *, resume, progress=None):
    journal = journal_at(path, ledger, resume)
    try:
        return synthesize_with(
            table, plan, randomness=BestRandomness(), ledger=ledger, progress=progress, journal=journal
        )
    finally:
        journal.close()
