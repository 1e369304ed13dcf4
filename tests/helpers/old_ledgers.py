"""Ledgers as earlier versions of Understudy wrote them: no units, no identity, and in the first version no shares."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from understudy.boundary.privacy.ledger.chain import COVERED
from understudy.boundary.privacy.ledger.database import make

TABLES = """
CREATE TABLE limits (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, neighbours TEXT NOT NULL);
CREATE TABLE debits (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, purpose TEXT NOT NULL, analyst TEXT NOT NULL, neighbours TEXT NOT NULL,
    rho TEXT NOT NULL, epsilon TEXT, delta TEXT NOT NULL, asked_epsilon REAL NOT NULL, asked_delta REAL NOT NULL);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, question TEXT NOT NULL UNIQUE, answer BLOB NOT NULL);
"""
SHARES = "CREATE TABLE shares (id INTEGER PRIMARY KEY, time TEXT NOT NULL, analyst TEXT NOT NULL, share REAL NOT NULL);"
CLASHES = {"limits": "id = NEW.id", "debits": "id = NEW.id", "answers": "id = NEW.id OR question = NEW.question"}
QUARTER = 2**78
"""In units of 2^-80."""


def old_ledger(path: Path, version: int, *, limit: float | None = None, debits: int = 0, delta: float = 0.0) -> Path:
    """A file of version 1 or 2 with this limit and as many debits of a quarter of pure ε."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN")
        make(database, TABLES, CLASHES)
        if version == 2:
            make(database, SHARES + "\n", {"shares": "id = NEW.id"})
            database.execute("INSERT INTO shares (time, analyst, share) VALUES ('2020-01-01T00:00:00', 'ada', 1.0)")
        if limit is not None:
            values = ("2020-01-01T00:00:00", limit, delta, "add-remove")
            database.execute("INSERT INTO limits (time, epsilon, delta, neighbours) VALUES (?, ?, ?, ?)", values)
        for day in range(debits):
            debit = (f"2020-02-0{day + 1}T00:00:00", "old", "ada", "add-remove", f"{QUARTER // 8}/2^80")
            row = (*debit, f"{QUARTER}/2^80", "0/2^80", 0.25, 0.0)
            database.execute(f"INSERT INTO debits VALUES (NULL, {', '.join('?' * 9)})", row)
        database.execute(f"PRAGMA application_id = {0x55445354}")
        database.execute(f"PRAGMA user_version = {version}")
        database.execute("COMMIT")
    return path


def before_chains(path: Path) -> Path:
    """The ledger of today in this file as a program of the fourth version wrote it; nobody has seen it otherwise."""
    with closing(sqlite3.connect(path)) as database:
        for table in COVERED:
            database.execute(f"DROP TRIGGER {table}_chain")
        for table in ("chain", "restorations"):
            database.execute(f"DROP TABLE {table}")
        database.execute("PRAGMA user_version = 4")
        database.commit()
    shutil.rmtree(Path(os.environ["XDG_STATE_HOME"]) / "understudy", ignore_errors=True)
    return path


def before_divisions(path: Path) -> Path:
    """The same as a program of the third version wrote it: its limits have no division."""
    with closing(sqlite3.connect(before_chains(path))) as database:
        database.execute("DROP TABLE divisions")
        database.execute("PRAGMA user_version = 3")
        database.commit()
    return path
