"""What one person can change in everything that `rake` asks for, through the curator that asks it.

A run on one table is answered with noise. Each question that follows from those answers is asked of a neighbour too,
and the exact answers are compared: counts in the norm of their noise, and cell by cell; scores one by one. Tables have
numbers, dates, labels and truth values, declared or not, missing or not; grids are those that `rake` merges by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SpyTable
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_rake_selection import ManyRows, SeededRandomness
from test_sensitivity import (
    ADD_REMOVE,
    CAP,
    HEADS,
    MODELLED,
    PERSON,
    REPLACE_ONE,
    Pair,
    Statistic,
    excess,
    open_rows,
    pairs,
    schema_of,
    worst_pair,
)

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator, RowGate
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table
from understudy.methods.method import Options
from understudy.methods.registry import METHODS

BUDGETS = {"pure": Budget(2.0, 0.0), "approximate": Budget(2.0, 1e-6)}
WISHES: dict[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "pairs": lambda names: {},
    "target": lambda names: {"target": names[0]},
    "triples": lambda names: {"workload": "triples"},
    "weights": lambda names: {"weights": [[list(names[:2]), 7.0], [list(names[1:3]), 0.3], [list(names[:3]), 2.0]]},
}


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
        super().__init__(CachedTable(first), budget, None, "", "", randomness)
        self._second = CachedTable(second)
        self.compared: list[Compared] = []

    def answer(self, questions: Any, exact: Any, draw: Any, debit: Callable[[], None]) -> list[Any]:
        both = exact(self._table), exact(self._second)
        if questions[0]["ask"] == "select":
            both = [both[0]], [both[1]]
        self.compared += [Compared(*of) for of in zip(questions, *both, strict=True)]
        return super().answer(questions, exact, draw, debit)


class TwinCurator(Curator):
    """Keeps the candidates of every selection, to hold each of them to its own figure."""

    def __init__(self, relation: str, budget: Budget, gate: TwinGate) -> None:
        super().__init__(schema_of(relation), budget, gate)
        self.candidates: list[Sequence[Candidate]] = []

    def select(self, domain: Any, candidates: Any, amount: Any, k: int = 1, rule: Any = None) -> list[int]:
        self.candidates.append(candidates)
        return super().select(domain, candidates, amount, k, rule)


@dataclass(frozen=True)
class Run:
    """One way to run `rake` on two neighbours."""

    pair: Pair
    names: tuple[str, ...]
    wish: str = "pairs"
    budget: Budget = BUDGETS["approximate"]
    randomness: Randomness = field(default_factory=lambda: SeededRandomness(1))
    wrap: Callable[[Table], Table] = lambda table: table

    def compare(self) -> tuple[TwinCurator, list[Compared]]:
        relation = self.pair.relation
        first, second = (open_rows(rows, relation, "pyarrow", Path()) for rows in (self.pair.first, self.pair.second))
        gate = TwinGate(self.wrap(first), self.wrap(second), self.budget, self.randomness)
        curator, domain = TwinCurator(relation, self.budget, gate), domain_of(relation, self.names)
        recipe = METHODS["rake"].recipe(Options.from_dict(WISHES[self.wish](self.names)))
        recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0))
        return curator, gate.compared


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
        elif not moves_as_one(second - first, relation):
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


KINDS = {"marginal", "select", "partition"}
ITS_OWN = "a score by its own figure"


def kinds(compared: Sequence[Compared]) -> set[str]:
    return {c.question["ask"] for c in compared} - {"total"}


def widest(curator: TwinCurator) -> int:
    """How many columns the largest candidate has."""
    return max(len(c.columns) for candidates in curator.candidates for c in candidates)


@st.composite
def runs(draw: Any, relation: str, budget: Budget) -> Run:
    names = tuple(draw(st.permutations(MODELLED))[: draw(st.integers(2, 4))])
    wish = draw(st.sampled_from(sorted(WISHES) if len(names) > 2 else ["pairs", "target"]))
    history = draw(st.sampled_from([SeededRandomness, ManyRows]))
    return Run(draw(pairs(relation)), names, wish, budget, history(draw(st.integers(0, 10**6))))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_no_neighbour_changes_more_than_is_declared(relation: str, budget: str) -> None:
    @settings(max_examples=5, deadline=None, derandomize=True, database=None)
    @given(runs(relation, BUDGETS[budget]))
    def check(run: Run) -> None:
        curator, compared = run.compare()
        assert violations(curator, compared, relation) == set()
        assert kinds(compared) == KINDS

    check()


def among_many(relation: str) -> Pair:
    """The worst pair with a crowd of equal rows in both tables, so that triples are affordable."""
    pair = worst_pair(relation)
    crowd = tuple((f"x{i}", "2", "5", "A", "B", "2000-03-01", "true", "nurse") for i in range(200))
    return Pair(relation, pair.first + crowd, pair.second + crowd)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("wish", WISHES)
def test_the_same_check_refuses_half_the_sensitivity(relation: str, wish: str) -> None:
    run = Run(among_many(relation), ("age", "city", "pay"), wish, Budget(30.0, 1e-6))
    curator, compared = run.compare()
    assert widest(curator) == (2 if wish == "pairs" else 3)
    assert violations(curator, compared, relation) == set()
    assert violations(curator, compared, relation, declared=0.499) == KINDS | {ITS_OWN}


def test_mutant_scores_against_the_exact_number_of_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model expects, scaled to the rows that there are: a new row then moves every cell of it as well."""
    honest = Candidate.score

    def scaled(self: Candidate, counts: NDArray[np.int64]) -> float:
        estimate = self.estimate * (counts.sum() / self.estimate.sum())
        return honest(replace(self, estimate=estimate), counts)

    monkeypatch.setattr(Candidate, "score", scaled)
    curator, compared = Run(among_many(ADD_REMOVE), ("age", "city", "pay"), budget=Budget(30.0, 1e-6)).compare()
    assert violations(curator, compared, ADD_REMOVE) == {"select", ITS_OWN}


