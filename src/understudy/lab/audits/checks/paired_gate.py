"""A gate that holds both tables of a pair: it answers from one, and remembers what the other would have said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Ask, Consult, Ranks, Select, Train, kind_of
from understudy.boundary.privacy.asks.ask import Arrays, Price, Question
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Gate
from understudy.boundary.privacy.mechanisms.posterior import Prior
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.tables.table import Table
from understudy.errors import InternalError


@dataclass(frozen=True)
class Noise:
    """Noise that was drawn."""

    mechanism: str
    scale: float
    values: NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """A choice that was drawn."""

    scores: NDArray[np.float64]
    exponent: float
    order: list[int]


@dataclass(frozen=True)
class PosteriorSample:
    """Draws from a posterior."""

    prior: Prior
    number: int


Draw = Noise | Selection | PosteriorSample


@dataclass(frozen=True)
class PairedExchange:
    """One exchange with the curator. `here` and `there` are exact: what the two tables of a pair say to it."""

    questions: list[dict[str, Any]]
    spends: tuple[Spend, ...]
    here: Any
    there: Any
    draws: tuple[Draw, ...]
    values: list[NDArray[Any]]
    other_draws: tuple[Draw, ...] = ()
    """What the other table would have had drawn, where scores are only known inside the draw."""
    late: tuple[int, ...] = ()
    """Candidates that a selection refused, and would admit after a later pick of its own."""

    @property
    def kind(self) -> type[Ask[Any]]:
        return kind_of(self.questions[0])


class RecordingRandomness:
    """Hands every draw on, and keeps it."""

    def __init__(self, randomness: Randomness) -> None:
        self.randomness = randomness
        self.draws: list[Draw] = []

    @property
    def secure(self) -> bool:
        return self.randomness.secure

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        values = self.randomness.noise(mechanism, scale, size)
        self.draws.append(Noise(mechanism, scale, values))
        return values

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        order = self.randomness.choose(scores, exponent, k)
        self.draws.append(Selection(np.asarray(scores), exponent, order))
        return order

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        self.draws.append(PosteriorSample(prior, draws))
        return self.randomness.draw(counts, prior, draws)


@dataclass(frozen=True)
class FixedOrder:
    """Draws no noise, and ranks candidates in this order; without one, in their own."""

    order: tuple[int, ...] | None = None
    secure: bool = True

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return list(range(k) if self.order is None else self.order)

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        return np.zeros_like(counts)


class TrainingReached(Exception):  # noqa: N818 - it says where a run was left, and is no error
    """A training or a vote was asked for, which a gate that holds two tables doesn't run."""


MOST_PROBES = 400
"""Of the rule of one selection."""


@dataclass
class PairedGate(Gate):
    """Keeps every exchange, with the spends that the curator debited for it."""

    here: Table
    there: Table
    recorder: RecordingRandomness
    exchanges: list[PairedExchange] = field(default_factory=list)
    curator: Curator | None = None

    @property
    def secure(self) -> bool:
        return self.recorder.secure

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        assert self.curator is not None
        here, there = ask.exact(self.here), ask.exact(self.there)
        paid, drawn = len(self.curator.spends), len(self.recorder.draws)
        debit()
        if kind_of(questions[0]) in (Train, Consult):
            self.exchanges.append(PairedExchange(list(questions), self.curator.spends[paid:], here, there, (), []))
            raise TrainingReached
        values = ask.draw(here, price, self.recorder)
        spends, draws = self.curator.spends[paid:], tuple(self.recorder.draws[drawn:])
        others: tuple[Draw, ...] = ()
        if kind_of(questions[0]) is Ranks:  # these are scored while they are drawn
            silent = RecordingRandomness(FixedOrder())
            ask.draw(there, price, silent)
            others = tuple(silent.draws)
        late = late_picks(questions[0], draws, values, lambda order: ask.draw(here, price, FixedOrder(order)))
        self.exchanges.append(
            PairedExchange(list(questions), spends, here, there, draws, values, other_draws=others, late=late)
        )
        return values


def late_picks(
    question: dict[str, Any],
    draws: Sequence[Draw],
    values: Sequence[NDArray[Any]],
    drawn: Callable[[tuple[int, ...]], list[NDArray[Any]]],
) -> tuple[int, ...]:
    """Candidates that a selection refused, and would admit after one of the picks that it went on to make.

    `drawn` walks an order of our own, which shows what the rule of the selection admits after which picks. One order,
    walked once, has the law of as many exponential mechanisms as it picks only if what is admissible shrinks: a
    candidate that comes back would have had to be in the race of every pick.
    """
    order = next((d.order for d in draws if isinstance(d, Selection)), [])
    if kind_of(question) is not Select or question["k"] == 1 or len(order) <= question["k"]:
        return ()
    picks = [int(i) for i in np.ravel(values[0])]
    tried = _some(order, max(1, MOST_PROBES // question["k"]))
    refused: set[int] = set()
    late: set[int] = set()
    for place in range(min(len(picks) + 1, question["k"])):
        before = tuple(picks[:place])
        for candidate in set(tried) - set(before):
            if _admitted(drawn, before, candidate):
                late |= {candidate} & refused
            else:
                refused.add(candidate)
    return tuple(sorted(late))


def _admitted(drawn: Callable[[tuple[int, ...]], list[NDArray[Any]]], before: tuple[int, ...], candidate: int) -> bool:
    """Whether it may be picked after these; a walk that finds its own rule wrong says that it may, and should not."""
    try:
        return [int(i) for i in np.ravel(drawn((*before, candidate))[0])] == [*before, candidate]
    except InternalError:
        return True


def _some(values: Sequence[int], most: int) -> list[int]:
    """All, or so many of them, evenly."""
    places = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))
    return [values[i] for i in places]
