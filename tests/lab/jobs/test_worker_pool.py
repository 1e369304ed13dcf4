"""Workers as benchmarks use them: a time limit, jobs that are made when they are needed, numbers and variables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from understudy.lab.jobs.worker_pool import ONE_THREAD, Broken, WorkerPool

ANSWERING = """
import json, os, sys
setup = json.loads(sys.stdin.readline())
for line in sys.stdin:
    print(json.dumps([setup["number"], json.loads(line)["name"], os.environ.get("OMP_NUM_THREADS")]), flush=True)
"""
TOUCHING = """
import json, pathlib, sys
sys.stdin.readline()
for line in sys.stdin:
    pathlib.Path(json.loads(line)["name"]).touch()
    print("null", flush=True)
"""
STARTING_ANOTHER = """
import subprocess, sys
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
open(sys.argv[1], "w").write(str(other.pid))
other.wait()
"""


@dataclass(frozen=True)
class Named:
    name: str


def worker(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_a_job_over_the_limit_is_ended_with_all_that_it_started(tmp_path: Path):
    note = tmp_path / "pid"
    pool: WorkerPool[Named] = WorkerPool(worker(STARTING_ANOTHER, str(note)), {}, 1, limit=2.0)
    ((_, answer),) = pool.run([Named("a")])
    assert isinstance(answer, Broken) and answer.overdue
    assert answer.reason.endswith("the time limit")
    assert not alive(int(note.read_text()))


def alive(pid: int) -> bool:
    """A process that has ended may wait for somebody to ask how."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_job_is_taken_when_a_worker_is_free_for_it(tmp_path: Path):
    done = []

    def jobs() -> Iterator[Named]:
        for name in "abc":
            yield Named(str(tmp_path / name))
            done.append((tmp_path / name).exists())  # asked for the next one

    list(WorkerPool[Named](worker(TOUCHING), {}, 1).run(jobs()))
    assert done == [True] * 3


def test_workers_know_their_numbers():
    answers = [a for _, a in WorkerPool[Named](worker(ANSWERING), {}, 2).run(map(Named, "abcdef"))]
    assert {name for _, name, _ in answers} == set("abcdef")
    assert {number for number, _, _ in answers} <= {0, 1}


@pytest.mark.parametrize(("variables", "threads"), [(ONE_THREAD, "1"), ({"OMP_NUM_THREADS": "7"}, "7")])
def test_variables_reach_the_worker(variables: dict[str, str], threads: str):
    pool: WorkerPool[Named] = WorkerPool(worker(ANSWERING), {}, 1, environment=variables)
    assert [answer[2] for _, answer in pool.run([Named("a")])] == [threads]


def test_an_error_of_the_jobs_is_raised():
    def jobs() -> Iterator[Named]:
        yield Named("a")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(WorkerPool[Named](worker(ANSWERING), {}, 2).run(jobs()))
