"""The baselines privsyn and dualquery beside other methods, and two specimens: error of pairs, by table and ε.

Shown is the total variation of pairs of columns, in thousandths, as the mean over seeds, with its standard deviation;
and the processor time of a release at ε = 1. What was measured is kept, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from places import DATA, TABLES
from results_cache import Result, ResultsCache

import understudy as us
from understudy.datasets import schema

FILES = {
    "insurance": "insurance.csv",
    "nursery": "nursery.csv",
    "mushroom": "mushroom.csv",
    "adult": "adult.train.csv",
}
METHODS = ("independent", "dualquery", "privsyn", "mst", "aim", "rake")
SPECIMENS = ("published-jtree", "published-bsg")
EPSILONS, DELTA, SEEDS = (0.1, 1.0, 10.0), 1e-6, 5
PAGE = TABLES / "baselines.md"


@dataclass(frozen=True)
class Case:
    """One release."""

    table: str
    method: str
    epsilon: float
    seed: int


def measure(case: Case) -> Result:
    public, path = schema(case.table), DATA / FILES[case.table]
    began = time.process_time()
    if case.method in SPECIMENS:
        rows = us.specimen(path, public, method=case.method, epsilon=case.epsilon, seed=case.seed).table
    else:
        table = us.open(path, public)
        made = us.synthesize(table, ledger=False, method=case.method, epsilon=case.epsilon, delta=DELTA, seed=case.seed)
        rows = made.table
    seconds = time.process_time() - began
    if not rows.num_rows:  # no seed passed the test of published-bsg
        return {"seconds": seconds, "tv1": None, "tv2": None}
    found = us.evaluate(path, rows, schema=public, measures=["tv1", "tv2"])
    return {"seconds": seconds, "tv1": found["tv1"].value, "tv2": found["tv2"].value}


def cases(tables: Iterable[str], methods: Iterable[str], seeds: int) -> Iterator[Case]:
    """The first seed of all before the second of any: a stopped run has something of everything."""
    methods = list(methods)
    for seed in range(1, seeds + 1):
        for table in tables:
            for epsilon in EPSILONS:
                yield from (Case(table, method, epsilon, seed) for method in methods)


def page(cache: ResultsCache[Case]) -> str:
    heads = " | ".join(f"ε = {e:g}" for e in EPSILONS)
    lines = [
        "# Baselines",
        "",
        "Written by `scripts/bench baselines`. Total variation of pairs of columns in thousandths (lower is better):",
        "the mean over seeds ± their standard deviation; δ = 10⁻⁶. A method named published-… has no guarantee: its",
        "ε is what its document calls so (published-bsg's is that of one row). Seconds are of a processor, at ε = 1.",
        "",
        f"| table | method | seeds | {heads} | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for table in FILES:
        for method in (*METHODS, *SPECIMENS):
            found = [r for c, r in cache.results.items() if (c.table, c.method) == (table, method)]
            if found:
                lines.append(_line(table, method, found))
    return "\n".join(lines) + "\n"


def _line(table: str, method: str, found: list[Result]) -> str:
    by = {e: [r["tv2"] for r in found if r["epsilon"] == e] for e in EPSILONS}
    seconds = [r["seconds"] for r in found if r["epsilon"] == 1.0]
    cells = " | ".join(_spread(by[e]) for e in EPSILONS)
    seeds = min(len(v) for v in by.values())
    took = f"{statistics.median(seconds):.1f}" if seconds else "–"
    return f"| {table} | {method} | {seeds} | {cells} | {took} |"


def _spread(found: list[float | None]) -> str:
    values = [1000 * v for v in found if v is not None]
    if found and not values:
        return "no rows"
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "–"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--methods", nargs="*", default=[*METHODS, *SPECIMENS])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--report", action="store_true", help="write the page of what was measured, and measure nothing"
    )
    asked = parser.parse_args()
    cache = ResultsCache("baselines", Case)
    if not asked.report:
        for case in cases(asked.tables, asked.methods, asked.seeds):
            if case not in cache.results:
                cache.add(case, measure(case))
                print(case, cache.results[case], flush=True)
    PAGE.write_text(page(cache))


if __name__ == "__main__":
    main()
