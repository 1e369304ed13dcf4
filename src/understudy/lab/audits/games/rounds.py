"""Rounds of the game in worker processes, each of which keeps its tables open between rounds; and on disk.

With a folder, an audit that was stopped goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.errors import ReleaseError
from understudy.lab.audits.games.game import MeteredPlayer, Player, Run, rounds
from understudy.lab.audits.mutants.mutants import harness_of
from understudy.lab.audits.pairs.pair import named
from understudy.lab.audits.subjects.all_subjects import is_opaque, subject_of
from understudy.lab.audits.subjects.specimens import SpecimenPlayer
from understudy.lab.jobs.job_record import JobRecord
from understudy.lab.jobs.worker_pool import serve

FILE = "rounds.jsonl"


@dataclass(frozen=True)
class RoundBatch:
    """Some rounds of one game: what a worker plays at a time."""

    pair: str
    view: str
    rounds: int
    number: int
    """Of the batch within its game."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.pair, self.view, self.number


def main() -> None:
    """In a worker: a batch comes, its runs go."""

    def prepare(setup: dict[str, Any], attached: bytes) -> Callable[[dict[str, Any]], Any]:
        player = lru_cache(maxsize=None)(lambda pair: player_of(setup, pair))
        return lambda batch: rounds(player(batch["pair"]), batch["view"], batch["rounds"])

    serve(prepare)


def player_of(setup: dict[str, Any], name: str) -> Player:
    budget, pair = Budget(setup["epsilon"], setup["delta"]), named(name, setup["neighbours"])
    if is_opaque(setup["subject"]):
        return SpecimenPlayer(setup["subject"], pair, budget)
    return MeteredPlayer(subject_of(setup["subject"], budget), harness_of(setup["mutant"]), pair, budget)


@dataclass(frozen=True)
class PlayedRounds:
    """What was played so far, by batch; `add` keeps one more."""

    played: dict[tuple[str, str, int], list[Run]] = field(default_factory=dict)
    _lines: JobRecord | None = None

    @classmethod
    @contextmanager
    def open(cls, folder: Path | None, question: dict[str, Any]) -> Iterator[PlayedRounds]:
        """In a folder, or nowhere. A folder that holds another audit is refused."""
        if folder is None:
            yield cls()
            return
        with JobRecord.open(folder / FILE) as lines:
            if not lines.values:
                lines.append(question)
            elif lines.values[0] != json.loads(json.dumps(question)):
                raise ReleaseError(f"{str(folder)!r} holds another audit; choose another folder", folder)
            played = {RoundBatch(**x["task"]).key: [(coin, seen) for coin, seen in x["runs"]] for x in lines.values[1:]}
            yield cls(played, lines)

    def add(self, batch: RoundBatch, runs: list[Run]) -> None:
        self.played[batch.key] = runs
        if self._lines is not None:
            self._lines.append({"task": asdict(batch), "runs": runs})
