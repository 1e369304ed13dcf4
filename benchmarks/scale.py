"""A hundred million rows on one machine: all pairs of 15 columns of a Parquet file, and a release, by number of rows.

    scripts/bench scale                       1, 3, 10, 30 and 100 million rows; needs 10 GB of disk for the largest
    scripts/bench scale --rows 1000000        these numbers alone
    scripts/bench scale --bandwidth           how fast codes are counted, anew; all else as the last run left it
    scripts/bench scale --report              the page of the last run, without measuring

Each file is generated a million rows at a time and deleted afterwards, and each question is asked by a process of its
own. Processor time is that of all its threads. Last, codes in memory are counted and, in the same process and by
turns, added up as plain bytes, which is as fast as memory can be read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks")]

COLUMNS, MILLION = 15, 1_000_000
ROWS = (1, 3, 10, 30, 100)
RESULTS = ROOT / "benchmarks" / "results"
PICTURE = ROOT / "docs" / "images" / "scale.svg"
PAIRS = list(itertools.combinations(range(COLUMNS), 2))
BILLION = 1000 * MILLION
LAST_RUN = ROOT / "benchmarks" / ".results" / "scale.json"
BANDWIDTH_ROWS = 3 * MILLION
"""45 MB of codes, more than the caches hold."""
TURNS = 7
RELEASED = 10_000


def schema_text() -> str:
    """Whole numbers, numbers in 16 bins, labels: five of each."""
    whole = [f'[columns.whole{i}]\ntype = "integer"\nmin = 0\nmax = {9 + 4 * i}' for i in range(5)]
    real = [f'[columns.real{i}]\ntype = "number"\nmin = 0\nmax = 100\nbins = 16' for i in range(5)]
    labels = [labels_of(i) for i in range(5)]
    texts = [f'[columns.text{i}]\ntype = "categorical"\nvalues = {json.dumps(v)}' for i, v in enumerate(labels)]
    return "\n".join([*whole, *real, *texts])


def labels_of(i: int) -> list[str]:
    return [f"label {k}" for k in range(3 + 3 * i)]


def generate(path: Path, rows: int) -> None:
    """Skewed columns that depend on each other: all on one hidden number, and the three of one index on one more."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for part in range(0, rows, MILLION):
        rng, size = np.random.default_rng(part), min(MILLION, rows - part)
        hidden = rng.random(size, dtype=np.float32)
        columns: dict[str, Any] = {}
        for i in range(5):
            own = rng.random(size, dtype=np.float32)
            mixed = np.where(own < 0.5, hidden, 2 * own - 1) ** 2  # small numbers are four times as many as large ones
            columns[f"whole{i}"] = (mixed * (10 + 4 * i)).astype(np.int32)
            columns[f"real{i}"] = (100 * np.where(rng.random(size) < 0.7, mixed, own)).astype(np.float64)
            codes = pa.array((mixed * (3 + 3 * i)).astype(np.int32))
            columns[f"text{i}"] = pa.array(labels_of(i)).take(codes)
        table = pa.table(columns)
        few = [name for name in table.column_names if not name.startswith("real")]
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=few)
        writer.write_table(table, row_group_size=1 << 17)
    assert writer is not None
    writer.close()


# ---------------------------------------------------------------- what runs in a process of its own


def pairs(path: str) -> dict[str, float]:
    import understudy as us

    schema = us.Schema.loads(schema_text())
    domain = us.Domain.of(schema)
    begun = Clock()
    counts = us.open(path, schema).count_by(domain, list(itertools.combinations(domain.names, 2)))
    found = begun.taken()
    assert len({int(c.sum()) for c in counts}) == 1
    return found


def release(path: str) -> dict[str, float]:
    import understudy as us

    schema = us.Schema.loads(schema_text())
    begun = Clock()
    scans = counted_scans()
    us.synthesize(us.open(path, schema), epsilon=1.0, method="rake", rows=RELEASED, ledger=False, progress=False)
    return begun.taken() | {"scans": len(scans)}


def counted_scans() -> list[int]:
    """One entry more for each scan of the file that hands over codes."""
    from understudy.boundary.tables.duck import DuckTable  # the benchmark stands inside the boundary

    scans, honest = [], DuckTable._codes

    def counting(self: Any, domain: Any, columns: Any) -> Any:
        scans.append(len(columns))
        return honest(self, domain, columns)

    DuckTable._codes = counting  # type: ignore[method-assign]
    return scans


