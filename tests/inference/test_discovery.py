"""Buying what is private: what is found, what it costs, and that nothing rare comes out."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.inference.discovery import discover


class Silence(ExactRandomness):
    """No noise at all."""

    def noise(self, mechanism: str, scale: float, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)


def found(values: object, facts: str, delta: float = 1e-6, silent: bool = True) -> tuple:
    """The column x as discovered, and the curator that was asked."""
    schema = us.Schema.loads(f"[columns.x]\n{facts}")
    randomness = Silence.system() if silent else ExactRandomness.seeded(3)
    curator = Curator.on(us.open(pa.table({"x": values}), schema), us.Budget(2.0, delta), randomness=randomness)
    return discover(schema, curator)["x"], curator


PRIVATE = 'min = "private"\nmax = "private"\n'


def test_nothing_private_nothing_spent():
    column, curator = found([1, 2, 3], 'type = "integer"\nmin = 0\nmax = 9')
    assert (column.minimum, column.maximum) == (0, 9) and curator.spends == ()


def test_common_values_are_found_and_rare_ones_are_other():
    column, curator = found(
        ["cook"] * 400 + ["nurse"] * 300 + ["the only astronaut"], 'type = "categorical"\nvalues = "private"'
    )
    assert column.values == ("cook", "nurse", "other") and column.other == "other"
    assert [s.mechanism for s in curator.spends] == ["thresholded-rounded-gaussian"]
    assert 0 < curator.spends[0].delta <= 0.5e-6


def test_a_declared_label_for_other_values_is_kept():
    facts = 'type = "categorical"\nvalues = "private"\nother = "else"'
    column, _ = found(["cook"] * 400 + ["else"] * 400 + ["x"], facts)
    assert column.values == ("cook", "else") and column.other == "else"


def test_no_value_passes():
    column, _ = found(["a", "b", "c"], 'type = "categorical"\nvalues = "private"')
    assert column.values == ("other",)


@pytest.mark.parametrize(
    ("low", "high", "expected", "delta", "silent"),
    [
        (17, 90, (16, 127), 0.0, True),
        (17, 90, (16, 127), 0.0, False),
        (17, 90, (16, 127), 1e-6, False),
        (1, 1, (1, 1), 1e-6, True),
        (0, 1000, (0, 1023), 1e-6, False),
        (-40, -5, (-64, -5), 0.0, False),
        (-3, 3, (-4, 3), 1e-6, False),
    ],
)
def test_bounds_of_whole_numbers(low: int, high: int, expected: tuple[int, int], delta: float, silent: bool):
    """Powers of two around the values; one outlier in 20,000 moves nothing."""
    values = np.tile(np.arange(low, high + 1), 20_000 // (high - low + 1) + 1)
    column, curator = found(np.append(values, 10**12), 'type = "integer"\n' + PRIVATE, delta, silent)
    assert expected[0] <= column.minimum and column.maximum == expected[1]
    # A bucket of few values does not stand out of the noise, and its values are clamped.
    assert np.mean((values < column.minimum) | (values > column.maximum)) < 0.01
    assert curator.guarantee[0] <= 2.0


def test_bounds_of_numbers():
    values = np.linspace(0.3, 5.9, 5000)
    column, _ = found(np.append(values, [np.inf, -1e300]), 'type = "number"\n' + PRIVATE)
    assert (column.minimum, column.maximum) == (0.25, 8.0)


def test_a_declared_bound_stays():
    column, _ = found(np.arange(3, 50).repeat(100), 'type = "integer"\nmin = 0\nmax = "private"')
    assert (column.minimum, column.maximum) == (0, 63)


def test_bounds_of_dates():
    start = datetime(2021, 3, 1)
    days = [start + timedelta(days=i % 300) for i in range(6000)]
    column, _ = found(days, 'type = "datetime"\n' + PRIVATE)
    assert column.minimum <= start and start + timedelta(days=299) <= column.maximum
    assert column.maximum - column.minimum < timedelta(days=300 + 2 * 91)


@pytest.mark.parametrize("values", [[None, None, None], [5, 6, 7]])
def test_too_few_rows_still_give_some_bounds(values: list):
    """A refusal would tell that there are few; so any bounds come out, and the range is never empty."""
    column, _ = found(pa.array(values, type=pa.int64()), 'type = "integer"\nmissing = true\n' + PRIVATE)
    assert column.minimum <= column.maximum


def test_a_share_of_the_budget_is_left_for_measuring():
    facts = 'type = "categorical"\nvalues = "private"\n'
    schema = us.Schema.loads("".join(f"[columns.x{i}]\n{facts}" for i in range(12)))
    frame = pa.table({f"x{i}": ["cook"] * 500 for i in range(12)})
    curator = Curator.on(us.open(frame, schema), us.Budget(1.0, 1e-6), randomness=Silence.system())
    whole = curator.remaining().value
    discover(schema, curator)
    assert len(curator.spends) == 12 and 0.69 < float(curator.remaining().value / whole) < 0.71


@pytest.mark.parametrize("decimals", ["decimals = 0\n", "decimals = 2\n", ""])
@pytest.mark.parametrize("high", [0.4, 30.0])
def test_bought_bounds_can_always_be_released(decimals: str, high: float):
    """Whatever the bounds turn out to be, the budget is spent by then: a refusal would come too late."""
    schema = us.Schema.loads(f'[columns.x]\ntype = "number"\n{PRIVATE}{decimals}')
    frame = pa.table({"x": np.linspace(0, high, 4000)})
    made = us.synthesize(us.open(frame, schema), epsilon=2.0, rows=50, test_only_noise_seed=1).table
    assert made.num_rows == 50
