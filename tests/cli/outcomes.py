"""What a command leaves behind: its exit code, what it printed, and the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, hidden ones too, with the bytes of the files."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def sentence(err: str) -> str:
    """The one line that an error may print."""
    assert "Traceback" not in err
    assert err.startswith("understudy: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert "a bug of ours" not in err
    return err.removeprefix("understudy: ").strip()
