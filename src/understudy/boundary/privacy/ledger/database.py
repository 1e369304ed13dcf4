"""The SQLite file of a ledger: its tables, to which rows are only ever added, and transactions on the disk.

Every operation opens the file afresh, so that a ledger survives threads, forks and a file that is moved away, and every
write is one transaction that is on the disk before the call returns (BEGIN IMMEDIATE, rollback journal, synchronous =
EXTRA). Triggers abort UPDATE, DELETE and REPLACE. Each transaction begins with a look at the `chain` of its rows and at
the `witness` of what was written before: the first one of an object reads all rows, later ones what came since.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.ledger import chain, witness
from understudy.boundary.privacy.ledger.chain import DamagedLedger, Head, damaged
from understudy.boundary.privacy.ledger.witness import Seen
from understudy.errors import InputError, located
from understudy.files import name_of_process, sweep_dead

_APPLICATION_ID = 0x55445354  # "UDST": how `file` and we tell a ledger from any other SQLite file
FIRST_VERSION, SHARED_VERSION, UNIT_VERSION, DIVIDED_VERSION, VERSION = 1, 2, 3, 4, 5
"""Shares came second, units third, divisions of limits fourth, the chain fifth. An older ledger is read as it is and
brought to the newest version with the first row that is written to it, in the same transaction. From then on it is
closed to older programs, which would ignore units and divisions, and write rows without their entries in the chain.
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

_RESTORATIONS = """
CREATE TABLE restorations (id INTEGER PRIMARY KEY, time TEXT NOT NULL, entries INTEGER NOT NULL, digest TEXT NOT NULL);
"""

# REPLACE deletes without firing DELETE triggers, so the collision itself is refused: what would replace a row is its
# clash. Whatever is put beside an identity would replace it.
_CLASHES = {"limits": "id = NEW.id", "debits": "id = NEW.id", "answers": "id = NEW.id OR question = NEW.question"}
_SHARE_CLASHES = {"shares": "id = NEW.id"}
_UNIT_CLASHES = {"units": "id = NEW.id", "identity": "1"}
_DIVISION_CLASHES = {"divisions": "id = NEW.id OR divided = NEW.divided"}
_CHAIN_CLASHES = {"restorations": "id = NEW.id", "chain": chain.CLASH}

CLAIMS = """
CREATE TABLE claims (
    id INTEGER PRIMARY KEY, entry INTEGER NOT NULL, place INTEGER NOT NULL, digest TEXT NOT NULL,
    UNIQUE (entry, place));
CREATE UNIQUE INDEX claims_head ON claims (digest) WHERE place = 0;
"""
# One answer for each place of a release, and one release for each journal, also for SQL that goes round `claims.put`.
_SAME_PLACE = "entry = NEW.entry AND place = NEW.place"
_SAME_HEAD = "place = 0 AND NEW.place = 0 AND digest = NEW.digest"
CLAIM_CLASHES = {"claims": f"id = NEW.id OR ({_SAME_PLACE}) OR ({_SAME_HEAD})"}

_ALL_CLASHES = _CLASHES | _SHARE_CLASHES | _UNIT_CLASHES | _DIVISION_CLASHES | CLAIM_CLASHES | _CHAIN_CLASHES
_GUARDS = (
    "CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    "CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    "CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {clash})\n"
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
)

_COMPLAINTS = {
    "SQLITE_BUSY": f"stayed locked by another process for {_BUSY_SECONDS:g} s; try again when that one has finished.",
    "SQLITE_NOTADB": "isn't a ledger but some other file; give the path of a ledger that Understudy made.",
    "SQLITE_READONLY": "can't be written to; give yourself the right to write, or choose another path.",
    "SQLITE_CANTOPEN": "can't be opened; check that the path is an existing file that you may read and write.",
    "SQLITE_FULL": "can't be written to, since the disk is full, and is as it was; make room and try again.",
    "SQLITE_IOERR": "can't be read or written; look at the disk, then at the ledger's history, before you try again.",
    "SQLITE_CORRUPT": "is damaged: SQLite finds its pages broken; {remedy}.",
}
_REMEDY = "put a backup in its place with `understudy budget restore`"


