"""Where the engine writes rows that outgrow memory: a folder of this process that only its user may enter.

DuckDB would write them to `.tmp` in the current directory, for everybody to read, and leave them there when it is
killed. Ours lies where the system keeps temporary files (`TMPDIR`), has mode 0700, and is removed when the process
ends. What a killed process left is removed by the next one: a folder is held by a lock on it, which the death of its
process gives up, so that nobody sweeps away what a living process still needs.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without such locks: then nothing is swept
    fcntl = None  # type: ignore[assignment]

PREFIX = "understudy-spill-"


@dataclass(frozen=True)
class Folder:
    """The folder of one process. `handle` holds its lock; it is closed by the system when the process ends."""

    path: Path
    process: int
    handle: int | None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def remove(self) -> None:
        """Does nothing in a child that was forked with this folder: it belongs to the parent."""
        if os.getpid() == self.process:
            shutil.rmtree(self.path, ignore_errors=True)


_making = threading.Lock()
_current: Folder | None = None


def spill_directory() -> str:
    """A place for one connection's temporary files; empty, which means no place, where there is no room for one.

    The engine makes the directory when it first writes to it, and deletes it when the connection is closed.
    """
    try:
        folder = _folder()
    except OSError:
        return ""
    return str(folder.path / str(next(folder.numbers)))


def _folder() -> Folder:
    """This process's folder, made at the first call. A forked child has one of its own."""
    global _current
    with _making:
        if _current is None or _current.process != os.getpid():
            sweep(Path(tempfile.gettempdir()))
            _current = _made()
            atexit.register(_current.remove)
        return _current


def _made() -> Folder:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if fcntl is None:
            return Folder(path, os.getpid(), None)
        handle = os.open(path, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Another process may have swept the folder away before the lock was taken.
        if _is_still(path, handle):
            return Folder(path, os.getpid(), handle)
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def sweep(place: Path) -> None:
    """Removes the folders of this user whose processes are dead."""
    if fcntl is None:
        return
    for path in place.glob(f"{PREFIX}*"):
        try:
            _sweep(path)
        except OSError:  # somebody else's, or gone meanwhile
            continue


def _sweep(path: Path) -> None:
    # The checks make sure that nobody but this user can have put anything there: not even a link to another place.
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(path, handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
