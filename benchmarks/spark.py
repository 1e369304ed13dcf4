"""Spark and Sail beside DuckDB: all pairs of 15 columns per core, one release on each engine, and tasks that fail.

    scripts/bench spark                      1 million rows, all three engines, and what a killed task does
    scripts/bench spark --rows 20000000      the release of `rake` from that many rows, on each engine

Each engine runs in a process of its own, on two tasks at a time. Processor time is that of the engine and of all that
it starts; pairs are counted twice to warm up, and then `--rounds` times.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

COLUMNS, ENGINES = 15, ("duckdb", "sail", "spark")
RESULTS = ROOT / "benchmarks" / "results"


def schema_text() -> str:
    """Whole numbers, numbers in 16 bins, labels: five of each."""
    whole = [f'[columns.whole{i}]\ntype = "integer"\nmin = 0\nmax = {9 + 4 * i}' for i in range(5)]
    real = [f'[columns.real{i}]\ntype = "number"\nmin = 0\nmax = 100\nbins = 16' for i in range(5)]
    labels = [[f"label {k}" for k in range(3 + 3 * i)] for i in range(5)]
    texts = [f'[columns.text{i}]\ntype = "categorical"\nvalues = {json.dumps(v)}' for i, v in enumerate(labels)]
    return "\n".join([*whole, *real, *texts])


def made(path: Path, rows: int) -> None:
    """A Parquet file, a million rows at a time; neighbouring columns depend on each other."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for part in range(0, rows, 1_000_000):
        rng = np.random.default_rng(part)
        size = min(1_000_000, rows - part)
        hidden = rng.random(size)
        columns: dict[str, Any] = {}
        for i in range(5):
            mixed = np.where(rng.random(size) < 0.5, hidden, rng.random(size))
            columns[f"whole{i}"] = (mixed * (10 + 4 * i)).astype(np.int32)
            columns[f"real{i}"] = 100 * mixed ** (i + 1)
            codes = (mixed * (3 + 3 * i)).astype(np.int32)
            columns[f"text{i}"] = pa.array([f"label {k}" for k in range(3 + 3 * i)]).take(pa.array(codes))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=1 << 17)
    assert writer is not None
    writer.close()


# ---------------------------------------------------------------- what runs in the process of an engine


def opened(engine: str, path: str) -> tuple[Any, Any, Any]:
    """The table, its schema, and the session of an engine that has one."""
    import understudy as us

    schema = us.Schema.loads(schema_text())
    if engine == "duckdb":
        table = us.open(path, schema, name="rows")
        table._connection.execute("SET threads = 2")
        return table, schema, None
    session = session_of(engine)
    return us.open(session.read.parquet(path), schema, name="rows"), schema, session


SERVERS: list[Any] = []
"""They end when nobody holds them."""


def session_of(engine: str) -> Any:
    from helpers.spark_sessions import classic, quietly

    if engine == "spark":
        SERVERS.append(classic())
        return SERVERS[-1].__enter__()
    with quietly():
        from pysail.spark import SparkConnectServer

        from understudy.boundary.tables.spark import session_at

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        SERVERS.append(server)
        return session_at(f"sc://127.0.0.1:{server.listening_address[1]}")


def processor_time() -> float:
    """Of this process and of all that it has started."""
    ticks, parents, times = os.sysconf("SC_CLK_TCK"), {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)], times[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / ticks
    ours = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(times[p] for p in ours if p in times)


def count_pairs(engine: str, path: str, rounds: int) -> dict[str, Any]:
    import understudy as us

    table, schema, _ = opened(engine, path)
    domain = us.Domain.of(schema)
    pairs = list(itertools.combinations(domain.names, 2))
    taken = []
    for _ in range(rounds + 2):
        before = processor_time(), time.perf_counter()
        counts = table.count_by(domain, pairs)
        taken.append((processor_time() - before[0], time.perf_counter() - before[1]))
    digest = hashlib.sha256(b"".join(c.tobytes() for c in counts)).hexdigest()
    warm = taken[2:]
    return {"cpu": statistics.median(c for c, _ in warm), "wall": statistics.median(w for _, w in warm), "is": digest}


def ways(engine: str, path: str, rounds: int) -> dict[str, Any]:
    """Processor seconds of parts of the way from Parquet to Python, and of another one, each by itself and warm."""
    import pyarrow as pa

    _, _, session = opened(engine, path)
    frame = session.read.parquet(path)
    names = frame.columns
    nulls = " + ".join(f"CASE WHEN isnull({c}) THEN {1 << i}L ELSE 0L END" for i, c in enumerate(names))
    every, hashed = ", ".join(names), "xxhash64({}) AS digest"
    truths = ", ".join(f"isnull({c})" for c in names)
    selected = {
        "one column handed to Python": [names[0]],
        "a digest of each row, with a truth value for each null": [hashed.format(f"{every}, {truths}")],
        "a digest of each row, with a bit for each null": [hashed.format(f"{every}, {nulls}")],
        "all columns handed to Python": names,
        "all columns and the digest": [*names, hashed.format(f"{every}, {nulls}")],
        "the same in batches of 100,000 rows": [*names, hashed.format(f"{every}, {nulls}")],
        "codes that the engine packs into three numbers, and the digest": [
            *packed_by_engine(),
            hashed.format(f"{every}, {nulls}"),
        ],
        "the same by comparisons alone, and the texts that are no label": [
            *packed_by_comparisons(),
            hashed.format(f"{every}, {nulls}"),
        ],
    }

    def passed(batches: Iterator[Any]) -> Iterator[Any]:
        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    found = {}
    for name, expressions in selected.items():
        taken, batch = [], 100_000 if "100,000" in name else 10_000
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)  # 10,000 if nobody sets it
        for _ in range(rounds + 2):
            before = processor_time()
            frame.selectExpr(*expressions).mapInArrow(passed, "rows long").toArrow()
            taken.append(processor_time() - before)
        found[name] = statistics.median(taken[2:])
    return found


