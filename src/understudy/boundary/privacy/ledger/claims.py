"""Claims: what a ledger knows of the journals of releases, so that no question of a release gets two noises.

A journal is a file, and files are copied. The ledger is not: a place of a journal is claimed once, by the digest of the
record that stands there, and whoever comes second is refused before anybody sees what it drew.

    place  0    the journal's head, claimed in one transaction with the debit that pays for the release
    place  n    the n-th record: a noisy answer, or one step of a training
    place -1    the release is finished

Ledgers of earlier versions have no table for them before their first claim.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from understudy.boundary.privacy.ledger.chain import insert, tables_of
from understudy.errors import InputError

HEAD, FINISHED = 0, -1


class Overtaken(InputError):  # noqa: N818 - it is a state of affairs, not a mistake
    """Another process went on with the same release; what this one drew last was seen by nobody."""


@dataclass(frozen=True)
class Claimed:
    """The release of one journal: its debit, the digests of its records in order, and whether it is finished."""

    entry: int
    digests: tuple[str, ...]
    finished: bool


def find(database: sqlite3.Connection, head: str) -> Claimed | None:
    """What is claimed of the journal with this head; nothing for one that was never debited here."""
    if not _is_made(database):
        return None
    row = database.execute("SELECT entry FROM claims WHERE place = ? AND digest = ?", (HEAD, head)).fetchone()
    return None if row is None else _of(database, int(row[0]))


def unfinished(database: sqlite3.Connection) -> bool:
    """Whether the release of some journal was debited here and has not come to its end."""
    ended = "SELECT entry FROM claims WHERE place = ?"
    question = f"SELECT 1 FROM claims WHERE place = ? AND entry NOT IN ({ended})"
    return _is_made(database) and database.execute(question, (HEAD, FINISHED)).fetchone() is not None


def put(database: sqlite3.Connection, entry: int, place: int, digest: str) -> None:
    """Claims the next place of a release. Called under the lock of the only writer, so that the check can't be late."""
    if place != HEAD:
        _demand_next(_of(database, entry), place)
    elif find(database, digest) is not None:
        raise Overtaken("the release of this journal was debited by another process; leave it to that one", digest)
    insert(database, "claims", {"entry": entry, "place": place, "digest": digest})


def _is_made(database: sqlite3.Connection) -> bool:
    return "claims" in tables_of(database)


def _of(database: sqlite3.Connection, entry: int) -> Claimed:
    rows = database.execute("SELECT place, digest FROM claims WHERE entry = ? ORDER BY place", (entry,)).fetchall()
    return Claimed(entry, tuple(d for place, d in rows if place > HEAD), any(place == FINISHED for place, _ in rows))


def _demand_next(claimed: Claimed, place: int) -> None:
    if claimed.finished:
        raise Overtaken(f"the release of debit {claimed.entry} is finished; nothing can be drawn for it", claimed)
    following = len(claimed.digests) + 1
    if place not in (following, FINISHED):
        raise Overtaken(
            f"answer ({place}) of debit {claimed.entry} must be {following}, the next that nobody has claimed: another "
            "process goes on with this release; leave it to that one",
            claimed,
        )
