"""What may leave the range of doubles on some row is refused by public facts, whoever asks: some engines raise."""

from __future__ import annotations

import pytest

import understudy as us
from understudy.boundary.privacy.asks import Tally
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.schema.domain import Domain, EvenCoding
from understudy.boundary.schema.expression import parse
from understudy.boundary.schema.grouped_sums import GroupedSums, RowCount, ValueSum
from understudy.boundary.schema.magnitude import check_range, check_tally

SCHEMA = us.Schema.loads(
    '[columns.x]\ntype = "number"\nmin = -1.0\nmax = 100.0\n[columns.far]\ntype = "number"\nmin = -1e300\nmax = 1e300\n'
    '[columns.fine]\ntype = "number"\nmin = 0\nmax = 1e300\ndecimals = 2\n'
    '[columns.mark]\ntype = "categorical"\nvalues = ["1", "b"]\n[columns.day]\ntype = "datetime"\nmin = 2020-01-01\n'
    "max = 2020-12-31\n"
)


@pytest.mark.parametrize(
    "text",
    ["x * 1e300 * 1e300 > 0", "far * far > 0", "far + far > 0", "x * x * x * x > 0", "(x - 1) * (x - 2) * (x - 3) > 0",
     "fine * fine * 1e-300 > 0"],
)  # fmt: skip
def test_arithmetic_that_may_leave_the_range_is_refused(text):
    with pytest.raises(us.InputError, match="may leave the range"):
        check_range(parse(text, SCHEMA.kinds), SCHEMA)


@pytest.mark.parametrize("text", ["x * 3 + 2 > x * x", "day + 3 > '2020-02-01'", "far > 1e299", "mark = 'b'"])
def test_other_arithmetic_is_not(text):
    check_range(parse(text, SCHEMA.kinds), SCHEMA)


@pytest.mark.parametrize(
    "summand",
    [ValueSum("far", 0.0, 1e-291, -9, 9), ValueSum("x", 0.0, 1e299, -9, 9), ValueSum("x", 0.0, 1e-201, -9, 9),
     ValueSum("x", 1e300, 10.0, -9, 9), ValueSum("mark", 0.0, 1.0, 0, 1), ValueSum("day", 0.0, 1.0, 0, 1)],
)  # fmt: skip
def test_a_sum_that_some_row_could_break_is_refused_by_the_boundary(summand):
    facts = PublicFacts(SCHEMA, Budget(1.0, 1e-6))
    ask = Tally(Domain.of(SCHEMA), GroupedSums((), None, (summand,)), facts.counting.capacity)
    with pytest.raises(us.InputError, match=r"may leave the range|can't be added up"):
        ask.spends(facts)


def test_a_condition_is_checked_where_it_is_asked_and_not_only_where_it_is_written():
    facts, where = PublicFacts(SCHEMA, Budget(1.0, 1e-6)), parse("(x - 30) * 1e300 * 1e300 > 0", SCHEMA.kinds)
    ask = Tally(Domain.of(SCHEMA), GroupedSums((), where, (RowCount(),)), facts.counting.capacity)
    with pytest.raises(us.InputError, match="may leave the range"):
        ask.spends(facts)
    check_tally(GroupedSums((), None, (ValueSum("x", 49.5, 1e4, -505000, 505000),)), SCHEMA)


def test_even_bins_are_between_bounds_whose_distance_is_a_number():
    with pytest.raises(us.SchemaError, match="declare closer ones"):
        EvenCoding(SCHEMA["far"], edges=(-1.7e308, 0.0, 1.7e308))
