"""What a site keeps of one session: the bill, its key, and each noisy answer before it is sent.

A question that is asked again is answered from here, so that nothing is drawn twice: an aggregator that was killed, a
reply that was lost, a site that was started again. The answers of a secure sum carry a part of the noise only, and
never leave the site but masked: the folder is for its owner's eyes, and is removed when the release is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.federation import Bill
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sites.messages import Message, packed
from understudy.errors import SiteError
from understudy.files import make_private, write_atomically, write_synced

Arrays = list[NDArray[Any]]
HEAD, ENDING = "head.json", ".answer"
OWN_RECORD = "the record of the session at this site"


@dataclass(frozen=True)
class Kept:
    """One answer: the ask, the digest of its questions, and the arrays that were drawn."""

    ask: Any
    asked: str
    arrays: Arrays

    def digest(self, place: int) -> str:
        """What a ledger claims the answer by."""
        found = hashlib.sha256(f"{place} {self.asked}".encode())
        for array in self.arrays:
            found.update(f" {array.dtype.str} {array.shape} ".encode() + array.tobytes())
        return found.hexdigest()


@dataclass
class SessionRecord:
    """Of one session; in a folder, or in memory where `folder` is None, as for a frame."""

    bill: Bill
    key: str
    """The site's private key of this session, in hexadecimal; empty where none is needed."""
    snapshot: str
    """How the file looked when the session began."""
    folder: Path | None = None
    keys: dict[str, str] = field(default_factory=dict)
    """The public keys of all sites of the session by name, where masks are made of them."""
    answers: dict[int, Kept] = field(default_factory=dict)

    def begin(self) -> None:
        """Onto the disk, before the debit: no debit is without its record."""
        if self.folder is None:
            return
        make_private(self.folder)
        head = {"bill": self.bill.to_dict(), "key": self.key, "snapshot": self.snapshot, "keys": self.keys}
        write_atomically(self.folder / HEAD, json.dumps(head).encode(), private=True)

    def meet(self, keys: Mapping[str, str]) -> None:
        """Kept, so that a site that was started again goes on under the same masks."""
        self.keys = dict(keys)
        self.begin()

    @classmethod
    def read(cls, folder: Path, schema: Schema) -> SessionRecord | None:
        """What is there of a session; None where it was never begun, or is finished."""
        head = folder / HEAD
        if not head.is_file():
            return None
        found = json.loads(head.read_bytes())
        record = cls(Bill.from_dict(found["bill"]), found["key"], found["snapshot"], folder, found["keys"])
        for path in sorted(folder.glob(f"*{ENDING}")):
            message = Message.read(path.read_bytes(), OWN_RECORD)
            ask, *arrays = message.content(schema)
            record.answers[int(path.stem)] = Kept(ask, str(message.header["asked"]), _widened(arrays))
        return record

    def keep(self, place: int, kept: Kept, schema: Schema) -> Arrays:
        """On the disk when this returns. Of two processes that answer one question, the noise of the first stays."""
        if self.folder is not None:
            path = self.folder / f"{place:08d}{ENDING}"
            if not _write_first(path, packed({"asked": kept.asked}, kept.ask, *kept.arrays)):
                known = SessionRecord.read(self.folder, schema)
                if known is None or known.answers[place].asked != kept.asked:
                    raise SiteError("another process answers for this site; leave it to that one", place)
                kept = known.answers[place]
        self.answers[place] = kept
        return kept.arrays

    def digests(self) -> tuple[str, ...]:
        """Of all answers, in their order."""
        return tuple(kept.digest(place) for place, kept in sorted(self.answers.items()))

    def catch_up(self, schema: Schema) -> None:
        """Takes over what another process of the same site has answered meanwhile."""
        known = None if self.folder is None else SessionRecord.read(self.folder, schema)
        if known is not None:
            self.answers = {**known.answers, **self.answers}

    def remove(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _widened(arrays: Sequence[NDArray[Any]]) -> Arrays:
    return [a if a.dtype == np.uint64 else a.astype(np.int64) for a in arrays]


def _write_first(path: Path, content: bytes) -> bool:
    """Writes a file that is not there yet, whole or not at all; False where there is one."""
    staged = path.with_suffix(f".{os.getpid()}")
    os.close(os.open(staged, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
    write_synced(staged, content)
    try:
        path.hardlink_to(staged)  # a rename would replace what another process has written
    except FileExistsError:
        return False
    finally:
        staged.unlink()
    return True
