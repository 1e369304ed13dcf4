"""Whether the same rows were debited in another ledger: a file is known by a keyed fingerprint, wherever it lies.

The fingerprint is a digest of the file's bytes, so it tells that two files are equal, and nothing else about them. That
is more than a release may say, so it stays in the state folder of whoever has the file, under a key that is there too:
not in the ledger, which others may read, nor in a certificate or a message. What is said is said to the steward, on
standard error: that two paths hold the same bytes is seen from the files alone, and follows from no noisy answer.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from understudy.boundary.privacy.ledger import state, witness
from understudy.boundary.privacy.ledger.chain import DamagedLedger

_WHOLE = 1 << 26
"""Bytes that are read of a file; of a larger one as many blocks, evenly spaced, and its size."""
_BLOCKS, _BLOCK = 64, 1 << 16


class LedgerWarning(UserWarning):
    """What a steward should know about a ledger, and nothing that stands in the way."""


@dataclass(frozen=True)
class Known:
    """Another ledger that was debited for the same rows, and where it was seen last."""

    identity: str
    path: Path

    @property
    def notice(self) -> str:
        return (
            f"the same rows were released under ledger {self.path}, and the claims of both add up; give --ledger "
            f"{self.path} (ledger= in Python) to add them there"
        )


def demand_unknown(rows: str | None, path: Path) -> None:
    """Refuses to begin a new ledger for rows that had one which is gone."""
    if path.exists():
        return
    gone = next((known for known in known_for(rows) if not known.path.exists()), None)
    if gone is not None:
        raise DamagedLedger(
            f"ledger ({path}) would be a new one, and the same rows were released under ledger {gone.path}, which is "
            "gone; put it back or restore a backup with `understudy budget restore`, name another one with --ledger "
            "(ledger= in Python), or begin anew, as if nothing had been released, with `understudy budget forget`.",
            path,
        )


def known_for(rows: str | None, identity: str | None = None) -> list[Known]:
    """The ledgers with debits for these rows, but for the one that is asked with."""
    lines = state.read(rows) if rows else []
    found = dict.fromkeys(line["identity"] for line in lines if isinstance(line.get("identity"), str))
    known = [Known(other, Path(witness.last_seen(other).path)) for other in found if other != identity]
    return [other for other in known if witness.has_debits(other.identity)]


def warn(rows: str | None, identity: str | None) -> None:
    """Of the other ledgers with debits for these rows."""
    for other in known_for(rows, identity):
        warnings.warn(other.notice, LedgerWarning, stacklevel=2)


def remember(rows: str | None, identity: str | None) -> None:
    """These rows were debited in this ledger."""
    if rows is not None and identity is not None and all(r.get("identity") != identity for r in state.read(rows)):
        state.append(rows, [{"identity": identity}])


def rows_of(source: str | None) -> str | None:
    """The file of the state folder that has the ledgers of these rows; None for rows that are in no file."""
    content = None if source is None or "://" in source else _content(source)
    fingerprint = None if content is None else state.keyed(content)
    return None if fingerprint is None else f"rows/{fingerprint}"


def _content(source: str) -> str | None:
    """A digest of the file's bytes, and in a database the table's name, which DuckDB knows in any case."""
    where, _, inside = source.partition("::")
    path = Path(where)
    digest = hashlib.sha256()
    try:
        if not path.is_file():
            return None
        size = path.stat().st_size
        starts: Iterable[int] = range(0, size, _BLOCK)
        if size > _WHOLE:
            starts = (number * (size - _BLOCK) // (_BLOCKS - 1) for number in range(_BLOCKS))
        with path.open("rb") as file:
            for start in starts:
                file.seek(start)
                digest.update(file.read(_BLOCK))
    except OSError:
        return None
    return f"{size} {digest.hexdigest()} {inside.lower()}"
