"""Counting all pairs of Adult's columns, ours against pandas and DuckDB: `python benchmarks/counting.py`.

First in memory: the same codes, in the narrowest type, counted into 105 two-way tables by each. pandas and DuckDB are
tried in several ways and stand in the table with their best. Repeats are interleaved, so that a slow minute of the
machine hits everybody. Then from a Parquet file made for the purpose, in one streamed pass in a process of its own,
at a quarter, half and all of `--rows`: time must grow with the rows, memory must not.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import understudy as us
from understudy.boundary.schema.column import Categorical, Integer
from understudy.boundary.schema.domain import code_type
from understudy.boundary.tables.counting import count_marginals

ADULT = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "adult.train.csv"
SIZES = (74, 9, 64, 16, 16, 7, 15, 6, 5, 2, 64, 64, 99, 42, 2)
"""Adult's domain, column by column: what the generated tables have too."""
ROWS_OF_ADULT = 32_561
PART = 250_000
Codes = dict[str, np.ndarray]


def generated_schema() -> us.Schema:
    """Columns of Adult's sizes, every other one of texts."""
    columns = (
        Categorical(f"c{i}", values=labels(size)) if i % 2 else Integer(f"c{i}", minimum=0, maximum=size - 1)
        for i, size in enumerate(SIZES)
    )
    return us.Schema(tuple(columns))


def labels(size: int) -> tuple[str, ...]:
    return tuple(f"value {j}" for j in range(size))


def adult_codes() -> tuple[us.Domain, Codes]:
    """Adult as codes in memory; random codes of its shape where the table is not on this machine."""
    if not ADULT.is_file():
        domain, rng = us.Domain.of(generated_schema()), np.random.default_rng(0)
        return domain, {c.name: rng.integers(0, c.size, ROWS_OF_ADULT).astype(code_type(c.size)) for c in domain}
    schema = adult_schema()
    domain = us.Domain.of(schema)
    batches = list(us.open(ADULT, schema)._codes(domain, domain.names))  # the benchmark stands inside the boundary
    return domain, {n: np.concatenate([b[n] for b in batches]) for n in domain.names}


def adult_schema() -> us.Schema:
    try:
        from understudy.datasets import schema
    except ImportError:
        return us.draft_schema(ADULT)
    return schema("adult")


# ---------------------------------------------------------------- in memory


def contenders(domain: us.Domain, codes: Codes) -> dict[str, Callable[[], object]]:
    pairs = list(itertools.combinations(domain.names, 2))
    narrow = pd.DataFrame(codes)
    levels = {c.name: pd.CategoricalDtype(range(c.size)) for c in domain}
    categorical = narrow.astype(levels)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE codes AS SELECT * FROM narrow")
    quoted = [", ".join(f'"{c}"' for c in pair) for pair in pairs]
    single = f"SELECT count(*) FROM codes GROUP BY GROUPING SETS ({', '.join(f'({q})' for q in quoted)})"
    return {
        "understudy": lambda: count_marginals(domain, pairs, [codes]),
        "pandas groupby": lambda: [narrow.groupby(list(p), sort=False).size() for p in pairs],
        "pandas categorical": lambda: [categorical.groupby(list(p), observed=True, sort=False).size() for p in pairs],
        "pandas value_counts": lambda: [narrow.value_counts(list(p), sort=False) for p in pairs],
        "pandas crosstab": lambda: [pd.crosstab(narrow[a], narrow[b]) for a, b in pairs],
        "DuckDB 105 queries": lambda: [
            connection.execute(f"SELECT {q}, count(*) FROM codes GROUP BY {q}").fetchnumpy() for q in quoted
        ],
        "DuckDB grouping sets": lambda: connection.execute(single).fetchnumpy(),
    }


def check_agreement(domain: us.Domain, codes: Codes) -> None:
    """A benchmark of a wrong answer is worth nothing."""
    pair = domain.names[:2]
    (counts,) = count_marginals(domain, [pair], [codes])
    theirs = pd.DataFrame(codes).groupby(list(pair)).size()
    assert counts.sum() == theirs.sum() and all(counts[cell] == n for cell, n in theirs.items())


def medians(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if turn:  # the first turn warms up
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(s) for name, s in seconds.items()}


def in_memory(repeats: int) -> None:
    domain, codes = adult_codes()
    check_agreement(domain, codes)
    taken = medians(contenders(domain, codes), repeats)
    ours, rows = taken["understudy"], len(next(iter(codes.values())))
    print(f"all 105 two-way tables of {len(domain.names)} columns, {rows:,} rows of codes, median of {repeats}")
    for name, seconds in taken.items():
        print(f"  {name:22} {1000 * seconds:9.1f} ms {seconds / ours:7.1f}x")
    for rival, target in (("pandas", 10), ("DuckDB", 3)):
        ratio = min(s for n, s in taken.items() if n.startswith(rival)) / ours
        print(f"  {rival}'s best takes {ratio:.1f} times ours (target: {target})")


# ---------------------------------------------------------------- streamed from a file


def generate(path: Path, rows: int) -> None:
    """A Parquet file written a part at a time, so that the generator needs no more memory than the reader."""
    rng, schema = np.random.default_rng(0), None
    for start in range(0, rows, PART):
        part = generated_part(rng, min(PART, rows - start))
        if schema is None:
            schema = part.schema
            writer = pq.ParquetWriter(path, schema)
        writer.write_table(part)
    writer.close()


def generated_part(rng: np.random.Generator, rows: int) -> pa.Table:
    columns = {}
    for i, size in enumerate(SIZES):
        codes = rng.integers(0, size, rows)
        columns[f"c{i}"] = pa.array(labels(size)).take(pa.array(codes)) if i % 2 else pa.array(codes)
    return pa.table(columns)


def count_file(path: str) -> None:
    """In its own process: prints seconds and the peak of resident memory in MB."""
    schema = generated_schema()
    domain = us.Domain.of(schema)
    start = time.perf_counter()
    counts = us.open(path, schema).count_by(domain, list(itertools.combinations(domain.names, 2)))
    seconds = time.perf_counter() - start
    assert len({int(c.sum()) for c in counts}) == 1
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def streamed(rows: int) -> None:
    print("all 105 pairs of 15 columns from a Parquet file, one streamed pass (target: 10 million rows under 2 GB)")
    with tempfile.TemporaryDirectory() as folder:
        for share in (0.1, 0.25, 0.5, 1.0):
            size, path = int(rows * share), Path(folder) / f"{share}.parquet"
            generate(path, size)
            command = [sys.executable, __file__, "--count", str(path)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seconds, peak = map(float, printed.split())
            print(f"  {size:>12,} rows {seconds:7.2f} s {size / seconds / 1e6:6.2f} M rows/s {peak:7.0f} MB peak")
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the largest generated file")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--count", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.count:
        count_file(asked.count)
        return
    in_memory(asked.repeats)
    streamed(asked.rows)


if __name__ == "__main__":
    main()
