"""Bought bins: which columns they are for, where they fall, what they cost, and that they replay."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import understudy as us
from helpers.randomness import SilentRandomness
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.methods.parts.bought_bins import MOST, SHARE, unsettled, with_bought_bins

TOML = """
[columns.pay]
type = "integer"
min = 0
max = 99999
missing = true
[columns.weight]
type = "number"
min = 0
max = 200
decimals = 1
[columns.age]
type = "integer"
min = 0
max = 99
[columns.height]
type = "number"
min = 0
max = 3
bins = 30
[columns.rent]
type = "integer"
min = 0
max = 9999
cuts = [500, 900]
[columns.sex]
type = "categorical"
values = ["f", "m"]
"""
SCHEMA = Schema.loads(TOML)


def people(rows: int = 4000) -> pa.Table:
    rng = np.random.default_rng(7)
    pay = np.minimum(rng.lognormal(10, 0.4, rows), 99_999).astype(int)
    return pa.table(
        {
            "pay": pa.array(pay, mask=rng.random(rows) < 0.1),
            "weight": np.round(rng.normal(70, 8, rows).clip(0, 200), 1),
            "age": rng.integers(0, 100, rows),
            "height": rng.normal(1.7, 0.1, rows),
            "rent": rng.integers(0, 9999, rows),
            "sex": rng.choice(["f", "m"], rows),
        }
    )


def on(rows: pa.Table, epsilon: float, *, silent: bool = False, schema: Schema = SCHEMA) -> Curator:
    randomness = SilentRandomness() if silent else None
    return Curator.on(us.open(rows, schema), Budget(epsilon, 1e-6), randomness=randomness)


def test_only_columns_that_leave_their_bins_to_the_method() -> None:
    assert [c.name for c in unsettled(SCHEMA)] == ["pay", "weight"]


def test_nothing_is_spent_where_nothing_is_left_open() -> None:
    schema = Schema.loads(TOML[TOML.index("[columns.age]") :])
    curator = on(people().drop(["pay", "weight"]), 1.0, schema=schema)
    assert with_bought_bins(schema, curator) is schema and curator.spends == ()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_they_cost_their_share_and_no_more(epsilon: float) -> None:
    curator = on(people(), epsilon)
    whole = curator.remaining().value
    with_bought_bins(SCHEMA, curator)
    assert whole * (1 - SHARE) * (1 - 1e-9) <= curator.remaining().value


def shares(values: NDArray[np.float64], cuts: tuple[float, ...]) -> NDArray[np.float64]:
    return np.diff(np.searchsorted(np.sort(values), cuts)) / len(values)


def test_without_noise_bins_are_of_about_equal_mass() -> None:
    rows = people()
    found = with_bought_bins(SCHEMA, on(rows, 50.0, silent=True))
    for name in ("pay", "weight"):
        cuts = found[name].cuts
        values = rows.column(name).drop_null().to_numpy()
        assert MOST // 2 <= len(cuts) < MOST and all(a < b for a, b in itertools.pairwise(cuts))
        assert shares(values, cuts).max() < 3 / MOST  # bins of one width would have up to a fifth of all rows
    assert Domain.of(found)["pay"].column.missing and found["age"].cuts is None


PUBLIC_ROWS = Schema.loads(f'neighbours = "replace-one"\n{TOML}')


@pytest.mark.parametrize(("silent", "schema"), [(True, SCHEMA), (False, PUBLIC_ROWS)], ids=["silent", "noisy"])
def test_fewer_bins_where_noise_rules(silent: bool, schema: Schema) -> None:
    """How many bins there may be follows from the number of rows and the budget. A noisy number of rows that happens
    to be far too large gives more of them, so here it is exact: without noise, or because it is public.
    """
    found = [with_bought_bins(schema, on(people(200), e, silent=silent, schema=schema)) for e in (0.05, 20.0)]
    counts = [len(f["pay"].cuts or ()) for f in found]
    assert counts[0] < 8 <= counts[1]


def neighbours(rows: pa.Table) -> Iterator[pa.Table]:
    yield rows.slice(1)
    yield pa.concat_tables([rows, rows.slice(0, 1).set_column(0, "pay", pa.array([99_999], pa.int64()))])


def test_a_row_moves_the_answers_by_what_is_declared() -> None:
    """Every histogram by one in one cell: the cuts are a function of these alone."""
    rows = people(300)
    first = on(rows, 1.0, silent=True)
    with_bought_bins(SCHEMA, first)
    for other in neighbours(rows):
        second = on(other, 1.0, silent=True)
        with_bought_bins(SCHEMA, second)
        # Which histograms are bought follows the answers, so that one of the two may have more of them.
        for a, b, spend in zip(first.record, second.record, first.spends, strict=False):
            if a.question == b.question:
                assert np.abs(a.value - b.value).sum() <= 1 == spend.sensitivity


def test_the_same_cuts_from_the_record() -> None:
    curator = on(people(), 1.0)
    found = with_bought_bins(SCHEMA, curator)
    again = Curator.replaying(SCHEMA, Budget(1.0, 1e-6), curator.record)
    assert with_bought_bins(SCHEMA, again) == found
