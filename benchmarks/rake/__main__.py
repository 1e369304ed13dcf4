"""Our method rake by itself: `scripts/bench rake hostile|growth|ablation|constants|cells [--report] [--seeds N] ...`.

`hostile` runs it on tables that were made to break it, `growth` measures its cost as tables grow, `ablation` says what
each part of the recipe is worth, `constants` how well its constants suit tables that had no say in them, and `cells`
how it stands beside our other methods on seven tables. Every result is kept in benchmarks/.results/rake-*.json at once:
a run that was stopped goes on where it was, and a re-run measures only what is missing or was measured with other code.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from . import ablation, cells, comparison, constants, growth
from .cache import Cache
from .case import Case, Grid, Result, Study
from .table import NAMES
from .worker import run

STUDIES: dict[str, Study] = {
    "hostile": comparison.STUDY,
    "growth": growth.STUDY,
    "ablation": ablation.STUDY,
    "constants": constants.STUDY,
    "cells": cells.STUDY,
}
BOX = 60 * 60


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parser().parse_args(arguments)
    study, cache = STUDIES[asked.what], Cache(asked.what, asked.any_code, asked.retry)
    whole = study.grid
    grid = Grid(asked.tables or whole.tables, asked.epsilons or whole.epsilons, asked.seeds or whole.seeds)
    if not asked.report:
        _measure(study, grid, cache, asked.jobs or study.jobs, asked.box)
    print(study.render(sorted_as(grid, [r for r in cache.results.values() if grid.holds(r)])))


def sorted_as(grid: Grid, results: Sequence[Result]) -> list[Result]:
    """Tables in the order in which they were asked for."""
    return sorted(results, key=lambda r: list(grid.tables).index(r["table"]))


def _measure(study: Study, grid: Grid, cache: Cache, jobs: int, box: float) -> None:
    def missing() -> Iterator[Case]:
        yield from (case for case in study.cases(grid) if not cache.has(case))

    def done(case: Case, result: Result) -> None:
        cache.add(case, result)
        shown = {k: result[k] for k in ("failed", "seconds", "cpu", "peak_mb", "tv2") if k in result}
        print(f"{case}: {', '.join(f'{k} {v}' for k, v in shown.items())}", flush=True)

    run(missing(), jobs, box, study.fresh, done)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench rake", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(STUDIES))
    parser.add_argument("--report", action="store_true", help="print the table of cached results and measure nothing")
    parser.add_argument("--tables", nargs="+", choices=NAMES, metavar="TABLE", help="default: all of the study")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="E")
    parser.add_argument("--seeds", type=int, help="repetitions")
    parser.add_argument("--jobs", type=int, help="processes side by side, each on one core (growth: 1, on all cores)")
    parser.add_argument(
        "--box", type=float, default=BOX, help="seconds after which a release is stopped (default 3600)"
    )
    parser.add_argument("--any-code", action="store_true", help="keep what was measured with other code")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    return parser


if __name__ == "__main__":
    main()
