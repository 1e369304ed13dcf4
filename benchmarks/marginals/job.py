"""What every runner shares: it takes a job, times fit and sample together, leaves a CSV of codes, answers by a report.

Runs in the rivals' environments too, so it imports nothing but the standard library, and not the worker's side of
`understudy.lab.jobs.worker_pool` either: `run` speaks its lines.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

LONGEST_REASON = 300


@dataclass(frozen=True)
class Job:
    """The order to a runner; paths are of the coded table, of its public facts, and of what shall be written."""

    method: str
    epsilon: float
    delta: float
    seed: int
    rows: int
    target: str
    train: str
    domain: str
    schema: str
    synthetic: str

    def sizes(self) -> dict[str, int]:
        """The declared number of codes of each column."""
        sizes: dict[str, int] = json.loads(Path(self.domain).read_text())
        return sizes


@dataclass(frozen=True)
class Table:
    """Synthetic rows of codes, as a tool handed them over."""

    columns: Sequence[str]
    rows: Iterable[Sequence[int]]

    def write(self, path: str) -> None:
        with Path(path).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows([int(code) for code in row] for row in self.rows)


def run(version: str, prepare: Callable[[Job], Callable[[], Table]]) -> None:
    """Prepares untimed (imports, reading the CSV), runs timed, writes untimed; an exception becomes the report."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a tool prints, it prints elsewhere
    sys.stdin.readline()  # the setup, which says nothing to a runner
    job = Job(**json.loads(sys.stdin.readline()))
    try:
        work = prepare(job)
        start, cpu = time.perf_counter(), cpu_seconds()
        table = work()
        seconds, cpu, peak = time.perf_counter() - start, cpu_seconds() - cpu, peak_mb()
        table.write(job.synthetic)
        report = {"version": version, "seconds": round(seconds, 3), "cpu": round(cpu, 3), "peak_mb": round(peak)}
    except (Exception, SystemExit) as error:
        # A rival may fail in ways of its own; whatever it says is the result.
        report = {
            "version": version,
            "failed": f"{type(error).__name__}: {error}"[:LONGEST_REASON],
            "peak_mb": round(peak_mb()),
        }
    print(json.dumps(report), file=answers, flush=True)


def cpu_seconds() -> float:
    """User and system time so far, of workers too: what a busy machine changes less than the time on the wall."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def peak_mb() -> float:
    """The most memory that this process, or any one worker that it waited for, has held (Linux counts in KiB)."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in whose) / 1024
