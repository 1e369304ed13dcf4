"""Standard output and error of the command: how they are doesn't change what the command does, or how it ends.

A reader that has seen enough (`| head -1`) closes the pipe, and what is printed after that goes nowhere. A device that
is full is told of at the end, when all else is done. What the encoding of a terminal can't hold is escaped.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TextIO

UNPRINTED = 74
"""EX_IOERR of sysexits.h: all was done, but what should have been printed was not."""


class Outlet(io.RawIOBase):
    """A file descriptor that takes everything; what could not be written is lost, and the reason is kept."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._closed_by_reader = False
        self.failure = ""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, content: memoryview) -> int:  # type: ignore[override]
        if self._closed_by_reader or self.failure:
            return len(content)
        try:
            return os.write(self._descriptor, content)
        except BlockingIOError:  # a pipe that another program made so
            select.select([], [self._descriptor], [])
            return 0
        except BrokenPipeError:
            self._closed_by_reader = True
        except OSError as error:
            self.failure = error.strerror or type(error).__name__
        return len(content)


def prepare() -> Outlet:
    """Puts outlets in the place of both streams; returns that of standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Closed by whoever started us: the next file, such as a ledger, would get its number, and whatever a
            # library prints there.
            os.open(os.devnull, os.O_RDWR)
    outlet = Outlet(1)
    sys.stdout, sys.stderr = _text(outlet, sys.stdout), _text(Outlet(2), sys.stderr)
    return outlet


def _text(outlet: Outlet, like: TextIO | None) -> TextIO:
    encoding = like.encoding if like else "utf-8"
    buffering = outlet.isatty() or outlet.fileno() == 2
    buffer = io.BufferedWriter(outlet)  # type: ignore[type-var]
    return io.TextIOWrapper(buffer, encoding=encoding, errors="backslashreplace", line_buffering=buffering)


def finish(outlet: Outlet, code: int) -> int:
    """Writes what is left; the exit code is the command's own, unless it was done and could not say so."""
    sys.stdout.flush()
    if outlet.failure:
        print(f"understudy: standard output can't be written: {outlet.failure}; all else was done.", file=sys.stderr)
    sys.stderr.flush()
    if outlet.failure and not code:
        return UNPRINTED
    return code
