"""Rounds of the game in child processes, one to a core, each of which keeps its tables open between rounds."""

from __future__ import annotations

import collections
import io
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from understudy.errors import InputError, MethodError
from understudy.lab.audits.games.game import Run

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from understudy.lab.audits.games.child import main; main()"
PIECE = 4_096
"""Bytes that are read at a time of what a child prints."""


@dataclass(frozen=True)
class Task:
    """Some rounds of one game."""

    pair: str
    view: str
    rounds: int
    number: int
    """Of the task within its game."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.pair, self.view, self.number


class Crew:
    """Children that take tasks one by one until none is left, or time is up."""

    def __init__(self, setup: dict[str, Any], jobs: int, command: Sequence[str] | None = None) -> None:
        self._setup = json.dumps(setup | {"parent": os.getpid()}).encode() + b"\n"
        self._jobs = jobs
        self._command = list(command or [sys.executable, "-P", "-c", BEGIN, *map(str, sys.path)])

    def play(self, tasks: Sequence[Task], deadline: float) -> Iterator[tuple[Task, list[Run]]]:
        """As they finish. A task that was begun is finished; none is begun after the deadline."""
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        done: queue.SimpleQueue[tuple[Task, list[Run]] | Exception | None] = queue.SimpleQueue()
        threads = [threading.Thread(target=self._work, args=(waiting, done, deadline)) for _ in range(self._jobs)]
        for thread in threads:
            thread.start()
        try:
            left = len(threads)
            while left:
                found = done.get()
                if isinstance(found, Exception):
                    raise found
                left -= found is None
                if found is not None:
                    yield found
        finally:
            while not waiting.empty():
                waiting.get()
            for thread in threads:
                thread.join()

    def _work(self, waiting: Any, done: Any, deadline: float) -> None:
        """The life of one thread: it starts a child, and hands it tasks until there are none, or time is up."""
        try:
            child = self._start()
        except OSError as error:
            done.put(
                InputError(f"{self._command[0]!r} can't be run: {error.strerror}; name another Python", self._command)
            )
            done.put(None)
            return
        said = LastWords(child)
        try:
            for task in _until(waiting, deadline):
                done.put((task, _ask(child, task)))
        except Exception:
            done.put(_broken(child, said))
        finally:
            said.end()
            done.put(None)

    def _start(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | ONE_THREAD,
            start_new_session=True,
        )
        assert child.stdin
        child.stdin.write(self._setup)
        return child


class LastWords:
    """Reads what a child prints, and keeps the end of it.

    Somebody else's function may print a warning in every run. A pipe that nobody reads is full after some 64 kB, and
    then whoever writes to it waits for ever, whatever the time limit is.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._heard: collections.deque[bytes] = collections.deque(maxlen=2)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert isinstance(self._child.stderr, io.BufferedReader)
        while heard := self._child.stderr.read1(PIECE):
            self._heard.append(heard)

    def end(self) -> str:
        """Ends the child; its last line."""
        self._child.kill()
        self._thread.join()
        self._child.communicate()
        return b"".join(self._heard).decode(errors="replace").strip().rpartition("\n")[2]


def _until(waiting: Any, deadline: float) -> Iterator[Task]:
    while time.monotonic() < deadline:
        try:
            yield waiting.get_nowait()
        except queue.Empty:
            return


def _ask(child: subprocess.Popen[bytes], task: Task) -> list[Run]:
    assert child.stdin and child.stdout
    child.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
    child.stdin.flush()
    return [(coin, seen) for coin, seen in json.loads(child.stdout.readline())]


def _broken(child: subprocess.Popen[bytes], said: LastWords) -> MethodError:
    """The last line that the child said."""
    return MethodError(f"a run of what is audited broke off: {said.end() or 'it said nothing'}", child.args)
