"""Processes that run cases: each takes a chunk at a time, and one that dies is replaced.

A worker that died has taken its chunk with it, and not said which case did it: the chunk is then run again case by
case, and the one that kills its worker again is the failure.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.case import Case, Failure, Target, place
from fuzz.limits import GRACE, PATIENCE, TooLong, limit_memory, limited
from understudy.lab.jobs.worker_pool import ONE_THREAD, Broken, WorkerPool, python_command, serve

PREPARATION = 120.0
"""Seconds for imports, on a machine that others use, too."""


@dataclass(frozen=True)
class Chunk:
    """Cases of one target, from `start` to before `stop`."""

    name: str
    seed: int
    start: int
    stop: int


@dataclass
class Tally:
    """What all cases of a target came to."""

    cases: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failing: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Of each kind the case with the lowest number, and what it said."""
    most: dict[str, float] = field(default_factory=dict)
    """The largest of each figure that cases measured."""

    def add(self, index: int, failure: Failure) -> None:
        self.failing.add(index)
        self.kinds[failure.kind] += 1
        if failure.kind not in self.examples or index < self.examples[failure.kind][0]:
            self.examples[failure.kind] = (index, failure.note)

    def measured(self, figures: Mapping[str, float]) -> None:
        for name, figure in figures.items():
            self.most[name] = max(figure, self.most.get(name, figure))


def run_case(target: Target, seed: int, index: int, base: Path) -> Case:
    """One case in this very process, within its limits."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    # What this machine remembers of a ledger must not tell one case of what another did to a copy of it.
    remembered = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="fuzz-state-")
    case = target.case(seed, index, base, folder)
    here = Path.cwd()
    try:
        with limited(target.seconds):
            target.run(case)
    except TooLong:
        case.fail(f"{case.doing}more than {target.seconds:g} s")
    except Exception as error:
        # The worker goes on; what it was to find out is not known, and that is a failure as well.
        case.fail(f"the fuzzer itself broke: {place(error)}", traceback.format_exc())
    finally:
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(remembered, ignore_errors=True)
    return case


def run_all(target: Target, seed: int, count: int, base: Path, jobs: int) -> Iterator[Tally]:
    """The tally after each chunk."""
    tally = Tally()
    chunks = [Chunk(target.name, seed, i, min(i + target.chunk, count)) for i in range(0, count, target.chunk)]
    again: list[Chunk] = []
    for chunk, answer in _run(target, chunks, base, jobs):
        if isinstance(answer, Broken) and chunk.stop - chunk.start > 1:
            again += [Chunk(target.name, seed, i, i + 1) for i in range(chunk.start, chunk.stop)]
            continue
        yield _added(tally, chunk, answer)
    for chunk, answer in _run(target, again, base, jobs):
        yield _added(tally, chunk, answer)


def _added(tally: Tally, chunk: Chunk, answer: Any) -> Tally:
    tally.cases += chunk.stop - chunk.start
    if isinstance(answer, Broken):
        # One that never came back to Python ends with the code of the watch over it (`limits.limited`).
        tally.add(chunk.start, Failure(f"the process died or hung: {answer.reason}", answer.last_words))
        return tally
    tally.outcomes.update(answer["outcomes"])
    tally.measured(answer["most"])
    for index, kind, note in answer["failures"]:
        tally.add(index, Failure(kind, note))
    return tally


def _run(target: Target, chunks: Sequence[Chunk], base: Path, jobs: int) -> Iterator[tuple[Chunk, Any]]:
    setup = {"target": target.name, "base": str(base)}
    # Each case watches its own time (`limits.limited`); this is for a worker that does not even begin.
    longest = PREPARATION + (target.seconds * PATIENCE + 2 * GRACE) * max((c.stop - c.start for c in chunks), default=1)
    # Sets have the same order in every worker, or a case could end differently when it is run again.
    environment = {**ONE_THREAD, "PYTHONHASHSEED": "0"}
    pool: WorkerPool[Chunk] = WorkerPool(
        python_command(__name__), setup, min(jobs, len(chunks)), limit=longest, environment=environment
    )
    with closing(pool.run(chunks)) as found:
        for chunk, answer in found:
            if not isinstance(answer, Broken) and "unprepared" in answer:
                raise RuntimeError(f"{target.name} can't begin: {answer['unprepared']}")
            yield chunk, answer


def main() -> None:
    """In a worker: a chunk comes, what its cases found goes."""

    def prepare(setup: dict[str, Any], attached: bytes) -> Callable[[dict[str, Any]], Any]:
        from fuzz.targets import TARGETS

        target, base = TARGETS[setup["target"]], Path(setup["base"])
        try:
            if target.prepare is not None:
                target.prepare(base)
        except Exception:
            said = traceback.format_exc()
            return lambda asked: {"unprepared": said}
        limit_memory()

        def answer(asked: dict[str, Any]) -> dict[str, Any]:
            chunk, tally, failures = Chunk(**asked), Tally(), []
            for index in range(chunk.start, chunk.stop):
                case = run_case(target, chunk.seed, index, base)
                tally.outcomes.update(case.outcomes)
                tally.measured(case.figures)
                failures += [[index, f.kind, f.note] for f in case.failures]
            return {"outcomes": tally.outcomes, "failures": failures, "most": tally.most}

        return answer

    serve(prepare)
