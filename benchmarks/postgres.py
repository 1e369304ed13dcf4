"""All two-way tables of 15 columns on a PostgreSQL server: one pass, no row leaves it, and the client's memory is flat.

    scripts/bench postgres --rows 100000 1000000

Starts a temporary server of its own (Debian's package `postgresql`), makes the rows there, and counts them from a fresh
client process each. What the server was asked and what it sent comes from its own statistics, pg_stat_statements.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

COLUMNS = 15
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))


def schema_text() -> str:
    """Whole numbers, numbers in 16 bins, labels: five of each."""
    whole = [f'[columns.whole{i}]\ntype = "integer"\nmin = 0\nmax = {9 + 4 * i}' for i in range(5)]
    real = [f'[columns.real{i}]\ntype = "number"\nmin = 0\nmax = 100\nbins = 16' for i in range(5)]
    labels = [[f"label {k}" for k in range(3 + 3 * i)] for i in range(5)]
    texts = [f'[columns.text{i}]\ntype = "categorical"\nvalues = {json.dumps(v)}' for i, v in enumerate(labels)]
    return "\n".join([*whole, *real, *texts])


def made(url: str, rows: int) -> None:
    import psycopg

    columns = [f"(random() * {9 + 4 * i})::int AS whole{i}" for i in range(5)]
    columns += [f"100 * random() ^ {i + 1} AS real{i}" for i in range(5)]
    columns += [f"'label ' || floor(random() * {3 + 3 * i})::int AS text{i}" for i in range(5)]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"CREATE TABLE r{rows} AS SELECT {', '.join(columns)} FROM generate_series(1, {rows})")
        connection.execute(f"ANALYZE r{rows}")


def client(url: str) -> None:
    """The process that is measured: opens the table, and counts every pair of columns."""
    import understudy as us

    schema = us.Schema.loads(schema_text())
    table, domain = us.open(url, schema), us.Domain.of(schema)
    assert table.has_rows(2)
    before, begun = _peak(), time.perf_counter()
    pairs = list(itertools.combinations(domain.names, 2))
    counts = table.count_by(domain, pairs)
    taken = time.perf_counter() - begun
    cells = sum(c.size for c in counts)
    totals = {int(c.sum()) for c in counts}
    print(json.dumps({"seconds": taken, "before": before, "peak": _peak(), "cells": cells, "totals": list(totals)}))


def _peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def statistics(url: str) -> tuple[int, int, int]:
    """Statements that scanned the table, rows that were sent for them, and distinct kinds of statements."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        scans = "query ILIKE '%GROUPING SETS%'"
        asked = connection.execute(f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE {scans}").fetchone()
        sent = connection.execute(
            f"SELECT coalesce(sum(rows), 0) FROM pg_stat_statements WHERE {scans} OR query ILIKE 'FETCH%'"
        ).fetchone()
        kinds = connection.execute("SELECT count(*) FROM pg_stat_statements").fetchone()
    return int(asked[0]), int(sent[0]), int(kinds[0])


def measured(url: str, rows: int) -> str:
    import psycopg

    made(url, rows)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        connection.execute("SELECT pg_stat_statements_reset()")
    done = subprocess.run(
        [sys.executable, __file__, "--client", f"{url}::r{rows}"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["totals"] == [rows]
    asked, sent, _ = statistics(url)
    return (
        f"| {rows:,} | 105 | {asked} | {found['cells']:,} | {sent:,} | {found['seconds']:.1f} s "
        f"| {found['before']:.0f} MB | {found['peak']:.0f} MB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(options.client)
        return
    from helpers.postgres_cluster import cluster, skip_without_server

    settings = ("shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_utility=on")
    with cluster(skip_without_server(), *settings) as url:
        print("| rows | tables | statements that scan | cells | groups sent | time | client before | client's peak |")
        print("|---|---|---|---|---|---|---|---|")
        for rows in options.rows:
            print(measured(url, rows), flush=True)


if __name__ == "__main__":
    main()
