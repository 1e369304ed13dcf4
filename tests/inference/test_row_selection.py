"""Rows chosen one by one: incremental distances against those from scratch, sections against each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import MethodError
from understudy.inference import row_selection as selecting
from understudy.inference.row_selection import (
    DISTANCES,
    L1,
    RUNNING,
    Floats,
    Goal,
    Places,
    RunningL1,
    check_distance,
    choose,
    proposals,
)

PRECISION = 1e-6
"""A root of sums that cancel has half of their digits."""


@st.composite
def goals(draw: Any, sections: int = 1) -> Goal:
    """A few marginals of different sizes over a small pool; some cells are wanted by nobody."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rows = draw(st.integers(2, 25))
    cells = [rng.integers(0, n, rows) for n in sizes]
    wanted = [rng.integers(0, 5, (sections, n)) + np.eye(n)[[0] * sections] for n in sizes]
    return Goal.of(cells, [w.astype(np.float64) for w in wanted], list(rng.uniform(0.1, 2.0, len(sizes))))


def spread_error(goal: Goal, distance: str, make: Any = None) -> float:
    """By how much distances between candidates differ from those that are computed from scratch, along a whole run."""
    rng = np.random.default_rng(5)
    tally, chosen, worst = (make or RUNNING[distance])(goal, 1), [], 0.0
    for step in range(8):
        candidates = rng.integers(0, len(goal.cells), 4)
        tally.ready(step + 1)
        quick = tally.distances(goal.cells[candidates][None], step + 1)[0]
        slow = np.array([goal.distances(np.array([*chosen, c]), distance) @ goal.weights for c in candidates])
        worst = max(worst, float(np.abs((quick - quick[0]) - (slow - slow[0])).max()))
        chosen.append(int(candidates[-1]))
        tally.take(goal.cells[candidates[-1]][None])
    return worst


@pytest.mark.parametrize("distance", DISTANCES)
def test_incremental_distances_are_those_from_scratch(distance: str) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(goals())
    def check(goal: Goal) -> None:
        assert spread_error(goal, distance) < PRECISION

    check()


class Forgetful(RunningL1):
    """Mutant: never counts what it takes."""

    def take(self, cells: Places) -> None:
        pass


def test_the_same_check_finds_a_tally_that_forgets() -> None:
    goal = Goal.of([np.array([0, 1])], [np.array([3.0, 1.0])], [1.0])
    assert spread_error(goal, L1) < 1e-9
    assert spread_error(goal, L1, Forgetful) > 0.1


def test_distances_by_hand() -> None:
    """Of rows in cells 0, 0, 1 from shares ½, ¼, ¼: densities are ⅔, ⅓, 0 against them."""
    goal = Goal.of([np.array([0, 0, 1])], [np.array([2.0, 1.0, 1.0])], [1.0])
    every = np.arange(3)
    assert goal.distances(every, "L1") == pytest.approx([1 / 6 + 1 / 12 + 1 / 4])
    assert goal.distances(every, "L2") == pytest.approx([np.sqrt(1 / 36 + 1 / 144 + 1 / 16)])
    assert goal.distances(every, "Kolmogorov") == pytest.approx([1 / 4])


@pytest.mark.parametrize("distance", DISTANCES)
def test_sections_choose_as_each_would_alone(distance: str) -> None:
    @settings(max_examples=20, deadline=None, derandomize=True, database=None)
    @given(goals(sections=3))
    def check(goal: Goal) -> None:
        proposed = np.random.default_rng(1).integers(0, len(goal.cells), (5, 3, 4))
        together = choose(goal, proposed, distance)
        for s in range(3):
            own = Goal(goal.cells, goal.sizes, goal.shares[s : s + 1], goal.weights)
            assert np.array_equal(together[:, s], choose(own, proposed[:, s : s + 1], distance)[:, 0])

    check()


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_nearest_candidates_beat_random_ones(distance: str) -> None:
    """A pool of the wrong law: chosen rows have the right one, up to the rounding of whole rows."""
    rng = np.random.default_rng(3)
    cells = [rng.integers(0, 4, 4000), rng.integers(0, 3, 4000)]
    goal = Goal.of(cells, [np.array([4.0, 3.0, 2.0, 1.0]), np.array([6.0, 3.0, 1.0])], [1.0, 1.0])
    chosen = choose(goal, proposals(4000, 400, 1, rng), distance).ravel()
    assert goal.distances(chosen, "L1").max() < 0.03
    assert goal.distances(rng.choice(4000, 400, replace=False), "L1").min() > 0.2


def test_every_row_is_proposed_at_most_once() -> None:
    proposed = proposals(1003, 90, 4, np.random.default_rng(0))
    assert proposed.shape == (23, 4, 10)  # ⌈90/4⌉ steps, and 1003 // 92 candidates
    assert len(np.unique(proposed)) == proposed.size
    parts = [set(proposed[:, s].ravel()) for s in range(4)]
    assert not parts[0] & parts[1]


def test_a_candidate_costs_no_more_in_a_larger_table() -> None:
    """What is looked up for one step, by the number of numbers: the same for pools and choices of any size."""
    looked: dict[int, int] = {}
    for rows in (1_000, 16_000):
        rng = np.random.default_rng(0)
        goal = Goal.of([rng.integers(0, 9, rows)], [np.ones(9)], [1.0])

        def pick(distances: Floats, rows: int = rows) -> Places:
            looked[rows] = looked.get(rows, 0) + distances.size
            return selecting.nearest(distances)

        choose(goal, rng.integers(0, rows, (50, 1, 7)), L1, pick)
    assert looked == {1_000: 350, 16_000: 350}


def test_a_distance_that_is_not_known_is_refused() -> None:
    with pytest.raises(MethodError, match="must be one of L1, L2, Kolmogorov"):
        check_distance("cosine")
