"""A PostgreSQL server of our own while the tests run: a temporary cluster on a unix socket, and nothing else."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

REQUIRED = "UNDERSTUDY_POSTGRES_REQUIRED"
SERVER_USER = "postgres"
SECONDS = 600
"""Ends what hangs; a machine that is busy with other things may need minutes for what else takes seconds."""


def binaries() -> Path | None:
    """The newest installed server's folder of programs."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def skip_without_server() -> Path:
    folder, reason = binaries(), "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        folder, reason = None, "psycopg is not installed (pip install '.[postgres]')"
    if folder is None and os.environ.get(REQUIRED):
        pytest.fail(reason)
    if folder is None:
        pytest.skip(reason)
    return folder


@contextmanager
def cluster(programs: Path, *settings: str) -> Iterator[str]:
    """The address of a fresh server, which is stopped, and its folder removed, at the end."""
    folder = Path(tempfile.mkdtemp(prefix="understudy-pg-"))
    owner = _owner(folder)
    try:
        make = [programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "tester", "--no-sync", "-E", "UTF8"]
        subprocess.run([*map(str, make), "--locale=C"], check=True, capture_output=True, cwd=folder, **owner)
        options = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", *settings]
        run = [str(programs / "postgres"), "-D", str(folder / "data"), *(x for o in options for x in ("-c", o))]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(run, stdout=log, stderr=log, cwd=folder, **owner)
        try:
            yield _ready(f"postgresql://tester@/postgres?host={folder}", server, folder / "log")
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown: open connections are closed
            server.wait(SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner(folder: Path) -> dict[str, object]:
    """The server refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(SERVER_USER)
    os.chown(folder, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _ready(url: str, server: subprocess.Popen[bytes], log: Path) -> str:
    import psycopg

    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return url
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


_TYPES = {
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_decimal(kind):
        return "numeric"
    return _TYPES.get(kind, "text")


def load(url: str, name: str, table: pa.Table) -> str:
    """An Arrow table as a table of the server, in the order of its rows; its address."""
    import psycopg
    from psycopg import sql

    columns = [sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(_type(f.type))) for f in table.schema]
    with psycopg.connect(url, autocommit=True) as connection:
        made = sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns))
        connection.execute(made)
        copied = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))
        with connection.cursor() as cursor, cursor.copy(copied) as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row[c] for c in table.column_names))
    return f'{url}::"{name}"'
