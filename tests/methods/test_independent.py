"""`independent`: without noise, the one-way counts of the original."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.inference.noisy_table import LEAST_ROWS

SCHEMA = us.Schema.loads(
    """
    [columns.job]
    type = "categorical"
    values = ["clerk", "cook", "nurse", "pilot"]
    missing = true
    [columns.age]
    type = "integer"
    min = 18
    max = 27
    [columns.smoker]
    type = "boolean"
    """
)


def people(rows: int = 997) -> pa.Table:
    """Three unrelated columns; nobody is a pilot."""
    rng = np.random.default_rng(8)
    jobs = rng.choice(["clerk", "cook", "nurse"], rows, p=[0.7, 0.2, 0.1])
    return pa.table(
        {
            "job": pa.array(jobs, mask=rng.random(rows) < 0.1),
            "age": 18 + rng.binomial(9, 0.3, rows),
            "smoker": rng.random(rows) < 0.3,
        }
    )


def counts(table: pa.Table, column: str) -> Counter:
    return Counter(table.column(column).to_pylist())


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("rows", [None, 100, 997, 5000])
def test_one_way_counts_are_kept(silent, rows: int | None, delta: float):
    """A systematic draw gives each value its expected count, rounded up or down; one that noise may have hidden, as
    the pilots that there are none of, gets about a row."""
    original = people()
    made = silent(original, SCHEMA, "independent", rows=rows, delta=delta).table
    share = made.num_rows / original.num_rows
    assert made.num_rows == (rows or 997)
    for column in SCHEMA.names:
        real, drawn = counts(original, column), counts(made, column)
        assert all(abs(drawn[v] - share * real[v]) < 1 + LEAST_ROWS * share + 1e-9 for v in real | drawn)


def test_columns_are_unrelated(silent):
    """A column that copies another loses the relation, whatever the order in which rows are drawn.

    Given the one-way counts, the number of rows in which both are true is hypergeometric, with mean 500 and variance
    about 125; ten deviations away has probability below 1e-22.
    """
    coin = np.random.default_rng(4).permutation(np.arange(2000) < 1000)
    schema = us.Schema.loads("[columns.a]\ntype='boolean'\n[columns.b]\ntype='boolean'")
    made = silent(pa.table({"a": coin, "b": coin}), schema, "independent").table
    both = int((made.column("a").to_numpy() & made.column("b").to_numpy()).sum())
    assert abs(both - 500) < 10 * np.sqrt(125)


def test_the_budget_is_shared_by_all_columns():
    release = us.synthesize(us.open(people(), SCHEMA), epsilon=1.0, method="independent")
    assert [s.asked for s in release.certificate.spends] == [f"counts by {c}" for c in SCHEMA.names]
    assert 0.98 <= release.certificate.composed[0] <= 1.0


def test_a_target_is_recorded_though_the_method_has_no_use_for_it():
    release = us.synthesize(us.open(people(), SCHEMA), epsilon=1.0, method="independent", target="smoker")
    assert release.certificate.parameters["target"] == "smoker"
