"""Commands in forked children, which can be killed: at the n-th call of a kind, or after a while."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("fsync", "rename", "replace", "open", "unlink", "rmdir", "mkdir", "commit")
"""What changes the disk, or is asked of it."""


class Deadly:
    """Counts calls, and dies before or after the n-th of one kind; with no kind it only counts."""

    def __init__(self, kind: str = "", number: int = 0, before: bool = True) -> None:
        self.kind, self.number, self.before = kind, number, before
        self.counts: Counter[str] = Counter()

    def install(self) -> None:
        for name in CALLS[:-1]:
            setattr(os, name, self._around(name, getattr(os, name)))
        connect, deadly = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:  # type: ignore[override]
                run = super().execute
                if statement != "COMMIT":
                    return run(statement, *values)
                return deadly._around("commit", run)(statement, *values)  # type: ignore[no-any-return]

        sqlite3.connect = lambda *args, **named: connect(*args, **named | {"factory": Connection})  # type: ignore[assignment]

    def _around(self, name: str, honest: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.counts[name] += 1
            now = name == self.kind and self.counts[name] == self.number
            if now and self.before:
                os.kill(os.getpid(), signal.SIGKILL)
            found = honest(*arguments, **named)
            if now:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return call


def in_child(run: Callable[[], int], said: Path, seconds: float | None = None) -> int:
    """The exit code of a function that runs in a child, or minus the signal that ended it.

    A worker that forks has started no engine: a thread of one would be missing in the child, with what it had locked.
    """
    gc.collect()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            handle = os.open(said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            code = run()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    try:
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status)
