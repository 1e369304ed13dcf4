"""Randomness that is the same in every run: in a test the operating system's generator is a stream named by the test.

Only a test that is marked `noise` reads the real one, and says how often it fails by chance. Whatever asks Python for
the system's randomness gets the stream: `os.urandom` (so the package's `SystemEntropy`, and `uuid`), `secrets`, and the
seeds that numpy makes up. The code under test knows nothing of it, hence takes the path of a real release. Processes
that a test starts get streams of their own, numbered in the order of their start (see child/sitecustomize.py).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STREAM = "UNDERSTUDY_TEST_STREAM"
"""The environment variable by which a process learns its stream: unset where it draws real noise."""
CHILD = str(Path(__file__).parent / "child")
_system: Callable[[int], bytes] = os.urandom
_popen = subprocess.Popen.__init__
_name: str | None = None
_streams: dict[str, random.Random] = {}
_children = itertools.count()


def install() -> None:
    """Puts a switch before the system's generator; until `use` names a stream, it lets everything through."""
    os.urandom = _bytes
    random._urandom = _bytes  # type: ignore[attr-defined]  # of SystemRandom, which is all of `secrets`
    subprocess.Popen.__init__ = _started  # type: ignore[method-assign]


def use(name: str | None) -> None:
    """From here on draws come from the stream of that name, from its beginning, or from the system (None)."""
    global _name, _streams, _children
    _name, _streams, _children = name, {}, itertools.count()


@contextlib.contextmanager
def stream(name: str | None) -> Iterator[None]:
    """Draws inside come from another stream, and the one outside goes on as if nothing had happened."""
    global _name, _streams, _children
    outside = _name, _streams, _children
    use(name)
    try:
        yield
    finally:
        _name, _streams, _children = outside


def _bytes(count: int) -> bytes:
    if _name is None:
        return _system(count)
    reader = _reader(sys._getframe(1))
    # A seed of text is hashed by SHA-512, alike everywhere.
    found = _streams.get(reader) or _streams.setdefault(reader, random.Random(f"{_name} {reader}"))
    return found.randbytes(count)


def _reader(frame: types.FrameType | None) -> str:
    """The module that asks. Each has a part of the stream: a library that draws when it is first imported, or names a
    temporary file, must not shift the noise.
    """
    while frame is not None and frame.f_globals["__name__"] in ("random", "secrets"):
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals["__name__"])


@functools.wraps(_popen)
def _started(process: Any, *args: Any, env: Any = None, **keys: Any) -> None:
    """Tells a process its stream; a Python finds `sitecustomize`, which takes it up, on its path."""
    known = dict(os.environ if env is None else env)
    known.pop(STREAM, None)
    if _name is not None:
        known[STREAM] = f"{_name}, child {next(_children)}"
        known["PYTHONPATH"] = os.pathsep.join(filter(None, (CHILD, known.get("PYTHONPATH"))))
    _popen(process, *args, env=known, **keys)