def packed_by_comparisons() -> list[str]:
    """With edges of bins and with labels, as an encoder that is proved equal to ours would have to compare."""

    def bisected(number: str, cuts: list[float], first: int) -> str:
        if not cuts:
            return f"{first}L"
        middle = len(cuts) // 2
        below = bisected(number, cuts[:middle], first)
        above = bisected(number, cuts[middle + 1 :], first + middle + 1)
        return f"CASE WHEN {number} < {cuts[middle]!r}D THEN {below} ELSE {above} END"

    def compared(text: str, count: int) -> str:
        found = " ".join(f"WHEN {text} = 'label {k}' THEN {k}L" for k in range(count))
        return f"CASE {found} ELSE 0L END"

    def left(text: str, count: int) -> str:
        labels = ", ".join(f"'label {k}'" for k in range(count))
        return f"CASE WHEN {text} IN ({labels}) THEN NULL ELSE {text} END AS {text}"

    codes = {f"whole{i}": bisected(f"CAST(whole{i} AS DOUBLE)", [*range(1, 10 + 4 * i)], 0) for i in range(5)}
    codes |= {f"real{i}": bisected(f"real{i}", [6.25 * k for k in range(1, 16)], 0) for i in range(5)}
    codes |= {f"text{i}": compared(f"text{i}", 3 + 3 * i) for i in range(5)}
    words = [
        " + ".join(
            f"CASE WHEN isnull({c}) THEN 31L ELSE {code} END * {1 << 5 * i}L" for i, (c, code) in enumerate(part)
        )
        for part in (list(codes.items())[:10], list(codes.items())[10:])
    ]
    return [*(f"{word} AS word{i}" for i, word in enumerate(words)), *(left(f"text{i}", 3 + 3 * i) for i in range(5))]


def packed_by_engine() -> list[str]:
    """Without what texts with spaces around them would need, and by an arithmetic that was not proved equal."""
    whole = [f"least(greatest(whole{i}, 0), {9 + 4 * i})" for i in range(5)]
    real = [f"least(CAST(least(greatest(real{i}, 0D), 100D) * 0.16D AS INT), 15)" for i in range(5)]
    labels = [", ".join(f"'label {k}'" for k in range(3 + 3 * i)) for i in range(5)]
    text = [f"array_position(array({labels[i]}), text{i})" for i in range(5)]
    kinds = {"whole": whole, "real": real, "text": text}
    return [
        " + ".join(
            f"CASE WHEN isnull({kind}{i}) THEN 31L ELSE CAST({code} AS BIGINT) END * {1 << 5 * i}L"
            for i, code in enumerate(codes)
        )
        + f" AS {kind}"
        for kind, codes in kinds.items()
    ]


def release(engine: str, path: str, rounds: int) -> dict[str, Any]:
    del rounds
    from understudy.boundary.privacy.budget import Budget
    from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
    from understudy.methods.method import Options
    from understudy.releases.synthesis import Plan, synthesize_with

    table, schema, _ = opened(engine, path)
    begun = processor_time(), time.perf_counter()
    plan = Plan.of(schema, Budget(1.0, 1e-9), "rake", Options(), 10_000, 7)
    files = synthesize_with(table, plan, randomness=ExactRandomness.seeded(11)).files("csv")
    shown = b"".join(files[name] for name in ("synthetic.csv", "measurements.npz"))
    used = processor_time() - begun[0], time.perf_counter() - begun[1]
    return {"cpu": used[0], "wall": used[1], "is": hashlib.sha256(shown).hexdigest(), "peak": peak()}


