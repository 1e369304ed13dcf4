"""The SQLite file of a ledger: its tables, to which rows are only ever added, and transactions on the disk.

Every operation opens the file afresh, so that a ledger survives threads, forks and a file that is moved away, and every
write is one transaction that is on the disk before the call returns (BEGIN IMMEDIATE, rollback journal, synchronous =
EXTRA). Triggers abort UPDATE, DELETE and REPLACE.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from understudy.errors import InputError

_APPLICATION_ID = 0x55445354  # "UDST": how `file` and we tell a ledger from any other SQLite file
FIRST_VERSION, SHARED_VERSION, UNIT_VERSION, VERSION = 1, 2, 3, 4
"""Shares came second, units third, divisions of limits fourth. An older ledger is read as it is and brought to the
newest version with the first limit, share or debit that is written to it, in the same transaction. From then on it is
closed to older programs, which would ignore units and divisions.
"""
_BUSY_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.03

_TABLES = """
CREATE TABLE limits (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, neighbours TEXT NOT NULL,
    unit TEXT);
CREATE TABLE debits (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, purpose TEXT NOT NULL, analyst TEXT NOT NULL, neighbours TEXT NOT NULL,
    rho TEXT NOT NULL, epsilon TEXT, delta TEXT NOT NULL, asked_epsilon REAL NOT NULL, asked_delta REAL NOT NULL,
    unit TEXT);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, question TEXT NOT NULL UNIQUE, answer BLOB NOT NULL);
"""

_SHARES = """
CREATE TABLE shares (id INTEGER PRIMARY KEY, time TEXT NOT NULL, analyst TEXT NOT NULL, share REAL NOT NULL);
"""

_UNITS = """
CREATE TABLE units (id INTEGER PRIMARY KEY, time TEXT NOT NULL, debits INTEGER NOT NULL, unit TEXT NOT NULL);
CREATE TABLE identity (id INTEGER PRIMARY KEY, time TEXT NOT NULL, value TEXT NOT NULL);
"""
_UNIT_COLUMNS = ("ALTER TABLE limits ADD COLUMN unit TEXT", "ALTER TABLE debits ADD COLUMN unit TEXT")
"""For ledgers from before. Null stands for "not recorded"; no row is rewritten."""

_DIVISIONS = """
CREATE TABLE divisions (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, divided INTEGER NOT NULL UNIQUE, failure_delta TEXT NOT NULL,
    training_epsilon TEXT NOT NULL);
