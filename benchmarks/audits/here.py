"""A pool that plays in this process, and keeps its tables open from one audit to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from understudy.lab.audits.games.games import Player, RoundBatch, Run, player_of, rounds


@lru_cache(maxsize=64)
def open_player(pair: str, setup: tuple[tuple[str, Any], ...]) -> Player:
    return player_of(dict(setup), pair)


class Here:
    """Takes the place of the auditor's children, whose start would take longer than a short game."""

    def __init__(self, command: Sequence[str], setup: dict[str, Any], workers: int) -> None:
        self._setup = tuple((k, setup[k]) for k in ("subject", "epsilon", "delta", "neighbours", "mutant"))

    def run(self, batches: Sequence[RoundBatch], deadline: float) -> Iterator[tuple[RoundBatch, list[Run]]]:
        for batch in batches:
            yield batch, rounds(open_player(batch.pair, self._setup), batch.view, batch.rounds)
