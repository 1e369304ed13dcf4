"""The marginal methods, ours against SmartNoise's and dpmm's: `scripts/bench marginals [--report] [--only TOOL] ...`.

Each measurement runs in a process of its own, in its tool's environment (made under .bench on first use), is scored
by the shared scorer and kept in benchmarks/.results/marginals.json at once: a run that was stopped goes on where it
was, and a re-run measures only what is missing or, for us, what was measured with other code. A rival that needs more
than two minutes, or fails, gets one seed for each ε.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .cache import Cache
from .case import METHODS, Case, cases, same_task
from .measurement import is_slow, measure, prepare_table
from .report import render

TABLES = ("adult_coded",)
EPSILONS = (0.1, 1.0, 10.0)
SEEDS = 5
BOX = 40 * 60
SLOW = 120


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parser().parse_args(arguments)
    cache = Cache(asked.any_code)
    tools = [asked.only] if asked.only else list(METHODS)
    wanted = list(cases(tools, asked.methods, asked.tables, asked.epsilons, asked.seeds))
    if not asked.report:
        run(wanted, cache, asked.box, asked.retry)
    print(render(r for case, r in cache.results.items() if _shown(case, wanted)))


def run(wanted: Sequence[Case], cache: Cache, box: float, retry: bool) -> None:
    """Measures what is missing, case by case, and says how each one went."""
    ready: set[str] = set()
    for case in wanted:
        known = cache.get(case)
        if known and not (retry and "failed" in known):
            continue
        if any(is_slow(r, case, SLOW) for r in cache.other_seeds(case)) and not retry:
            continue
        if case.table not in ready:
            prepare_table(case.table)
            ready.add(case.table)
        print(f"{case} ...", end=" ", flush=True)
        result = measure(case, box)
        cache.add(case, result)
        print(
            result.get("failed") or f"{result['seconds']:.1f} s, {result['peak_mb']} MB, {result['scores']}", flush=True
        )


def _shown(case: Case, wanted: Sequence[Case]) -> bool:
    """Every tool's results of what was asked about, since a time means little without its rivals'."""
    return (same_task(case.method), case.table, case.epsilon) in {
        (same_task(w.method), w.table, w.epsilon) for w in wanted
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench marginals", description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="print the table of cached results and measure nothing")
    parser.add_argument("--only", choices=list(METHODS), help="measure one tool")
    parser.add_argument("--methods", nargs="+", default=[], metavar="METHOD", help="measure these methods alone")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="TABLE", help="default: adult_coded")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS), metavar="E")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="repetitions (default 5)")
    parser.add_argument("--box", type=float, default=BOX, help="seconds after which a runner is stopped (default 2400)")
    parser.add_argument("--retry", action="store_true", help="measure again what failed, and every seed of slow rivals")
    parser.add_argument("--any-code", action="store_true", help="keep what was measured with other code")
    return parser


if __name__ == "__main__":
    main()
