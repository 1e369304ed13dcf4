"""Forecasts of cost and error against measured releases: `scripts/bench plan [--only METHOD] [--write]`.

With --write they are fitted anew; with --only for some methods alone, and what all methods have in common, and what is
known of the others, stays as it is. The measurements are those in benchmarks/.results. Each forecast is judged fitted
to all tables, and fitted to all tables but the one that it is for: the second is what a table that nobody has seen can
expect. Two more figures say what keeps an error from being predicted: fitted to other tables, but told how closely the
columns are related; and told also how unequally frequent the values of each column are. Neither is public.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.methods.forecast.coefficients import COEFFICIENTS, RELATED, SHAPE
from understudy.methods.forecast.forecast import FEWEST_TABLES, FOUR_OF_FIVE, MOST_EFFECTIVE

from .cells import Cell, load
from .coefficients import written
from .fit import ErrorFit, cost_of, family_of, fit_costs, fit_error, skew_of
from .truth import truth_of

FACTORS = {"error": 1.5, "seconds": 2.0, "megabytes": 2.0}
HEADER = (
    "figure",
    "within",
    "method",
    "cells",
    "fitted to all",
    "fitted to other tables",
    "told relations",
    "told frequencies too",
)
Forecaster = Callable[[Cell], float]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench plan", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the coefficients into the package")
    parser.add_argument("--only", action="append", metavar="METHOD", help="a method to fit; the others stay")
    asked = parser.parse_args(arguments)
    known = None
    if asked.only:
        known = ErrorFit(np.array(SHAPE), {}, (RELATED[0], RELATED[1]))
    cells = [c for c in load() if not asked.only or c.method in asked.only]
    errors = Errors.of([c for c in cells if c.real and "error" in c.figures], known)
    costs = {name: Costs.of(name, [c for c in cells if name in c.figures]) for name in ("seconds", "megabytes")}
    if asked.write:
        ranges = {m: errors.reach(m) for m in errors.whole.methods}
        kept = {m: numbers for m, numbers in COEFFICIENTS.items() if asked.only and m not in asked.only}
        print(f"wrote {written(cells, errors.whole, ranges, {n: c.whole for n, c in costs.items()}, kept)}\n")
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    errors.print()
    for found in costs.values():
        found.print()
    errors.print_relations()


@dataclass(frozen=True)
class Errors:
    cells: Sequence[Cell]
    whole: ErrorFit
    others: dict[str, ErrorFit]
    """By the table that was left out."""

    @classmethod
    def of(cls, cells: Sequence[Cell], known: ErrorFit | None = None) -> Errors:
        families = sorted({family_of(c.table) for c in cells})
        others = {f: fit_error([c for c in cells if family_of(c.table) != f], known) for f in families}
        return cls(cells, fit_error(cells, known), others)

    def held_out(self, cell: Cell) -> ErrorFit:
        return self.others[family_of(cell.table)]

    def predictable(self, cell: Cell) -> bool:
        """A method that was measured on one table alone can't be predicted from others."""
        return cell.method in self.held_out(cell).methods

    def print(self) -> None:
        shared = [c for c in self.cells if c.shared]
        for method in [*sorted({c.method for c in self.cells}), "all", "all of the shared tables"]:
            mine = shared if method.endswith("tables") else [c for c in self.cells if method in (c.method, "all")]
            seen = [c for c in mine if self.predictable(c)]
            held = [
                f"{_within('error', seen, way):.0%}" if seen else "–"
                for way in (self._public, self._told, self._knowing)
            ]
            _line("error", "×1.5", method, len(mine), f"{_within('error', mine, self.whole.forecast):.0%}", *held)

    def _public(self, cell: Cell) -> float:
        return self.held_out(cell).forecast(cell)

    def _told(self, cell: Cell) -> float:
        return self.held_out(cell).forecast(cell, math.log(truth_of(cell.table).related))

    def _knowing(self, cell: Cell) -> float:
        return self.held_out(cell).forecast(cell, math.log(truth_of(cell.table).related), skewed=True)

    def _miss(self, cell: Cell) -> float:
        """Of a table that was left out, told how its columns are related."""
        return abs(math.log(self._told(cell) / cell.figures["error"]))

    def reach(self, method: str) -> float:
        """How far off, in logarithms, four of five forecasts are for reasons other than relations."""
        mine = [c for c in self.cells if c.method == method]
        if len({family_of(c.table) for c in mine}) < FEWEST_TABLES:
            return 2 * float(np.quantile([self._miss(c) for c in self.cells if self.predictable(c)], 0.8))
        return float(np.quantile([self._miss(c) for c in mine], 0.8))

    def print_relations(self) -> None:
        reaches = {m: self.reach(m) for m in self.whole.methods}
        covered = np.mean([self._covers(c, reaches[c.method]) for c in self.cells if self.predictable(c)])
        middle, spread = self.whole.related
        levels = [f"{math.exp(middle + z * spread):.3f}" for z in (-1, 0, 1)]
        print(f"\nThe range of most tables holds {covered:.0%} of the cells of tables that were left out.")
        print(f"Columns are related by {levels[1]}, and mostly by {levels[0]} to {levels[2]}.")
        off = math.exp(skew_of(self.cells))
        print(f"Effective numbers of values, 1/(1/k + 1/{MOST_EFFECTIVE:g}), are off by a factor of {off:.2f}.\n")
        print("| table | columns related by | cells | within ×1.5, fitted to other tables |\n|---|---|---|---|")
        for table in sorted({c.table for c in self.cells}):
            mine = [c for c in self.cells if c.table == table and self.predictable(c)]
            inside = _within("error", mine, self._public)
            print(f"| {table} | {truth_of(table).related:.3f} | {len(mine)} | {inside:.0%} |")

    def _covers(self, cell: Cell, reach: float) -> bool:
        fit = self.held_out(cell)
        middle, spread = fit.related
        low, error, high = (fit.forecast(cell, middle + z * spread) for z in (-FOUR_OF_FIVE, 0.0, FOUR_OF_FIVE))
        miss = math.log(cell.figures["error"] / error)
        return -math.hypot(math.log(error / low), reach) <= miss <= math.hypot(math.log(high / error), reach)


@dataclass(frozen=True)
class Costs:
    name: str
    cells: Sequence[Cell]
    whole: dict[str, np.ndarray]
    others: dict[str, dict[str, np.ndarray]]

    @classmethod
    def of(cls, name: str, cells: Sequence[Cell]) -> Costs:
        families = sorted({family_of(c.table) for c in cells})
        others = {f: fit_costs(name, [c for c in cells if family_of(c.table) != f]) for f in families}
        return cls(name, cells, fit_costs(name, cells), others)

    def print(self) -> None:
        for method in [*sorted({c.method for c in self.cells}), "all"]:
            mine = [c for c in self.cells if method in (c.method, "all")]
            seen = [c for c in mine if c.method in self.others[family_of(c.table)]]
            inside = f"{_within(self.name, mine, lambda c: cost_of(self.whole[c.method], c)):.0%}"
            other = lambda c: cost_of(self.others[family_of(c.table)][c.method], c)  # noqa: E731
            held = f"{_within(self.name, seen, other):.0%}" if seen else "–"
            _line(self.name, "×2", method, len(mine), inside, held, "", "")


def _within(name: str, cells: Sequence[Cell], way: Forecaster) -> float:
    factor = FACTORS[name]
    return float(np.mean([1 / factor <= way(c) / c.figures[name] <= factor for c in cells]))


def _line(*values: object) -> None:
    print("| " + " | ".join(str(v) for v in values) + " |")


if __name__ == "__main__":
    main()
