"""A gate that holds both tables of a pair: it answers from one, and remembers what the other would have said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.budget import Spend
from understudy.privacy.curator import Curator
from understudy.privacy.mechanism import Randomness
from understudy.privacy.posterior import Prior
from understudy.tables.table import Table


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
class Sample:
    """Draws from a posterior."""

    prior: Prior
    number: int


Draw = Noise | Selection | Sample


@dataclass(frozen=True)
class Ask:
    """One exchange with the curator. `here` and `there` are exact: what the two tables of a pair say to it."""

    questions: list[dict[str, Any]]
    spends: tuple[Spend, ...]
    here: Any
    there: Any
    draws: tuple[Draw, ...]
    values: list[NDArray[Any]]
    other_draws: tuple[Draw, ...] = ()
    """What the other table would have had drawn, where scores are only known inside the draw."""

    @property
    def kind(self) -> str:
        return str(self.questions[0]["ask"])


class Spy:
    """Hands on every draw, and remembers it."""

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
        self.draws.append(Sample(prior, draws))
        return self.randomness.draw(counts, prior, draws)


class Mute:
    """Draws nothing: it is asked for what a table would have had drawn, and chooses the first."""

    secure = True

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return list(range(k))

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        return np.zeros_like(counts)


@dataclass
class WitnessGate:
    """Implements `privacy.curator.Gate`. Every exchange is kept, with the spends that the curator debited for it."""

    here: Table
    there: Table
    spy: Spy
    asks: list[Ask] = field(default_factory=list)
    curator: Curator | None = None

    @property
    def secure(self) -> bool:
        return self.spy.secure

    def answer(
        self,
        questions: Sequence[dict[str, Any]],
        exact: Callable[[Table], Any],
        draw: Callable[[Any, Randomness], list[NDArray[Any]]],
        debit: Callable[[], None],
    ) -> list[NDArray[Any]]:
        assert self.curator is not None
        here, there = exact(self.here), exact(self.there)
        paid, drawn = len(self.curator.spends), len(self.spy.draws)
        debit()
        values = draw(here, self.spy)
        spends, draws = self.curator.spends[paid:], tuple(self.spy.draws[drawn:])
        others = self._others(questions, there, draw)
        self.asks.append(Ask(list(questions), spends, here, there, draws, values, others))
        return values

    def _others(self, questions: Sequence[dict[str, Any]], there: Any, draw: Any) -> tuple[Draw, ...]:
        """Ranks are scored while they are drawn. (A selection is not asked twice: it remembers what it admitted.)"""
        if questions[0]["ask"] != "rank":
            return ()
        spy = Spy(Mute())
        draw(there, spy)
        return tuple(spy.draws)
