"""A crew that plays in this process, and keeps its tables open from one audit to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from understudy.lab.audits.games.child import _player
from understudy.lab.audits.games.game import Player, Run, rounds
from understudy.lab.audits.games.worker import Task


@lru_cache(maxsize=64)
def player_of(pair: str, setup: tuple[tuple[str, Any], ...]) -> Player:
    return _player(dict(setup), pair)


class Here:
    """Takes the place of the auditor's children, whose start would take longer than a short game."""

    def __init__(self, setup: dict[str, Any], jobs: int, command: Sequence[str] | None = None) -> None:
        self._setup = tuple((k, setup[k]) for k in ("subject", "epsilon", "delta", "neighbours", "mutant"))

    def play(self, tasks: Sequence[Task], deadline: float) -> Iterator[tuple[Task, list[Run]]]:
        for task in tasks:
            yield task, rounds(player_of(task.pair, self._setup), task.view, task.rounds)
