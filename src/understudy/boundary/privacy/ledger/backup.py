"""Backups of ledgers that can't take back a debit.

A backup is a copy of a ledger that was verified. It lacks what came after it. So it is put in place of a ledger that
is damaged, gone, or an older copy, and never of one that has entries which the backup lacks; and what the witness saw
after the last entry that both share is written to it again: limits, divisions, shares, units, and each debit with its
cost. Noisy answers are lost, and are paid for again when they are asked again. Releases that were in progress are
closed: which of their answers were handed out is not known any more.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.ledger import chain, claims, witness
from understudy.boundary.privacy.ledger.chain import DamagedLedger, digest_at, insert
from understudy.boundary.privacy.ledger.database import LedgerDatabase, identity_of, migrate, put_in_place
from understudy.boundary.privacy.ledger.known_rows import known_for, rows_of
from understudy.boundary.privacy.ledger.witness import OlderCopy
from understudy.errors import InputError
from understudy.files import name_of_process

_AGAIN = ("limits", "divisions", "debits", "shares", "units")
"""What the witness can give back; an identity is the same, and a restoration is written anew."""


@dataclass(frozen=True)
class Restored:
    """How many debits the backup had, and how many the witness added; whether there was a witness."""

    debits: int
    added: int
    witnessed: bool


def back_up(ledger: Path, to: Path) -> int:
    """Copies a verified ledger to a file that isn't there yet, and returns how many debits it holds."""
    if os.path.lexists(to):  # a folder has no name beside which anything could be written
        raise _taken(to)
    with LedgerDatabase(ledger).reading() as database:
        debits = _debits(database)
        content = _copy_of(database).serialize()
    _place(content, to, named=to)
    return debits


def restore(ledger: Path, backup: Path) -> Restored:
    """Puts a backup in the place of a ledger that is damaged, gone or an older copy; nothing debited is taken back."""
    with LedgerDatabase(backup, witnessed=False).reading() as database, closing(_copy_of(database)) as copy:
        # The oldest ledgers have no identity: then it is the one that they got later.
        debits, identity = _debits(copy), identity_of(copy) or witness.known_at(ledger)
        if not _is_same(ledger, backup):
            _demand_nothing_lost(ledger, copy, identity)
        elif not _is_refused(ledger):
            raise InputError(f"ledger ({ledger}) lacks nothing; there is nothing to restore.", ledger)
        known = witness.branch(identity)
        copy.execute("BEGIN")
        migrate(copy, identity)
        added = _make_up(copy, known, ledger)
        copy.execute("COMMIT")
        content = copy.serialize()
    _replace(ledger, content)
    LedgerDatabase(ledger).prepare(create=False)  # told to the witness
    return Restored(debits, added, bool(known))


def _make_up(copy: sqlite3.Connection, known: dict[int, dict[str, Any]], ledger: Path) -> int:
    """Adds to a copy what the witness saw after the last entry that both have; how many debits that were."""
    shared = max((n for n, line in known.items() if digest_at(copy, n) == line["digest"]), default=0)
    last = max(known, default=0)
    if known and last <= shared:
        return 0
    missing = next((n for n in range(shared + 1, last + 1) if n not in known), None)
    if missing is not None:
        raise InputError(
            f"ledger ({ledger}) can't be restored: its entry {missing} is neither in the backup nor known otherwise; "
            "restore a later backup, or begin anew with `understudy budget forget`.",
            ledger,
        )
    added = _again(copy, [known[n] for n in sorted(known) if n > shared])
    for (entry,) in copy.execute("SELECT entry FROM claims GROUP BY entry HAVING min(place) >= 0").fetchall():
        claims.put(copy, entry, claims.FINISHED, "")
    if known:
        insert(copy, "restorations", {"time": chain.now(), "entries": last, "digest": known[last]["digest"]})
    return added


