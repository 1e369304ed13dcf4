"""Records in a file: each is its length, the SHA-256 of its body, and its body; it is there whole, or not at all."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from understudy.errors import InputError

FRAME = struct.Struct("<Q32s")


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


def sync_folder(folder: Path) -> None:
    """So that no power cut loses the file's name; where folders can't be synced, the system does it by itself."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
