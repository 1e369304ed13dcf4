"""`growth`: seconds and memory as a table gets more rows, or more columns; each release in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence

from places import RAW

from .case import Case, Grid, Result, Study
from .chart import Line, Panel, write
from .growing import NAMES, size_of
from .summary import NOTHING, Results, markdown

METHODS = ("rake", "aim", "mst", "independent")
GRID = Grid(NAMES, (1.0,), 1)
CHART = RAW / "rake-growth.svg"
KINDS = {"rows-": "rows", "columns-": "columns"}
FIGURES = {"seconds": "seconds", "peak_mb": "peak MB"}


def cases(grid: Grid) -> Iterator[Case]:
    """From small to large; a table is made just before it is needed."""
    for seed, table, epsilon in grid:
        subprocess.run([sys.executable, "-m", "rake.growing", table], check=True)
        yield from (Case(table, method, epsilon, seed) for method in METHODS)


def render(found: Sequence[Result]) -> str:
    results = Results(found)
    tables = [name for name in NAMES if name in results.names("table")]
    header = ["table", *(f"{m}: s / cpu s / MB" for m in METHODS)]
    rows = [[table, *(_costs(results.of(table=table, method=m)) for m in METHODS)] for table in tables]
    write(CHART, [_panel(results, prefix, figure) for prefix in KINDS for figure in FIGURES])
    return f"{results.conditions()} Drawn in {CHART.name}.\n\n{markdown(header, rows)}"


def _costs(results: Results) -> str:
    failed = results.having("failed")
    if failed:
        return str(failed[0]["failed"])
    figures = [results.sample(f) for f in ("seconds", "cpu", "peak_mb")]
    return " / ".join(f"{f.mean:,.1f}" if f.mean < 100 else f"{f.mean:,.0f}" for f in figures if f.values) or NOTHING


def _panel(results: Results, prefix: str, figure: str) -> Panel:
    tables = [t for t in NAMES if t.startswith(prefix)]
    lines = []
    for method in METHODS:
        samples = {size_of(t): results.of(table=t, method=method).sample(figure) for t in tables}
        lines.append(Line(method, [(float(n), s.mean) for n, s in samples.items() if s.values]))
    return Panel(f"{FIGURES[figure]} by {KINDS[prefix]}", [line for line in lines if line.points])


STUDY = Study(GRID, cases, render, jobs=1, fresh=True)
