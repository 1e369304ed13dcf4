"""The journal of a release: a file of its noisy answers, so that an interrupted release goes on where it stopped.

Everything after the curator's answers is a function of these answers and of a public seed. So the answers in their
order are enough: the same code runs again, is handed what was drawn before, and only then asks the rows.

    magic, head, record, record, …      each but the magic is its length, the SHA-256 of its body, and its body

The head says what was asked for; a record holds noisy answers, or the noisy sums of one step of a training. Neither
rows nor anything that noise was drawn from is ever written. A record that was cut short fails its checksum and is
ignored, as is one that the ledger doesn't know (`gates.JournalGate` says why). So a journal may hold a draw that was
thrown away: it is for the steward's eyes, readable by its owner alone, and deleted when the release is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.ledger.claims import FINISHED
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.errors import InputError, InternalError

MAGIC = b"understudy journal 1\n"
ANSWER, STEP = "answer", "step"
KINDS = "biufU"
"""Of arrays: plain numbers and texts, so that reading a journal runs nothing."""
ENDING = ".journal"
FRAME = struct.Struct("<Q32s")
"""Before each record: its length, and the SHA-256 of its body. It is there whole, or not at all."""


@dataclass(frozen=True)
class Note:
    """Where a record lies, and what it answers; its values are read when they are wanted."""

    digest: str
    start: int
    end: int
    header: dict[str, Any]

    @property
    def question(self) -> tuple[str, str]:
        return str(self.header["kind"]), str(self.header["question"])


class Journal:
    """The file of one release. `entry` is its debit in the ledger, once there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts: dict[str, Any] = {}
        self.rows = ""
        """Which state of the table the release began with, by a digest under this user's key; empty if unknown."""
        self.digest = ""
        """Of the head; it holds a random number, so that no two releases have the same."""
        self.entry: int | None = None
        self.created = False
        """Whether this very object made the file."""
        self._file: BinaryIO | None = None
        self._notes: list[Note] = []
        self._next = self._claimed = self._end = 0
        self._pending = 0
        self._folders: list[Path] = []

    @classmethod
    def fresh(cls, path: Path, ledger: Ledger | Path | None = None) -> Journal:
        """A journal that is made with the first debit; refused where there is one that somebody may have paid for."""
        if not path.exists():
            return cls(path)
        with closing(cls.open(path)) as found:
            if found.digest:
                raise _unfinished(path, paid=ledger is None or found.recall(ledger))
            return found._begun_anew()

    @classmethod
    def open(cls, path: Path) -> Journal:
        """A journal that is there; nobody else can open it until it is closed."""
        journal = cls(path)
        try:
            journal._file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            raise InputError(f"{str(path)!r} does not exist: there is nothing to resume; start anew", path) from None
        except OSError as error:
            raise InputError(f"journal ({str(path)!r}) can't be read: {error.strerror}", path) from None
        with journal._closing_on_failure():
            lock(journal._file, path)
            journal._read()
        return journal

    @classmethod
    def resumed(cls, path: Path, ledger: Ledger | Path) -> Journal:
        """The journal of an interrupted release, as far as the ledger knows it; reads, and changes nothing."""
        journal = cls.open(path)
        with journal._closing_on_failure():
            book = Ledger.at(ledger)
            if not journal.digest:
                # Nothing is debited before the head is on the disk; but a copy may have been cut short later.
                if book.unfinished():
                    raise InputError(
                        f"journal ({str(path)!r}) ends within its head, so that nothing tells which release it is of, "
                        f"and ledger ({book}) has one that isn't finished; delete it, and pay anew",
                        path,
                    )
                return journal._begun_anew()
            claimed = book.claimed(journal.digest)
            if claimed is None:
                # A stop between the journal's head and its debit: nothing was drawn, and nothing is there to trust.
                if not journal.found:
                    return journal
                raise InputError(
                    f"ledger ({book}) knows nothing of journal {str(path)!r}; give the ledger that was debited", path
                )
            if claimed.finished:
                raise InputError(
                    f"the release of journal {str(path)!r} is finished, and can't be resumed; delete the journal", path
                )
            journal.take(claimed.digests)
            journal.entry = claimed.entry
        return journal

    @contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def finish(self, ledger: Ledger | Path) -> None:
        """Closes a release for good, once it is where it should be: the journal is deleted, and the ledger says so."""
        if self.entry is not None:
            # The journal first: it may be what fills the disk. And whatever becomes of the mark, the release is there,
            # and from a copy of the journal nothing can be drawn that wasn't: the mark says why it is refused.
            self.delete()
            with suppress(InputError):
                Ledger.at(ledger).claim(self.entry, FINISHED, self.digest)

    def recall(self, ledger: Ledger | Path) -> bool:
        """Whether the ledger was debited for it, as the ledger says."""
        if self.entry is None and (isinstance(ledger, Ledger) or ledger.exists()):
            claimed = Ledger.at(ledger).claimed(self.digest)
            self.entry = claimed.entry if claimed else None
        return self.paid

    @property
    def paid(self) -> bool:
        """Whether the ledger was debited for it."""
        return self.entry is not None

    @property
    def used(self) -> bool:
        """Whether an answer was read from it, or was to be written to it, since it was opened."""
        return bool(self._next or self._pending)

    @property
    def found(self) -> int:
        """How many whole records the file had when it was opened."""
        return len(self._notes)

    @property
    def place(self) -> int:
        """The place of the next record."""
        return self._claimed + 1

    def settle(self, facts: Mapping[str, Any], free: Sequence[str] = ()) -> None:
        """States what is asked for; one that goes on must ask for the same, but for what is `free`."""
        stated: dict[str, Any] = json.loads(json.dumps(facts, default=str))
        earlier = stated if self._file is None else self.facts
        for name in dict.fromkeys([*earlier, *stated]):
            then, now = earlier.get(name), stated.get(name)
            if then != now and name not in free:
                raise InputError(
                    f"{name} ({_short(now)}) must be {_short(then)}, as in journal {str(self.path)!r}; resume with "
                    "what was asked for, or start anew",
                    now,
                )
        self.facts = stated

    def create(self) -> None:
        """Makes the file and writes its head, on the disk; one that was opened stays as it is."""
        if self._file is not None:
            return
        head = json.dumps({"facts": self.facts, "rows": self.rows, "nonce": secrets.token_hex(16)}).encode()
        with self._writing():
            self._folders = [f for f in self.path.absolute().parents if not f.exists()]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                # 0600, since it may hold draws that were thrown away; O_EXCL, since another journal was paid for.
                handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            except FileExistsError:
                raise _unfinished(self.path) from None
            self._file, self.created = os.fdopen(handle, "r+b", buffering=0), True
            lock(self._file, self.path)
            write(self._file, 0, MAGIC + framed(head))
            # So that no power cut loses the file's name; where folders can't be synced, the system does it by itself.
            with suppress(PermissionError):
                handle = os.open(self.path.absolute().parent, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
        self.digest, self._end = sha(head).hex(), len(MAGIC) + FRAME.size + len(head)

    def take(self, digests: Sequence[str]) -> None:
        """Keeps the records that the ledger knows, in its order; a journal that lacks one can't go on."""
        known = {note.digest: note for note in self._notes}
        for place, digest in enumerate(digests, 1):
            if digest not in known:
                raise InputError(
                    f"journal ({str(self.path)!r}) is older than the ledger: it lacks answer {place} of the "
                    f"{len(digests)} that were drawn, and none is drawn twice; resume with the newest journal, or "
                    "delete this one and start anew",
                    self.path,
                )
        self._notes = [known[d] for d in digests]
        self._claimed = len(digests)
        self._end = max([self._end, *(note.end for note in self._notes)])

    def append(self, kind: str, question: str, values: Sequence[NDArray[Any]]) -> str:
        """Writes the next record, on the disk, over whatever nobody claimed; returns its digest."""
        arrays = [np.asarray(v) for v in values]
        for array in arrays:
            if array.dtype.kind not in KINDS:
                raise InternalError(f"an answer of type {array.dtype} can't be kept in a journal.", array.dtype)
        shapes = [[a.dtype.str, list(a.shape)] for a in arrays]
        header = {"kind": kind, "place": self.place, "question": question, "arrays": shapes}
        # The length depends on shapes alone, and nothing is compressed: whether the disk has room for it must not
        # depend on what was drawn (`gates`).
        self._pending = self._end
        body = b"".join([json.dumps(header).encode(), b"\n", *(a.tobytes() for a in arrays)])
        with self._writing():
            write(self._opened, self._end, framed(body))
        self._pending = self._end + FRAME.size + len(body)
        return sha(body).hex()

    def advance(self) -> None:
        """The record written last was claimed, and stays."""
        self._end, self._claimed = self._pending, self._claimed + 1

    def answer(self, question: str) -> list[NDArray[Any]] | None:
        """The recorded answer to the next question, whose steps need not be taken again; none if it wasn't finished."""
        # Steps of a training that is answered whole need not be handed out again: pass over them.
        place = self._next
        while place < len(self._notes) and self._notes[place].question == (STEP, question):
            place += 1
        if place == len(self._notes):
            return None
        return self._handed(place, (ANSWER, question))

    def step(self, question: str) -> NDArray[Any] | None:
        """The recorded sums of the next step of an unfinished answer, if there are any."""
        if self._next == len(self._notes):
            return None
        return self._handed(self._next, (STEP, question))[0]

    def discard(self) -> None:
        """Removes what `create` made: nothing was debited."""
        if self.created:
            self.delete()
            for folder in self._folders:
                with suppress(OSError):  # somebody else may use it by now
                    folder.rmdir()

    def delete(self) -> None:
        """Closes and removes the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets others open it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise InternalError(f"journal ({str(self.path)!r}) must be open to be used.", self.path)
        return self._file

    def _handed(self, place: int, question: tuple[str, str]) -> list[NDArray[Any]]:
        note = self._notes[place]
        if note.question != question:
            raise InternalError(
                f"answer {place + 1} in journal {str(self.path)!r} belongs to another question than the method asks.",
                self.path,
            )
        self._next = place + 1
        self._opened.seek(note.start)
        content = exactly(self._opened, note.end - note.start)
        start, values = content.index(b"\n") + 1, []
        for kind, shape in note.header["arrays"]:
            size = int(np.dtype(kind).itemsize * np.prod(shape, dtype=np.int64))
            values.append(np.frombuffer(content[start : start + size], dtype=np.dtype(kind)).reshape(shape))
            start += size
        return values

    def _read(self) -> None:
        """The head, and where each whole record is; a file that was cut before the end of its head has no digest."""
        start = exactly(self._opened, len(MAGIC))
        if not MAGIC.startswith(start):
            raise InputError(f"{str(self.path)!r} isn't a journal of this Understudy; give another --out", self.path)
        head = next(bodies(self._opened), None)
        if head is None:
            self._demand_cut_short()
            return
        stated = self._stated(head)
        self.facts, self.rows, self.digest = stated["facts"], str(stated.get("rows", "")), sha(head).hex()
        self._end = self._opened.tell()
        for body in bodies(self._opened):
            end = self._opened.tell()
            header = self._stated(body.partition(b"\n")[0])
            self._notes.append(Note(sha(body).hex(), end - len(body), end, header))

    def _stated(self, text: bytes) -> dict[str, Any]:
        """What a head, or the head of a record, says. Its digest is right, but anybody can compute one."""
        try:
            found = json.loads(text)
            whole = isinstance(found, dict) and bool({"facts", "question"} & found.keys())
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            raise InputError(
                f"journal ({str(self.path)!r}) is damaged; put a copy back, or delete it and pay anew", self.path
            )
        return dict(found)

    def _demand_cut_short(self) -> None:
        self._opened.seek(len(MAGIC))
        frame = exactly(self._opened, FRAME.size)
        if len(frame) == FRAME.size and FRAME.unpack(frame)[0] <= len(exactly(self._opened, FRAME.unpack(frame)[0])):
            raise InputError(
                f"journal ({str(self.path)!r}) is damaged in its head, and says nothing; delete it, and start anew",
                self.path,
            )

    def _begun_anew(self) -> Journal:
        self.delete()
        return Journal(self.path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"journal ({str(self.path)!r}) can't be written: {error.strerror}", self.path) from None


def digest_of(questions: Sequence[dict[str, Any]]) -> str:
    """What tells questions apart: a record is an answer to these, and to no others."""
    return sha(json.dumps(list(questions), sort_keys=True).encode()).hex()


def _unfinished(path: Path, paid: bool = True) -> InputError:
    then, instead = ", and is paid for", "delete it and pay again"
    if not paid:
        then, instead = " before the ledger was debited for it", "delete it"
    return InputError(
        f"{str(path)!r} is the journal of a release that was interrupted{then}; go on with it (--resume), or {instead}",
        path,
    )


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# --- records in a file


def sha(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def framed(body: bytes) -> bytes:
    return FRAME.pack(len(body), sha(body)) + body


def bodies(file: BinaryIO) -> Iterator[bytes]:
    """Every whole record from here on; what was cut short, and all behind it, never happened."""
    size = os.fstat(file.fileno()).st_size
    while size - file.tell() >= FRAME.size:
        length, checksum = FRAME.unpack(exactly(file, FRAME.size))
        if length > size - file.tell():
            return
        body = exactly(file, length)
        if sha(body) != checksum:
            return
        yield body


def exactly(file: BinaryIO, size: int) -> bytes:
    """So many bytes, or all that are left: a file without a buffer may hand out fewer at a time."""
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(file: BinaryIO, start: int, content: bytes) -> None:
    file.seek(start)
    file.truncate()
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())


def lock(file: BinaryIO, path: Path) -> None:
    """Keeps two processes off one file. It guards the file alone: noise is guarded by the ledger's claims."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"journal ({str(path)!r}) is in use by another process; leave the release to that one", path
        ) from None
    except OSError:  # a file system without locks
        return
