"""Finished jobs on disk: lines of JSON that are only ever appended, so that a stopped run goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from understudy.errors import ReleaseError
from understudy.files import make_private


class JobRecord:
    """The values in a file; `append` adds one, which is on the disk when it returns."""

    def __init__(self, path: Path, file: IO[bytes], values: list[Any]) -> None:
        self.values = values
        """Those that were there when it was opened."""
        self._path, self._file = path, file

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[JobRecord]:
        """The record, made if there is none; refused while another run has it."""
        try:
            make_private(path.parent)
            # For this user alone: what a job found may be of rows.
            path.touch(mode=0o600)
            file = path.open("ab")
        except OSError as error:
            raise _unwritable(path, error) from None
        with file:
            _lock(file, path)
            yield cls(path, file, _values(path, file))

    def append(self, value: Any) -> None:
        try:
            self._file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
            self._file.flush()
            # A job may have taken hours: it must outlast the machine, too, not just this process.
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._path, error) from None


def _unwritable(path: Path, error: OSError) -> ReleaseError:
    return ReleaseError(f"{str(path)!r} can't be written: {error.strerror}; choose another folder, or make room", path)


def _lock(file: IO[bytes], path: Path) -> None:
    """Held until the file is closed, which the death of the process does too."""
    try:
        import fcntl
    except ImportError:  # this system has no such locks
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ReleaseError(
            f"another run is writing to {str(path.parent)!r}; wait for it, or choose another folder", path
        ) from None


def _values(path: Path, file: IO[bytes]) -> list[Any]:
    """Of the lines that were written to their end. What a killed run left of one more is cut off."""
    content = path.read_bytes()
    length = content.rfind(b"\n") + 1
    if length < len(content):
        file.truncate(length)
    # Not splitlines, which would also split at characters that JSON leaves as they are.
    lines = content[:length].decode(errors="replace").split("\n")[:-1]
    values = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(json.loads(line))
        except ValueError:
            raise ReleaseError(
                f"line {number} of {str(path)!r} can't be read; delete that line, and what it held is run again", path
            ) from None
    return values
