"""Worker processes that take jobs one by one, each on one core, so that the end of one is nobody else's.

Parent and worker talk in lines of JSON. The parent writes a setup (with bytes behind it, if there are any), then jobs;
the worker answers each job by one line. `serve` is the worker's side.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import io
import json
import math
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from understudy.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Job = TypeVar("Job", bound="DataclassInstance")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Numerical libraries would start as many threads as there are cores, in every worker."""
PIECE = 4_096
"""Bytes that are read at a time of what a worker prints; the last two pieces are kept."""
GRACE = 10.0
"""Seconds in which a worker whose output has ended may end, too, before it is killed."""
WATCH = 0.5
"""Seconds between two looks of a worker for its parent."""


def python_command(module: str) -> list[str]:
    """Runs `main` of a module in a Python that imports what this one does.

    A worker is not forked and does not run the caller's script again, so that a script needs no guard around it.
    """
    begin = f"import sys; sys.path[:] = sys.argv[1:]; from {module} import main; main()"
    return [sys.executable, "-P", "-c", begin, *map(str, sys.path)]


@dataclass(frozen=True)
class Broken:
    """In place of an answer: the worker ended before it gave one."""

    code: int
    last_words: str
    """The last line that it printed. It may quote anything, a cell too: it is not for messages about private rows."""
    seconds: float = 0.0
    overdue: bool = False
    """Whether it was ended because it took longer than a job may."""

    @property
    def reason(self) -> str:
        """In one line that quotes nothing but the name of an error."""
        if self.overdue:
            return f"no result within {self.seconds:.0f} s, the time limit"
        # The kernel does so to whoever needs too much memory; the pool, only where a job is overdue or given up.
        if self.code == -signal.SIGKILL:
            return "the process was killed, most likely because the machine ran out of memory"
        if self.code < 0:
            return f"the process was ended by signal {signal.Signals(-self.code).name}"
        error = re.match(r"[\w.]*(Error|Exception)(?=:|$)", self.last_words)
        named = f" ({error[0]})" if error else ""
        return f"the process broke off with exit code {self.code}{named}"