def peak() -> float:
    """Megabytes, of this process; the engine of Sail is in it, Spark's Java process and its workers are not."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def killed(engine: str, path: str, rounds: int) -> dict[str, Any]:
    """A release while the first task that has handed on rows is killed."""
    del rounds
    import understudy as us
    from understudy.boundary.privacy.asks import Marginals
    from understudy.boundary.privacy.budget import Budget
    from understudy.boundary.privacy.curator import Curator
    from understudy.boundary.privacy.ledger.ledger import Ledger
    from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
    from understudy.errors import TableError

    _, schema, session = opened(engine, path)
    frame, marker = session.read.parquet(path), tempfile.mktemp()
    table = us.open(frame.mapInArrow(failing_once(marker, engine), frame.schema), schema, name="rows")
    domain, ledger = us.Domain.of(schema), Ledger.memory()
    said = "the same answer"
    try:
        curator = Curator.on(table, Budget(1.0, 1e-6), ledger=ledger, randomness=ExactRandomness.seeded(5))
        (found,) = curator.ask(Marginals(domain, [domain.names[:2]], curator.remaining()))
        counts = found.counts
    except TableError:
        said, counts = "refused", None
    clean = Curator.on(us.open(path, schema), Budget(1.0, 1e-6), randomness=ExactRandomness.seeded(5))
    (expected,) = clean.ask(Marginals(domain, [domain.names[:2]], clean.remaining()))
    same = counts is not None and bool((counts == expected.counts).all())
    assert same or said == "refused"
    return {"said": said, "debits": len(ledger.entries()), "failed": Path(marker).exists()}


def failing_once(marker: str, engine: str) -> Any:
    def step(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if engine == "spark":  # Sail's tasks are threads of the engine
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("it failed")

    return step


WORK = {"pairs": count_pairs, "ways": ways, "release": release, "killed": killed}

# ---------------------------------------------------------------- what is written


def measured(work: str, engine: str, path: Path, rounds: int = 5) -> dict[str, Any]:
    """In a process of its own, whose last line is the result."""
    command = [sys.executable, "-W", "ignore", __file__, "--do", work, engine, str(path), "--rounds", str(rounds)]
    quiet = {**os.environ, "RUST_LOG": "off"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet)
    return json.loads(done.stdout.decode().splitlines()[-1])


def table_of(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def pairs_section(path: Path, rows: int, rounds: int) -> str:
    found = {engine: measured("pairs", engine, path, rounds) for engine in ENGINES}
    base = found["duckdb"]["cpu"]
    lines = [
        [e, f"{f['cpu']:.2f}", f"{f['cpu'] / base:.1f} ×", f"{f['wall']:.1f}", agrees(f, found["duckdb"])]
        for e, f in found.items()
    ]
    head = ["engine", "processor seconds", "of DuckDB's", "seconds", "the same counts"]
    pairs = COLUMNS * (COLUMNS - 1) // 2
    text = f"All {pairs} pairs of {COLUMNS} columns × {rows:,} rows of Parquet, warm, median of {rounds}:"
    return f"{text}\n\n{table_of(head, lines)}\n"


def ways_section(path: Path, rounds: int) -> str:
    found = measured("ways", "spark", path, rounds)
    lines = [[name, f"{seconds:.2f}"] for name, seconds in found.items()]
    text = "Where Spark's processor time goes, each part by itself (Python drops what it is given), warm:"
    return f"{text}\n\n{table_of(['from Parquet', 'processor seconds'], lines)}\n"


def release_section(path: Path, rows: int) -> str:
    found = {engine: measured("release", engine, path) for engine in ENGINES}
    lines = [
        [e, f"{f['cpu']:.0f}", f"{f['wall']:.0f}", f"{f['peak']:,.0f}", agrees(f, found["duckdb"])]
        for e, f in found.items()
    ]
    head = ["engine", "processor seconds", "seconds", "MB at most (driver)", "the same release"]
    text = f"A release of `rake` (ε = 1) from {rows:,} rows × {COLUMNS} columns under one test seed, cold:"
    return f"{text}\n\n{table_of(head, lines)}\n"


def killed_section(path: Path) -> str:
    found = {engine: measured("killed", engine, path) for engine in ENGINES[1:]}
    assert all(f["failed"] for f in found.values())
    lines = [[e, f["said"], str(f["debits"])] for e, f in found.items()]
    text = (
        "A task that fails after it has handed on rows (killed in Spark, by an error in Sail, which tries none again):"
    )
    return f"{text}\n\n{table_of(['engine', 'what came of it', 'debits'], lines)}\n"


def agrees(found: dict[str, Any], base: dict[str, Any]) -> str:
    return "yes" if found["is"] == base["is"] else "NO"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--do", nargs=3)
    given = parser.parse_args()
    if given.do:
        work, engine, path = given.do
        print(json.dumps(WORK[work](engine, path, given.rounds)), flush=True)
        os._exit(0)  # the engines have threads that nobody ends
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        if given.rows:
            made(path, given.rows)
            write("spark-release", release_section(path, given.rows))
        else:
            made(path, 1_000_000)
            pairs = pairs_section(path, 1_000_000, given.rounds)
            write("spark", pairs, ways_section(path, given.rounds), killed_section(path))


def write(name: str, *sections: str) -> None:
    head = "# Spark and Sail beside DuckDB\n\nWritten by `scripts/bench spark`, on two cores that other work shared.\n"
    (RESULTS / f"{name}.md").write_text("\n".join([head, *sections]))
    print((RESULTS / f"{name}.md").read_text())


if __name__ == "__main__":
    main()
