"""What one person can change in everything that `dp-arf` asks for, through the curator that asks it.

As in `test_rake_sensitivity`: a run on one table is answered with noise, each question that follows from those answers
is asked of a neighbour too, and the exact answers are compared. Here the questions are of leaves as well, and of
selections among leaves and grids, or among splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.neighbours import ADD_REMOVE, HEADS, MODELLED, Pair, open_rows, pairs, worst_pair
from helpers.randomness import SeededRandomness, SilentRandomness
from helpers.small_runs import ManyRows
from helpers.tables import SpyTable
from helpers.taint import FIRST, HONEST, HOSTILE, PUBLIC, as_csv, differences, neighbour, replaced
from helpers.tuning import tune
from helpers.twins import BUDGETS, ITS_OWN, Compared, TwinCurator, TwinGate, domain_of, violations
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import GRID, Departure
from understudy.boundary.schema.partition import Crossed, Split, Tree
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table
from understudy.errors import CheckFailed
from understudy.lab.audits.checks.taint import PinnedGate
from understudy.methods.dp_arf.dp_arf import DpArfParams
from understudy.methods.method import Options
from understudy.methods.rake import rake
from understudy.methods.registry import METHODS
from understudy.releases.synthesis import Plan

PAIRED, DIRECT = "pairs", "direct"
KINDS = {"marginal", "select", "partition"}
TREE = Tree(("a",), (3,), (Split(0, 0b110, -1, -2),))


FEW_TREES = DpArfParams(trees=3)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few particles and trees; every domain is drawn, for tiny ones too are large enough for leaves then."""
    tune(
        monkeypatch,
        "dp-arf",
        FEW_TREES,
        rake={"particles": 300, "final_particles": 300, "most_picks": 6, "whole_domain": 0, "exchange_rounds": 20},
        first_tree={"most_candidates": 30, "rows_per_noise": 0.01, "most_levels": 3},
        rows_to_grow=200,
        least_signal=0.01,
    )


@pytest.fixture(params=[PAIRED, DIRECT])
def proxy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == DIRECT:
        tune(monkeypatch, "dp-arf", most_paired_columns=1)
    return str(request.param)


@dataclass(frozen=True)
class Run:
    """One way to run `dp-arf` on two neighbours."""

    pair: Pair
    names: tuple[str, ...]
    targets: tuple[str, ...] = ()
    budget: Budget = BUDGETS["approximate"]
    randomness: Randomness = field(default_factory=lambda: SeededRandomness(1))
    wrap: Any = lambda table: table

    def compare(self) -> tuple[TwinCurator, list[Compared]]:
        relation = self.pair.relation
        first, second = (open_rows(rows, relation, "pyarrow", Path()) for rows in (self.pair.first, self.pair.second))
        gate = TwinGate(self.wrap(first), self.wrap(second), self.budget, self.randomness)
        curator, domain = TwinCurator(relation, self.budget, gate), domain_of(relation, self.names)
        recipe = METHODS["dp-arf"].recipe(Options(self.targets))
        recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0))
        return curator, gate.compared


def asked(compared: Sequence[Compared]) -> set[str]:
    return {c.question["ask"] for c in compared} - {"total"}


def partitions(compared: Sequence[Compared]) -> set[str]:
    return {c.question["kind"] for c in compared if c.question["ask"] == "partition"}


@st.composite
def runs(draw: Any, relation: str, budget: Budget) -> Run:
    names = tuple(draw(st.permutations(MODELLED))[: draw(st.integers(2, 4))])
    history = draw(st.sampled_from([SeededRandomness, ManyRows]))
    targets = names[:1] if draw(st.booleans()) else ()
    return Run(draw(pairs(relation)), names, targets, budget, history(draw(st.integers(0, 10**6))))


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_no_neighbour_changes_more_than_is_declared(relation: str, budget: str, proxy: str) -> None:
    @settings(max_examples=3, deadline=None, derandomize=True, database=None)
    @given(runs(relation, BUDGETS[budget]))
    def check(run: Run) -> None:
        curator, compared = run.compare()
        assert violations(curator, compared, relation) == set()
        assert asked(compared) == KINDS

    check()


@pytest.mark.parametrize("relation", HEADS)
def test_the_same_check_refuses_half_the_sensitivity(
    relation: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, "dp-arf", grids_too=False)
    curator, compared = Run(worst_pair(relation), ("age", "city", "pay"), ("city",), Budget(30.0, 1e-6)).compare()
    assert {"tree", "crossed tree"} & partitions(compared)
    assert violations(curator, compared, relation) == set()
    assert violations(curator, compared, relation, declared=0.4) >= {"marginal", "partition"}


class OverlappingLeaves(SpyTable):
    """Mutant: cells that are no partition, since a row is in its own leaf and in all that follow."""

    def count_cells(self, domain: Any, parts: Any) -> list[Any]:
        return [np.cumsum(n).reshape(n.shape) for n in self._table.count_cells(domain, parts)]


def test_mutant_leaves_that_overlap_are_refused(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "dp-arf", grids_too=False)
    run = Run(worst_pair(ADD_REMOVE), ("age", "city", "pay"), wrap=lambda table: OverlappingLeaves(table, []))
    assert "cells" in violations(*run.compare(), ADD_REMOVE)


def test_mutant_a_selection_of_splits_with_half_its_sensitivity_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "dp-arf", most_paired_columns=1)
    honest = Departure.sensitivity
    monkeypatch.setattr(Departure, "sensitivity", lambda self, rows, replaced: 0.4 * honest(self, rows, replaced))
    found = violations(*Run(worst_pair(ADD_REMOVE), ("age", "city", "pay")).compare(), ADD_REMOVE)
    assert found == {"select", ITS_OWN}


