"""What is measured: one method on one table, at one ε, with one seed, whole or with a part of ours changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

DELTA = 1e-6
Result = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One measurement to be made; its fields name it in the cache."""

    table: str
    method: str
    epsilon: float
    seed: int
    variant: str = ""
    """What of our code is changed (a name in `variant`); nothing where it is empty."""

    def __str__(self) -> str:
        changed = f" ({self.variant})" if self.variant else ""
        return f"{self.method}{changed} on {self.table}, epsilon {self.epsilon:g}, seed {self.seed}"

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.table, self.epsilon, self.method, self.variant, self.seed)


@dataclass(frozen=True)
class Grid:
    """The tables, budgets and seeds of a run."""

    tables: Sequence[str]
    epsilons: Sequence[float]
    seeds: int

    def __iter__(self) -> Iterator[tuple[int, str, float]]:
        """Seeds come outermost, so that a run that is stopped has one of everything."""
        return itertools.product(range(self.seeds), self.tables, self.epsilons)

    def holds(self, result: Result) -> bool:
        return result["table"] in self.tables and result["epsilon"] in self.epsilons and result["seed"] < self.seeds


@dataclass(frozen=True)
class Study:
    """A sub-command: what it runs by default, and how its results are shown."""

    grid: Grid
    cases: Callable[[Grid], Iterable[Case]]
    render: Callable[[Sequence[Result]], str]
    jobs: int = 2
    fresh: bool = False
    """Whether each case gets a process of its own, as peak memory needs."""
