"""What people see in a terminal: progress, tables, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for i, head in enumerate(heads):
        table.add_column(head, no_wrap=i == 0)
    for row in rows:
        table.add_row(*map(Text, row))  # as they are: names of columns may hold brackets, which would be markup
    Console().print(table)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Name and value, one pair a line, aligned."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        print(f"{name:<{width}}  {value}")


def bar(share: float, width: int = 30) -> str:
    """A bar of text, full at 1."""
    filled = round(width * min(max(share, 0.0), 1.0))
    return "█" * filled + "░" * (width - filled)


@contextmanager
def progress(steps: int, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error; calling it with a text begins the next step."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("reading", total=steps)

        def begin(step: str) -> None:
            shown.update(task, advance=1, description=step)

        yield begin