"""

# REPLACE deletes without firing DELETE triggers, so the collision itself is refused: what would replace a row is its
# clash. Whatever is put beside an identity would replace it.
_CLASHES = {"limits": "id = NEW.id", "debits": "id = NEW.id", "answers": "id = NEW.id OR question = NEW.question"}
_SHARE_CLASHES = {"shares": "id = NEW.id"}
_UNIT_CLASHES = {"units": "id = NEW.id", "identity": "1"}
_DIVISION_CLASHES = {"divisions": "id = NEW.id OR divided = NEW.divided"}
GUARD = """
CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {clash})
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
"""

_COMPLAINTS = {
    "SQLITE_BUSY": f"stayed locked by another process for {_BUSY_SECONDS:g} s; try again when that one has finished.",
    "SQLITE_NOTADB": "isn't a ledger but some other file; give the path of a ledger that Understudy made.",
    "SQLITE_READONLY": "can't be written to; give yourself the right to write, or choose another path.",
    "SQLITE_CANTOPEN": "can't be opened; check that the path is an existing file that you may read and write.",
    "SQLITE_FULL": "can't be written to, since the disk is full, and nothing was debited; make room and try again.",
    "SQLITE_IOERR": "can't be read or written; look at the disk, then at the ledger's history, before you try again.",
    "SQLITE_CORRUPT": "is damaged; restore it from a copy, since what it recorded can't be taken back.",
}


class LedgerDatabase:
    """The file of one ledger, or one in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._memory = None if path else _connection(":memory:")

    def __str__(self) -> str:
        return str(self.path) if self.path else "in memory"

    def close(self) -> None:
        """Forgets an in-memory ledger; a file needs no closing."""
        if self._memory is not None:
            self._memory.close()

    def prepare(self, create: bool) -> None:
        """Makes the file and its tables where there are none, if that is wanted; refuses one that is no ledger."""
        if create:
            self._make_file()
        with self.reading() as database:
            empty = pragma(database, "page_count") == 0
        if empty and create:
            self.initialise()
        with self.reading() as database:
            application, version = pragma(database, "application_id"), pragma(database, "user_version")
        if application != _APPLICATION_ID:
            raise InputError(f"ledger ({self}) {_COMPLAINTS['SQLITE_NOTADB']}", self.path)
        if not FIRST_VERSION <= version <= VERSION:
            raise InputError(
                f"ledger ({self}) has version {version}, which must be from {FIRST_VERSION} to {VERSION}; "
                "use the Understudy that made it.",
                self.path,
            )

    def _make_file(self) -> None:
        """An empty file only its owner can read; a crash here leaves one that the next opening fills."""
        assert self.path is not None
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise InputError(
                f"ledger ({self}) can't be created ({error.strerror}); name one in a folder that can be written to "
                "(--ledger, ledger= in Python).",
                self.path,
            ) from error

    def initialise(self) -> None:
        """The schema in one transaction; of two processes that create the same ledger, the second finds it done."""
        with self.writing() as database:
            # Asked under the lock, where SQLite has made a first page: has nobody put anything into this file yet?
            if pragma(database, "application_id") or database.execute("SELECT 1 FROM sqlite_master").fetchone():
                return
            make(
                database,
                _TABLES + _SHARES + _UNITS + _DIVISIONS,
                _CLASHES | _SHARE_CLASHES | _UNIT_CLASHES | _DIVISION_CLASHES,
            )
            _identify(database)
            database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation, with SQLite's complaints told as one sentence."""
        try:
            if self._memory is not None:
                yield self._memory
                return
            assert self.path is not None
            # mode=rw: SQLite would make a missing file, and an empty ledger admits everything.
            with closing(_connection(f"{self.path.absolute().as_uri()}?mode=rw")) as database:
                yield database
        except sqlite3.Error as error:
            raise InputError(self._complaint(error), self.path) from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view; the rollback at the end makes sure that nothing was written."""
        with self._opened() as database, _transaction(database, "ROLLBACK"):
            yield database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The only writer among all processes, and everything on the disk at the end, or nothing."""
        with self._opened() as database, _transaction(database, "COMMIT"):
            yield database

    def _complaint(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorname", "")
        for prefix, sentence in _COMPLAINTS.items():
            if code.startswith(prefix):
                return f"ledger ({self}) {sentence}"
        return f"ledger ({self}) can't be used ({error}); give the path of a ledger that Understudy made."


def make(database: sqlite3.Connection, tables: str, clashes: dict[str, str]) -> None:
    """Creates these tables and their guards; what would replace a row of a table is its clash."""
    guards = "".join(GUARD.format(table=table, clash=clash) for table, clash in clashes.items())
    pending = ""
    # One statement at a time: `executescript` would commit in between.
    for line in (tables + guards).splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            database.execute(pending)
            pending = ""


def migrate(database: sqlite3.Connection) -> None:
    """Brings an older ledger to the newest version: columns and tables are added, and nothing is rewritten.

    Called under the lock of the only writer, in the transaction of what is written next: a refusal undoes it.
    """
    version = pragma(database, "user_version")
    if version >= VERSION:
        return
    if version < SHARED_VERSION:
        make(database, _SHARES, _SHARE_CLASHES)
    if version < UNIT_VERSION:
        for statement in _UNIT_COLUMNS:
            database.execute(statement)
        make(database, _UNITS, _UNIT_CLASHES)
        _identify(database)
    make(database, _DIVISIONS, _DIVISION_CLASHES)
    database.execute(f"PRAGMA user_version = {VERSION}")


def _identify(database: sqlite3.Connection) -> None:
    append(database, "identity", value=secrets.token_hex(8))


def _connection(name: str) -> sqlite3.Connection:
    # No isolation level: Python would begin and commit transactions of its own.
    database = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, uri=True)
    # EXTRA also syncs the directory once the journal is gone, so that no power cut can bring it back and undo a debit.
    database.execute("PRAGMA synchronous = EXTRA")
    return database


@contextmanager
def _transaction(database: sqlite3.Connection, end: str) -> Iterator[None]:
    if end == "COMMIT":
        database.execute("PRAGMA journal_mode = DELETE")
        _queue_up(database)
    else:
        database.execute("BEGIN DEFERRED")
    try:
        yield
        database.execute(end)
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def _queue_up(database: sqlite3.Connection) -> None:
    """Waits for the lock of the only writer, with soon even odds for all who wait.

    SQLite's own waiting looks less and less often, so that among many processes the newest ones go first and the
    oldest may wait in vain.
    """
    database.execute("PRAGMA busy_timeout = 0")
    end, pause = time.monotonic() + _BUSY_SECONDS, _FIRST_PAUSE
    try:
        while True:
            last = time.monotonic() > end
            try:
                database.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if last or not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                    raise
            time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
            pause = min(2 * pause, _LONGEST_PAUSE)
    finally:
        database.execute(f"PRAGMA busy_timeout = {round(1000 * _BUSY_SECONDS)}")


def pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def append(database: sqlite3.Connection, table: str, **values: Any) -> int:
    """Adds a row with these values and the time, and returns its number."""
    row = {"time": datetime.now(UTC).isoformat(timespec="microseconds"), **values}
    marks = ", ".join("?" * len(row))
    added = database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    return int(added.lastrowid or 0)
