"""What comes out of a command: progress, tables and JSON in a terminal, and the report that was asked for."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.bars import Plain, bars
from understudy.errors import InputError, ReleaseError, shown
from understudy.pages.page import Rendered, check_figure_format
from understudy.progress import Progress

HEIGHTS = "▁▂▃▄▅▆▇█"
REPORT_ENDINGS = (".html", ".json")


def tell(text: str = "", *, error: bool = False) -> None:
    """Prints a line; whatever a terminal would obey in the names and values in it is escaped, line breaks too."""
    print(shown(text), file=sys.stderr if error else sys.stdout)


def print_json(value: Any) -> None:
    # In ASCII, so that it is the same in every encoding, and so that no terminal obeys it.
    print(json.dumps(value, indent=2))


def print_toml(text: str) -> None:
    """A file in TOML as it is, but for what the terminal can't show: that is escaped as TOML escapes it."""
    print(_UNFIT.sub(_toml_escape, text), end="")


_UNFIT = re.compile(r"[^\x20-\x7e\n]")


def _toml_escape(found: re.Match[str]) -> str:
    character = found[0]
    if shown(character) == character and _fits(character):
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 1 << 16 else f"\\U{ord(character):08x}"


def _fits(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def cell(text: str) -> Text:
        return Text(shown(text))  # as it is: names of columns may hold brackets, which would be markup

    table = Table(title=cell(title), title_justify="left")
    for i, head in enumerate(heads):
        # A name or a question that is wider than its column goes on in the next line, and is not cut off.
        table.add_column(cell(head), no_wrap=i == 0, overflow="ellipsis" if i == 0 else "fold")
    for row in rows:
        table.add_row(*map(cell, row))
    Console().print(table)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Name and value, one pair a line, aligned."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        print(shown(f"{name:<{width}}  {value}"))


def bar(share: float, width: int = 30) -> str:
    """A bar of text, full at 1."""
    filled = round(width * min(max(share, 0.0), 1.0))
    full, empty = "█░" if _fits("█░") else "#."
    return full * filled + empty * (width - filled)


def sparkline(values: Sequence[float]) -> str:
    """A line of text as high as its values, from zero.

    >>> sparkline([4.0, 2.0, 0.0])
    '█▅▁'
    """
    if not _fits(HEIGHTS):
        return ""
    most = max(values) or 1.0  # from zero and not from the least: a curve that hardly falls should look so
    return "".join(HEIGHTS[round((len(HEIGHTS) - 1) * max(value, 0.0) / most)] for value in values)


def progress(parts: int | None, quiet: bool) -> AbstractContextManager[Progress]:
    """Bars on standard error; `parts` is how many there will be, where that is known."""
    if quiet:
        return nullcontext(Progress())
    return bars(parts) if sys.stderr.isatty() else nullcontext(Plain())  # a log has no use for bars


# --- reports


@dataclass(frozen=True)
class Output:
    """Where the result of a command goes: to the terminal, for people or programs, and to files."""

    as_json: bool = False
    quiet: bool = False
    report: Path | None = None
    figures: Path | None = None
    """A folder for the pictures of the report."""
    figure_format: str = "svg"

    @property
    def silent(self) -> bool:
        """Whether no progress is shown; a program that reads JSON has no use for it."""
        return self.quiet or self.as_json

    def check(self) -> None:
        """Refuses what can't be written, before any work is done."""
        check_figure_format(self.figure_format)
        if self.report is not None:
            check_report(self.report)

    def save(self, found: Rendered) -> None:
        if self.report is not None:
            found.save(self.report)
        if self.figures is not None:
            found.save_figures(self.figures, self.figure_format)

    def print_paths(self) -> None:
        if self.report is not None:
            tell(f"The report is {self.report}.")
        if self.figures is not None:
            tell(f"The figures are in {self.figures}.")


def check_report(path: Path, endings: Sequence[str] = REPORT_ENDINGS, name: str = "report") -> None:
    """Refuses a file that can't be written, before any work is done."""
    if path.suffix.lower() not in endings:
        raise InputError(f"{name} ({path.name!r}) must end in {' or '.join(endings)}", path)
    if path.is_dir():
        raise ReleaseError(f"{str(path)!r} is a folder; name a file for the {name}", path)
    check_folder(path.parent, path)


def check_folder(folder: Path, named: Path) -> None:
    """Proves by writing into the folder that it can be written; the refusal speaks of what was `named`."""
    # Modes and mount options don't tell for certain what may be written, least of all to root.
    try:
        with tempfile.TemporaryFile(dir=folder):  # which has no name that a killed process could leave behind
            pass
    except OSError as error:
        raise ReleaseError(f"{str(named)!r} can't be written: {error.strerror}", named) from None
