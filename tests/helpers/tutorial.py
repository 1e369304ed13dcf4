"""A page that is executed: its files are made, its edits applied, its commands run, and their outputs compared.

| block | is |
|---|---|
| `python` | run as it stands |
| `pycon` | run as a doctest, where an ellipsis stands for anything |
| `diff FILE` | applied to the file |
| `console` | every line after `$ `, with what it prints below it |
| `console noisy` | likewise, but numbers may be others: there is noise in them, or a time |

A line `...` of an output stands for any lines. `$ echo $?` is the exit code of the command before it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from understudy.cli import run

BLOCK = re.compile(r"(?m)^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL)
FIGURE = re.compile(r"\b[0-9a-f]{16}\b|\d[\d,.:]*\d|\d")
"""A number, a time, or the identity of a ledger."""


@dataclass(frozen=True)
class Said:
    """A command with what the page says that it prints, and what it printed."""

    command: str
    wanted: str
    printed: str
    noisy: bool

    @property
    def holds(self) -> bool:
        parts = re.split(r"(?m)^\.\.\.\n", self.wanted)
        wanted = ".*".join(re.escape(self._plain(part)) for part in parts)
        return re.fullmatch(wanted, self._plain(self.printed), re.DOTALL) is not None

    def _plain(self, text: str) -> str:
        if not self.noisy:
            return text.strip("\n")
        # A table is as wide as its numbers, and a bar as long.
        return re.sub(r"[ ━─█░#]+", " ", FIGURE.sub("#", text)).strip()


class Tutorial:
    """A page and the folder that it is executed in, which is the working directory."""

    def __init__(self, page: Path) -> None:
        self.text = page.read_text()
        self._code = 0
        self._names: dict[str, object] = {}

    def executed(self) -> Iterator[Said]:
        """Block after block; a Python block or an edit that fails raises."""
        for kind, words, body in BLOCK.findall(self.text):
            if kind == "python":
                exec(compile(body, "tutorial", "exec"), self._names)
            elif kind == "pycon":
                self._doctest(body)
            elif kind == "diff":
                edit(Path(words.strip()), body)
            elif kind == "console":
                yield from self._commands(body, noisy="noisy" in words)

    def with_outputs(self, found: list[Said]) -> str:
        """The page with what the commands print now."""
        text, place = self.text, 0
        for said in found:
            begun = f"$ {said.command}\n{said.wanted}"
            place = text.index(begun, place)
            now = begun if said.holds else f"$ {said.command}\n{said.printed}"
            text = text[:place] + now + text[place + len(begun) :]
            place += len(now)
        return text

    def _commands(self, body: str, noisy: bool) -> Iterator[Said]:
        for part in re.split(r"(?m)^\$ ", body)[1:]:
            command, _, wanted = part.partition("\n")
            printed = f"{self._code}\n" if command == "echo $?" else self._run(command)
            yield Said(command, wanted, printed, noisy)

    def _run(self, command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program == "understudy", command
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            self._code = run(arguments)
        return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())

    def _doctest(self, body: str) -> None:
        examples = doctest.DocTestParser().get_doctest(body, self._names, "tutorial", None, 0)
        screen = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        # In a terminal and in a notebook there is a bar; here nobody watches.
        runner.run(examples, out=screen.write, clear_globs=False)
        self._names.update(examples.globs)
        assert not runner.failures, screen.getvalue()


def edit(path: Path, body: str) -> None:
    """Applies a block of changes: runs of lines that are kept, taken out or put in, with `...` between the runs."""
    text = path.read_text()
    for run_of_lines in re.split(r"(?m)^\s*\.\.\.\n", body):
        lines = run_of_lines.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        assert text.count(old) == 1, f"{path} has these lines {text.count(old)} times:\n{old}"
        text = text.replace(old, new)
    path.write_text(text)
