"""Moments: sums of a public whole number per cell, and how far one person moves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.neighbours import CAP, HEADS, PERSON, REPLACE_ONE, Pair, Statistic, excess, open_rows, pairs, plain
from helpers.randomness import SilentRandomness
from helpers.twins import domain_of
from understudy.boundary.privacy.asks import Moments, kind_of, kind_of_spend
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.grouped_sums import SumNeighbours
from understudy.boundary.schema.moment import MOST_VALUE, Moment
from understudy.boundary.schema.partition import Grid
from understudy.errors import InternalError

NAMES = ("age", "pay", "city")
AGES, PAYS, CITIES = (0, 0, 0, 1, 1, 1), (0, 0, 1, 1, 2), (0, 1)  # pay has a code for what is missing
PRODUCTS = Moment(Grid(("age", "pay"), (AGES, PAYS)), (64, -64, 0, -64, 64, 0))
BY_CITY = Moment(Grid(("age", "pay", "city"), (AGES, PAYS, CITIES)), tuple(range(-6, 6)), by_last=True)
BUDGETS = {"pure": Budget(1.0, 0.0), "Gaussian": Budget(1.0, 1e-6)}


def answers(rows: Sequence[Any], relation: str, budget: Budget, moments: Sequence[Moment]) -> list[Statistic]:
    curator = Curator.on(open_rows(rows, relation, "pyarrow", Path()), budget, randomness=SilentRandomness())
    measured = curator.ask(Moments(domain_of(relation, NAMES), moments, curator.remaining()))
    return [Statistic(m.counts.astype(float), s) for m, s in zip(measured, curator.spends, strict=True)]


def most_excess(pair: Pair, budget: Budget, moments: Sequence[Moment], declared: float = 1.0) -> float:
    found = [answers(rows, pair.relation, budget, moments) for rows in (pair.first, pair.second)]
    each = zip(*found, strict=True)
    return max(excess(a.value, b.value, a.order, declared * a.spend.sensitivity) for a, b in each)


@st.composite
def moments(draw: Any) -> list[Moment]:
    grids = [PRODUCTS.grid, BY_CITY.grid]
    found = []
    for grid in grids:
        values = draw(st.lists(st.integers(-9, 9), min_size=grid.cells, max_size=grid.cells))
        values[0], values[-1] = 9, -7  # else a list of equal numbers tells nothing, and is refused
        found += [Moment(grid, tuple(values), by_last) for by_last in (False, True)]
    return found


@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
def test_no_neighbour_moves_a_moment_by_more_than_is_declared(relation: str, budget: Budget) -> None:
    @settings(max_examples=10, deadline=None, derandomize=True, database=None)
    @given(pairs(relation), moments())
    def check(pair: Pair, asked: list[Moment]) -> None:
        assert most_excess(pair, budget, asked) <= 0

    check()


def extreme_pair(relation: str) -> Pair:
    """Somebody whose rows all add the most; or one who adds it in place of one who takes as much away."""
    rest = (plain("p", "A", "1"), plain("q", "B", "9"))
    if relation == REPLACE_ONE:
        return Pair(relation, (*rest, plain("n", "A", "1")), (*rest, plain("n", "A", "9")))
    return Pair(relation, rest, rest + (plain("n", "A", "9"),) * (CAP + 1 if relation == PERSON else 1))


@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
def test_what_is_declared_is_reached_and_a_little_less_is_refused(relation: str, budget: Budget) -> None:
    assert most_excess(extreme_pair(relation), budget, [PRODUCTS]) <= 0
    assert most_excess(extreme_pair(relation), budget, [PRODUCTS], declared=0.999) > 0


def test_mutant_the_mean_number_as_the_sensitivity_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rows add little; the one that adds the most is the one that counts."""

    def average(self: Moment, neighbours: SumNeighbours) -> tuple[float, float]:
        return (float(np.abs(self.values).mean()),) * 2

    monkeypatch.setattr(Moment, "sensitivity", average)
    assert most_excess(extreme_pair("add-remove"), BUDGETS["Gaussian"], [PRODUCTS]) > 0


def test_totals_are_those_of_the_last_column() -> None:
    rows = [plain("p", "A", "1"), plain("q", "A", "9"), plain("r", "B", "9")]
    one, two = answers(rows, "add-remove", BUDGETS["Gaussian"], [PRODUCTS, BY_CITY])
    assert one.value.tolist() == [-64 + 64 + 64]
    # Age 3 is in the second group: cells 6 to 11, by pay and then by city.
    assert two.value.tolist() == [0 + 2, 3]
    assert [kind_of_spend(s.spend) for s in (one, two)] == [Moments, Moments]
    assert kind_of({"ask": "moment"}) is Moments


UNFIT: dict[str, Any] = {
    "too few numbers": lambda: Moment(PRODUCTS.grid, (1, 2)),
    "a number that is not whole": lambda: Moment(PRODUCTS.grid, (0.5,) * 6),  # type: ignore[arg-type]
    "a number that sums could overflow with": lambda: Moment(PRODUCTS.grid, (MOST_VALUE + 1,) * 6),
}


@pytest.mark.parametrize("made", UNFIT.values(), ids=UNFIT.keys())
def test_what_is_no_moment_is_refused(made: Any) -> None:
    with pytest.raises(InternalError, match="a moment must have a whole number"):
        made()


class Light(Moment):
    """Mutant: says that nobody moves it."""

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        return 1.0, 1.0


REFUSED = {
    "is of no kind that the boundary knows": Light(PRODUCTS.grid, PRODUCTS.values),
    "must have a cell for each of the domain's codes": Moment(Grid(("age", "pay"), ((0, 1), (0, 1))), (1, 2, 3, 4)),
    "must tell some cells apart": Moment(PRODUCTS.grid, (0,) * 6),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_moment_that_is_refused_costs_nothing(words: str) -> None:
    rows = extreme_pair("add-remove").first
    curator = Curator.on(open_rows(rows, "add-remove", "pyarrow", Path()), BUDGETS["Gaussian"])
    with pytest.raises(InternalError, match=words):
        curator.ask(Moments(domain_of("add-remove", NAMES), [REFUSED[words]], curator.remaining()))
    assert curator.spends == ()
