"""The witness of a ledger: a second record of its entries in the state folder, by which an older copy is noticed.

A copy of a ledger that is put back is sound in itself: nothing within it says that there was more. So after each write,
and at each opening, the entries of the chain that the witness lacks are added to it, one line each: the number and
digest of the entry, and the row where it is needed to make up for a ledger that is lost (no answers and no claims).

The order is: commit the ledger, then write the witness. A crash in between leaves the witness behind, never ahead, and
the next opening makes up for it. It is read before the ledger is, so that an entry of another process that comes in
between is not missed in the ledger.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.ledger import state
from understudy.boundary.privacy.ledger.chain import Head, digest_at, now
from understudy.errors import InputError

MIRRORED = ("identity", "limits", "divisions", "debits", "shares", "units", "restorations")
"""The tables whose rows the witness keeps. Answers and claims are noise and digests that only their ledger can use."""
_IDENTITY = re.compile(r"[0-9a-f]{16}")
_TAIL = 1 << 14
"""Bytes. Enough for many lines: those of processes that write at once may be out of order, but not by more."""


class OlderCopy(InputError):  # noqa: N818 - a state of affairs, as its siblings are
    """A ledger that lacks entries which were seen before."""


@dataclass(frozen=True)
class Seen:
    """The last entry that a witness saw, and when; none yet where `entries` is 0."""

    entries: int = 0
    digest: str = ""
    time: str = ""
    path: str = ""


def last_seen(identity: str | None) -> Seen:
    """From the last lines alone. What follows a restoration counts from there: a restored ledger may be shorter."""
    seen = Seen()
    for line in _lines(identity, _TAIL) or _lines(identity):
        if line["n"] >= seen.entries or line["table"] == "restorations":
            seen = Seen(line["n"], line["digest"], line["time"], line["path"])
    return seen


def demand_current(database: sqlite3.Connection, path: Path, head: Head, seen: Seen) -> None:
    """Refuses a ledger that lacks what the witness saw, or has something else in its place."""
    if not seen.entries or (seen.entries <= head.entries and digest_at(database, seen.entries) == seen.digest):
        return
    if head.entries and _is_restored(database, seen):
        return
    what = f"it has {head.entries} entries, and had {seen.entries} on {seen.time[:10]}"
    if seen.entries <= head.entries:
        what = f"entry {seen.entries} is not the one that was written on {seen.time[:10]}, to another copy"
    raise OlderCopy(
        f"ledger ({path}) is an older copy: {what}; put the newer file back, or accept this one with "
        f"`understudy budget restore DATA {path}`, which debits what it lacks.",
        path,
    )


def record(database: sqlite3.Connection, identity: str | None, path: Path, seen: Seen) -> bool:
    """Adds the entries that the witness hasn't seen; whether it could be written, and knows all of them."""
    name = _file(identity)
    if name is None:
        return False
    # Of a restored ledger all are written again, and `branch` tells where they part from the earlier ones.
    since = seen.entries if seen.entries and digest_at(database, seen.entries) == seen.digest else 0
    links = database.execute("SELECT id, covers, row, digest FROM chain WHERE id > ? ORDER BY id", (since,)).fetchall()
    here = str(path.absolute().resolve())
    lines = [_line(database, entry, table, row, digest) for entry, table, row, digest in links]
    # Where a copy is looked at while the ledger is where it was, that one stays the ledger.
    moved = bool(seen.path) and seen.path != here and not Path(seen.path).exists()
    if not lines and moved:
        lines = [{"n": seen.entries, "digest": seen.digest, "time": seen.time, "table": ""}]
    if not lines:
        return True
    if not since or moved or seen.path != here:
        state.append(state.place_of(path), [{"identity": identity}])
    return state.append(name, [line | {"path": here} for line in lines])


def known_at(path: Path) -> str | None:
    """The identity of the ledger that was last seen at this path, if it had debits there."""
    for line in reversed(state.read(state.place_of(path))):
        identity = line.get("identity")
        if isinstance(identity, str) and has_debits(identity):
            return identity if last_seen(identity).path == str(path.absolute().resolve()) else None
    return None


def has_debits(identity: str) -> bool:
    return any(line["table"] == "debits" for line in _lines(identity))


def branch(identity: str | None) -> dict[int, dict[str, Any]]:
    """The entries of the ledger that was written last, by number: where a ledger was restored, what it goes on with."""
    found: dict[int, dict[str, Any]] = {}
    for line in _lines(identity):
        number = line["n"]
        if number in found and found[number]["digest"] == line["digest"]:
            continue
        if number in found or line["table"] == "restorations":
            found = {n: known for n, known in found.items() if n < number}
        found[number] = line
    return found


def forget(identity: str) -> bool:
    """From here on nothing is known of this ledger; the file stays, under another name."""
    name = _file(identity)
    return name is not None and state.rename(name, f"{name}.forgotten-{now()}")


def _is_restored(database: sqlite3.Connection, seen: Seen) -> bool:
    """Whether the ledger says itself that it makes up for that entry."""
    found = database.execute(
        "SELECT 1 FROM restorations WHERE entries = ? AND digest = ?", (seen.entries, seen.digest)
    ).fetchone()
    return found is not None


def _line(database: sqlite3.Connection, entry: int, table: str, row: int, digest: str) -> dict[str, Any]:
    line: dict[str, Any] = {"n": entry, "digest": digest, "time": now(), "table": table}
    if table in MIRRORED:
        found = database.execute(f"SELECT * FROM {table} WHERE id = ?", (row,))
        names = [column[0] for column in found.description]
        line["row"] = dict(zip(names, found.fetchone(), strict=True))
    return line


def _file(identity: str | None) -> str | None:
    # It becomes a file's name: what a foreign file calls its identity must not lead elsewhere.
    return f"witnesses/{identity}" if identity and _IDENTITY.fullmatch(identity) else None


def _lines(identity: str | None, last: int | None = None) -> list[dict[str, Any]]:
    name = _file(identity)
    wanted = {"n": int, "digest": str, "time": str, "table": str, "path": str}
    lines = [] if name is None else state.read(name, last)
    whole = [line for line in lines if all(isinstance(line.get(key), kind) for key, kind in wanted.items())]
    return [line for line in whole if line["table"] not in MIRRORED or isinstance(line.get("row"), dict)]
