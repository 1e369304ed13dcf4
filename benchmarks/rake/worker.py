"""Processes that measure: each takes case after case, and is replaced when it dies or runs into the time box."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from marginals.cache import identity
from marginals.case import OURS

from understudy.lab.jobs.worker_pool import Broken, WorkerPool, python_command, serve

from .case import Case, Result

SINGLE = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "ARROW")}


def run(cases: Iterator[Case], jobs: int, box: float, fresh: bool, done: Callable[[Case, Result], None]) -> None:
    """Measures the cases, each as soon as a worker is free.

    Several workers have a core and a thread each; one alone has the whole machine, as a user would.
    """
    cores, environment = list[int](), dict[str, str]()
    if jobs > 1:
        cores, environment = sorted(os.sched_getaffinity(0)), SINGLE
    # What a worker that died ran is not known any more. The code at the start is a safe guess: if it was edited since,
    # the case is measured again.
    code = identity(OURS)
    pool: WorkerPool[Case] = WorkerPool(
        python_command(__name__), {"cores": cores}, jobs, fresh=fresh, limit=box, environment=environment
    )
    with closing(pool.run(cases)) as found:
        for case, answer in found:
            result: Result = answer
            if isinstance(answer, Broken):
                result = code | conditions() | {"failed": answer.reason}
            if not fresh:
                result.pop("peak_mb", None)  # the peak of all cases so far
            done(case, result)


def conditions() -> Result:
    return {"date": datetime.now(UTC).isoformat(timespec="seconds"), "load": round(os.getloadavg()[0], 2)}


def main() -> None:
    """In a worker: a case comes, its result goes."""

    def prepare(setup: dict[str, Any], attached: bytes) -> Callable[[dict[str, Any]], Result]:
        if setup["cores"]:
            os.sched_setaffinity(0, {setup["cores"][setup["number"] % len(setup["cores"])]})
        code = identity(OURS)  # before it is imported: an edit must not pass for what ran
        from .measurement import measure

        return lambda case: code | conditions() | measure(Case(**case))

    serve(prepare)
