"""Who shows how far something is, where there is somebody to see it: in a terminal, in a notebook; never in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from understudy.errors import shown as escaped
from understudy.progress import Advance, Listener, Progress, listening

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import Task
    from rich.text import Text

WIDTH = 24
PAUSE = 0.2
"""Seconds between two drawings of a notebook's line: each is a message to the browser."""


def shown(given: Listener | Literal[False] | None, parts: int) -> AbstractContextManager[Progress]:
    """Whoever was given; a bar on standard error where nobody was and somebody can see it; and for False silence."""
    if given is not None and given is not False:
        return nullcontext(listening(given))
    if given is False:
        return nullcontext(listening(None))
    if sys.stderr.isatty():
        return bars(parts)
    return line(parts) if _in_notebook() else nullcontext(listening(None))


@contextmanager
def bars(parts: int | None) -> Iterator[Progress]:
    """Bars in a terminal, which are gone when all is done."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Display

    columns = (SpinnerColumn(), BarColumn(bar_width=WIDTH), TextColumn("{task.description}", markup=False), _clock())
    with Display(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Bars(shown, parts)


@contextmanager
def line(parts: int) -> Iterator[Progress]:
    """One line that is written over and over: what a kernel without widgets can show."""
    drawn = NotebookBar(parts)
    try:
        yield drawn
    finally:
        drawn.clear()


def _in_notebook() -> bool:
    """By the shell's own class, so that nothing is imported to find out."""
    found = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return found is not None and type(found()).__name__ == "ZMQInteractiveShell"


class Plain(Progress):
    """Nobody watches, but what has to be said is said: on standard error."""

    detailed = False

    def caution(self, sentence: str, /) -> None:
        print(escaped(f"caution: {sentence}."), file=sys.stderr)


class NotebookBar(Plain):
    """A bar of text on one line."""

    detailed = True

    def __init__(self, parts: int) -> None:
        self._parts, self._begun, self._name = parts, 0, ""
        self._last, self._width = 0.0, 0

    def __call__(self, part: str, /) -> None:
        self._begun, self._name = self._begun + 1, part
        self._draw((self._begun - 1) / self._parts, part)

    def advance(self, now: Advance, /) -> None:
        if time.monotonic() - self._last >= PAUSE:
            self._draw((self._begun - 1 + now.share) / self._parts, f"{self._name}: {now}")

    def clear(self) -> None:
        self._write("")
        sys.stderr.write("\r")

    def _draw(self, share: float, words: str) -> None:
        full = round(WIDTH * min(max(share, 0.0), 1.0))
        self._write(f"{'█' * full}{'░' * (WIDTH - full)} {words}")
        self._last = time.monotonic()

    def _write(self, text: str) -> None:
        # Blanks over what stood there: a kernel knows how to return, and not every one how to erase.
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(text)


class Bars(Progress):
    """A bar for all parts, and under it one for the part that is under way, where that tells how far it is."""

    def __init__(self, shown: Display, parts: int | None) -> None:
        self._shown = shown
        self._whole = shown.add_task("reading", total=parts)
        self._part = shown.add_task("", total=1.0, visible=False)
        self._first: tuple[Advance, float] | None = None

    def __call__(self, part: str, /) -> None:
        self._shown.update(self._whole, advance=1, description=escaped(part))
        self._shown.update(self._part, visible=False)
        self._first = None

    def caution(self, sentence: str, /) -> None:
        self._shown.console.print(escaped(f"caution: {sentence}."), markup=False, highlight=False)

    def advance(self, now: Advance, /) -> None:
        """How far the part is, and when it will be done at the pace since its first report."""
        at = time.monotonic()
        # A part may count other steps half-way through: its pace starts anew, or the time left would be nonsense.
        if self._first is None or (self._first[0].unit, self._first[0].total) != (now.unit, now.total):
            self._first = now, at
        self._shown.update(
            self._part,
            completed=now.share,
            description=str(now),
            visible=True,
            ends=_end(self._first[0], self._first[1], now, at),
        )


def _end(first: Advance, began: float, now: Advance, at: float) -> float | None:
    """When all steps will be done; nobody knows before the second report, or where steps are not counted."""
    if not now.counted or now.done <= first.done:
        return None
    return at + (at - began) / (now.done - first.done) * (now.total - now.done)


def _clock() -> Any:
    """The time that a bar has taken, or for one that knows its end the time that is left."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Clock(ProgressColumn):
        def render(self, task: Task) -> Text:
            if not task.id:  # the first task, which is the bar of all parts
                return Text(_spoken(task.elapsed or 0.0), style="progress.elapsed")
            ends, left = task.fields.get("ends"), ""
            if ends is not None:
                left = f"{_spoken(max(0.0, ends - time.monotonic()))} left"
            return Text(left, style="progress.remaining")

    return Clock()


def _spoken(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
