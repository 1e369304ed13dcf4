"""The rounds that an audit has played, on disk: one that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from understudy.errors import ReleaseError
from understudy.lab.audits.games.game import Run
from understudy.lab.audits.games.worker import Task

FILE = "rounds.jsonl"


@dataclass
class Rounds:
    """What was played so far, by task; `add` keeps one more."""

    played: dict[tuple[str, str, int], list[Run]] = field(default_factory=dict)
    file: IO[bytes] | None = None

    @classmethod
    @contextmanager
    def open(cls, folder: Path | None, question: dict[str, Any]) -> Iterator[Rounds]:
        """In a folder, or nowhere. A folder that holds another audit is refused."""
        if folder is None:
            yield cls()
            return
        path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            known = _read(path, question)
            with path.open("ab") as file:
                rounds = cls(known or {}, file)
                if known is None:
                    rounds._write(question)
                yield rounds
        except OSError as error:
            raise ReleaseError(
                f"{str(path)!r} can't be written: {error.strerror}; choose another folder", path
            ) from None

    def add(self, task: Task, runs: list[Run]) -> None:
        self.played[task.key] = runs
        if self.file is not None:
            self._write({"task": asdict(task), "runs": runs})

    def _write(self, value: dict[str, Any]) -> None:
        assert self.file is not None
        self.file.write(json.dumps(value).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def _read(path: Path, question: dict[str, Any]) -> dict[tuple[str, str, int], list[Run]] | None:
    """None where there is nothing yet. What a killed run left of a line is cut off."""
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    if not lines:
        return None
    if lines[0] != json.loads(json.dumps(question)):
        raise ReleaseError(f"{str(path.parent)!r} holds another audit; choose another folder", path)
    return {Task(**x["task"]).key: [(coin, seen) for coin, seen in x["runs"]] for x in lines[1:]}
