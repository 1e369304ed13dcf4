"""Releases that only forecasts need: of the tables that come with scikit-learn, and by methods measured on few others.

`PYTHONPATH=benchmarks .venv/bin/python -m plan.known`: every case in a process of its own, kept at once in
benchmarks/.results/plan-known.json; what is there is not measured again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from marginals.job import cpu_seconds, peak_mb
from results_cache import ResultsCache

import understudy as us

NAMES = ("iris", "wine", "breast_cancer", "diabetes")
METHODS = ("independent", "privbayes", "mwem", "mst", "aim", "rake", "dp-select")
EPSILONS = (0.1, 1.0, 10.0)
SELECTED = ("insurance", "nursery", "votes", "mushroom")
"""Shared tables that the study of selection does without."""
PURE, PURE_METHODS = ("insurance", "nursery", "votes", "mushroom"), ("independent", "mst", "aim", "rake")
"""With a delta of 0, which nobody else measures."""
DELTA = 1e-6
BINS, MOST_CLASSES = 10, 10
BOX = 300
LAZY = ("duckdb", "pyarrow", "sqlglot")
"""Imported on first use, which is no part of a release."""


@dataclass(frozen=True)
class Case:
    table: str
    method: str
    epsilon: float
    seed: int
    delta: float = DELTA


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(release(Case(**json.loads(sys.argv[1])))))
        return
    cache = results()
    for case in _cases():
        if case not in cache.results:
            cache.add(case, {"date": datetime.now(UTC).isoformat(timespec="seconds")} | _measured(case))
            print(cache.results[case], flush=True)


def _cases() -> list[Case]:
    return [
        *(Case(t, m, e, 0) for m in METHODS for t in NAMES for e in EPSILONS),
        *(Case(t, m, e, 0, 0.0) for t in PURE for m in PURE_METHODS for e in EPSILONS[1:]),
        *(Case(t, "dp-select", e, 0) for t in SELECTED for e in EPSILONS),
    ]


def results() -> ResultsCache[Case]:
    return ResultsCache("plan-known", Case)


def _measured(case: Case) -> dict[str, Any]:
    command = [sys.executable, "-m", "plan.known", json.dumps(asdict(case))]
    conditions = {"load": round(os.getloadavg()[0], 2)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOX, check=False)
    if done.returncode:
        return conditions | {"failed": done.stderr.strip().splitlines()[-1][:300]}
    return conditions | dict(json.loads(done.stdout.splitlines()[-1]))


def release(case: Case) -> dict[str, Any]:
    from rake.score import _counts, _distance, _sets
    from rake.table import Sample

    for module in LAZY:
        import_module(module)
    rows, schema = load(case.table)
    cpu = cpu_seconds()
    made = us.synthesize(
        us.open(rows, schema),
        method=case.method,
        epsilon=case.epsilon,
        delta=case.delta,
        seed=case.seed,
        test_only_noise_seed=case.seed,
    ).arrow
    cost = {"cpu": round(cpu_seconds() - cpu, 3), "peak_mb": round(peak_mb())}
    pairs = _sets(Sample(rows, schema))["tv2"]
    return cost | {"tv2": round(_distance(_counts(rows, schema, pairs), _counts(made, schema, pairs)), 6)}


def load(name: str) -> tuple[pa.Table | Path, us.Schema]:
    """A shared table by its path, or one of scikit-learn's."""
    if name in NAMES:
        return _bundled(name)
    from rake.table import load as table_of

    return table_of(name).source, table_of(name).schema


@lru_cache
def _bundled(name: str) -> tuple[pa.Table, us.Schema]:
    """Numbers in ten bins between the least and the greatest value, as the pages about these public tables give them;
    what is to be predicted is the last column."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    columns = {f"c{i}": values.astype(np.float64) for i, values in enumerate(found.data.T)}
    target = np.asarray(found.target)
    classes = sorted(set(target.tolist()))
    lines = [_number(c, values) for c, values in columns.items()]
    if len(classes) <= MOST_CLASSES:
        lines.append(f'[columns.t]\ntype = "integer"\nmin = {int(classes[0])}\nmax = {int(classes[-1])}')
        columns["t"] = target.astype(np.int64)
    else:
        columns["t"] = target.astype(np.float64)
        lines.append(_number("t", columns["t"]))
    return pa.table(columns), us.Schema.loads("\n".join(lines))


def _number(name: str, values: np.ndarray) -> str:
    return f'[columns.{name}]\ntype = "number"\nmin = {values.min()}\nmax = {values.max()}\nbins = {BINS}'


if __name__ == "__main__":
    main()
