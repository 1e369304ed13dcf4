"""The rows of the table, kept from run to run: a target that was mended is run again without the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from results_cache import ResultsCache

from fuzz.worker import Tally


@dataclass(frozen=True)
class Row:
    """One run of one target."""

    name: str
    seed: int


def keep(row: Row, tally: Tally) -> None:
    plain = {"outcomes": dict(tally.outcomes), "failing": sorted(tally.failing), "kinds": dict(tally.kinds)}
    _cache().add(row, vars(tally) | plain)


def kept(seed: int) -> dict[str, Tally]:
    """By the names of the targets."""
    return {row.name: _tally(result) for row, result in _cache().results.items() if row.seed == seed}


def _cache() -> ResultsCache[Row]:
    return ResultsCache("fuzz", Row)


def _tally(result: dict[str, Any]) -> Tally:
    return Tally(
        result["cases"],
        result["seconds"],
        Counter(result["outcomes"]),
        set(result["failing"]),
        Counter(result["kinds"]),
        {kind: (index, note) for kind, (index, note) in result["examples"].items()},
        result["most"],
    )
