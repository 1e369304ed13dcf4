"""One case of a fuzzer: its draws, its folder, and what it found.

What counts as a failure is said here once: an exception that is not one of the project's own, or one that is called a
bug; a message of more than one line, or with characters that a terminal obeys; and whatever a target adds, such as a
false statement or a stray file. Time and memory are watched from outside (`worker`).
"""

from __future__ import annotations

import contextlib
import io
import random
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import understudy
from understudy.cli.failures import report
from understudy.errors import InternalError, UnderstudyError

SOURCE = Path(understudy.__file__).parent
ACCEPTED, REFUSED, CRASHED = "accepted", "refused", "crashed"
LONGEST_NOTE = 240
SECONDS, MEGABYTES = 10.0, 2048


@dataclass(frozen=True)
class Failure:
    """One thing that was wrong: failures of one kind are counted together, and the first is shown."""

    kind: str
    note: str = ""


@dataclass
class Case:
    """What a target is handed: everything random comes from `draw`, everything written goes to `folder`."""

    name: str
    index: int
    draw: random.Random
    base: Path
    """Made once for all cases (`material`), and never written to."""
    folder: Path
    outcomes: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """What was measured: of all cases the largest is shown."""
    secret: str = ""
    """A text in private cells, which no message may repeat."""
    doing: str = ""
    """What it is at, for a case that takes too long."""

    def fail(self, kind: str, note: object = "") -> None:
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(note))
        self.failures.append(Failure(kind, text[:LONGEST_NOTE]))

    def call(self, what: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What the function returns, or the project's own refusal; anything else that it raises is a failure."""
        try:
            found = function(*arguments, **named)
        except UnderstudyError as error:
            self.outcomes.append(f"{what} {REFUSED}")
            self._judge(what, error)
            return error
        except Exception as error:
            self.outcomes.append(f"{what} {CRASHED}")
            self.fail(f"{what}: {place(error)}", error)
            return error
        self.outcomes.append(f"{what} {ACCEPTED}")
        return found

    def _judge(self, what: str, error: UnderstudyError) -> None:
        if isinstance(error, InternalError):
            self.fail(f"{what}: calls itself a bug, {place(error)}", error)
        said = printed(error)
        if self.secret and self.secret in said:
            self.fail(f"{what}: a message repeats a cell {place(error)}", said)
        self.check_printed(what, said, place(error))

    def check_printed(self, what: str, text: str, where: str = "") -> None:
        """What reaches the terminal is one line, and nothing in it moves the cursor or sets the title."""
        if raw := control_characters(text.replace("\n", "")):
            self.fail(f"{what}: raw control characters are printed {where}".rstrip(), f"{raw} in {text}")
        if text.count("\n") > 1:
            self.fail(f"{what}: a message of several lines {where}".rstrip(), text)


def failed(found: Any) -> bool:
    """Whether `Case.call` gave back an error."""
    return isinstance(found, Exception)


def printed(error: BaseException) -> str:
    """What the command line would print of it."""
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        report(error)
    return shown.getvalue()


def control_characters(text: str) -> str:
    """Those that are there, as escapes."""
    return "".join(ascii(c)[1:-1] for c in sorted(set(text)) if unicodedata.category(c) in ("Cc", "Zl", "Zp"))


def place(error: BaseException) -> str:
    """The type of an error and the innermost line of the package that met it: what tells kinds of failures apart."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(SOURCE)]
    if not frames:
        return type(error).__name__
    return f"{type(error).__name__} at {Path(frames[-1].filename).relative_to(SOURCE)}:{frames[-1].lineno}"


@dataclass(frozen=True)
class Target:
    """A fuzzer: how many cases it has at full scale, and what runs one of them."""

    name: str
    what: str
    cases: int
    run: Callable[[Case], None]
    seconds: float = SECONDS
    chunk: int = 20
    """Cases that a worker takes at a time."""
    whole: bool = False
    """Whether all cases are run at any scale: each is another thing."""
    prepare: Callable[[Path], None] | None = None
    """Runs once in each worker: what is imported on first use would be counted as the time of a case."""

    def case(self, seed: int, index: int, base: Path, folder: Path) -> Case:
        # A seed of text is hashed by SHA-512, alike in every process.
        return Case(self.name, index, random.Random(f"{self.name}:{seed}:{index}"), base, folder)


def inside(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, with the bytes of plain files: what must not change where something is refused."""
    return dict(_inside(folder))


def _inside(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    for path in sorted(folder.rglob("*")):
        plain = path.is_file() and not path.is_symlink()
        yield str(path.relative_to(folder)), path.read_bytes() if plain else None
