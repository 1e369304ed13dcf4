"""Step 4. The distinguishing game: a coin chooses one of two tables, a method is run on it, and the coin is guessed."""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.lab.audits.checks.loss import log_ratio
from understudy.lab.audits.games.bounds import LowerBounds, best_event, by_event, happened
from understudy.lab.audits.games.features import features
from understudy.lab.audits.pairs.pair import Pair
from understudy.lab.audits.result import BLACK_BOX, WHITE_BOX, Bound, Claim
from understudy.lab.audits.subjects.harness import Harness, RunContext
from understudy.lab.audits.subjects.subject import Subject

RATIO = "log-likelihood ratio of the answers"
Run = tuple[int, dict[str, float]]
"""The coin, and what was seen."""


class Player(Protocol):
    """Plays rounds of one pair."""

    def play(self, view: str, second: bool) -> dict[str, float]: ...


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

    def play(self, view: str, second: bool) -> dict[str, float]:
        context = self.contexts[second]
        curator, gate = context.curator(self.budget)
        if view == WHITE_BOX:
            self.subject.learn(context, curator, secrets.randbelow(2**31))
            towards = sum(map(log_ratio, gate.exchanges))
            return {RATIO: towards if second else -towards}
        shown = self.subject.show(context, curator, secrets.randbelow(2**31))
        return shown.numbers if shown.rows is None else features(shown.rows.to_pydict(), self.pair.extra)


def rounds(player: Player, view: str, number: int) -> list[Run]:
    """Each with a coin of its own."""
    coins = [secrets.randbits(1) for _ in range(number)]
    return [(coin, player.play(view, bool(coin))) for coin in coins]


def white_box_bound(pair: str, runs: Sequence[Run], level: float, claim: Claim) -> Bound:
    """The likelier world is guessed: nothing is chosen by looking at the runs, so all of them test."""
    coins = np.array([coin for coin, _ in runs])
    guesses = np.array([seen[RATIO] > 0 for _, seen in runs])
    right = int((coins == guesses).sum())
    proved = LowerBounds.by_accuracy(right, len(runs), level, claim.delta)
    return Bound(
        pair,
        WHITE_BOX,
        statistic=RATIO,
        runs=len(runs),
        level=level,
        accuracy=right / len(runs),
        **dataclasses.asdict(proved),
        refutes=refuted(proved, claim),
    )


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
        proved = by_event((hits[0], hits[1]), (sizes[0], sizes[1]), level / 2, claim.delta)
        statistic = f"{names[column]} {'at least' if above else 'below'} {at:.4g}"
        accuracy = (hits[1] / sizes[1] + 1 - hits[0] / sizes[0]) / 2
    return Bound(
        pair,
        BLACK_BOX,
        statistic=statistic,
        runs=len(runs),
        level=level,
        accuracy=accuracy,
        **dataclasses.asdict(proved),
        refutes=refuted(proved, claim),
    )


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
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.floor(value / unit) * unit:.3g}"
