"""`ablation`: what each part of the recipe is worth: total variation without it, relative to the whole recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .case import Case, Grid, Result, Study
from .relative import Relative
from .summary import NOTHING, Results, markdown
from .variant import ABLATIONS, BASELINES

METHOD = "rake"
GRID = Grid(("adult_coded", "insurance", "mushroom", "covertype", "nursery", "votes", "census"), (0.1, 1.0), 5)
TRIPLES = tuple(BASELINES)
"""Variants with a target are judged by triples with it as well, which is what they are for."""


def cases(grid: Grid) -> Iterator[Case]:
    for seed, table, epsilon in grid:
        yield from (Case(table, METHOD, epsilon, seed, variant) for variant in ABLATIONS)


def render(found: Sequence[Result]) -> str:
    results = Results(found)
    note = "Above 1.00 the part is worth something; ± is one standard error of the seeds."
    return "\n\n".join([f"{results.conditions()} {note}", *(_block(results, e) for e in results.epsilons())])


def _block(results: Results, epsilon: float) -> str:
    here = results.of(epsilon=epsilon)
    tables = results.names("table")
    rows = [_row(here, tables, v, "tv2") for v in ABLATIONS if v and v != "with target"]
    rows += [_row(here, tables, v, "tv3") for v in TRIPLES]
    return f"### ε = {epsilon:g}\n\n" + markdown(["variant", "error of", *tables, "all"], rows)


def _row(results: Results, tables: Sequence[str], variant: str, figure: str) -> list[str]:
    found = [Relative.of(results.of(table=t), variant, BASELINES.get(variant, ""), figure) for t in tables]
    known = [r for r in found if r]
    kind = {"tv2": "pairs", "tv3": "triples with target"}[figure]
    return [variant, kind, *(str(r or NOTHING) for r in found), str(Relative.mean(known) if known else NOTHING)]


STUDY = Study(GRID, cases, render)
