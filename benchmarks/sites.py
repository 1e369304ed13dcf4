"""Three sites in place of one table: what each trust model costs in error at ε = 1, and in time. Adult, coded.

Sites have 5 %, a third and the rest of the training rows. Errors are mean total variation distances, of all columns, of
the pairs that were measured, and of all pairs. Pooled is the same method on one table. Times are CPU seconds of the
releases alone, sites included, each beside the pooled one of the same seed; the last line is rake over three processes
of `understudy site`, whose CPU seconds hold their starts, too.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from places import DATA, TABLES

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_column
from understudy.boundary.tables.table import Table
from understudy.datasets import schema

TABLE, TARGET, EPSILON, SEEDS, HONEST = "adult_coded", "income>50K", 1.0, 5, 2
SCHEMA = schema(TABLE)
DOMAIN = Domain.of(SCHEMA)
SINGLES = [(n,) for n in DOMAIN.names]
PAIRS = list(itertools.combinations(DOMAIN.names, 2))
MEASURED = [p for p in PAIRS if TARGET in p]
METHODS = {"independent": {}, "marginals": {"marginals": MEASURED}, "rake": {"target": TARGET}}
TRUSTS = {"pooled": None, "aggregator": {}, "secure-sum": {"honest": HONEST}, "nobody": {}}


def parts_of(rows: pa.Table) -> list[pa.Table]:
    few, many = len(rows) // 20, len(rows) // 3
    return [rows.slice(0, few), rows.slice(few, many), rows.slice(few + many)]


def opened(rows: pa.Table, trust: str) -> Table:
    options = TRUSTS[trust]
    if options is None:
        return us.open(rows, SCHEMA)
    return us.federate([us.open(part, SCHEMA) for part in parts_of(rows)], trust=trust, **options)


def codes_of(table: pa.Table) -> dict[str, np.ndarray]:
    return {c.name: codes_of_column(c, table.column(c.name), ()).astype(np.int64) for c in DOMAIN}


def distance(real: dict[str, np.ndarray], made: dict[str, np.ndarray], sets: list[tuple[str, ...]]) -> float:
    found = []
    for columns in sets:
        shape, cells = DOMAIN.shape(columns), DOMAIN.cells(columns)
        shares = [
            np.bincount(np.ravel_multi_index([t[c] for c in columns], shape), minlength=cells) / len(t[columns[0]])
            for t in (real, made)
        ]
        found.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return float(np.mean(found))


def measured(rows: pa.Table, real: dict[str, np.ndarray], method: str, trust: str, seed: int) -> dict[str, float]:
    table, began = opened(rows, trust), time.process_time()
    release = us.synthesize(table, epsilon=EPSILON, method=method, seed=seed, ledger=False, **METHODS[method])
    spent, made = time.process_time() - began, codes_of(release.arrow)
    errors = {name: distance(real, made, sets) for name, sets in (("1", SINGLES), ("m", MEASURED), ("2", PAIRS))}
    return errors | {"seconds": spent}


def report(rows: pa.Table, seeds: int) -> list[str]:
    real, lines = codes_of(rows), []
    lines += [
        "| method | trust | seeds | columns | measured pairs | all pairs | CPU beside pooled |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        trusts = [t for t in TRUSTS if method != "rake" or t in ("pooled", "aggregator")]
        # Side by side, seed by seed, so that a busy machine is as busy for each.
        found = {t: [] for t in trusts}
        measured(rows, real, method, "pooled", 0)
        for seed, trust in itertools.product(range(seeds), trusts):
            found[trust].append(measured(rows, real, method, trust, seed))
        for trust in trusts:
            errors = [" ± ".join(f"{f([r[n] for r in found[trust]]):.4f}" for f in (np.mean, np.std)) for n in "1m2"]
            ratio = sum(r["seconds"] for r in found[trust]) / sum(r["seconds"] for r in found["pooled"])
            lines.append(f"| {method} | {trust} | {seeds} | {' | '.join(errors)} | {ratio:.2f} |")
            print(lines[-1], flush=True)
    return lines


def over_flower(rows: pa.Table) -> str:
    """CPU seconds of rake over three processes, and of rake on the pooled table."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        started = []
        SCHEMA.save(Path(folder) / "shared.toml")
        for number, part in enumerate(parts_of(rows)):
            path = Path(folder) / f"site{number}.csv"
            pacsv.write_csv(part, path)
            command = ["site", "--data", str(path), "--schema", f"{folder}/shared.toml", "--trust", "aggregator"]
            command += ["--coordinator", f"127.0.0.1:{port}", "--quiet"]
            started.append(subprocess.Popen([sys.executable, "-m", "understudy", *command], stderr=subprocess.DEVNULL))
        table = us.open(f"flower://127.0.0.1:{port}?sites=3&timeout=600", SCHEMA)
        began = time.process_time()
        us.synthesize(table, epsilon=EPSILON, method="rake", target=TARGET, seed=0, ledger=False)
        here = time.process_time() - began
        for process in started:
            process.terminate()
            process.wait()
        table.close()
    there = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.process_time()
    us.synthesize(us.open(rows, SCHEMA), epsilon=EPSILON, method="rake", target=TARGET, seed=0, ledger=False)
    pooled = time.process_time() - began
    return (
        f"rake over three processes and Flower: {here:.1f} CPU seconds of the aggregator and "
        f"{there.ru_utime + there.ru_stime:.1f} of the sites; pooled {pooled:.1f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rows", type=int, help="only the first of them, to try it out")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/sites.md")
    arguments = parser.parse_args()
    rows = pacsv.read_csv(DATA / f"{TABLE}.train.csv")
    rows = rows.slice(0, arguments.rows or len(rows))
    lines = report(rows, arguments.seeds)
    lines += ["", over_flower(rows)]
    print(lines[-1])
    if arguments.write:
        head = f"# Sites\n\n`scripts/bench sites --write`: {len(rows):,} rows, ε = {EPSILON:g}, a secure sum of which "
        head += f"{HONEST} of 3 parts of the noise are counted on.\n\n"
        (TABLES / "sites.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
