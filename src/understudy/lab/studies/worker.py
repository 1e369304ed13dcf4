"""What is done with one case of a study, in a process of its own, so that its time and memory are known."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import UnderstudyError, located
from understudy.lab.attacks.attack_measures import measure_attacks
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import MEASURES
from understudy.lab.evaluation.measure import TARGET, MeasureResult
from understudy.lab.jobs.worker_pool import Broken, WorkerPool, python_command, serve
from understudy.lab.specimens.all_specimens import SPECIMENS, specimen
from understudy.lab.studies.record import from_dict, to_dict
from understudy.lab.studies.study import BASELINE, Case, Stated, Trial
from understudy.releases.synthesis import synthesize

if TYPE_CHECKING:
    import pyarrow as pa

WARM_UP, FEW = Case("independent", 1.0, 0), 100


@dataclass(frozen=True)
class StudyTask:
    """What all cases of a study have in common."""

    train: pa.Table
    holdout: pa.Table
    schema: Schema
    delta: float
    target: str | None
    groups: tuple[str, ...]
    measures: tuple[str, ...]
    options: Stated = ()
    """What single methods are told, by their names."""
    positive: str | None = None
    """The value of the target that classifiers are asked for, against all others; none asks for all classes."""

    def attempt(self, case: Case) -> Trial:
        """Time and memory are those of the rows' making; what evaluating them takes is not counted."""
        self._warm_up()
        begun = time.perf_counter()
        try:
            synthetic = self.synthetic(case)
        except Exception as error:
            return case.failed(sentence(error), time.perf_counter() - begun, peak_megabytes())
        # Taken here: a peak never falls, and evaluating may need more memory than the method did.
        cost = time.perf_counter() - begun, peak_megabytes()
        try:
            return Trial(*case.key, *cost, self._figures(case, synthetic))
        except Exception as error:
            return case.failed(f"its rows can't be evaluated: {sentence(error)}", *cost)

    def _warm_up(self) -> None:
        """Loads what every method uses, which may take longer than a method; if it fails, so will the method."""
        with contextlib.suppress(Exception):
            dataclasses.replace(self, train=self.train.slice(0, FEW), target=None).synthetic(WARM_UP)

    def synthetic(self, case: Case) -> pa.Table:
        """Rows with seeded noise: repeatable, without a guarantee, and never kept. So a draft of a schema will do."""
        if case == BASELINE:
            return self.train
        own = {name: dict(stated) for name, stated in self.options}.get(case.method, {})
        if case.method in SPECIMENS:
            return specimen(
                self.train, self.schema, method=case.method, epsilon=case.epsilon, seed=case.seed, options=own
            ).arrow
        table = open_table(self.train, self.schema)
        # The database would take all cores, which it has to share with other cases: seconds would depend on `jobs`.
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
            options=own,
            ledger=False,
            progress=False,
        ).arrow

    def _figures(self, case: Case, synthetic: pa.Table) -> dict[str, MeasureResult]:
        comparison = Comparison.of(
            self.train,
            synthetic,
            holdout=self.holdout,
            schema=self.schema,
            target=self.target,
            groups=self.groups,
            seed=case.seed,
        )
        asked = comparison
        if self.positive is not None:
            asked = comparison.one_against_rest(self.positive)
        wanted = [m for m in MEASURES if m.name in self.measures]
        found = {m.name: m.of(asked if TARGET in m.needs else comparison) for m in wanted}
        return found | measure_attacks(comparison, self.measures)

    def to_bytes(self) -> bytes:
        """A line of JSON, and both tables as Arrow writes them."""
        import pyarrow as pa

        facts: dict[str, Any] = {"delta": self.delta, "target": self.target, "groups": self.groups}
        facts["positive"] = self.positive
        facts |= {"measures": self.measures, "options": self.options}
        sink = pa.BufferOutputStream()
        sink.write(json.dumps(facts | {"schema": self.schema.dumps()}).encode() + b"\n")
        for table in (self.train, self.holdout):
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> StudyTask:
        import pyarrow as pa

        line, _, rest = content.partition(b"\n")
        facts = json.loads(line)
        lists: dict[str, Any] = {name: tuple(facts[name]) for name in ("groups", "measures")}
        lists["options"] = tuple((name, tuple((k, v) for k, v in own)) for name, own in facts["options"])
        source = pa.BufferReader(rest)
        # A stream says where it ends, so that the other table is read from there.
        train, holdout = (pa.ipc.open_stream(source).read_all() for _ in range(2))
        return cls(train, holdout, **facts | lists | {"schema": Schema.loads(facts["schema"])})


def trials(task: StudyTask, cases: Sequence[Case], jobs: int) -> Generator[Trial, None, None]:
    """As they finish, `jobs` at a time. Closing the iterator, or an error, ends the processes that still run."""
    with closing(pool(task, jobs).run(cases)) as found:
        for case, answer in found:
            if isinstance(answer, Broken):
                yield case.failed(answer.reason, answer.seconds)
            else:
                yield from_dict(answer)


def pool(task: StudyTask, jobs: int) -> WorkerPool[Case]:
    """Each case has a process of its own: the most memory that a process has had tells of one case only."""
    return WorkerPool(python_command(__name__), {}, jobs, attached=task.to_bytes(), fresh=True)


def main() -> None:
    """In a worker: a case comes, its trial goes."""

    def prepare(setup: dict[str, Any], attached: bytes) -> Callable[[dict[str, Any]], Any]:
        task = StudyTask.from_bytes(attached)
        return lambda case: to_dict(task.attempt(Case(**case)))

    serve(prepare)


def sentence(error: Exception) -> str:
    """Why a case failed, in one line."""
    if isinstance(error, UnderstudyError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there was not enough memory"
    # Without its message, which may quote a cell: reasons stand in the record and on the page.
    return f"a bug of ours ({located(error)})"


def peak_megabytes() -> float:
    """The most memory that this process has had so far."""
    status = Path("/proc/self/status")
    if status.exists():  # the other figure begins with what the parent had
        return next(int(x.split()[1]) / 1024 for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In bytes on a Mac, in kilobytes elsewhere.
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