def bandwidth(path: str) -> dict[str, float]:
    """Of one core: how many bytes a second are added up, and how many are counted."""
    import numpy as np

    import understudy as us
    from understudy.boundary.tables.counting import _count_few, count_marginals

    schema = us.Schema.loads(schema_text())
    domain = us.Domain.of(schema)
    batches = list(us.open(path, schema)._codes(domain, domain.names))
    codes = {c: np.concatenate([b[c] for b in batches]) for c in domain.names}
    rows = len(codes[domain.names[0]])
    sets = {"pairs": list(itertools.combinations(domain.names, 2)), "pair": [domain.names[:2]]}
    jobs = {
        "sum": lambda: [c.view(np.uint64).sum() for c in codes.values()],
        "pairs": lambda: count_marginals(domain, sets["pairs"], [codes]),
        "pair": lambda: count_marginals(domain, sets["pair"], [codes]),
        "numpy": lambda: _count_few(domain, sets["pairs"], [codes]),
    }
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for turn, (name, job) in itertools.product(range(TURNS + 1), jobs.items()):
        begun = Clock()
        job()
        if turn:  # the first turn warms up
            taken[name].append(begun.taken()["cpu"])
    read = {"sum": COLUMNS, "pairs": 2 * len(PAIRS), "pair": 2, "numpy": 2 * len(PAIRS)}
    return {name: rows * read[name] / min(t) / 1e9 for name, t in taken.items()}


