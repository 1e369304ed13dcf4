"""`constants`: would other tables have chosen the same constants? Each is moved down and up by itself, and each table
is given the value that all the others would choose for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from .ablation import GRID, METHOD
from .case import Case, Grid, Result, Study
from .relative import Relative
from .summary import NOTHING, Results, markdown
from .variant import CONSTANTS, shipped

FACTORS = (0.5, 2.0)
"""Beside the shipped value of a constant, these multiples of it are tried."""
SHIPPED = ""
Losses = Mapping[str, Mapping[str, Relative]]
"""For each table, each value of one constant against the shipped one."""


def variants(constant: str) -> list[str]:
    """From low to high; the shipped value is the recipe unchanged."""
    low, high = (f"{constant}={shipped(constant) * factor:g}" for factor in FACTORS)
    return [low, SHIPPED, high]


def cases(grid: Grid) -> Iterator[Case]:
    tried = dict.fromkeys(v for constant in CONSTANTS for v in variants(constant))
    for seed, table, epsilon in grid:
        yield from (Case(table, METHOD, epsilon, seed, variant) for variant in tried)


def render(found: Sequence[Result]) -> str:
    results = Results(found)
    tables = results.names("table")
    losses = {constant: _losses(results, tables, constant) for constant in CONSTANTS}
    moved = [_moved(tables, v, losses[c]) for c in CONSTANTS for v in variants(c) if v != SHIPPED]
    held = [[c, f"{shipped(c):g}", *_held_out(tables, losses[c])] for c in CONSTANTS]
    return "\n\n".join(
        [
            results.conditions(),
            "2-way total variation relative to the shipped constants, over all ε:",
            markdown(["constant", *tables, "all"], moved),
            "The value that the other tables choose for each one, and how much more error it has with it than with its "
            "own best value / than with the shipped one (the best is chosen with hindsight, so some of it is luck):",
            markdown(["constant", "shipped", *tables, "mean"], held),
        ]
    )


def _losses(results: Results, tables: Sequence[str], constant: str) -> Losses:
    found = {t: {v: Relative.of(results.of(table=t), v, SHIPPED) for v in variants(constant)} for t in tables}
    return {t: {v: r for v, r in values.items() if r} for t, values in found.items()}


def _moved(tables: Sequence[str], variant: str, losses: Losses) -> list[str]:
    found = [losses[t].get(variant) for t in tables]
    known = [r for r in found if r]
    return [variant, *(str(r or NOTHING) for r in found), str(Relative.mean(known) if known else NOTHING)]


def _held_out(tables: Sequence[str], losses: Losses) -> Iterator[str]:
    paid: list[tuple[float, float]] = []
    for table in tables:
        others = [losses[t] for t in tables if t != table]
        chosen = _choice(others)
        if chosen is None or chosen not in losses[table]:
            yield NOTHING
            continue
        with_it, best = losses[table][chosen].log, min(r.log for r in losses[table].values())
        paid.append((with_it - best, with_it))
        yield f"{chosen.partition('=')[2] or 'shipped'}: {_percents(*paid[-1])}"
    yield _percents(*(sum(p) / len(paid) for p in zip(*paid, strict=True))) if paid else NOTHING


def _choice(others: Sequence[Mapping[str, Relative]]) -> str | None:
    """The value with the least error over these tables, among those that all of them have tried."""
    common = set.intersection(*(set(values) for values in others)) if others else set()
    # By name among equals, so that a report is the same each time.
    return min(sorted(common), key=lambda v: sum(values[v].log for values in others), default=None)


def _percents(against_best: float, against_shipped: float) -> str:
    return f"{math.expm1(against_best):+.1%} / {math.expm1(against_shipped):+.1%}"


STUDY = Study(GRID, cases, render)
