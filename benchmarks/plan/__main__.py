"""Forecasts of cost and error against measured releases: `scripts/bench plan [--write]`; --write fits them anew.

The measurements are those of `scripts/bench marginals` and `scripts/bench rake` that are in benchmarks/results. Each
forecast is judged twice: fitted to all tables, and fitted to all tables but the one that it is for. The second is what
a table that nobody has seen can expect.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from .cells import Cell, load
from .fit import FIGURES, Fits, fitted, written

HEADER = ("figure", "within", "method", "cells", "fitted to all", "fitted to other tables")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench plan", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the coefficients into the package")
    asked = parser.parse_args(arguments)
    cells = load()
    whole, others = fitted(cells), {t: fitted([c for c in cells if not _alike(c.table, t)]) for t in _tables(cells)}
    if asked.write:
        print(f"wrote {written(cells, whole, others)}\n")
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for name, figure in FIGURES.items():
        for method in [*sorted({c.method for c in cells}), "all"]:
            asked_of = [c for c in cells if method in (c.method, "all") and name in c.figures and figure.judges(c)]
            if asked_of:
                inside = [share(asked_of, name, lambda c: whole), share(asked_of, name, lambda c: others[c.table])]
                print(
                    f"| {name} | ×{figure.factor:g} | {method} | {len(asked_of)} | {inside[0]:.0%} | {inside[1]:.0%} |"
                )


def share(cells: Sequence[Cell], name: str, fits_for: Callable[[Cell], Fits]) -> float:
    """Of the cells, those whose forecast is within the factor."""
    factor = FIGURES[name].factor
    found = [fits_for(c)[c.method].forecast(name, c) / c.figures[name] for c in cells]
    return sum(1 / factor <= r <= factor for r in found) / len(found)


def _tables(cells: Sequence[Cell]) -> list[str]:
    return sorted({c.table for c in cells})


def _alike(one: str, other: str) -> bool:
    """The same table, or the same rows in another coding."""
    return one.split("_")[0] == other.split("_")[0]


if __name__ == "__main__":
    main()
