"""Step 5. The distinguishing game: a coin chooses one of two tables, a method is run on it, and the coin is guessed.

Rounds are played in worker processes, each of which keeps its tables open between rounds. With a folder the rounds are
kept, and an audit that was stopped goes on where it was.
"""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.errors import MethodError, ReleaseError
from understudy.lab.audits.audit_plan import AuditPlan
from understudy.lab.audits.checks.paired_gate import Draw, log_ratio
from understudy.lab.audits.games.bounds import LowerBounds, best_event, by_event, happened
from understudy.lab.audits.games.features import features
from understudy.lab.audits.harness import Harness, RunContext, Subject
from understudy.lab.audits.mutants.mutants import harness_of
from understudy.lab.audits.pairs import Pair, named
from understudy.lab.audits.result import BLACK_BOX, WHITE_BOX, Bound, Claim
from understudy.lab.audits.subjects import SPECIMENS, subject_of
from understudy.lab.jobs.job_record import JobRecord
from understudy.lab.jobs.worker_pool import Broken, WorkerPool, python_command, serve
from understudy.lab.specimens.all_specimens import specimen
from understudy.progress import Advance, Progress

RATIO = "log-likelihood ratio of the answers"
# The coin, and what was seen.
Run = tuple[int, dict[str, float]]
# Of what follows the noise in a run; the noise itself has none.
SEEDS = 2**31


class Player(Protocol):
    """Plays black-box rounds of one pair."""

    def play(self, second: bool) -> dict[str, float]: ...


@dataclass(frozen=True)
class MeteredPlayer:
    """Of a subject that learns through a curator: seen from inside, by its answers, or from outside, by its rows."""

    subject: Subject
    harness: Harness
    pair: Pair
    budget: Budget

    @cached_property
    def contexts(self) -> tuple[RunContext, RunContext]:
        return self.harness.context(self.pair, second=False), self.harness.context(self.pair, second=True)

    def play(self, second: bool) -> dict[str, float]:
        context = self.contexts[second]
        shown = self.subject.show(context, context.curator(self.budget)[0], secrets.randbelow(SEEDS))
        if shown.rows is None:
            return shown.numbers
        return features(shown.rows.to_pydict(), self.pair.extra)

    def play_both(self) -> list[Run]:
        """Both tables with the same noise, and the same seed of whatever follows it."""
        runs: list[Run] = []
        drawn: list[Draw] = []
        seed = secrets.randbelow(SEEDS)
        for coin, context in enumerate(self.contexts):
            curator, gate = context.curator(self.budget, repeated=drawn)
            self.subject.learn(context, curator, seed)
            towards = sum(map(log_ratio, gate.exchanges))
            # Each exchange knows the table it was put to as `here`; a statistic needs one direction for both coins.
            runs.append((coin, {RATIO: towards if coin else -towards}))
            drawn = gate.recorder.draws
        return runs


