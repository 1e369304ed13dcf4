"""Counting over blocks of codes against a count one row at a time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import Domain, code_type
from understudy.boundary.schema.partition import Grid
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables import counting
from understudy.boundary.tables.counting import count_marginals, count_partitions, joined_sets
from understudy.errors import InternalError


def domain_of(sizes):
    columns = (Categorical(f"c{i}", values=tuple(range(size))) for i, size in enumerate(sizes))
    return Domain.of(Schema(tuple(columns)))


def naive(domain, columns, batches):
    counts = np.zeros(domain.shape(columns), dtype=np.int64)
    for batch in batches:
        for row in zip(*(batch[c].tolist() for c in domain.names), strict=True):
            place = dict(zip(domain.names, row, strict=True))
            counts[tuple(place[c] for c in columns)] += 1
    return counts


def batches_of(domain, lengths, rng, dtype=None):
    return [
        {c.name: rng.integers(0, c.size, n).astype(dtype or code_type(c.size)) for c in domain.codings} for n in lengths
    ]


def all_sets(domain, most=3):
    return [s for k in range(most + 1) for s in itertools.combinations(domain.names, k)]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4), st.lists(st.integers(0, 30), max_size=4), st.integers(0, 99)
)
@settings(max_examples=50, deadline=None)
def test_marginals_agree_with_counting_by_hand(sizes, lengths, seed):
    domain = domain_of(sizes)
    batches = batches_of(domain, lengths, np.random.default_rng(seed))
    sets = all_sets(domain) * 2
    for columns, counts in zip(sets, count_marginals(domain, sets, batches), strict=True):
        assert counts.dtype == np.int64 and counts.shape == domain.shape(columns)
        np.testing.assert_array_equal(counts, naive(domain, columns, batches))


@pytest.mark.parametrize(
    "sizes", [(256, 256), (257, 255), (2, 32768), (65536, 2), (70_000, 3), (41, 41, 41), (256, 257)]
)
def test_cell_numbers_never_overflow_their_type(sizes):
    """The last cell of each table is hit: the one that wraps round first in too narrow a type."""
    domain = domain_of(sizes)
    last = {c.name: np.full(5, c.size - 1, dtype=code_type(c.size)) for c in domain}
    first = {c.name: np.zeros(3, dtype=code_type(c.size)) for c in domain}
    (counts,) = count_marginals(domain, [domain.names], [last, first])
    assert counts[(-1,) * len(sizes)] == 5 and counts[(0,) * len(sizes)] == 3 and counts.sum() == 8


@pytest.mark.parametrize("rows", [1, counting.BLOCK - 1, counting.BLOCK, counting.BLOCK + 1, 3 * counting.BLOCK + 7])
def test_every_row_of_every_block_counts_once(rows):
    domain = domain_of((5, 300))
    (batch,) = batches_of(domain, [rows], np.random.default_rng(1))
    pair, single, total = count_marginals(domain, [("c0", "c1"), ("c1",), ()], [batch])
    flat = batch["c0"].astype(int) * 300 + batch["c1"]
    np.testing.assert_array_equal(pair.ravel(), np.bincount(flat, minlength=1500))
    np.testing.assert_array_equal(single, pair.sum(axis=0))
    assert total == rows


def test_the_given_codes_are_not_changed():
    domain = domain_of((4, 5))
    (batch,) = batches_of(domain, [100], np.random.default_rng(2))
    before = {n: c.copy() for n, c in batch.items()}
    count_marginals(domain, [("c0", "c1"), ("c0",)], [batch])
    assert all(np.array_equal(batch[n], before[n]) for n in batch)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64])
def test_codes_of_any_width_are_counted(dtype):
    domain = domain_of((7, 9, 3))
    batches = batches_of(domain, [50, 20], np.random.default_rng(3), dtype)
    (counts,) = count_marginals(domain, [domain.names], batches)
    np.testing.assert_array_equal(counts, naive(domain, domain.names, batches))


def test_partitions_are_counted_over_all_batches():
    domain = domain_of((6, 4))
    batches = batches_of(domain, [40, 0, 60], np.random.default_rng(4))
    grid = Grid(("c1", "c0"), ((0, 1, 1, 0), (0, 0, 1, 1, 2, 2)))
    (counts,) = count_partitions([grid], batches)
    table = naive(domain, ("c1", "c0"), batches)
    merged = np.zeros(grid.shape, dtype=np.int64)
    for i, j in np.ndindex(4, 6):
        merged[grid.groups[0][i], grid.groups[1][j]] += table[i, j]
    np.testing.assert_array_equal(counts, merged.ravel())


@pytest.mark.parametrize(("size", "dtype"), [(1, "u1"), (256, "u1"), (257, "u2"), (65536, "u2"), (65537, "u4")])
def test_codes_have_the_narrowest_type(size, dtype):
    assert code_type(size) == np.dtype(dtype)


# ---------------------------------------------------------------- many rows, by the compiled loop


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch):
    """The compiled loop for a few rows too."""
    pytest.importorskip("numba")
    monkeypatch.setattr(counting, "BLOCK", 7)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5), st.lists(st.integers(7, 30), max_size=4), st.integers(0, 99)
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_rows_are_counted_as_few(compiled, sizes, lengths, seed):
    domain, rng = domain_of(sizes), np.random.default_rng(seed)
    batches = batches_of(domain, lengths, rng)
    sets = [*all_sets(domain), *(s[::-1] for s in all_sets(domain))]
    sets = [sets[i] for i in rng.permutation(len(sets))[: rng.integers(1, len(sets) + 1)]]
    for columns, counts in zip(sets, count_marginals(domain, sets, batches), strict=True):
        assert counts.dtype == np.int64 and counts.shape == domain.shape(columns)
        np.testing.assert_array_equal(counts, naive(domain, columns, batches))


@pytest.mark.parametrize("sizes", [(256, 256), (2, 40_000), (65536, 2), (70_000, 3), (41, 41, 41), (1, 257)])
def test_many_rows_of_large_columns_are_counted(compiled, sizes):
    domain = domain_of(sizes)
    rng = np.random.default_rng(0)
    batches = batches_of(domain, [200], rng, dtype=np.int64)
    (counts,) = count_marginals(domain, [domain.names], batches)
    expected = np.zeros(counts.shape, dtype=np.int64)
    np.add.at(expected, tuple(batches[0][c] for c in domain.names), 1)
    np.testing.assert_array_equal(counts, expected)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.integers(0, 99))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_rows_fall_into_the_cells_of_partitions(compiled, sizes, seed):
    domain, rng = domain_of(sizes), np.random.default_rng(seed)
    batches = batches_of(domain, [20, 9, 8], rng)
    grids = []
    for columns in [s for s in all_sets(domain) if s][::-1]:
        groups = tuple(tuple(map(int, rng.integers(0, 3, domain.size(c)))) for c in columns)
        grids += [Grid(columns, groups), _Apart(columns)]
    for grid, counts in zip(grids, count_partitions(grids, batches), strict=True):
        expected = sum(np.bincount(grid.assign(b), minlength=grid.cells) for b in batches)
        np.testing.assert_array_equal(counts, expected)


@dataclass(frozen=True)
class _Apart:
    """A partition that is not a grid."""

    columns: tuple[str, ...]
    cells: int = 2

    def assign(self, codes):
        return sum(codes[c].astype(np.intp) for c in self.columns) % 2


def test_a_code_that_its_column_has_not_is_written_nowhere(compiled):
    """The compiled loop checks no bounds: another's memory would be written to."""
    domain = domain_of((3, 4))
    batch = {"c0": np.full(50, 3, dtype=np.uint8), "c1": np.zeros(50, dtype=np.uint8)}
    with pytest.raises(InternalError, match="a code is beyond the codes of its column"):
        count_marginals(domain, [("c0", "c1")], [batch])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 99))
def test_each_set_is_part_of_a_joined_one_and_no_joined_one_is_larger_than_allowed(sizes, seed):
    domain, rng = domain_of(sizes), np.random.default_rng(seed)
    every = all_sets(domain)
    sets = tuple(every[i] for i in rng.integers(0, len(every), 20))
    joined = joined_sets(sets, domain.names, domain.shape(domain.names))
    assert all(any(set(s) <= set(j) for j in joined) for s in sets) and len(joined) <= len(set(sets))
    assert all(domain.cells(j) <= counting.MOST_JOINED_CELLS or set(j) in map(set, sets) for j in joined)


def test_all_pairs_of_fifteen_columns_take_a_third_of_the_histograms():
    domain = domain_of([16] * 15)
    assert len(joined_sets(tuple(itertools.combinations(domain.names, 2)), domain.names, (16,) * 15)) <= 45


def test_numpy_counts_many_rows_where_numba_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counting, "_loops", lambda: None)
    domain = domain_of((3, 4))
    batches = batches_of(domain, [counting.BLOCK + 5], np.random.default_rng(0))
    (counts,) = count_marginals(domain, [("c0", "c1")], batches)
    assert counts.sum() == counting.BLOCK + 5
