"""`understudy study`: pages of studies that need no private table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from understudy.cli.evaluate import check_report
from understudy.cli.screen import progress
from understudy.datasets import names, schema
from understudy.errors import InputError
from understudy.lab.studies.documents import nonparametric
from understudy.lab.studies.documents import selection_study as selection

SELECTED = ("adult", "covertype")


def check_page(out: Path) -> None:
    if out.suffix.lower() != ".html":
        raise InputError(f"out ({out.name!r}) must end in .html", out)
    check_report(out)


def show_nonparametric(out: Path, seed: int, quiet: bool) -> None:
    check_page(out)
    with progress(2, quiet) as begin:
        begin("learning from made-up rows, and simulating what that costs")
        nonparametric.write(out, seed)
        begin("writing")
    print(f"The page is {out}.")


def show_selection(folder: Path, out: Path, tables: Sequence[str], seed: int, quiet: bool) -> None:
    check_page(out)
    wanted = tuple(tables) or SELECTED
    unknown = [t for t in wanted if t not in names()]
    if unknown:
        raise InputError(f"table {unknown[0]!r} is not known; there are {', '.join(names())}", unknown)
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} must be the folder of the public tables", folder)
    schemas, size = {t: schema(t) for t in wanted}, selection.Size()
    with progress(len(list(selection.cases(size, list(schemas)))), quiet) as begin:
        selection.write(out, folder, schemas, seed, size, begin)
    print(f"The page is {out}.")
