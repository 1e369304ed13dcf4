"""One measurement: a runner as a worker of its own, ended at the time box, then the scorer on what it wrote."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from results_cache import Result

from understudy.lab.jobs.worker_pool import Broken, WorkerPool

from .cache import identity
from .case import OURS, Case
from .environment import BENCH, ROOT, InstallError, python_of
from .job import LONGEST_REASON, Job

SCORER = ROOT.parent / "shared" / "bench" / "score.py"
NO_TARGET = "(none)"
"""A name that no column has: the scorer then compares distributions alone. It predicts targets of two values only."""


def prepare_table(name: str) -> None:
    """The coded form of a table under .bench, made anew at each run since a schema may have changed."""
    _folder(name).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_folder(name).parent) as new:
        command = [sys.executable, "-m", "marginals.coded", name, new]
        subprocess.run(command, cwd=ROOT, env=os.environ | _environment(), check=True)
        for file in Path(new).iterdir():  # each moved whole, for another run may be reading
            file.replace(_folder(name) / file.name)


def measure(case: Case, box: float) -> Result:
    """Whatever comes of a case: seconds, memory and scores, or the reason why there are none."""
    conditions = identity(case.tool) | {  # before the run: an edit during it must not pass for the code that ran
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "nice": os.nice(0),
    }
    with tempfile.TemporaryDirectory(prefix="marginals-") as folder:
        job = _job(case, Path(folder))
        try:
            result = conditions | run_tool(case.tool, job, box)
            if "failed" in result:
                return result
            return result | _score(case.table, job)
        except InstallError as error:
            return conditions | {"failed": f"not installed: {error}"[:LONGEST_REASON]}


def _job(case: Case, folder: Path) -> Job:
    table, facts = _folder(case.table), _facts(case.table)
    return Job(
        case.method,
        case.epsilon,
        case.delta,
        case.seed,
        facts["rows"],
        facts["target"],
        *(str(table / name) for name in ("train.csv", "domain.json", "schema.toml")),
        str(folder / "synthetic.csv"),
    )


def run_tool(tool: str, job: Job, box: float) -> Result:
    start = time.monotonic()
    command = [str(python_of(tool)), "-m", f"marginals.{tool}"]
    # Not one thread, as other workers have: each tool is measured as its user would run it.
    pool: WorkerPool[Job] = WorkerPool(command, {}, 1, fresh=True, limit=box, environment=_environment())
    ((_, answer),) = pool.run([job])
    result: Result = answer
    if isinstance(answer, Broken):
        result = {"failed": answer.reason if answer.overdue else _last_words(answer.last_words, answer.code)}
    return result | {"wall": round(time.monotonic() - start, 1)}


def _last_words(said: str, code: int) -> str:
    lines = said.strip().splitlines()
    ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{ended}: {lines[-1] if lines else 'nothing said'}"[:LONGEST_REASON]


def _score(table: str, job: Job) -> Result:
    folder, facts = _folder(table), _facts(table)
    public = [str(folder / name) for name in ("train.csv", "test.csv", "domain.json")]
    target = facts["target"] if facts["binary"] else NO_TARGET
    command = [str(python_of("score")), str(SCORER), *public, target, job.synthetic]
    # On a busy machine boosting's threads would spin for each other: 48 s instead of 2 s, for the same scores.
    calm = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(command, env=calm, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": f"not scored: {_last_words(done.stderr, done.returncode)}"[:LONGEST_REASON]}
    return {"scores": ast.literal_eval(done.stdout.removeprefix(job.synthetic).strip())}


def _environment() -> dict[str, str]:
    """The runners are modules of this package; their own folder must not be on the path, for one is called dpmm.

    With mbi's estimator our own package runs in another tool's environment."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT / "src")])}


def _folder(table: str) -> Path:
    return BENCH / "tables" / table


def _facts(table: str) -> Result:
    return _read(_folder(table) / "facts.json")


def _read(path: Path) -> Result:
    content: Result = json.loads(path.read_text())
    return content


def is_slow(result: Result, case: Case, limit: float) -> bool:
    """Whether a rival's further seeds are to be left out: it took too long, or failed."""
    return case.tool != OURS and ("failed" in result or result["seconds"] > limit)
