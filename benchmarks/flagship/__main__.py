"""The default method beside our other ones and other tools: `scripts/bench flagship [--table] [--only PATTERN] ...`.

Each release is made in a process of its own, by the command that a user would give, with real noise: a seed is the
number of a repetition. It is scored by the shared scorers where they lie, and kept in benchmarks/.results/flagship.json
at once: a run that was stopped goes on where it was, and measures again what was measured with other code. The tables
and the list of what was wanted go to benchmarks/results/flagship.md, and a short table to the README.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from marginals.case import OURS

from .case import Cache, Case
from .measurement import measure, prepare_table
from .plan import Asked
from .report import publish, render

SEEDS, RIVAL_SEEDS = 10, 1
LIMIT, RIVAL_LIMIT = 900.0, 2_400.0


def main(arguments: Sequence[str] | None = None) -> None:
    said = _parser().parse_args(arguments)
    asked = Asked(said.only, said.methods, said.epsilons)
    cache = Cache(said.any_code)
    if not said.table:
        _run(list(asked.cases(said.seeds, said.rival_seeds)), cache, said)
    results = [r for r in cache.valid() if asked.takes(r["table"], r["method"], r["epsilon"])]
    print(render(results))
    if said.publish:
        publish(cache.valid())


def _run(cases: Sequence[Case], cache: Cache, said: argparse.Namespace) -> None:
    missing = [case for case in cases if not cache.has(case) or (said.retry and "failed" in cache.results[case])]
    for name in dict.fromkeys(case.table for case in missing):
        prepare_table(name)
    left = itertools.count(len(missing) - 1, -1)

    def work(case: Case) -> None:
        result = measure(case, said.limit or (LIMIT if case.tool == OURS else RIVAL_LIMIT))
        cache.add(case, result)
        shown = ("failed", "seconds", "peak_mb", "tv2", "tv3", "gbm_auc", "accuracy", "correlation", "nist")
        print(f"{case}:", *(f"{k} {result[k]}" for k in shown if k in result), f"({next(left)} left)", flush=True)

    with ThreadPoolExecutor(said.jobs) as pool:
        list(pool.map(work, missing))


def _parser() -> argparse.ArgumentParser:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    parser = argparse.ArgumentParser(prog="scripts/bench flagship", description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the tables of cached results and measure nothing")
    parser.add_argument("--publish", action="store_true", help="write results/flagship.md and the table of the README")
    parser.add_argument(
        "--only", type=names, default=[], metavar="PATTERN,…", help="tables whose names have this in it"
    )
    parser.add_argument("--methods", type=names, default=[], metavar="METHOD,…", help="see benchmarks/flagship/case.py")
    parser.add_argument("--epsilons", type=lambda text: [float(e) for e in names(text)], default=[], metavar="E,…")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="repetitions of ours (default 10)")
    parser.add_argument("--rival-seeds", type=int, default=RIVAL_SEEDS, help="repetitions of other tools (default 1)")
    parser.add_argument("--limit", type=float, help="seconds for a release (default 900, of other tools 2400)")
    parser.add_argument("--jobs", type=int, default=1, help="releases side by side; times are of one alone (default 1)")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument("--any-code", action="store_true", help="keep what was measured with other code")
    return parser


if __name__ == "__main__":
    main()
