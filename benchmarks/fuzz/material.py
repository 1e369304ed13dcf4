"""What fuzzers spoil: a small table in every format, its schema, releases, a predictor, a ledger and a journal.

Made in a process of its own whose randomness is a stream with a seed, so that a case that is run again meets the same
bytes (but for the times of day, which have the same length).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from understudy.lab.jobs.worker_pool import ONE_THREAD, python_command

ROWS = 200
SEED = 20_270_301
SCHEMA = """\
missing_values = ["?"]

[columns.name]
type = "identifier"

[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true

[columns.age]
type = "integer"
min = 18
max = 80
bins = 8

[columns.pay]
type = "number"
min = 0
max = 100
bins = 6
decimals = 1

[columns.hired]
type = "datetime"
min = 2015-01-01
max = 2024-12-31
bins = 5

[columns.smoker]
type = "boolean"

[[constraints]]
if = "age < 20"
then = "pay < 90"
"""
TABLE, SCHEMA_FILE, LEDGER = "people.csv", "people.toml", "people.csv.ledger.sqlite"
METHODS = ("independent", "mst")
RELEASES = (*METHODS, "parquet")
SYNTH = ("synth", TABLE, "--epsilon", "1", "--method", "mst", "--seed", "3", "--out", "out", "--quiet")
JOURNAL, STOPPED_AFTER = "out.journal", 3
"""The journal of a release by `SYNTH` that was stopped after so many answers."""


def make(folder: Path) -> Path:
    """All of it, in an empty folder."""
    folder.mkdir(parents=True)
    done = subprocess.run(
        [*python_command(__name__), str(folder)],
        env=os.environ | ONE_THREAD | {"PYTHONHASHSEED": "0", "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return folder


def people_csv(rows: int = ROWS) -> str:
    """Generated people; nurses smoke more, and the old earn more."""
    draw = random.Random(SEED)
    lines = ["name,job,age,pay,hired,smoker"]
    for i in range(rows):
        job, age = draw.choice(["clerk", "cook", "nurse", "?"]), draw.randint(18, 80)
        smokes = "true" if draw.random() < (0.7 if job == "nurse" else 0.2) else "false"
        pay = min(89.9, age + 10 * draw.random())
        hired = f"{draw.randint(2015, 2024)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        lines.append(f"person {i},{job},{age},{pay:.1f},{hired},{smokes}")
    return "\n".join(lines) + "\n"


def desk_in(folder: Path, base: Path) -> Path:
    """A folder with the table and its schema, as a user has them, and the working folder from here on."""
    for name in (TABLE, SCHEMA_FILE):
        shutil.copy(base / name, folder)
    os.chdir(folder)
    return folder


def main() -> None:
    """In the process of its own."""
    stream = random.Random(SEED)
    os.urandom = stream.randbytes
    random._urandom = stream.randbytes  # type: ignore[attr-defined]  # of SystemRandom, and so of `secrets`
    # The list of paths that `python_command` hands over ends with our own argument.
    folder = Path(sys.path.pop())
    (folder / TABLE).write_text(people_csv())
    (folder / SCHEMA_FILE).write_text(SCHEMA)
    _tables(folder)
    _releases(folder)
    _predictor(folder)
    _ledger(folder)
    _journal(folder)


def _tables(folder: Path) -> None:
    import duckdb

    here = folder / TABLE
    columns = {"name": "VARCHAR", "job": "VARCHAR", "age": "BIGINT", "pay": "DOUBLE", "hired": "DATE"}
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        types = ", ".join(f"'{name}': '{kind}'" for name, kind in {**columns, "smoker": "BOOLEAN"}.items())
        read = f"SELECT * FROM read_csv('{here}', header = true, columns = {{{types}}})"
        database.execute(f"CREATE TABLE people AS {read}")
        database.execute(f"COPY people TO '{folder / 'people.parquet'}' (FORMAT parquet, ROW_GROUP_SIZE 64)")


def _releases(folder: Path) -> None:
    import understudy as us

    table = us.open(folder / TABLE, folder / SCHEMA_FILE)
    for method in METHODS:
        release = us.synthesize(table, epsilon=1.0, method=method, seed=3, rows=120, ledger=False)
        release.save(folder / "releases" / method)
    release.save(folder / "releases" / "parquet", format="parquet")


def _predictor(folder: Path) -> None:
    import understudy as us

    tree = us.PrivateDecisionTree(epsilon=2.0, target="smoker", ledger=False, seed=5, depth=2)
    tree.fit(us.open(folder / TABLE, folder / SCHEMA_FILE)).save(folder / "tree.json")


def _ledger(folder: Path) -> None:
    """Debits of several kinds under a limit, a share for one analyst, and a recorded answer."""
    import understudy as us

    ledger = us.Ledger.open(folder / "ledger.sqlite")
    ledger.set_limit(us.Budget(5.0, 1e-5), "add-remove")
    ledger.set_share("ada", 1.0)
    table = us.open(folder / TABLE, folder / SCHEMA_FILE)
    for number in range(6):
        asked = f"SELECT count(*) FROM people WHERE age > {20 + number}"
        us.query(table, asked, epsilon=0.1 + number / 20, ledger=ledger, analyst="ada")


def _journal(folder: Path) -> None:
    """What an interrupted release leaves, and the release that comes of it where nothing is spoiled."""
    import understudy as us
    from understudy.cli import run

    desk = folder / "stopped"
    desk.mkdir()
    desk_in(desk, folder)
    honest, done = us.Ledger.claim, [0]

    def claim(ledger: us.Ledger, entry: int, place: int, digest: str) -> None:
        honest(ledger, entry, place, digest)
        done[0] += 1
        if done[0] == STOPPED_AFTER:
            raise KeyboardInterrupt

    us.Ledger.claim = claim  # type: ignore[method-assign]
    run(SYNTH)
    us.Ledger.claim = honest  # type: ignore[method-assign]
    if not (desk / JOURNAL).exists():
        raise RuntimeError("the release was not stopped")
    whole = folder / "resumed"
    shutil.copytree(desk, whole)
    os.chdir(whole)
    if run([*SYNTH, "--resume"]):
        raise RuntimeError("the release could not be resumed")
