"""How `rake` divides what is left: after the forest once more, and never more than there is."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.boundary.privacy.budget import Budget
from understudy.methods.forecast.spending import PlannedBudget
from understudy.methods.rake.schedule import Schedule
from understudy.methods.rake.tuning import TUNING


def schedule_of(rows: float, columns: int, delta: float = 1e-6) -> tuple[Schedule, PlannedBudget]:
    whole = PlannedBudget(Budget(1.0, delta).capacity, 1.0)
    schedule = Schedule.of(rows, whole, columns)
    left = whole.left.split([1.0, float(schedule.per_round * len(schedule.rounds)) / schedule.edges])[1]
    return schedule, PlannedBudget(left, 1.0)


def test_coarse_pairs_mean_more_rounds_and_fine_ones_fewer() -> None:
    schedule, left = schedule_of(40_000, 14)
    usual = round(TUNING.usual_cells)
    counts = [len(schedule.after([cells] * 13, left).rounds) for cells in (4, usual, 400)]
    assert counts[0] > counts[1] == len(schedule.rounds) > counts[2]


def test_without_a_forest_nothing_is_learned() -> None:
    schedule, left = schedule_of(40_000, 14)
    assert schedule.after([], left) is schedule


@given(
    rows=st.floats(1.0, 1e9),
    columns=st.integers(2, 500),
    cells=st.lists(st.integers(1, 5_000), min_size=1, max_size=30),
    delta=st.sampled_from([0.0, 1e-6]),
)
def test_rounds_add_up_to_what_is_left_and_never_pass_it(
    rows: float, columns: int, cells: list[int], delta: float
) -> None:
    schedule, left = schedule_of(rows, columns, delta)
    new = schedule.after(cells, left)
    spent = sum((amount.value for amount in new.rounds), Fraction(0))
    assert spent <= left.left.value
    assert float(spent) == pytest.approx(float(left.left.value))
    assert new.per_round * len(new.rounds) <= max(
        TUNING.round_picks_per_pick * TUNING.most_picks + new.per_round, schedule.per_round * len(schedule.rounds)
    )