class WorkerPool(Generic[Job]):
    """At most so many workers at a time; each takes jobs until none is left, or only one if it must be `fresh`.

    A worker finds its own number, from 0 on, in its setup. A job may take `limit` seconds. `environment` is added to
    the variables of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        setup: Mapping[str, Any],
        workers: int,
        *,
        attached: bytes = b"",
        fresh: bool = False,
        limit: float = threading.TIMEOUT_MAX,
        environment: Mapping[str, str] = ONE_THREAD,
    ) -> None:
        self._command, self._workers, self._fresh = list(command), workers, fresh
        self._header = dict(setup) | {"parent": os.getpid(), "attached": len(attached)}
        self._attached, self._limit, self._environment = attached, limit, os.environ | environment
        self._running: set[_Worker] = set()
        self._lock, self._taking, self._stopped = threading.Lock(), threading.Lock(), False

    def run(self, jobs: Iterable[Job], deadline: float = math.inf) -> Generator[tuple[Job, Any], None, None]:
        """Jobs with their answers as they come. A job that was begun is finished; none is begun after the deadline.

        A job is taken from `jobs` when a worker is free for it. Closing the iterator, or an error, ends the workers
        that still run.
        """
        done: queue.SimpleQueue[tuple[Job, Any] | Exception | None] = queue.SimpleQueue()
        waiting, left = iter(jobs), self._workers
        self._stopped = False
        threads = [threading.Thread(target=self._work, args=(i, waiting, done, deadline)) for i in range(left)]
        try:  # from the first start on: an interrupt between two of them must end the workers, too
            for thread in threads:
                thread.start()
            while left:
                found = done.get()
                if isinstance(found, Exception):
                    raise found
                if found is None:
                    left -= 1
                else:
                    yield found
        finally:
            self._stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()

    def _work(self, number: int, waiting: Iterator[Job], done: queue.SimpleQueue[Any], deadline: float) -> None:
        """The life of one thread, which looks after one worker at a time."""
        worker = None
        try:
            while time.monotonic() < deadline and not self._stopped:
                with self._taking:  # a generator refuses to be asked by two threads at once
                    job = next(waiting, None)
                if job is None:
                    break
                worker = worker or self._start(number)
                if worker is None:
                    break
                answer = worker.ask(dataclasses.asdict(job), self._limit, last=self._fresh)
                if self._fresh or isinstance(answer, Broken):
                    self._end(worker)
                    worker = None
                done.put((job, answer))
        except Exception as error:
            done.put(error)
        finally:
            if worker:
                self._end(worker)
            done.put(None)

    def _start(self, number: int) -> _Worker | None:
        setup = json.dumps(self._header | {"number": number}).encode() + b"\n" + self._attached
        with self._lock:  # a worker that starts while the pool is stopped would outlive it
            if self._stopped:
                return None
            worker = _Worker(self._command, setup, self._environment)
            self._running.add(worker)
            return worker

    def _end(self, worker: _Worker) -> None:
        worker.end()
        with self._lock:
            self._running.discard(worker)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for worker in self._running:
                worker.kill()


class _Worker:
    """One process, and a thread that reads what it prints.

    Somebody else's function may print a warning in every run. A pipe that nobody reads is full after some 64 kB, and
    then whoever writes to it waits for ever, whatever the time limit is.
    """

    def __init__(self, command: list[str], setup: bytes, environment: Mapping[str, str]) -> None:
        try:
            # In a session of its own: an interrupt from the keyboard reaches the parent alone, which ends its workers;
            # and `kill` ends what a worker has started, too.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"{command[0]!r} can't be run: {error.strerror}; name another Python", command) from None
        self._unsent, self._overdue = setup, False
        self._printed: collections.deque[bytes] = collections.deque(maxlen=2)
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def ask(self, job: dict[str, Any], limit: float, last: bool) -> Any:
        begun = time.perf_counter()
        assert self.process.stdin and self.process.stdout
        # A pipe can't be read with a time limit; the end of the process ends the reading.
        timer = threading.Timer(limit, self._expire)
        timer.start()
        try:
            self.process.stdin.write(self._unsent + json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
            self._unsent = b""
            if last:
                self.process.stdin.close()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):  # it reads no more, or what it wrote is no whole line
            pass
        finally:
            timer.cancel()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
        code = self.process.wait()
        return Broken(code, self._last_line(), time.perf_counter() - begun, self._overdue)

    def _expire(self) -> None:
        self._overdue = True
        self.kill()

    def kill(self) -> None:
        # By `poll` as in `Popen.kill`: once the process was waited for, its number may be another's.
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            with contextlib.suppress(OSError):  # what was not sent can't be sent any more
                pipe.close()

    def _listen(self) -> None:
        assert isinstance(self.process.stderr, io.BufferedReader)
        while piece := self.process.stderr.read1(PIECE):
            self._printed.append(piece)

    def _last_line(self) -> str:
        self._reader.join(GRACE)
        return b"".join(self._printed).decode(errors="replace").strip().rpartition("\n")[2]


def serve(prepare: Callable[[dict[str, Any], bytes], Callable[[dict[str, Any]], Any]]) -> None:
    """The whole life of a worker: `prepare` makes of the setup, and the bytes behind it, what answers each job."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    setup = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with, args=(setup["parent"],), daemon=True).start()
    # Bytes are read to their stated length, not to the end: jobs come behind them on the same pipe.
    answer = prepare(setup, sys.stdin.buffer.read(setup["attached"]))
    for line in sys.stdin.buffer:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def _end_with(parent: int) -> None:
    """A parent that is killed can't end its workers; so they look for it."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    os._exit(1)