def _again(copy: sqlite3.Connection, lines: list[dict[str, Any]]) -> int:
    """Writes the rows of these lines, but for those that are there: a backup from before chains shares no entry."""
    added = 0
    limits: dict[int, int] = {}
    for line in lines:
        table, row = line["table"], dict(line.get("row", {}))
        if table not in _AGAIN or _has(copy, table, row):
            continue
        number = row.pop("id")
        if table == "divisions":
            row["divided"] = limits.get(row["divided"], row["divided"])
        again = insert(copy, table, row)
        if table == "limits":
            limits[number] = again
        added += table == "debits"
    return added


def _has(copy: sqlite3.Connection, table: str, row: dict[str, Any]) -> bool:
    where = " AND ".join(f"{name} IS ?" for name in row)
    return copy.execute(f"SELECT 1 FROM {table} WHERE {where}", tuple(row.values())).fetchone() is not None


def _demand_nothing_lost(ledger: Path, copy: sqlite3.Connection, identity: str | None) -> None:
    """Refuses to replace a sound ledger that is another one, or has entries which the backup lacks."""
    if not ledger.exists() or _is_refused(ledger):
        return
    with LedgerDatabase(ledger).reading() as database:
        if identity_of(database) != identity:
            raise InputError(
                f"ledger ({ledger}) must be that of the backup, and is another one; move it away first.", ledger
            )
        has, backed = _entries(database), _entries(copy)
        if not 0 < has < backed or digest_at(copy, has) != digest_at(database, has):
            raise InputError(
                f"ledger ({ledger}) is sound, and none of its {has} entries may be lost; the backup, with {backed}, "
                "would add none to them.",
                ledger,
            )


def begin_anew(ledger: Path, source: str | None) -> list[Path]:
    """Forgets ledgers that are gone: the one at this path, and those of the same rows. Where these were."""
    if os.path.lexists(ledger):
        raise InputError(f"ledger ({ledger}) is still there; move it away first, if it is to be forgotten.", ledger)
    here = witness.known_at(ledger)
    gone = [known for known in known_for(rows_of(source)) if not known.path.exists() and known.identity != here]
    found = {known.identity: known.path for known in gone} | ({here: ledger} if here else {})
    if not found:
        raise InputError(f"ledger ({ledger}) isn't known to be gone; there is nothing to forget.", ledger)
    for identity in found:
        witness.forget(identity)
    return list(found.values())


def _is_refused(ledger: Path) -> bool:
    """Whether this ledger is damaged or an older copy."""
    try:
        LedgerDatabase(ledger).prepare(create=False)
    except (DamagedLedger, OlderCopy):
        return True
    return False


def _is_same(ledger: Path, backup: Path) -> bool:
    return ledger.exists() and backup.exists() and ledger.samefile(backup)


def _copy_of(database: sqlite3.Connection) -> sqlite3.Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None)
    database.backup(copy)
    return copy


def _replace(ledger: Path, content: bytes) -> None:
    """What is in the way stays, under another name: it may tell somebody something. So does a journal of SQLite's,
    which would otherwise be played back into the restored file.
    """
    # First of all on the disk: where there is no room, what was in the way is where it was.
    ready, name = name_of_process(ledger), f"{ledger.name}.replaced-{secrets.token_hex(4)}"
    _place(content, ready, named=ledger)
    try:
        for ending in ("-journal", "-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                ledger.with_name(ledger.name + ending).rename(ledger.with_name(name + ending))
        ready.rename(ledger)
    finally:
        ready.unlink(missing_ok=True)


def _place(content: bytes, path: Path, named: Path) -> None:
    try:
        put_in_place(content, name_of_process(path), path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise InputError(f"{str(named)!r} can't be written: {error.strerror}", named) from error


def _taken(path: Path) -> InputError:
    return InputError(f"{str(path)!r} exists already; give a path where nothing is", path)


def _debits(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT count(*) FROM debits").fetchone()[0])


def _entries(database: sqlite3.Connection) -> int:
    if not chain.is_chained(database):
        return 0
    return int(database.execute("SELECT count(*) FROM chain").fetchone()[0])
