"""All games of an audit: which are played, for how long, and what they prove."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.errors import MethodError
from understudy.lab.audits.audit_plan import AuditPlan
from understudy.lab.audits.games import rounds as rounds_of_game
from understudy.lab.audits.games.features import features
from understudy.lab.audits.games.game import Run, black_box_bound, white_box_bound
from understudy.lab.audits.games.rounds import PlayedRounds, RoundBatch
from understudy.lab.audits.pairs.pair import Pair
from understudy.lab.audits.result import BLACK_BOX, WHITE_BOX, Bound, Claim
from understudy.lab.jobs.worker_pool import Broken, WorkerPool, python_command
from understudy.progress import Advance, Progress

MAIN_SHARE = 0.5
"""Of the level, for the white-box game of the worst pair; all other games share the rest."""
OTHERS_SHARE = 0.3
"""Of the time, at most, for all other games, which come first."""
WHITE_ROUNDS, BLACK_ROUNDS = 25, 5
FEWEST = 40
"""Runs of a black-box game that are enough to choose and to test."""


@dataclass(frozen=True)
class Games:
    """The games of one audit."""

    plan: AuditPlan
    pairs: Sequence[Pair]
    jobs: int
    out: Path | None
    progress: Progress

    def bounds(self, claim: Claim) -> list[Bound]:
        """Plays until all runs are made, or time is up."""
        begun, seconds = time.monotonic(), self.plan.setting.seconds
        others, main = self._tasks()
        command = self.plan.command() or python_command(rounds_of_game.__name__)
        pool: WorkerPool[RoundBatch] = WorkerPool(command, self.plan.setup(self.pairs), self.jobs)
        with PlayedRounds.open(self.out, self.plan.question()) as rounds:
            self._play(pool, others, rounds, begun + (OTHERS_SHARE if main else 1.0) * seconds)
            self._play(pool, main, rounds, begun + seconds)
            return list(self._proved(rounds, len({(t.pair, t.view) for t in others}), bool(main), claim))

    def _tasks(self) -> tuple[list[RoundBatch], list[RoundBatch]]:
        """Those of all other games in turn, so that each has its share of the time; and those of the main game."""
        setting, (main, *rest) = self.plan.setting, [p.name for p in self.pairs]
        black = [_split(name, BLACK_BOX, setting.black, BLACK_ROUNDS) for name in (main, *rest)]
        if self.plan.opaque:
            return _in_turn(black), []
        white = [_split(name, WHITE_BOX, setting.white, WHITE_ROUNDS) for name in rest]
        return _in_turn([*white, *black]), _split(main, WHITE_BOX, setting.main, WHITE_ROUNDS)

    def _play(
        self, pool: WorkerPool[RoundBatch], tasks: Sequence[RoundBatch], rounds: PlayedRounds, deadline: float
    ) -> None:
        left = [t for t in tasks if t.key not in rounds.played]
        whole, made = (sum(t.rounds for t in some) for some in (tasks, [t for t in tasks if t not in left]))
        if not left:
            return
        self.progress("games")
        for task, runs in pool.run(left, deadline):
            if isinstance(runs, Broken):
                last = runs.last_words or "it said nothing"
                raise MethodError(f"a run of what is audited broke off: {last}", self.plan.name)
            rounds.add(task, [(coin, self._seen(task, shown)) for coin, shown in runs])
            made += task.rounds
            self.progress.advance(Advance("run", made, whole))

    def _seen(self, task: RoundBatch, shown: dict[str, Any]) -> dict[str, float]:
        """A function of somebody else's hands over its rows."""
        extra = next(p.extra for p in self.pairs if p.name == task.pair)
        return features(shown, extra) if self.plan.function else shown

    def _proved(self, rounds: PlayedRounds, others: int, has_main: bool, claim: Claim) -> Iterator[Bound]:
        """At levels that were fixed before a run was made."""
        main = (self.pairs[0].name, WHITE_BOX)
        each = self.plan.level * (1 - MAIN_SHARE if has_main else 1.0) / others
        played: dict[tuple[str, str], list[Run]] = {}
        for (pair, view, _), runs in sorted(rounds.played.items()):
            played.setdefault((pair, view), []).extend(runs)
        for (pair, view), runs in played.items():
            if view == WHITE_BOX:
                level = self.plan.level * MAIN_SHARE if (pair, view) == main else each
                yield white_box_bound(pair, runs, level, claim)
            elif len(runs) >= FEWEST:
                yield black_box_bound(pair, runs, each, claim)


def _split(pair: str, view: str, runs: int, rounds: int) -> list[RoundBatch]:
    return [RoundBatch(pair, view, rounds, i) for i in range(-(-runs // rounds))]


def _in_turn(games: Sequence[Sequence[RoundBatch]]) -> list[RoundBatch]:
    most = max(map(len, games), default=0)
    return [tasks[i] for i in range(most) for tasks in games if i < len(tasks)]
