"""A case in a child process of its own, so that its memory is known, and its end is nobody else's."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.opening import open as open_table
from understudy.boundary.tables.reading import Rows
from understudy.errors import UnderstudyError, located
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import chosen
from understudy.lab.evaluation.measure import Figure
from understudy.lab.studies.case import BASELINE, Case
from understudy.lab.studies.record import from_dict, to_dict
from understudy.lab.studies.study import Trial
from understudy.releases.synthesis import synthesize

if TYPE_CHECKING:
    import pyarrow as pa

WARM_UP, FEW = Case("independent", 1.0, 0), 100
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from understudy.lab.studies.worker import main; main()"
"""A child is not forked and does not run the caller's script again, so that a script needs no guard around it."""


@dataclass(frozen=True)
class Task:
    """What all cases of a study have in common."""

    train: pa.Table
    holdout: pa.Table
    schema: Schema
    delta: float
    target: str | None
    groups: tuple[str, ...]
    measures: tuple[str, ...]

    def attempt(self, case: Case) -> Trial:
        """Time and memory are those of the rows' making; what evaluating them takes is not counted."""
        self._warm_up()
        begun = time.perf_counter()
        try:
            synthetic = self.train if case == BASELINE else self._synthetic(case)
        except Exception as error:
            return case.failed(sentence(error), time.perf_counter() - begun, peak_megabytes())
        cost = time.perf_counter() - begun, peak_megabytes()
        try:
            return Trial(*case.key, *cost, self._figures(case, synthetic))
        except Exception as error:
            return case.failed(f"its rows can't be evaluated: {sentence(error)}", *cost)

    def _warm_up(self) -> None:
        """Loads what every method uses, which may take longer than a method; if it fails, so will the method."""
        with contextlib.suppress(Exception):
            dataclasses.replace(self, train=self.train.slice(0, FEW), target=None)._synthetic(WARM_UP)

    def _synthetic(self, case: Case) -> pa.Table:
        """Rows with seeded noise: repeatable, without a guarantee, and never kept. So a draft of a schema will do."""
        table = open_table(self.train, self.schema)
        Rows.of(table).connection.execute("SET threads = 1")
        return synthesize(
            table,
            method=case.method,
            epsilon=case.epsilon,
            delta=self.delta,
            target=self.target,
            seed=case.seed,
            test_only_noise_seed=case.seed,
            accept_draft_as_public=True,
            ledger=False,
        ).arrow

    def _figures(self, case: Case, synthetic: pa.Table) -> dict[str, Figure]:
        comparison = Comparison.of(
            self.train,
            synthetic,
            holdout=self.holdout,
            schema=self.schema,
            target=self.target,
            groups=self.groups,
            seed=case.seed,
        )
        return {m.name: m.of(comparison) for m in chosen(self.measures)}

    def to_bytes(self) -> bytes:
        """A line of JSON, and both tables as Arrow writes them."""
        import pyarrow as pa

        facts = {"delta": self.delta, "target": self.target, "groups": self.groups, "measures": self.measures}
        sink = pa.BufferOutputStream()
        sink.write(json.dumps(facts | {"schema": self.schema.dumps()}).encode() + b"\n")
        for table in (self.train, self.holdout):
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> Task:
        import pyarrow as pa

        line, _, rest = content.partition(b"\n")
        facts = json.loads(line)
        source = pa.BufferReader(rest)
        train, holdout = (pa.ipc.open_stream(source).read_all() for _ in range(2))
        schema = Schema.loads(facts["schema"])
        groups, measures = tuple(facts["groups"]), tuple(facts["measures"])
        return cls(train, holdout, schema, facts["delta"], facts["target"], groups, measures)


class Crew:
    """Child processes, at most `jobs` at a time, each on one core and with one case."""

    def __init__(self, task: Task, jobs: int) -> None:
        self._task, self._jobs = task.to_bytes(), jobs
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock, self._stopped = threading.Lock(), False

    def trials(self, cases: Sequence[Case]) -> Generator[Trial, None, None]:
        """As they finish. Closing the iterator, or an error, ends the children that still run."""
        with ThreadPoolExecutor(self._jobs) as threads:
            try:  # from the first submission on: an interrupt between two of them must end the children, too
                waiting = [threads.submit(self._run, case) for case in cases]
                for done in as_completed(waiting):
                    yield done.result()
            finally:
                self._stop()

    def _run(self, case: Case) -> Trial:
        begun = time.perf_counter()
        child = self._start()
        if child is None:
            return case.failed("the study was stopped")
        line = json.dumps({"case": dataclasses.asdict(case), "parent": os.getpid()}).encode() + b"\n"
        out, err = child.communicate(line + self._task)
        with self._lock:
            self._children.discard(child)
        if child.returncode or not out:
            return case.failed(cause_of_death(child.returncode, err), time.perf_counter() - begun)
        return from_dict(json.loads(out))

    def _start(self) -> subprocess.Popen[bytes] | None:
        """In a session of its own: an interrupt from the keyboard reaches the study alone, which ends its children."""
        with self._lock:
            if self._stopped:
                return None
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", BEGIN, *map(str, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | ONE_THREAD,
                start_new_session=True,
            )
            self._children.add(child)
            return child

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for child in self._children:
                child.kill()


def main() -> None:
    """The whole life of a child: a case on standard input, its trial on standard output."""
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with, args=(asked["parent"],), daemon=True).start()
    task = Task.from_bytes(sys.stdin.buffer.read())
    trial = task.attempt(Case(**asked["case"]))
    with os.fdopen(answer, "wb") as file:
        file.write(json.dumps(to_dict(trial), allow_nan=False).encode())


def _end_with(parent: int) -> None:
    """A study that is killed can't end its children; so they look for it."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def sentence(error: Exception) -> str:
    """Why a case failed, in one line."""
    if isinstance(error, UnderstudyError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there was not enough memory"
    return f"a bug of ours ({located(error)})"


def cause_of_death(code: int, err: bytes) -> str:
    """Why a child gave no answer."""
    if code == -signal.SIGKILL:
        return "the process was killed, most likely because the machine ran out of memory"
    if code < 0:
        return f"the process was ended by signal {signal.Signals(-code).name}"
    # The last line names the error, and then quotes it: what stands there may be a cell.
    last = re.match(r"[\w.]*(Error|Exception)(?=:|$)", err.decode(errors="replace").strip().rpartition("\n")[2])
    return f"the process broke off with exit code {code}{f' ({last[0]})' if last else ''}"


def peak_megabytes() -> float:
    """The most memory that this process has had so far."""
    status = Path("/proc/self/status")
    if status.exists():  # the other figure begins with what the parent had
        return next(int(x.split()[1]) / 1024 for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
