"""Processes that measure: each takes case after case, and is replaced when it dies or runs into the time box."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Event, Lock

from marginals.cache import identity
from marginals.case import OURS

from .case import Case, Result

SPAWN = get_context("spawn")
SINGLE = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "ARROW")}


def run(cases: Iterator[Case], jobs: int, box: float, fresh: bool, done: Callable[[Case, Result], None]) -> None:
    """Measures the cases, each as soon as a worker is free; `done` is called by one thread at a time."""
    lock, stopped = Lock(), Event()
    cores = sorted(os.sched_getaffinity(0))
    if jobs > 1:
        os.environ.update(SINGLE)

    def work(number: int) -> None:
        worker = Worker(cores[number % len(cores)] if jobs > 1 else None, box)
        while not stopped.is_set() and (case := _next(cases, lock)) is not None:
            result = worker.measure(case)
            if fresh:
                worker.stop()
            else:
                result.pop("peak_mb", None)  # the peak of all cases so far
            with lock:
                done(case, result)
        worker.stop()

    with ThreadPoolExecutor(jobs) as threads:
        try:
            for finished in as_completed([threads.submit(work, i) for i in range(jobs)]):
                finished.result()
        finally:
            stopped.set()  # after an error or an interrupt, what is being measured is still finished and kept


def _next(cases: Iterator[Case], lock: Lock) -> Case | None:
    """Asked for when it is needed, so that what came before can settle whether a case is worth its time."""
    with lock:
        return next(cases, None)


class Worker:
    """One process, which is started when it is first needed; on a core of its own where there are several."""

    def __init__(self, core: int | None, box: float) -> None:
        self._core, self._box = core, box
        self._started = False

    def measure(self, case: Case) -> Result:
        if not self._started:
            self._start()
        conditions = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "load": round(os.getloadavg()[0], 2)}
        try:
            self._here.send(case)
            if self._here.poll(self._box):
                result: Result = self._here.recv()
                return self._code | conditions | result
            reason = f"no result within {self._box:g} s, the time box"
        except (EOFError, OSError):
            self._process.join()
            reason = f"the process ended with code {self._process.exitcode}"
        self.stop()
        return self._code | conditions | {"failed": reason}

    def stop(self) -> None:
        if self._started:
            self._process.kill()
            self._process.join()
            self._here.close()
            self._started = False

    def _start(self) -> None:
        self._here, there = SPAWN.Pipe()
        self._process = SPAWN.Process(target=serve, args=(there, self._core), daemon=True)
        self._process.start()
        there.close()  # else the end of the process would go unnoticed
        self._code: Result = self._here.recv()
        self._started = True


def serve(parent: Connection, core: int | None) -> None:
    """The life of a worker. First it says which code it is about to import: an edit must not pass for what ran."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if core is not None:
        os.sched_setaffinity(0, {core})
    code = identity(OURS)
    from .measurement import measure

    parent.send(code)
    with suppress(EOFError, BrokenPipeError):  # nobody asks any more
        while True:
            parent.send(measure(parent.recv()))
