"""Measurements made to agree, against least squares; and tables with the columns' margins."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.inference.noisy_table import NoisyTable, agree

GROUPS = {"a": np.array([0, 0, 1, 2, 2, 1]), "b": np.array([0, 1, 1, 0]), "c": np.arange(3)}
SIZES = {c: g.size for c, g in GROUPS.items()}


def columns_read(seed: int = 1) -> dict[str, NoisyTable]:
    rng = np.random.default_rng(seed)
    return {c: NoisyTable((c,), rng.normal(100, 20, n), rng.uniform(5, 50, n)) for c, n in SIZES.items()}


def reading(columns: str, seed: int = 2, variance: float = 9.0) -> NoisyTable:
    groups = tuple(GROUPS[c] for c in columns)
    shape = [int(g.max()) + 1 for g in groups]
    return NoisyTable(tuple(columns), np.random.default_rng(seed).normal(60, 10, shape), variance, groups)


def least_squares(column: NoisyTable, groups: np.ndarray, seen: np.ndarray, variance: float) -> np.ndarray:
    """The values' own counts and the sums of groups, each divided by its deviation."""
    summing = np.equal.outer(np.arange(groups.max() + 1), groups).astype(float)
    rows = np.concatenate([np.diag(column.variance**-0.5), summing / np.sqrt(variance)])
    wanted = np.concatenate([column.counts * column.variance**-0.5, seen / np.sqrt(variance)])
    return np.linalg.lstsq(rows, wanted, rcond=None)[0]


@pytest.mark.parametrize("name", GROUPS)
def test_one_reading_of_one_column_equals_least_squares(name: str):
    column, seen = columns_read()[name], reading(name)
    found = agree({name: column}, [seen], None)[name]
    assert np.allclose(found.counts, least_squares(column, GROUPS[name], seen.counts, 9.0), rtol=1e-10)
    assert not np.allclose(found.counts, column.counts, rtol=1e-3)


@pytest.mark.parametrize("columns", ["ab", "bca"])
def test_a_table_says_of_a_column_what_its_margin_says(columns: str):
    """A margin sums cells, and so their variances."""
    read, seen = columns_read(), reading(columns)
    for axis, name in enumerate(columns):
        margin = seen.counts.sum(axis=tuple(i for i in range(len(columns)) if i != axis))
        variance = 9.0 * seen.counts.size / margin.size
        found = read[name].updated_by(seen.margin(name))
        assert np.allclose(found.counts, least_squares(read[name], GROUPS[name], margin, variance), rtol=1e-10)


def test_the_new_variances_are_those_of_least_squares():
    column, groups = columns_read()["a"], GROUPS["a"]
    summing = np.equal.outer(np.arange(3), groups).astype(float)
    posterior = np.linalg.inv(np.diag(1 / column.variance) + summing.T @ summing / 9.0)
    found = column.updated_by(NoisyTable(("a",), np.full(3, 200.0), 9.0, (groups,))).variance
    assert np.allclose(found, np.diag(posterior), rtol=1e-10)


@pytest.mark.parametrize("total", [None, 1234.5])
def test_all_columns_have_one_total(total: float | None):
    readings = [reading("ab"), reading("bc", 3), reading("a", 4), reading("abc", 5)]
    found = agree(columns_read(), readings, total)
    totals = [c.counts.sum() for c in found.values()]
    assert totals == pytest.approx([total or totals[0]] * 3, rel=1e-12)
    apart = [c.counts.sum() for c in columns_read().values()]
    assert max(apart) - min(apart) > 100  # they had to be moved


def test_the_total_is_the_mean_by_inverse_variance_and_at_least_one():
    read = {
        "x": NoisyTable(("x",), np.array([10.0, 20.0]), np.array([1.0, 1.0])),
        "y": NoisyTable(("y",), np.array([90.0]), np.array([6.0])),
    }
    assert agree(read, [], None)["x"].counts.sum() == pytest.approx((30 / 2 + 90 / 6) / (1 / 2 + 1 / 6))
    negative = {"x": NoisyTable(("x",), np.array([-10.0, -20.0]), np.ones(2))}
    assert agree(negative, [], None)["x"].counts.sum() == pytest.approx(1.0)


def test_each_value_moves_by_its_share_of_the_variance():
    column = NoisyTable(("x",), np.array([10.0, 20.0, 30.0]), np.array([1.0, 2.0, 7.0])).scaled_to(70.0)
    assert np.allclose(column.counts, [11.0, 22.0, 37.0])


def test_variances_only_shrink_and_every_reading_shrinks_them():
    read = columns_read()
    once = agree(read, [reading("ab")], None)
    twice = agree(read, [reading("ab"), reading("ac")], None)
    assert (once["a"].variance < read["a"].variance).all() and (twice["a"].variance < once["a"].variance).all()
    assert np.array_equal(once["c"].variance, read["c"].variance) and (twice["a"].variance > 0).all()
    loud = agree(read, [reading("ab", variance=1e12)], 500.0)
    assert np.allclose(loud["a"].variance, read["a"].variance)


def test_a_better_reading_brings_estimates_closer():
    """Fixed seeds; the mean of 200 tables."""
    rng = np.random.default_rng(6)
    truth = np.array([50.0, 10.0, 80.0, 5.0, 40.0, 15.0])
    sums = np.bincount(GROUPS["a"], truth)
    off = []
    for _ in range(200):
        column = NoisyTable(("a",), truth + rng.normal(0, 10, 6), np.full(6, 100.0))
        seen = NoisyTable(("a",), sums + rng.normal(0, 3, 3), 9.0, (GROUPS["a"],))
        off.append([((x - truth) ** 2).mean() for x in (agree({"a": column}, [seen], None)["a"].counts, column.counts)])
    after, before = np.mean(off, axis=0)
    assert after < 0.65 * before


@pytest.mark.parametrize("columns", ["a", "ab", "ca", "abc"])
def test_shifted_tables_have_the_margins_of_the_columns(columns: str):
    found, seen = agree(columns_read(), [reading("ab")], 700.0), reading(columns, 7)
    original = seen.counts.copy()
    counts = seen.shifted_to(found).counts
    for axis, name in enumerate(columns):
        wanted = np.bincount(GROUPS[name], found[name].counts)
        margin = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != axis))
        assert np.allclose(margin, wanted, rtol=1e-10)
    assert np.array_equal(seen.counts, original) and counts.shape == original.shape


def test_shifts_are_even_so_that_no_interaction_changes():
    seen = reading("ab", 7)
    change = seen.shifted_to(agree(columns_read(), [], 700.0)).counts - seen.counts
    assert np.allclose(change - change.mean(axis=0) - change.mean(axis=1, keepdims=True) + change.mean(), 0, atol=1e-9)