# --- The score of a split ---------------------------------------------------------------------------------------------


def departure(share: Sequence[float]) -> Departure:
    groups = tuple(range(len(share)))
    return Departure(("a", "b"), np.array(share), Crossed(TREE, "b", groups))


def test_a_departure_by_hand() -> None:
    """Leaf 0 holds 6 and 2 rows where 4 and 4 are expected; leaf 1 holds 1 and 3 where 2 and 2 are."""
    assert departure([0.5, 0.5]).score(np.array([[6, 2], [1, 3]])) == 2 + 2 + 1 + 1


def test_a_row_can_change_a_departure_by_all_that_is_declared() -> None:
    """One more row of the rarer value: nearly 1 by its own cell, and 1 by what is then expected of the others."""
    rare = departure([1.0, 0.0])
    change = rare.score(np.array([[0, 1], [0, 0]])) - rare.score(np.array([[0, 0], [0, 0]]))
    assert change == 2.0 == rare.sensitivity(1, replaced=False)
    moved = rare.score(np.array([[0, 5], [0, 5]])) - rare.score(np.array([[1, 4], [0, 5]]))
    assert moved == 2.0 <= rare.sensitivity(1, replaced=True) == 4.0
    assert rare.sensitivity(3, replaced=False) == 6.0


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.integers(0, 40), min_size=6, max_size=6),
    st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda s: sum(s) > 0),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_no_row_changes_a_departure_by_more(counts: list[int], weights: list[float], new: int, old: int) -> None:
    score = departure([w / sum(weights) for w in weights])
    table = np.array(counts).reshape(2, 3)
    more = table.copy()
    more[np.unravel_index(new, (2, 3))] += 1
    other = table.copy()
    other[np.unravel_index(old, (2, 3))] += 1
    assert abs(score.score(more) - score.score(table)) <= score.sensitivity(1, replaced=False)
    assert abs(score.score(more) - score.score(other)) <= score.sensitivity(1, replaced=True)
    assert score.sensitivity(1, replaced=False) <= 2.0 + 3 / GRID


def test_scores_of_leaves_are_those_of_their_cells() -> None:
    """A candidate over a tree, by hand: |3 − 2| + |4 − 6.5| − 1."""
    from understudy.boundary.privacy.mechanisms.score import Candidate

    candidate = Candidate(("a",), np.array([2.0, 6.5]), 1.0, -1.0, TREE)
    assert candidate.score(np.array([3, 4])) == 2.5
    assert replace(candidate, weight=0.5, offset=0.0).score(np.array([3, 4])) == 1.75


# --- Taint ------------------------------------------------------------------------------------------------------------


class TellingCurator(Curator):
    """Tells what every selection would score: columns, what is expected of them, penalties, and how they are cut."""

    def __init__(self, *of: Any, **named: Any) -> None:
        super().__init__(*of, **named)
        self.told: list[tuple[Any, ...]] = []

    def ask(self, ask: Any) -> Any:
        for c in ask.candidates if isinstance(ask, Select) else ():
            expected = c.share if isinstance(c, Departure) else c.estimate
            self.told.append((c.columns, expected.tobytes(), getattr(c, "offset", 0.0), c.grid, ask.k))
        return super().ask(ask)


def pinned_differences(relation: str, hostile: str, tmp_path: Path) -> list[str]:
    """Where two runs differ that are given the same answers, the second with a hostile row in its table.

    A tree that split otherwise would be another question, which a record refuses.
    """
    schema, budget = Schema.loads(f'neighbours = "{relation}"\n' + PUBLIC), Budget(10.0, 1e-6)
    plan = Plan.of(schema, budget, "dp-arf", Options(targets=("city",)), 50, seed=11)
    other = (neighbour if relation == "add-remove" else replaced)(HOSTILE[hostile])
    curator = TellingCurator.on(as_csv(HONEST, schema, tmp_path), budget, randomness=SilentRandomness())
    first = plan.release(curator, "pyarrow", lambda step: None)
    gate = PinnedGate(as_csv(other, schema, tmp_path), first.record, SilentRandomness())
    again = TellingCurator(schema, budget, gate)
    second = plan.release(again, "pyarrow", lambda step: None)
    found = differences(first, second) + ["rows"] * (not first.arrow.equals(second.arrow))
    return found + ["candidates"] * (curator.told != again.told)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("relation", "hostile"), [("add-remove", FIRST[0]), ("replace-one", FIRST[1])])
def test_what_it_asks_follows_from_answers_alone(
    relation: str, hostile: str, proxy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert pinned_differences(relation, hostile, tmp_path) == []


def test_the_same_check_finds_an_exact_row_count_in_the_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No answer shows it, since selections are pinned; what they would score does."""
    honest = PinnedGate.__init__

    def peek(self: PinnedGate, table: Table, *rest: Any) -> None:
        honest(self, table, *rest)
        exact = float(table.count_rows())
        monkeypatch.setattr(rake.RakeState, "total", property(lambda _: exact))

    monkeypatch.setattr(rake.RakeState, "total", property(lambda _: float(len(HONEST["age"]))))
    monkeypatch.setattr(PinnedGate, "__init__", peek)
    try:
        found = pinned_differences("add-remove", FIRST[0], tmp_path)
    except CheckFailed:  # a tree that split otherwise
        found = ["questions"]
    assert found
