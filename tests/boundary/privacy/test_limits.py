"""Where exact arithmetic ends: what is beyond is refused before it is paid for. And two threads that ask at once."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.asks import Marginals, Train
from understudy.boundary.privacy.asks.checks import MOST_SUMMED
from understudy.boundary.privacy.budget import Amount, Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import RowGate
from understudy.boundary.privacy.mechanisms import training
from understudy.boundary.privacy.mechanisms.noise import LARGEST_SCALE
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.score import MOST_EXPECTED, Candidate
from understudy.boundary.privacy.mechanisms.subsampling import Course
from understudy.boundary.privacy.mechanisms.training import BLOCK, MARGIN, MOST_ROWS, GradientShape, check_rows
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.errors import BudgetExhausted, MethodError

SCHEMA = us.Schema.loads('[columns.a]\ntype = "integer"\nmin = 0\nmax = 9999\n[columns.b]\ntype = "boolean"\n')
ROWS = pa.table({"a": [1, 2, 3], "b": [True, False, True]})


def curator(budget: Budget) -> Curator:
    return Curator.on(us.open(ROWS, SCHEMA), budget)


# --- Scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_scores_up_to_the_limit_are_exact(weight: float):
    """Half of the limit by the estimates, and as many rows; one row more moves a score by its weight, to the step."""
    estimate = np.array([MOST_EXPECTED / 2 - 0.5, 0.25])
    candidate = Candidate(("a",), estimate, weight, offset=-MOST_EXPECTED / 2)
    for counts in (np.array([0, 2**31]), np.array([2**31, 3])):
        error = sum(abs(Fraction(int(n)) - Fraction(float(e))) for n, e in zip(counts, estimate, strict=True))
        exact = Fraction(weight) * error - Fraction(MOST_EXPECTED) / 2
        assert Fraction(candidate.score(counts)) == exact  # all of it lies on the grid
        more = candidate.score(counts + np.array([0, 1]))
        assert abs(Fraction(more) - exact) == Fraction(weight)


@pytest.mark.parametrize(
    ("estimate", "weight", "offset"),
    [
        ([MOST_EXPECTED, 1.0], 1.0, 0.0),
        ([2.0**43, 0.0], 0.5, 0.0),
        ([2.0**31, 0.0], 4.0, 0.0),
        ([0.0], 1.0, -(2.0**33)),
    ],
)
def test_larger_scores_are_refused_when_they_are_put_together(estimate: list[float], weight: float, offset: float):
    with pytest.raises(MethodError, match="exact score"):
        Candidate(("a",), np.array(estimate), weight, offset)


def test_noise_that_no_score_can_hold_is_refused_before_anything_is_paid():
    asking = curator(Budget(1.0, 1e-6))
    scale = 2.0 * MOST_SUMMED / Domain.of(SCHEMA).cells(("a",))
    assert scale < LARGEST_SCALE
    amount = Amount(Fraction(1) / Fraction(2 * scale**2), pure=False)
    with pytest.raises(MethodError, match="larger epsilon"):
        asking.ask(Marginals(Domain.of(SCHEMA), [("a",)], amount))
    assert not asking.spends and not asking.record
    asking.ask(Marginals(Domain.of(SCHEMA), [("b",)], amount))  # of two cells, which add up to less


# --- Threads ----------------------------------------------------------------------------------------------------------


def test_two_threads_are_answered_one_after_the_other():
    """The second asks while the first is between its dry run and its debit: it waits, and is refused what is gone."""
    asking = curator(Budget(1.0, 1e-6))
    domain, amount = Domain.of(SCHEMA), asking.remaining()
    found: list[str] = []

    def ask() -> None:
        try:
            asking.ask(Marginals(domain, [("b",)], amount))
            found.append("answered")
        except BudgetExhausted:
            found.append("refused")

    second = threading.Thread(target=ask)
    inner = asking._gate

    class Interrupted(RowGate):
        def __init__(self) -> None:
            pass

        def answer(self, ask: Any, price: Any, questions: Any, debit: Any) -> Any:
            asking._gate = inner
            second.start()
            second.join(0.2)  # long enough for it to be answered, were it let in
            return inner.answer(ask, price, questions, debit)

    asking._gate = Interrupted()
    ask()
    second.join()
    assert found == ["answered", "refused"]
    assert len(asking.spends) == len(asking.record) == 1


# --- Training ---------------------------------------------------------------------------------------------------------


def test_the_sum_of_the_largest_batch_stays_within_half_of_the_margin():
    """m additions of B gradients of length 1 err by m·u·B at most in each of two neighbours, with u = 2^-53."""
    additions = BLOCK + Fraction(MOST_ROWS, BLOCK)
    assert 2 * additions * MOST_ROWS * Fraction(1, 2**53) <= Fraction(MARGIN) / 2
    twice = 2 * MOST_ROWS
    assert 2 * (BLOCK + Fraction(twice, BLOCK)) * twice * Fraction(1, 2**53) > Fraction(MARGIN) / 2


def test_a_table_of_more_rows_is_not_trained_on():
    check_rows(MOST_ROWS)
    with pytest.raises(MethodError, match="at most 33,554,432 rows"):
        check_rows(MOST_ROWS + 1)


def test_too_many_rows_are_refused_before_anything_is_paid(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
    pytest.importorskip("torch", reason="the extra gan is not installed")
    monkeypatch.setattr(training, "MOST_ROWS", 2)
    asking = curator(Budget(1.0, 1e-6))
    asking.reserve(0.5, 0.5)
    grid = Grid(("b",), ((0, 1),))
    with pytest.raises(MethodError, match="at most 2 rows"):
        asking.ask(
            Train(Domain.of(SCHEMA), grid, GradientShape(grid.shape), Course(0.1, 50.0, 1), {}, ["w"], lambda t: [])
        )
    assert not asking.spends
    course, codes = Course(0.1, 50.0, 1), np.zeros((3, 1), dtype=np.uint8)
    with pytest.raises(MethodError, match="at most 2 rows"):
        training.GradientSums(codes, GradientShape((2,)), course, ExactRandomness.system())
