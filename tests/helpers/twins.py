"""A curator that asks a neighbouring table everything that it asks its own, and compares the exact answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.neighbours import (
    CAP,
    REPLACE_ONE,
    Pair,
    Statistic,
    excess,
    schema_of,
    worst_pair,
)
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.asks.ask import Ask, Price
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Payer, RowGate
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table

BUDGETS = {"pure": Budget(2.0, 0.0), "approximate": Budget(2.0, 1e-6)}


@cache
def domain_of(relation: str, names: tuple[str, ...]) -> Domain:
    schema = schema_of(relation)
    return Domain.of(Schema(tuple(schema[name] for name in names), missing_values=schema.missing_values))


@dataclass(frozen=True)
class Compared:
    """One exact answer for both of two neighbours."""

    question: dict[str, Any]
    first: NDArray[Any]
    second: NDArray[Any]


class TwinGate(RowGate):
    """Answers from the first table, and finds the same answers in the second."""

    def __init__(self, first: Table, second: Table, budget: Budget, randomness: Randomness) -> None:
        super().__init__(CachedTable(first), Payer(budget), randomness)
        self._second = CachedTable(second)
        self.compared: list[Compared] = []

    def answer(self, ask: Ask[Any], price: Price, questions: Any, debit: Callable[[], None]) -> list[Any]:
        both = ask.exact(self._table), ask.exact(self._second)
        if isinstance(ask, Select):
            both = [both[0]], [both[1]]
        self.compared += [Compared(*of) for of in zip(questions, *both, strict=True)]
        return super().answer(ask, price, questions, debit)


class TwinCurator(Curator):
    """Keeps the candidates of every selection, to hold each of them to its own figure."""

    def __init__(self, relation: str, budget: Budget, gate: TwinGate) -> None:
        super().__init__(schema_of(relation), budget, gate)
        self.candidates: list[Sequence[Candidate]] = []

    def ask(self, ask: Ask[Any]) -> Any:
        if isinstance(ask, Select):
            self.candidates.append(ask.candidates)
        return super().ask(ask)


def violations(curator: TwinCurator, compared: Sequence[Compared], relation: str, declared: float = 1.0) -> set[str]:
    """The kinds of answers that a neighbour changes by more than `declared` times what their spends say."""
    spends, candidates = iter(curator.spends), iter(curator.candidates)
    broken = set()
    for found in compared:
        ask, first, second = found.question["ask"], found.first.astype(float), found.second.astype(float)
        spend, *_ = (next(spends) for _ in range(found.question.get("k", 1)))
        if excess(first, second, Statistic(first, spend).order, declared * spend.sensitivity) > 0:
            broken.add(ask)
        if ask == "select":
            rows, replaced = curator.schema.rows_per_unit, relation == REPLACE_ONE
            most = np.array([c.sensitivity(rows, replaced) for c in next(candidates)])
            if (np.abs(first - second) > declared * most).any():
                broken.add(ITS_OWN)
        elif ask != "moment" and not moves_as_one(second - first, relation):
            broken.add("cells")
    assert next(spends, None) is None
    return broken


def moves_as_one(change: NDArray[np.float64], relation: str) -> bool:
    """Whether a histogram changed as one unit can change it: in one cell, or from one cell to another."""
    moved = sorted(change[change != 0].tolist())
    match relation:
        case "add-remove":
            return moved == [1.0]
        case "replace-one":
            return moved in ([], [-1.0, 1.0])
    return all(cell > 0 for cell in moved) and sum(moved) <= CAP


ITS_OWN = "a score by its own figure"


def kinds(compared: Sequence[Compared]) -> set[str]:
    return {c.question["ask"] for c in compared} - {"total"}


def among_many(relation: str) -> Pair:
    """The worst pair with a crowd of equal rows in both tables, so that triples are affordable."""
    pair = worst_pair(relation)
    crowd = tuple((f"x{i}", "2", "5", "A", "B", "2000-03-01", "true", "nurse") for i in range(200))
    return Pair(relation, pair.first + crowd, pair.second + crowd)