class LedgerDatabase:
    """The file of one ledger, or one in memory; `witnessed` is whether the state folder has a say, and is told."""

    def __init__(self, path: Path | None, witnessed: bool = True) -> None:
        self.path = path
        self._witnessed = witnessed and path is not None
        self._memory = None if path else _connection(":memory:")
        self._known: Head | None = None

    def __str__(self) -> str:
        return str(self.path) if self.path else "in memory"

    def close(self) -> None:
        """Forgets an in-memory ledger; a file needs no closing."""
        if self._memory is not None:
            self._memory.close()

    def prepare(self, create: bool) -> None:
        """Makes the file and its tables where there are none, if that is wanted; refuses one that is no ledger."""
        if self.path is not None and create:
            sweep_dead(self.path)
        if self.path is not None and not os.path.lexists(self.path):
            demand_not_gone(self.path)
            if create:
                self._make_file()
        with self._opened() as database:
            seen = self._seen(database)
            with _transaction(database, "ROLLBACK"):
                head = self._check(database, seen)
            if head.entries:
                self._tell_witness(database, seen)

    def _make_file(self) -> None:
        """A whole ledger under its name, or none: it is built in memory, and the file that holds it is linked there."""
        assert self.path is not None
        try:
            put_in_place(_fresh(), name_of_process(self.path), self.path)
        except FileExistsError:
            return  # somebody else was faster, with one as good
        except OSError as error:
            raise InputError(
                f"ledger ({self}) can't be created ({error.strerror}); name one in a folder that can be written to "
                "(--ledger, ledger= in Python).",
                self.path,
            ) from error

    def initialise(self) -> None:
        """The schema of a database in which nothing is yet."""
        with self._opened() as database, _transaction(database, "COMMIT"):
            initialise(database)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation, with SQLite's complaints told as one sentence."""
        try:
            if self._memory is not None:
                yield self._memory
                return
            assert self.path is not None
            if self.path.is_file() and self.path.stat().st_size == 0:
                raise DamagedLedger(
                    f"ledger ({self}) is emptied: it has 0 bytes; {_REMEDY}, or delete it if nothing was ever debited "
                    "in it.",
                    self.path,
                )
            # mode=rw: SQLite would make a missing file, and an empty ledger admits everything.
            with closing(_connection(f"{self.path.absolute().as_uri()}?mode=rw")) as database:
                yield database
        except sqlite3.Error as error:
            raise self._complaint(error) from error
        # What no ledger holds: of one without a chain nothing else tells that its bytes were changed.
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise damaged(str(self), f"it can't be read ({located(error)})") from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view; the rollback at the end makes sure that nothing was written."""
        with self._opened() as database:
            seen = self._seen(database)
            with _transaction(database, "ROLLBACK"):
                self._check(database, seen)
                yield database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The only writer among all processes, and everything on the disk at the end, or nothing."""
        with self._opened() as database:
            seen = self._seen(database)
            with _transaction(database, "COMMIT"):
                self._check(database, seen)
                migrate(database)
                yield database
            self._tell_witness(database, seen)

    def _seen(self, database: sqlite3.Connection) -> Seen:
        """What the witness knows, read before the ledger: others may add to both in between, to the ledger first."""
        return witness.last_seen(identity_of(database)) if self._witnessed else Seen()

    def _tell_witness(self, database: sqlite3.Connection, seen: Seen) -> None:
        """After the commit: what fails here must not pass for a debit that wasn't made."""
        if not self._witnessed or self.path is None:
            return
        with suppress(sqlite3.Error, OSError, ValueError, TypeError):
            witness.record(database, identity_of(database), self.path, seen)

    def _check(self, database: sqlite3.Connection, seen: Seen) -> Head:
        """Refuses what is no ledger, is damaged, or is an older copy."""
        if self._memory is not None:
            return Head()
        self._demand_ledger(database)
        head = Head()
        if chain.is_chained(database):
            if self._known is None:
                chain.demand_sound(database, str(self), GUARDS)
            head = self._known = chain.verified(database, str(self), self._known)
        elif self._known is not None:
            raise damaged(str(self), "its chain is gone")
        elif not chain.is_intact(database):
            raise damaged(str(self), "SQLite finds its pages broken")
        if self._witnessed and self.path is not None:
            witness.demand_current(database, self.path, head, seen)
        return head

    def _demand_ledger(self, database: sqlite3.Connection) -> None:
        application, version = pragma(database, "application_id"), pragma(database, "user_version")
        if application != _APPLICATION_ID:
            raise self._foreign(_COMPLAINTS["SQLITE_NOTADB"])
        if not FIRST_VERSION <= version <= VERSION:
            raise self._foreign(
                f"has version {version}, which must be from {FIRST_VERSION} to {VERSION}; use the Understudy that made "
                "it."
            )
        # Otherwise a chain would be ignored where the version is changed.
        if chain.is_chained(database) != (version == VERSION):
            raise damaged(str(self), f"it has version {version}, and {'no' if version == VERSION else 'a'} chain")

    def _foreign(self, sentence: str) -> InputError:
        """Of what is no ledger; where one is known to have been, it is damaged."""
        if self._witnessed and self.path is not None and witness.known_at(self.path) is not None:
            return damaged(str(self), "its first bytes are no longer those of a ledger")
        return InputError(f"ledger ({self}) {sentence}", self.path)

    def _complaint(self, error: sqlite3.Error) -> InputError:
        code = getattr(error, "sqlite_errorname", "")
        assert self.path is not None
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            missing = _cut_off(self.path)
            if missing:
                return DamagedLedger(f"ledger ({self}) is cut off: {missing}; {_REMEDY}.", self.path)
        if code.startswith("SQLITE_NOTADB"):
            return self._foreign(_COMPLAINTS["SQLITE_NOTADB"])
        for prefix, sentence in _COMPLAINTS.items():
            if code.startswith(prefix):
                kind = DamagedLedger if prefix == "SQLITE_CORRUPT" else InputError
                return kind(f"ledger ({self}) {sentence.format(remedy=_REMEDY)}", self.path)
        # Not what SQLite says, which may quote what the file holds.
        return damaged(str(self), f"it can't be read ({code or located(error)})")