class Clock:
    """Seconds from here on, and megabytes at most since the process began."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def taken(self) -> dict[str, float]:
        status = Path("/proc/self/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        return {"cpu": time.process_time() - self._cpu, "wall": time.perf_counter() - self._wall, "peak": peak}


WORK = {"pairs": pairs, "release": release, "bandwidth": bandwidth}

# ---------------------------------------------------------------- what is written


def measured(work: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", __file__, "--do", work, str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ})
    return json.loads(done.stdout.decode().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[n * MILLION for n in ROWS])
    parser.add_argument("--folder", help="where the files are made; the system's for temporary files without it")
    parser.add_argument("--bandwidth", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--do", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        work, path = given.do
        print(json.dumps(WORK[work](path)))
        return
    found: Found = {}
    speeds: dict[str, float] = {}
    if given.report or given.bandwidth:
        kept = json.loads(LAST_RUN.read_text())
        found, speeds = {int(rows): of for rows, of in kept["found"].items()}, kept["speeds"]
        given.rows = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for rows in given.rows:
            path = Path(folder) / f"{rows}.parquet"
            generate(path, rows)
            found[rows] = {"pairs": measured("pairs", path), "release": measured("release", path)}
            found[rows]["file"] = {"bytes": path.stat().st_size}
            print(rows, json.dumps(found[rows]), flush=True)
            path.unlink()
            keep(found, speeds)
        if not given.report:
            path = Path(folder) / "codes.parquet"
            generate(path, BANDWIDTH_ROWS)
            speeds = measured("bandwidth", path)
    keep(found, speeds)


def keep(found: Found, speeds: dict[str, float]) -> None:
    LAST_RUN.parent.mkdir(exist_ok=True)
    LAST_RUN.write_text(json.dumps({"found": found, "speeds": speeds}))
    write(found, speeds)


Found = dict[int, dict[str, dict[str, float]]]


def write(found: Found, speeds: dict[str, float]) -> None:
    heads = "rows | file | 105 pairs: CPU | a row | wall | peak | release: CPU | a row | wall | peak | scans"
    lines = [f"| {heads} |", f"|{'---|' * (heads.count('|') + 1)}"]
    for rows, of in sorted(found.items()):
        cells = [f"{rows:,}", f"{of['file']['bytes'] / 1e6:,.0f} MB"]
        for work in ("pairs", "release"):
            cpu, wall, peak = (of[work][name] for name in ("cpu", "wall", "peak"))
            cells += [f"{cpu:.1f} s", f"{1e9 * cpu / rows:,.0f} ns", f"{wall:.1f} s", f"{peak:,.0f} MB"]
        lines.append(f"| {' | '.join([*cells, str(round(of['release']['scans']))])} |")
    text = [
        "# A hundred million rows on one machine",
        "",
        f"Written by `scripts/bench scale`, on {os.cpu_count()} cores that other work shared (wall times tell little).",
        "",
        f"{COLUMNS} columns of Parquet: all {len(PAIRS)} pairs in one pass, and a release of `rake` (ε = 1) of "
        f"{RELEASED:,} rows. Peaks are of resident memory, of a process of its own each; scans are those of the file.",
        "",
        *lines,
        "",
        "![processor seconds and peak of memory by number of rows](../../docs/images/scale.svg)",
        *growth(found),
        *shares(speeds),
        *extrapolated(found),
        "",
    ]
    (RESULTS / "scale.md").write_text("\n".join(text))
    picture(found)
    print("\n".join(text), flush=True)


def growth(found: Found) -> list[str]:
    """What a million rows more take, between two middle tables and between the two largest."""
    sizes = sorted(found)
    if len(sizes) < 3:
        return []
    said = []
    for less, more in (sizes[1:3], sizes[-2:]):
        slope = (found[more]["pairs"]["cpu"] - found[less]["pairs"]["cpu"]) / (more - less) * MILLION
        said.append(f"{slope:.2f} s from {less:,} to {more:,} rows")
    text = f"A million rows more take of processor time, for the pairs: {' and '.join(said)}."
    model = (
        "Most of a release is its model, whose time differs from release to release, and with what else the machine "
        "has to do; its rows take what the pairs take."
    )
    return ["", f"{text} {model}"]


def extrapolated(found: Found) -> list[str]:
    """What 10⁹ rows would take: here by the largest table, on a cluster by what Spark took."""
    rows, of = max(found.items())
    lines = ["| 10⁹ rows | processor time | how it was found: as if all of it grew with the rows |", "|---|---|---|"]
    for work, name in (("pairs", "105 pairs, here"), ("release", "a release, here")):
        minutes = of[work]["cpu"] * BILLION / rows / 60
        lines.append(f"| {name} | {minutes:.1f} minutes | {of[work]['cpu']:.0f} s of {rows:,} rows |")
    lines += [row for row in (of_spark("spark"), of_spark("sail")) if row]
    return ["", *lines]


def of_spark(engine: str) -> str | None:
    """By the release of twenty million rows that `scripts/bench spark` made."""
    text = (RESULTS / "spark-release.md").read_text()
    known = re.search(r"from ([\d,]+) rows", text)
    used = re.search(rf"^\| {engine} \| (\d+) \|", text, re.MULTILINE)
    if known is None or used is None:
        return None
    rows = int(known[1].replace(",", ""))
    hours = int(used[1]) / rows * BILLION / 3600
    how = f"{int(used[1])} s of {rows:,} rows ([spark-release](spark-release.md))"
    return f"| a release, {engine.capitalize()} | {hours:.1f} core hours | {how} |"


def shares(speeds: dict[str, float]) -> list[str]:
    if not speeds:
        return []
    named = {
        "sum": "all bytes added up (numpy), once",
        "pair": "one pair counted",
        "pairs": "all 105 pairs counted",
        "numpy": "all 105 pairs counted without numba",
    }
    best = f"one core, codes of {BANDWIDTH_ROWS:,} rows in memory, best of {TURNS}"
    lines = [
        f"| {best} | GB of codes a second | of memory's bandwidth |",
        "|---|---|---|",
    ]
    lines += [f"| {named[n]} | {speeds[n]:.1f} | {speeds[n] / speeds['sum']:.0%} |" for n in named]
    bytes_of = (
        f"A pair reads two bytes of a row, and all pairs {2 * len(PAIRS)}, though each byte comes from memory once:"
    )
    return ["", bytes_of, "", *lines]


def picture(found: Found) -> None:
    from rake.chart import Line, Panel
    from rake.chart import write as draw

    sizes = sorted(found)
    panels = [
        Panel(title, [Line(work, [(n, found[n][work][figure]) for n in sizes]) for work in ("pairs", "release")])
        for figure, title in (("cpu", "processor seconds, by rows"), ("peak", "MB at most, by rows"))
    ]
    draw(PICTURE, panels)


if __name__ == "__main__":
    main()
