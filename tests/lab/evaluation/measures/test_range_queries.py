"""Random counting queries, against a count row by row."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest
from tables import compared, people, shuffled

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures import range_queries as queries
from understudy.lab.evaluation.measures.range_queries import (
    QUERIES,
    SANITY,
    Interval,
    RangeQuery,
    Subset,
    query_error,
    query_relative,
)
from understudy.lab.evaluation.measures.range_queries import random_queries as drawn


def satisfied(query: RangeQuery, comparison: Comparison, row: dict) -> bool:
    for condition in query.conditions:
        value = row[condition.column]
        if isinstance(condition, Interval):
            if value is None or not condition.low <= value <= condition.high:
                return False
        else:
            labels = comparison[condition.column].all_labels
            name = "missing" if value is None else str(value).lower() if isinstance(value, bool) else value
            if not condition.accepted[labels.index(name)]:
                return False
    return True


def test_shares_are_those_of_a_count_row_by_row():
    real, synthetic = people(80), people(60, 5)
    comparison = compared(real, synthetic)
    asked = drawn(comparison, 40)
    for table, sample in ((real, comparison.real), (synthetic, comparison.synthetic)):
        rows = table.to_pylist()
        counted = [sum(satisfied(q, comparison, row) for row in rows) / len(rows) for q in asked]
        assert [q.share(sample) for q in asked] == pytest.approx(counted)


def test_figures_by_hand(monkeypatch: pytest.MonkeyPatch):
    real = pa.table({"c": ["a", "a", "b", "b"], "x": [1.5, 2.5, 3.5, 4.5]})
    synthetic = pa.table({"c": ["a", "a", "a", "b"], "x": [1.5, 3.0, 3.5, 9.5]})
    asked = [
        RangeQuery((Subset("c", (True, False)),)),  # 2/4 and 3/4
        RangeQuery((Interval("x", 2.5, 3.5),)),  # 2/4 and 2/4
        RangeQuery((Subset("c", (False, True)), Interval("x", 4.0, 4.5))),  # 1/4 and 0
        RangeQuery((Subset("c", (True, False)), Interval("x", 3.0, 4.0))),  # 0 and 2/4
    ]
    monkeypatch.setattr(queries, "random_queries", lambda comparison: asked)
    comparison = Comparison.of(real, synthetic)
    error = query_error(comparison)
    assert error.value == pytest.approx((0.25 + 0 + 0.25 + 0.5) / 4)
    assert [(p.name, p.value) for p in error.parts] == [("1 column", 0.125), ("2 columns", 0.375)]
    assert query_relative(comparison).value == pytest.approx((0.5 + 1) / 2)
    assert query_relative(comparison).parts[1].value == pytest.approx((1 + 0.5 / SANITY) / 2)


def test_queries_are_of_one_two_and_three_columns_and_never_empty():
    comparison = compared(people(200), people(200, 5))
    asked = drawn(comparison)
    assert len(asked) == QUERIES
    sizes = [len(q.conditions) for q in asked]
    assert {s: sizes.count(s) for s in (1, 2, 3)} == {1: 167, 2: 167, 3: 166}
    assert all(len({c.column for c in q.conditions}) == len(q.conditions) for q in asked)
    conditions = [c for q in asked for c in q.conditions]
    assert {c.column for c in conditions} == {v.name for v in comparison.variables}
    for c in conditions:
        if isinstance(c, Interval):
            assert c.low <= c.high
            assert {c.low, c.high} <= set(comparison.real.values[c.column].tolist())
        else:
            assert any(c.accepted)
            assert not all(c.accepted) or comparison[c.column].column.ordered


def test_an_ordinal_is_asked_for_neighbours():
    asked = drawn(compared(people(50), people(50, 5)))
    grades = {c.accepted for q in asked for c in q.conditions if c.column == "grade"}
    assert (True, False, True) not in grades
    assert len(grades) == 6


def test_the_seed_decides():
    comparison = compared(people(50), people(50, 5))
    assert drawn(comparison, 30) == drawn(comparison, 30)
    assert drawn(comparison, 30) != drawn(dataclasses.replace(comparison, seed=1), 30)


def test_identical_tables_have_no_error():
    real = people(300)
    assert query_error(compared(real, real)).value == 0.0
    assert query_relative(compared(real, real)).value == 0.0


def test_a_shuffled_table_is_right_about_one_column_only():
    real = people(600)
    one, two, three = (p.value for p in query_error(compared(real, shuffled(real))).parts)
    assert one == 0.0
    assert min(two, three) > 0.01


def test_a_column_without_finite_values_is_not_asked_for():
    table = pa.table({"hours": [math.nan, math.inf, None], "job": ["cook", "nurse", "cook"]})
    comparison = compared(table, table, holdout=None, target=None, groups=())
    assert [v.name for v in comparison.on_line] == ["hours"]
    assert {c.column for q in drawn(comparison) for c in q.conditions} == {"job"}


def test_a_table_without_finite_values_has_a_reason():
    void = pa.table({name: pa.nulls(5, pa.float64()) for name in ("age", "hours")})
    comparison = compared(void, people(5), holdout=None, target=None, groups=())
    assert all(not np.isfinite(v).any() for v in comparison.real.values.values())
    assert "no column" in query_error(comparison).reason