def test_mutant_errors_that_count_whole_above_a_threshold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that lifts an error over the threshold would then add all of it, not only what is above."""

    def whole(self: Candidate, counts: NDArray[np.int64]) -> float:
        errors = np.abs(counts - self.estimate)
        return self.weight * float(errors[errors > self.threshold].sum()) + self.offset

    monkeypatch.setattr(Candidate, "score", whole)
    curator, compared = Run(among_many(ADD_REMOVE), ("age", "city", "pay"), budget=Budget(30.0, 1e-6)).compare()
    assert violations(curator, compared, ADD_REMOVE) == {"select", ITS_OWN}


class CumulativeTable(SpyTable):
    """Mutant: cells that are no partition, since a row is in its own cell and in all that follow."""

    def count_by(self, domain: Any, sets: Any) -> list[Any]:
        return [np.cumsum(n).reshape(n.shape) for n in self._table.count_by(domain, sets)]


def test_mutant_cells_that_overlap_are_refused() -> None:
    run = Run(worst_pair(ADD_REMOVE), ("age", "city", "pay"), wrap=lambda table: CumulativeTable(table, []))
    curator, compared = run.compare()
    assert {"marginal", "partition", "select", "cells"} <= violations(curator, compared, ADD_REMOVE)


def test_mutant_a_person_without_a_cap_is_refused() -> None:
    """The rows of one person, let in one by one as if by different persons, against what is declared for the cap."""
    pair = among_many(PERSON)
    uncapped = Pair(ADD_REMOVE, pair.first, pair.second)
    curator, compared = Run(uncapped, ("age", "city", "pay"), budget=Budget(30.0, 1e-6)).compare()
    assert {"marginal", "partition", "select"} <= violations(curator, compared, PERSON, declared=CAP)
