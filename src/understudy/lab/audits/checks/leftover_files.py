"""Whether rows are left in files: a canary stands in the rows, and new files are searched for it."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 1 << 28
"""A larger file is not searched."""
OTHERS = 0o077
CLOCK = 2 * 10**9
"""How far, in nanoseconds, a file system's clock may lag behind."""


@dataclass(frozen=True)
class Watch:
    """Where files may be left, and what stood there when it began: of folders that were there, only the first level."""

    canary: bytes
    folders: tuple[Path, ...]
    before: dict[Path, int]
    since: int
    """In nanoseconds; files that were not written since then are not searched."""

    @classmethod
    @contextmanager
    def begun(cls, canary: bytes) -> Iterator[Watch]:
        folders = tuple(dict.fromkeys((Path.cwd(), Path(tempfile.gettempdir()).resolve())))
        since = time.time_ns() - CLOCK
        yield cls(canary, folders, {p: _changed(p) for f in folders for p in _entries(f)}, since)

    def found(self, anywhere: bool) -> list[str]:
        """Files that hold the canary: those that others than their owner can read, or all."""
        new = [p for f in self.folders for p in _entries(f) if _changed(p) != self.before.get(p)]
        files = [p for entry in new for p in _files(entry) if _changed(p) >= self.since]
        return [p.name for p in files if (anywhere or _is_open(p, self.folders)) and _holds(p, self.canary)]


def _entries(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []


def _changed(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return -1


def _files(entry: Path) -> Iterator[Path]:
    """The file, or all files of the folder; links are not followed."""
    if entry.is_symlink():
        return
    if entry.is_dir():
        yield from (Path(top) / name for top, _, names in os.walk(entry) for name in names)
    elif entry.is_file():
        yield entry


def _is_open(path: Path, folders: tuple[Path, ...]) -> bool:
    """Whether others can read the file, and can pass all folders above it that were made for it."""
    above = [p for p in path.parents if any(f in p.parents for f in folders)]
    try:
        return all(stat.S_IMODE(p.stat().st_mode) & OTHERS for p in (path, *above))
    except OSError:
        return False


def _holds(path: Path, canary: bytes) -> bool:
    try:
        return path.stat().st_size <= MOST_BYTES and canary in path.read_bytes()
    except OSError:
        return False
