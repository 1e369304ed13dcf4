"""The chain of a ledger: a running digest over every row of every table, in the order of writing.

    digest of entry n = SHA-256(digest of entry n - 1, time, table, number and values of the row that it covers)

An entry is written in the transaction of its row, and before it: triggers refuse a row without one, so that programs
that know no chain can't add to a ledger that has one. Whoever opens a ledger computes all digests again. A row that was
changed, taken out, put in or moved breaks the chain, as does a trigger that is gone; what damages the file otherwise is
found by SQLite itself. The chain has no key: whoever may write to the file can make another one. It finds accidents.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from understudy.errors import InputError

COVERED = ("identity", "limits", "divisions", "debits", "shares", "answers", "units", "claims", "restorations")
"""The tables whose rows the chain covers, in the order in which those of older ledgers enter it."""

TABLE = """
CREATE TABLE chain (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, covers TEXT NOT NULL, row INTEGER NOT NULL, digest TEXT NOT NULL,
    UNIQUE (covers, row));
"""
CLASH = "id = NEW.id OR (covers = NEW.covers AND row = NEW.row)"
GUARD = """CREATE TRIGGER {table}_chain AFTER INSERT ON {table} WHEN NOT EXISTS
(SELECT 1 FROM chain WHERE covers = '{table}' AND row = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a row of a ledger needs its entry in the chain'); END"""

_NOTHING = "0" * 64


class DamagedLedger(InputError):  # noqa: N818 - a state of affairs, as its siblings are
    """What a file holds is not what was written to it."""


@dataclass(frozen=True)
class Head:
    """How long a chain is and the digest that it ends with; `rows` are the last rows of the tables that it covers."""

    entries: int = 0
    digest: str = _NOTHING
    rows: dict[str, int] = field(default_factory=dict, compare=False)


def is_chained(database: sqlite3.Connection) -> bool:
    """Ledgers of earlier versions have no chain; they get one with their next row."""
    return "chain" in tables_of(database)


def tables_of(database: sqlite3.Connection) -> set[str]:
    return {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def insert(database: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    """Adds a row and its entry to the chain, and returns the row's number, which is the next one of its table."""
    types = _columns(database, table)
    number = int(database.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {table}").fetchone()[0])
    # As SQLite will keep them: a whole number in a column of floats is given back as a float.
    kept = {name: float(v) if types[name] == "REAL" and v is not None else v for name, v in row.items()}
    kept["id"] = number
    _extend(database, table, number, _canonical(table, sorted(kept), [kept[name] for name in sorted(kept)]))
    marks = ", ".join("?" * len(kept))
    database.execute(f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})", tuple(kept.values()))
    return number


def cover(database: sqlite3.Connection) -> None:
    """Puts the rows of an older ledger, as they are, into its new chain."""
    for table in COVERED:
        names = sorted(_columns(database, table))
        # Read as a whole: what is written while a cursor is open may or may not be met by it.
        for values in database.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY id").fetchall():
            _extend(database, table, values[names.index("id")], _canonical(table, names, values))


def verified(database: sqlite3.Connection, name: str, known: Head | None = None) -> Head:
    """The head of the chain, all of which fits the rows; what was verified before, up to `known`, is not read again."""
    known = known or Head()
    if known.entries and digest_at(database, known.entries) != known.digest:
        raise damaged(name, f"its entry {known.entries} is no longer what it was")
    cursors = {table: _rows_after(database, table, known.rows.get(table, 0)) for table in COVERED}
    entries, digest, rows = known.entries, known.digest, dict(known.rows)
    links = database.execute("SELECT id, time, covers, row, digest FROM chain WHERE id > ? ORDER BY id", (entries,))
    for entry, time, table, row, stated in links:
        number, text = next(cursors.get(table, iter(())), (None, ""))
        digest = _digest(digest, time, text)
        if entry != entries + 1 or number != row or stated != digest:
            raise damaged(name, f"entry {entries + 1} of its chain doesn't fit what it covers")
        entries, rows[table] = entry, row
    extra = next((table for table, cursor in cursors.items() if next(cursor, None) is not None), None)
    if extra is not None:
        raise damaged(name, f"its table {extra} has a row that is not in its chain")
    return Head(entries, digest, rows)


def demand_sound(database: sqlite3.Connection, name: str, guards: dict[str, str]) -> None:
    """SQLite's own check, with that of its indexes, and the triggers: those of a ledger, word for word, and no more."""
    if not is_intact(database):
        raise damaged(name, "SQLite finds its pages broken")
    triggers = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())
    if triggers != guards:
        raise damaged(name, "the triggers that keep its rows from being changed are not as they were made")


def is_intact(database: sqlite3.Connection) -> bool:
    return bool(database.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")


def damaged(name: str, what: str) -> DamagedLedger:
    return DamagedLedger(
        f"ledger ({name}) is damaged: {what}; put a backup in its place with `understudy budget restore`.", name
    )


def digest_at(database: sqlite3.Connection, entry: int) -> str | None:
    found = database.execute("SELECT digest FROM chain WHERE id = ?", (entry,)).fetchone()
    return None if found is None else str(found[0])


def _columns(database: sqlite3.Connection, table: str) -> dict[str, str]:
    """The type of each column by its name; none for a table that isn't there."""
    return {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")}


def _rows_after(database: sqlite3.Connection, table: str, last: int) -> Iterator[tuple[int, str]]:
    names = sorted(_columns(database, table))
    if not names:
        return
    place = names.index("id")
    for values in database.execute(f"SELECT {', '.join(names)} FROM {table} WHERE id > ? ORDER BY id", (last,)):
        yield values[place], _canonical(table, names, values)


def _canonical(table: str, names: list[str], values: Any) -> str:
    """The same text on every machine, and never for two rows.

    Columns by name, and without those that hold nothing: a later version may add columns in any place.
    """
    return ascii((table, [(name, value) for name, value in zip(names, values, strict=True) if value is not None]))


def _extend(database: sqlite3.Connection, table: str, row: int, text: str) -> None:
    last = database.execute("SELECT digest FROM chain ORDER BY id DESC LIMIT 1").fetchone()
    time = now()
    digest = _digest(last[0] if last else _NOTHING, time, text)
    database.execute("INSERT INTO chain (time, covers, row, digest) VALUES (?, ?, ?, ?)", (time, table, row, digest))


def _digest(before: str, time: str, text: str) -> str:
    return hashlib.sha256(f"{before} {time!a} {text}".encode()).hexdigest()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