def demand_not_gone(path: Path) -> None:
    """Refuses a path where a ledger with debits was seen last, and where none is."""
    if witness.known_at(path) is not None:
        raise DamagedLedger(
            f"ledger ({path}) is gone, and releases were debited in it; put it back or restore a backup with "
            "`understudy budget restore`, name another one with --ledger (ledger= in Python), or begin anew, as if "
            "nothing had been released, with `understudy budget forget`.",
            path,
        )


def initialise(database: sqlite3.Connection, identity: str | None = None) -> None:
    """The tables of a new ledger, with this identity or one of its own."""
    statements = _TABLES + _SHARES + _UNITS + _DIVISIONS + CLAIMS + _RESTORATIONS + chain.TABLE
    make(database, statements, _ALL_CLASHES)
    _chained(database)
    append(database, "identity", value=identity or secrets.token_hex(8))
    database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _fresh() -> bytes:
    with closing(_connection(":memory:")) as database:
        with _transaction(database, "COMMIT"):
            initialise(database)
        return database.serialize()


def put_in_place(content: bytes, made: Path, path: Path) -> None:
    """Writes a file that only its owner can read under the name `made`, and links it to `path` once it is on the disk.

    Nobody ever reads a part of it, and what is at `path` already stays (FileExistsError).
    """
    handle = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(made, path)
        except FileExistsError:
            raise
        except OSError:
            # A file system without links. The name is taken first, by an empty file, which everybody refuses.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """So that a power cut doesn't take the name away again; where folders can't be opened, the system sees to it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _cut_off(path: Path) -> str:
    """How much of a file is missing by what its first page says; nothing where that page is missing itself."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
        size = path.stat().st_size
    except OSError:
        return ""
    if len(head) < 32 or not head.startswith(b"SQLite format 3\0"):
        return ""
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    page = 65536 if page == 1 else page
    return f"it has {size} bytes of {page * pages}" if page and size < page * pages else ""


def make(database: sqlite3.Connection, tables: str, clashes: dict[str, str]) -> None:
    """Creates these tables and their guards; what would replace a row of a table is its clash."""
    pending = ""
    # One statement at a time: `executescript` would commit in between.
    for line in tables.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            database.execute(pending)
            pending = ""
    for guard in _guards(clashes).values():
        database.execute(guard)


def _guards(clashes: dict[str, str]) -> dict[str, str]:
    texts = [guard.format(table=table, clash=clash) for table, clash in clashes.items() for guard in _GUARDS]
    return {text.split()[2]: text for text in texts}


_CHAIN_GUARDS = {f"{table}_chain": chain.GUARD.format(table=table) for table in chain.COVERED}
GUARDS = _guards(_ALL_CLASHES) | _CHAIN_GUARDS
"""Every trigger of a ledger of the newest version."""


def _chained(database: sqlite3.Connection) -> None:
    for guard in _CHAIN_GUARDS.values():
        database.execute(guard)


def migrate(database: sqlite3.Connection, identity: str | None = None) -> None:
    """Brings an older ledger to the newest version: columns and tables are added, and nothing is rewritten.

    Called under the lock of the only writer, in the transaction of what is written next: a refusal undoes it.
    """
    version = pragma(database, "user_version")
    if version >= VERSION:
        return
    if version < SHARED_VERSION:
        make(database, _SHARES, {})
    if version < UNIT_VERSION:
        for statement in _UNIT_COLUMNS:
            database.execute(statement)
        make(database, _UNITS, {})
    if version < DIVIDED_VERSION:
        make(database, _DIVISIONS, {})
    if "claims" not in chain.tables_of(database):
        make(database, CLAIMS, {})
    make(database, _RESTORATIONS + chain.TABLE, {})
    # Made anew, in the words by which they are checked from now on.
    for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f'DROP TRIGGER "{trigger}"')
    make(database, "", _ALL_CLASHES)
    chain.cover(database)
    _chained(database)
    if version < UNIT_VERSION:
        append(database, "identity", value=identity or secrets.token_hex(8))
    database.execute(f"PRAGMA user_version = {VERSION}")


def identity_of(database: sqlite3.Connection) -> str | None:
    """A random number that tells a ledger from others; the oldest ones have none."""
    if "identity" not in chain.tables_of(database):
        return None
    row = database.execute("SELECT value FROM identity").fetchone()
    return None if row is None else str(row[0])


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
    """Adds a row with these values and the time, and its entry in the chain, and returns its number."""
    return chain.insert(database, table, {"time": chain.now(), **values})
