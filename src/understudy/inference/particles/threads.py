"""Independent parts of a computation on several processors. What comes out does not depend on how many there are."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from understudy.inference.particles import kernels

FEWEST_ROWS = 4_096
"""Of fewer rows a thread would take longer to start than to work."""


def processors() -> int:
    """How many this process may use; OMP_NUM_THREADS lowers it, as it does for other libraries."""
    # Linux alone tells which processors a process was given.
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return min(given, int(stated)) if stated.isdecimal() and int(stated) else given


def by_rows(task: Callable[[slice], None], rows: int) -> None:
    """Calls the task with slices that cover all rows, side by side; it must look at the rows of its slice alone."""
    # numpy's own loops are too short: threads would wait for each other most of the time.
    count = max(1, min(processors(), rows // FEWEST_ROWS)) if kernels.COMPILED else 1
    slices = [slice(rows * i // count, rows * (i + 1) // count) for i in range(count)]
    failures: list[BaseException] = []

    def work(own: slice) -> None:
        try:
            task(own)
        except BaseException as failure:
            failures.append(failure)

    # New ones each time, which start in no time: a pool that is kept would not survive a fork.
    threads = [threading.Thread(target=work, args=(own,), daemon=True) for own in slices[1:]]
    for thread in threads:
        thread.start()
    work(slices[0])
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
