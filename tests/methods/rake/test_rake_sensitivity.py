"""What one person can change in everything that `rake` asks for, through the curator that asks it.

A run on one table is answered with noise. Each question that follows from those answers is asked of a neighbour too,
and the exact answers are compared: counts in the norm of their noise, and cell by cell; scores one by one. Tables have
numbers, dates, labels and truth values, declared or not, missing or not; grids are those that `rake` merges by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.neighbours import (
    ADD_REMOVE,
    CAP,
    HEADS,
    MODELLED,
    PERSON,
    REPLACE_ONE,
    Pair,
    open_rows,
    pairs,
    worst_pair,
)
from helpers.randomness import SeededRandomness
from helpers.small_runs import ManyRows
from helpers.tables import SpyTable
from helpers.twins import BUDGETS, ITS_OWN, Compared, TwinCurator, TwinGate, among_many, domain_of, kinds, violations
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.table import Table
from understudy.inference.noisy_table import NoisyTable
from understudy.methods.method import Options
from understudy.methods.parts.prior import EARLIER, PUBLIC, Judgement, Prior
from understudy.methods.rake import priors as joining
from understudy.methods.rake.rake import RakeState
from understudy.methods.registry import METHODS

WISHES: dict[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "pairs": lambda names: {},
    "target": lambda names: {"target": names[0]},
    "triples": lambda names: {"workload": "triples"},
    "weights": lambda names: {"weights": [[list(names[:2]), 7.0], [list(names[1:3]), 0.3], [list(names[:3]), 2.0]]},
}


@dataclass(frozen=True)
class Run:
    """One way to run `rake` on two neighbours."""

    pair: Pair
    names: tuple[str, ...]
    wish: str = "pairs"
    budget: Budget = BUDGETS["approximate"]
    randomness: Randomness = field(default_factory=lambda: SeededRandomness(1))
    wrap: Callable[[Table], Table] = lambda table: table
    prior: str = ""

    def compare(self) -> tuple[TwinCurator, list[Compared]]:
        relation = self.pair.relation
        first, second = (open_rows(rows, relation, "pyarrow", Path()) for rows in (self.pair.first, self.pair.second))
        gate = TwinGate(self.wrap(first), self.wrap(second), self.budget, self.randomness)
        curator, domain = TwinCurator(relation, self.budget, gate), domain_of(relation, self.names)
        options = Options.from_dict(WISHES[self.wish](self.names))
        if self.prior:
            options = replace(options, prior=made_up(domain, self.prior))
        recipe = METHODS["rake"].recipe(options)
        recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0))
        return curator, gate.compared


def made_up(domain: Domain, kind: str) -> Prior:
    """Counts of all columns and pairs, drawn at random: a prior may say anything."""
    rng, tables = np.random.default_rng(5), []
    for size in (1, 2):
        for columns in itertools.combinations(domain.names, size):
            groups = tuple(np.arange(domain.size(c)) for c in columns)
            counts = rng.integers(0, 40, domain.shape(columns)).astype(np.float64)
            tables.append(NoisyTable(columns, counts, 25.0 if kind == EARLIER else 0.0, groups))
    return Prior(kind, "made up", "", tuple(tables))


KINDS = {"marginal", "select", "partition"}


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
        assert kinds(compared) - {"moment"} == KINDS

    check()


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("wish", WISHES)
def test_the_same_check_refuses_half_the_sensitivity(relation: str, wish: str) -> None:
    run = Run(among_many(relation), ("age", "city", "pay"), wish, Budget(30.0, 1e-6))
    curator, compared = run.compare()
    assert widest(curator) == (2 if wish == "pairs" else 3)
    assert violations(curator, compared, relation) == set()
    assert violations(curator, compared, relation, declared=0.499) - {"moment"} == KINDS | {ITS_OWN}


@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
def test_moments_are_held_to_what_is_declared_and_half_of_it_is_refused(relation: str, budget: Budget) -> None:
    """A row whose numbers are both extreme, beside a crowd in the middle."""
    crowd = tuple((f"x{i}", str(i % 6), str(i % 11), "A", "B", "2000-03-01", "true", "nurse") for i in range(400))
    extreme, other = (("n", *ends, "A", "A", "2000-06-30", "true", "nurse") for ends in (("5", "10"), ("5", "0")))
    pair = Pair(relation, crowd, (*crowd, *[extreme] * (CAP if relation == PERSON else 1)))
    if relation == REPLACE_ONE:
        pair = Pair(relation, (*crowd, extreme), (*crowd, other))
    run = Run(pair, ("age", "city", "pay"), budget=replace(budget, epsilon=10.0))
    curator, compared = run.compare()
    assert "moment" in kinds(compared)
    assert violations(curator, compared, relation) == set()
    assert "moment" in violations(curator, compared, relation, declared=0.499)


@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("kind", [EARLIER, PUBLIC])
def test_a_prior_changes_no_sensitivity(relation: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it says, and however it is judged: here it is always believed."""
    believed = Judgement(1, noise_alone=kind == EARLIER, useful=True, bias=0.01)
    monkeypatch.setattr(joining, "judge", lambda *given: believed)
    joined: list[Any] = []
    honest = RakeState.refresh
    monkeypatch.setattr(RakeState, "refresh", lambda self, *given: (joined.append(self), honest(self, *given))[1])
    run = Run(among_many(relation), ("age", "city", "pay"), budget=Budget(30.0, 1e-6), prior=kind)
    curator, compared = run.compare()
    assert len(joined[0].readings) > 2 or joined[0].links
    assert violations(curator, compared, relation) == set()
    assert violations(curator, compared, relation, declared=0.499) - {"moment"} == KINDS | {ITS_OWN}


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
