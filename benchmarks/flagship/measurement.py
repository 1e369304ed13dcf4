"""One measurement: a release in a process of its own, ended at the time limit; then the scores of what it wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from marginals.case import OURS
from marginals.environment import BENCH, ROOT, InstallError, python_of
from marginals.job import LONGEST_REASON, Job
from marginals.measurement import SCORER, run_tool
from results_cache import Result

from .case import DELTA, PLAIN, Case, code_of

NIST_SCORER = SCORER.with_name("nist.py")
NO_NUMBA = BENCH / "no-numba"
TAKE_TARGETS = ("auto", "rake", "dp-arf", "aim", "marginals")
GAUSSIAN = ("discrete-gaussian", "rounded-gaussian")
TICK = 0.02
"""Seconds between two looks whether a child has ended."""


def prepare_table(name: str) -> None:
    """The files of a table under .bench, made anew at each run; each is moved whole, for another run may be reading."""
    folder = _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as new:
        _call("flagship.tables", name, new)
        facts = Path(new, "facts.json")
        facts.write_text(facts.read_text().replace(new, str(folder)))
        for file in Path(new).iterdir():
            file.replace(folder / file.name)


def measure(case: Case, limit: float) -> Result:
    """Whatever comes of a case: costs and scores, or the reason why there are none."""
    conditions = code_of(case) | {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 2),
    }
    with tempfile.TemporaryDirectory(prefix="flagship-") as place:
        folder = Path(place)
        try:
            cost = _ours(case, folder, limit) if case.tool == OURS else _rival(case, folder, limit)
            return conditions | cost | ({} if "failed" in cost else _scores(case.table, folder))
        except InstallError as error:
            return conditions | {"failed": f"not installed: {error}"[:LONGEST_REASON]}
        except subprocess.CalledProcessError as error:
            return conditions | {"failed": f"not scored: {(error.stderr or '')[-LONGEST_REASON:]}"}


def _ours(case: Case, folder: Path, limit: float) -> Result:
    """The whole command, as a user gives it: Python's start, reading, release, report and writing."""
    table, facts = _folder(case.table), _facts(case.table)
    method = case.method.partition("@")[0].removesuffix(PLAIN)
    command = [sys.executable, "-m", "understudy", "synth", facts["train"], "--schema", str(table / "schema.toml")]
    command += ["--epsilon", str(case.epsilon), "--delta", str(DELTA), "--method", method, "--seed", str(case.seed)]
    command += ["--out", str(folder / "release"), "--ledger", str(folder / "ledger.sqlite"), "--quiet"]
    if facts["target"] and method in TAKE_TARGETS:
        command += ["--target", facts["target"]]
    # The ledger is gone after each case, and no other release of these rows is to know of it.
    result = _timed(command, _environment(case) | {"XDG_STATE_HOME": str(folder / "state")}, limit)
    if "failed" not in result:
        result |= _noise(folder / "release" / "certificate.json")
        (folder / "release" / "synthetic.csv").replace(folder / "values.csv")
        files = [table / "schema.toml", folder / "values.csv", folder / "codes.csv"]
        _call("flagship.convert", "encode", *map(str, files))
    return result


def _noise(certificate: Path) -> Result:
    """The deviation of a count that had been given all that the release spent on counts: 1 / √Σ 1/σ²."""
    spends = json.loads(certificate.read_text())["spends"]
    counts = [s for s in spends if s["mechanism"] in GAUSSIAN]
    precision = sum((s["sensitivity"] / s["scale"]) ** 2 for s in counts)
    return {"noise": round(precision**-0.5, 4)} if precision else {}


def _environment(case: Case) -> dict[str, str]:
    source = _exported(case.revision) if case.revision else ROOT / "src"
    paths = [str(source)]
    if PLAIN in case.method:
        NO_NUMBA.mkdir(parents=True, exist_ok=True)
        (NO_NUMBA / "numba.py").write_text("raise ImportError\n")
        paths.insert(0, str(NO_NUMBA))
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def _exported(revision: str) -> Path:
    """The package as it was at a commit."""
    folder = BENCH / "revisions" / revision
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as new:
            archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True)
            subprocess.run(["tar", "-x", "-C", new], input=archive.stdout, check=True)
            Path(new, "src").rename(folder)
    return folder


def _timed(command: list[str], environment: dict[str, str], limit: float) -> Result:
    """Seconds on the wall and of the processors, and peak memory, by what the kernel counted for the child."""
    with tempfile.TemporaryFile("w+") as said:
        start = time.monotonic()
        child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        pid, overdue = 0, False
        while not pid:
            time.sleep(TICK)
            pid, status, use = os.wait4(child.pid, os.WNOHANG)
            if not pid and not overdue and time.monotonic() - start > limit:
                overdue = True
                child.send_signal(signal.SIGKILL)
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        last = said.read()[-LONGEST_REASON:]
    cpu = use.ru_utime + use.ru_stime
    cost = {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "peak_mb": use.ru_maxrss // 1024}
    if overdue:
        return cost | {"failed": f"no result within {limit:g} s"}
    return cost | ({"failed": f"exit code {child.returncode}: {last}"} if child.returncode else {})


def _rival(case: Case, folder: Path, limit: float) -> Result:
    table, facts = _folder(case.table), _facts(case.table)
    job = Job(
        method=case.method.partition("-")[2],
        epsilon=case.epsilon,
        delta=DELTA,
        seed=case.seed,
        rows=facts["rows"],
        target=facts["target"],
        train=str(table / "codes.csv"),
        domain=str(table / "domain.json"),
        schema=str(table / "codes.toml"),
        synthetic=str(folder / "codes.csv"),
    )
    result = run_tool(case.tool, job, limit)
    if "failed" not in result:
        _call("flagship.convert", "decode", str(table / "schema.toml"), job.synthetic, str(folder / "values.csv"))
    return result


def _scores(table: str, folder: Path) -> Result:
    files = [str(folder / name) for name in ("codes.csv", "values.csv")]
    scorer = Path(__file__).with_name("scorer.py")
    # On a busy machine boosting's threads would spin for each other.
    calm = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    done = _run([str(python_of("score")), str(scorer), str(SCORER), str(_folder(table)), *files], calm)
    found: Result = json.loads(done)
    return found | ({"nist": _nist(folder)} if table == "tx2019" else {})


def _nist(folder: Path) -> float:
    """By NIST's own package; a cell without a value is "N" there."""
    rows = (folder / "values.csv").read_text().replace("\r", "").split("\n")
    filled = [",".join(cell or "N" for cell in row.split(",")) for row in rows if row]
    (folder / "synthetic.csv").write_text("\n".join([*filled, ""]))
    said = _run([str(python_of("sdnist")), str(NIST_SCORER), str(folder / "synthetic.csv")], dict(os.environ))
    return float(said.rpartition(": ")[2].split(" of ")[0])


def _call(module: str, *arguments: str) -> None:
    _run([sys.executable, "-m", module, *arguments], os.environ | {"PYTHONPATH": str(ROOT / "benchmarks")})


def _run(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def _folder(table: str) -> Path:
    return BENCH / "flagship" / table


def _facts(table: str) -> Result:
    facts: Result = json.loads((_folder(table) / "facts.json").read_text())
    return facts
