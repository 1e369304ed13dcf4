"""`understudy study prediction`: trees and forests of every size on public tables, one page."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from understudy.cli.screen import print_table, progress
from understudy.datasets import schema
from understudy.errors import InputError, ReleaseError
from understudy.lab.studies.documents.prediction_grid import (
    DEPTHS,
    EPSILONS,
    FILES,
    TARGETS,
    TREES,
    prediction_grid,
    save,
    sizes,
)
from understudy.lab.studies.documents.prediction_page import PredictionGrid

QUICK_DEPTHS, QUICK_TREES, QUICK_EPSILONS = (1, 3, 5, 7), (1, 10, 100), (0.001, 0.1, 10.0)


def show(folder: Path, out: Path, tables: Sequence[str], repeats: int, quick: bool, quiet: bool) -> None:
    """Runs the grid on the tables that the folder holds, and writes its page and its numbers."""
    names = _tables(folder, tables)
    _check_folder(out)
    depths = QUICK_DEPTHS if quick else DEPTHS
    trees, epsilons = (QUICK_TREES, QUICK_EPSILONS) if quick else (TREES, EPSILONS)
    with progress(len(names) * sizes(depths, trees, epsilons), quiet) as begin:
        grid = prediction_grid(
            folder,
            {name: schema(name) for name in names},
            depths=depths,
            trees=trees,
            epsilons=epsilons,
            repeats=repeats,
            progress=begin,
        )
    save(grid, out)
    print_table("The best size of each predictor", ("table", "predictor", "accuracy", "size", "ε"), _rows(grid))
    print(f"The page is {out / 'prediction-grid.html'}; the numbers are beside it.")


def _tables(folder: Path, asked: Sequence[str]) -> list[str]:
    """Those that were asked for, or all that are there."""
    unknown = next((name for name in asked if name not in TARGETS), None)
    if unknown is not None:
        raise InputError(f"table ({unknown!r}) must be one of {', '.join(TARGETS)}", unknown)
    there = [name for name in TARGETS if (folder / FILES.get(name, f"{name}.csv")).is_file()]
    absent = next((name for name in asked if name not in there), None)
    if absent is not None or not there:
        missing = FILES.get(absent or "votes", f"{absent or 'votes'}.csv")
        raise InputError(f"{str(folder)!r} has no {missing}; give the folder of the public tables", folder)
    return [name for name in there if name in asked] if asked else there


def _check_folder(out: Path) -> None:
    """Refuses a folder that can't be written, before any work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".understudy.tmp-", dir=out):
            pass
    except OSError as error:
        raise ReleaseError(f"{str(out)!r} can't be written: {error.strerror}", out) from None


def _rows(grid: PredictionGrid) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for table in grid.tables:
        for method in dict.fromkeys(o.method for o in grid.outcomes):
            best = grid.best(table, method)
            size = f"depth {best.depth}, {best.trees} tree{'s' if best.trees > 1 else ''}"
            found.append(
                (table, method, f"{best.mean:.4f}", size, "–" if best.epsilon is None else f"{best.epsilon:g}")
            )
    return found
