"""All two-way tables of 15 columns of a PostgreSQL table, and a release of them: counted here, or on the server.

    scripts/bench postgres --rows 100000 1000000

Starts a temporary server of its own (Debian's package `postgresql`), makes the rows there, copies them into a DuckDB
file, and counts them from a fresh client process each. Processor time of the server is that of all its processes, from
/proc. What the server was asked and what it sent comes from its own statistics, pg_stat_statements.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COLUMNS = 15
STREAMED, PUSHDOWN, DUCKDB = "PostgreSQL, codes counted here", "PostgreSQL, pushdown", "DuckDB file"
PAIRS, RELEASE = "105 pairs", "a release (rake)"
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


def copied(url: str, rows: int, folder: Path) -> str:
    """The same rows in a DuckDB file."""
    import duckdb
    import psycopg

    text = folder / "rows.csv"
    asked = f"COPY r{rows} TO STDOUT (FORMAT csv, HEADER)"
    with psycopg.connect(url) as connection, connection.cursor().copy(asked) as copy, text.open("wb") as out:
        out.writelines(copy)
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.execute(f"CREATE TABLE r{rows} AS SELECT * FROM read_csv('{text}')")
    text.unlink()
    return f"{folder / 'rows.duckdb'}::r{rows}"


def client(address: str, what: str, pushdown: bool) -> None:
    """The process that is measured: opens the table, and counts every pair of columns, or makes a release."""
    import understudy as us
    from understudy.boundary.tables.table import snapshot_of

    schema = us.Schema.loads(schema_text())
    table, domain = us.open(address, schema, pushdown=pushdown), us.Domain.of(schema)
    assert table.has_rows(2)
    found = {"before": _peak()}
    seconds, used = time.perf_counter(), time.process_time()
    if what == RELEASE:
        release = us.synthesize(table, epsilon=1.0, method="rake", seed=1, rows=1000, ledger=False, progress=False)
        found["counted"] = release.table.num_rows if hasattr(release.table, "num_rows") else len(release.table)
    else:
        snapshot, pairs = snapshot_of(table), list(itertools.combinations(domain.names, 2))
        counts = snapshot.count_by(domain, pairs)
        found["counted"] = {int(c.sum()) for c in counts}.pop()
    found |= {"seconds": time.perf_counter() - seconds, "used": time.process_time() - used, "peak": _peak()}
    if what == PAIRS:
        snapshot.has_rows(2)  # another statement, with which the server takes the one before for finished
    print(json.dumps(found))


def _peak() -> float:
    """Megabytes, of this program alone: `getrusage` begins with what the process was that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


class Server:
    """What the server has used so far, and what it was asked."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.url = url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            self.parent = int(_status(connection.info.backend_pid)[1])

    def used(self) -> float:
        """Seconds of all its processes, once those of the last client have ended."""
        time.sleep(1)
        return sum(map(int, _status(self.parent)[11:15])) / os.sysconf("SC_CLK_TCK")

    def forget(self) -> None:
        self._asked("SELECT pg_stat_statements_reset()")

    def sent(self, rows: int) -> tuple[int, int]:
        """Statements that scanned the table, and rows that were sent for them."""
        scans = f"query ILIKE '%\"r{rows}\"%' AND query NOT ILIKE '%LIMIT%'"
        asked = self._asked(f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE {scans}")
        sent = f"SELECT coalesce(sum(rows), 0) FROM pg_stat_statements WHERE {scans} OR query ILIKE 'FETCH%'"
        return int(asked), int(self._asked(sent))

    def _asked(self, query: str) -> int:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query).fetchone()[0]


def _status(process: int) -> list[str]:
    """Of a process, from its state on: 1 is its parent, 11 to 14 its ticks and those of its children."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def measured(server: Server, address: str, rows: int, way: str, what: str) -> str:
    server.forget()
    before = server.used()
    told = [sys.executable, __file__, "--client", address, "--what", what, *["--pushdown"] * (way == PUSHDOWN)]
    done = subprocess.run(told, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["counted"] == (1000 if what == RELEASE else rows)
    used, (asked, sent) = server.used() - before, server.sent(rows)
    on_server = ["", "", ""] if way == DUCKDB else [f"{used:.1f} s", str(asked), f"{sent:,}"]
    if what == RELEASE:
        on_server[1:] = ["", ""]  # its last statement is not in the statistics, since nothing is asked after it
    cells = [f"{rows:,}", what, way, f"{found['seconds']:.1f} s", f"{found['used']:.2f} s", *on_server]
    memory = [f"{found['before']:.0f} MB", f"{found['peak']:.0f} MB"]
    return f"| {' | '.join([*cells, *memory])} |"


def transports(url: str, rows: int) -> str:
    """What a client uses to get one small number of each row, or fifteen."""
    import psycopg

    one = f"SELECT int8send(CAST(whole0 AS bigint)) FROM r{rows}"
    fifteen = f"SELECT {', '.join(f'CAST(whole{i % 5} AS smallint)' for i in range(15))} FROM r{rows}"
    ways = {
        "one number, COPY (FORMAT binary)": lambda c: _copy(c, one),
        "fifteen numbers, COPY (FORMAT binary)": lambda c: _copy(c, fifteen),
        "one number, streamed in chunks": lambda c: b"".join(
            value for (value,) in c.cursor().stream(one, binary=True, size=8192)
        ),
        "fifteen numbers, streamed in chunks": lambda c: list(c.cursor().stream(fifteen, binary=True, size=8192)),
    }
    lines = ["| a row as | client CPU | wall |", "|---|---|---|"]
    for name, got in ways.items():
        with psycopg.connect(url) as connection:
            seconds, used = time.perf_counter(), time.process_time()
            got(connection)
            seconds, used = time.perf_counter() - seconds, time.process_time() - used
        lines.append(f"| {name} | {used:.2f} s | {seconds:.1f} s |")
    return "\n".join([f"How {rows:,} rows come here:", "", *lines])


def _copy(connection: Any, query: str) -> bytes:
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        return b"".join(copy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--what", help=argparse.SUPPRESS)
    parser.add_argument("--pushdown", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(options.client, options.what, options.pushdown)
        return
    from helpers.postgres_cluster import cluster, skip_without_server

    settings = ("shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_utility=on")
    heads = "rows | what | from | wall | client CPU | server CPU | scans | rows sent | client before | client's peak"
    with cluster(skip_without_server(), *settings) as url, tempfile.TemporaryDirectory() as folder:
        print(f"| {heads} |\n|{'---|' * (heads.count('|') + 1)}")
        for rows in options.rows:
            made(url, rows)
            server, place = Server(url), Path(folder, str(rows))
            place.mkdir()
            addresses = {STREAMED: f"{url}::r{rows}", DUCKDB: copied(url, rows, place), PUSHDOWN: f"{url}::r{rows}"}
            for what, (way, address) in itertools.product((PAIRS, RELEASE), addresses.items()):
                # A release asks for pairs again and again, and the server would count for hours.
                if what == PAIRS or way != PUSHDOWN:
                    print(measured(server, address, rows, way, what), flush=True)
        print(f"\n{transports(url, options.rows[-1])}")


if __name__ == "__main__":
    main()
