"""`understudy study`: pages of studies that need no private table."""

from __future__ import annotations

from pathlib import Path

from understudy.cli.evaluate import check_report
from understudy.cli.screen import progress
from understudy.errors import InputError
from understudy.studies import nonparametric


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