def rounds(player: Player, view: str, number: int) -> list[Run]:
    """Black-box ones each with a coin of its own; white-box ones by twos, one on each table."""
    if view == WHITE_BOX:
        assert isinstance(player, MeteredPlayer)
        return [run for _ in range(number // 2) for run in player.play_both()]
    coins = [secrets.randbits(1) for _ in range(number)]
    return [(coin, player.play(bool(coin))) for coin in coins]


def white_box_bound(pair: str, runs: Sequence[Run], level: float, claim: Claim) -> Bound:
    """The likelier world is guessed: nothing is chosen by looking at the runs, so all of them test."""
    first, second = (np.array([seen[RATIO] > 0 for _, seen in runs[i::2]]) for i in (0, 1))
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    proved = LowerBounds.by_twos(gained, lost, len(first), level, claim.delta)
    game = {"pair": pair, "view": WHITE_BOX, "statistic": RATIO, "runs": len(runs), "level": level}
    return _bound(game, 0.5 + (gained - lost) / len(runs), proved, claim)


def black_box_bound(pair: str, runs: Sequence[Run], level: float, claim: Claim) -> Bound:
    """Half of the runs choose a statistic and a threshold, the other half test them."""
    names = list(runs[0][1])
    chosen, tested = (_by_world(half, names) for half in (runs[0::2], runs[1::2]))
    column, at, above = best_event(*chosen, claim.delta, LowerBounds(claim.epsilon, claim.rho or 0.0))
    hits = [int(happened(runs_of_one[:, column], at, above).sum()) for runs_of_one in tested]
    sizes = [len(runs_of_one) for runs_of_one in tested]
    proved, statistic, accuracy = LowerBounds(), names[column], 0.5
    if all(sizes):  # unless the coin always fell the same way
        if hits[0] / sizes[0] > hits[1] / sizes[1]:
            above, hits = not above, [n - h for n, h in zip(sizes, hits, strict=True)]
        # Which world has the event more often was seen in these very runs, so that each direction gets half the level.
        proved = by_event((hits[0], hits[1]), (sizes[0], sizes[1]), level / 2, claim.delta)
        direction = {True: "at least", False: "below"}[above]
        statistic = f"{names[column]} {direction} {at:.4g}"
        accuracy = (hits[1] / sizes[1] + 1 - hits[0] / sizes[0]) / 2
    game = {"pair": pair, "view": BLACK_BOX, "statistic": statistic, "runs": len(runs), "level": level}
    return _bound(game, accuracy, proved, claim)


def _bound(game: dict[str, Any], accuracy: float, proved: LowerBounds, claim: Claim) -> Bound:
    return Bound(**game, accuracy=accuracy, **dataclasses.asdict(proved), refutes=refuted(proved, claim))


def _by_world(runs: Sequence[Run], names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = ([[seen[n] for n in names] for c, seen in runs if c == coin] for coin in (0, 1))
    return np.array(first, dtype=np.float64), np.array(second, dtype=np.float64)


def refuted(proved: LowerBounds, claim: Claim) -> str:
    """The part of a claim that can't be true, in words."""
    if proved.epsilon > claim.epsilon:
        return f"epsilon is at least {cut(proved.epsilon)} at delta {claim.delta:g}, claimed {claim.epsilon:.3g}"
    if claim.mu is not None and proved.mu > claim.mu:
        return f"mu is at least {cut(proved.mu)}, claimed {claim.mu:.3g}"
    if claim.rho is not None and proved.rho > claim.rho:
        return f"rho is at least {cut(proved.rho)}, claimed {claim.rho:.3g}"
    return ""


def cut(value: float) -> str:
    """Three digits, rounded down: what is proved must not be said to be more."""
    if value <= 0:
        return "0"
    # Not by `:.3g`, which rounds to the nearest.
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.floor(value / unit) * unit:.3g}"


@dataclass(frozen=True)
class SpecimenPlayer:
    """Of a specimen, which reads rows without a curator: only what it shows is looked at."""

    name: str
    pair: Pair
    budget: Budget

    def play(self, second: bool) -> dict[str, float]:
        rows = self.pair.tables[second]
        shown = specimen(
            rows, self.pair.schema, method=self.name, epsilon=self.budget.epsilon, seed=secrets.randbelow(2**31)
        )
        return features(shown.arrow.to_pydict(), self.pair.extra)


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
        # A player holds its tables open, so that thousands of rounds read the rows once.
        player = lru_cache(maxsize=None)(lambda pair: player_of(setup, pair))
        return lambda batch: rounds(player(batch["pair"]), batch["view"], batch["rounds"])

    serve(prepare)


def player_of(setup: dict[str, Any], name: str) -> Player:
    budget, pair = Budget(setup["epsilon"], setup["delta"]), named(name, setup["neighbours"])
    if setup["subject"] in SPECIMENS:
        return SpecimenPlayer(setup["subject"], pair, budget)
    return MeteredPlayer(subject_of(setup["subject"], budget), harness_of(setup["mutant"]), pair, budget)


@dataclass(frozen=True)
class PlayedRounds:
    """What was played so far, by batch; `add` keeps one more."""

    played: dict[tuple[str, str, int], list[Run]] = field(default_factory=dict)
    _lines: JobRecord | None = None

    @classmethod
    @contextmanager
    def open(cls, folder: str | Path | None, question: dict[str, Any]) -> Iterator[PlayedRounds]:
        """In a folder, or nowhere. A folder that holds another audit is refused."""
        if not folder:
            yield cls()
            return
        with JobRecord.open(Path(folder) / FILE) as lines:
            if not lines.values:
                lines.append(question)
            # Compared as JSON holds it, where a tuple is a list.
            elif lines.values[0] != json.loads(json.dumps(question)):
                raise ReleaseError(f"{str(folder)!r} holds another audit; choose another folder", folder)
            played = {RoundBatch(**x["task"]).key: [(coin, seen) for coin, seen in x["runs"]] for x in lines.values[1:]}
            yield cls(played, lines)

    def add(self, batch: RoundBatch, runs: list[Run]) -> None:
        self.played[batch.key] = runs
        if self._lines is not None:
            self._lines.append({"task": asdict(batch), "runs": runs})


# Of the level, for the white-box game of the worst pair; all other games share the rest. Fixed before any run: a level
# that depended on what was seen would not be one.
MAIN_SHARE = 0.5
# Of the time, at most, for all other games, which come first.
OTHERS_SHARE = 0.3
# Rounds of a batch. One that was begun is finished, so that small batches keep the time limit.
WHITE_ROUNDS, BLACK_ROUNDS = 24, 5
# Runs of a black-box game that are enough to choose and to test.
FEWEST = 40


@dataclass(frozen=True)
class Games:
    """The games of one audit."""

    plan: AuditPlan
    pairs: Sequence[Pair]
    jobs: int
    out: str | Path | None
    progress: Progress

    def bounds(self, claim: Claim) -> list[Bound]:
        """Plays until all runs are made, or time is up."""
        begun, seconds = time.monotonic(), self.plan.setting.seconds
        others, main = self._tasks()
        command = self.plan.command() or python_command(__name__)
        pool: WorkerPool[RoundBatch] = WorkerPool(command, self.plan.setup(self.pairs), self.jobs)
        with PlayedRounds.open(self.out, self.plan.question()) as rounds:
            if main:
                # The others come first and may not use up the time: the main game alone has half of the level.
                self._play(pool, others, rounds, begun + OTHERS_SHARE * seconds)
                self._play(pool, main, rounds, begun + seconds)
            else:
                self._play(pool, others, rounds, begun + seconds)
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
        extras = {p.name: p.extra for p in self.pairs}
        for task, runs in pool.run(left, deadline):
            if isinstance(runs, Broken):
                last = runs.last_words or "it said nothing"
                raise MethodError(f"a run of what is audited broke off: {last}", self.plan.name)
            if self.plan.function:  # somebody else's function hands over its rows
                runs = [(coin, features(shown, extras[task.pair])) for coin, shown in runs]
            rounds.add(task, [(coin, seen) for coin, seen in runs])
            made += task.rounds
            self.progress.advance(Advance("run", made, whole))

    def _proved(self, rounds: PlayedRounds, others: int, has_main: bool, claim: Claim) -> Iterator[Bound]:
        """At levels that were fixed before a run was made."""
        main = (self.pairs[0].name, WHITE_BOX)
        shared = self.plan.level
        if has_main:
            shared *= 1 - MAIN_SHARE
        played: dict[tuple[str, str], list[Run]] = {}
        for (pair, view, _), runs in sorted(rounds.played.items()):
            played.setdefault((pair, view), []).extend(runs)
        for (pair, view), runs in played.items():
            if view == WHITE_BOX:
                level = shared / others
                if (pair, view) == main:
                    level = self.plan.level * MAIN_SHARE
                yield white_box_bound(pair, runs, level, claim)
            elif len(runs) >= FEWEST:
                yield black_box_bound(pair, runs, shared / others, claim)


def _split(pair: str, view: str, runs: int, rounds: int) -> list[RoundBatch]:
    return [RoundBatch(pair, view, rounds, i) for i in range(-(-runs // rounds))]


def _in_turn(games: Sequence[Sequence[RoundBatch]]) -> list[RoundBatch]:
    most = max(map(len, games), default=0)
    return [tasks[i] for i in range(most) for tasks in games if i < len(tasks)]
