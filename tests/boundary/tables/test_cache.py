"""A cached table answers as its inner table does, and asks it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables import cache
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.sources import open as open_table

SCHEMA = Schema.loads(
    "".join(f'[columns.{n}]\ntype = "integer"\nmin = 0\nmax = {top}\n' for n, top in {"a": 2, "b": 3, "c": 1}.items())
)
PAIR, OTHER = Grid(("a", "b"), ((0, 1, 1), (0, 0, 1, 2))), Grid(("b",), ((0, 1, 1, 1),))
FINEST, COARSEST = Grid(("a", "b"), ((0, 1, 2), (3, 0, 2, 1))), Grid(("a", "b"), ((0, 0, 0), (0, 0, 0, 0)))


@dataclass(frozen=True)
class Parity:
    """A partition that is not a grid."""

    columns: tuple[str, ...]
    cells: int = 2

    def assign(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        return sum(codes[c].astype(np.intp) for c in self.columns) % 2

    def describe(self) -> dict[str, object]:
        return {"kind": "parity", "columns": list(self.columns)}


PARITY = Parity(("a", "b"))


class Spy:
    """Writes down every set and partition that is really counted."""

    def __init__(self, table) -> None:
        self._table, self.counted = table, []
        self.schema, self.kind, self.name = table.schema, table.kind, table.name

    def __getattr__(self, name: str):
        return getattr(self._table, name)

    def count_by(self, domain: Domain, sets: Sequence[tuple[str, ...]]):
        self.counted += sets
        return self._table.count_by(domain, sets)

    def count_cells(self, domain: Domain, partitions: Sequence[Grid]):
        self.counted += partitions
        return self._table.count_cells(domain, partitions)


@pytest.fixture
def spy() -> Spy:
    rng = np.random.default_rng(4)
    rows = {n: rng.integers(0, size, 500) for n, size in {"a": 3, "b": 4, "c": 2}.items()}
    return Spy(open_table(pa.table(rows), SCHEMA))


@pytest.fixture
def domain() -> Domain:
    return Domain.of(SCHEMA)


def same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    return [f.shape for f in found] == [e.shape for e in expected] and all(map(np.array_equal, found, expected))


def test_the_answers_are_those_of_the_inner_table(spy: Spy, domain: Domain):
    cached = CachedTable(spy)
    sets = [("a",), ("a", "b"), ("b", "a"), (), ("a",), ("c", "b", "a")]
    for _ in range(2):
        assert same(cached.count_by(domain, sets), spy.count_by(domain, sets))
        assert same(cached.count_cells(domain, [OTHER, PAIR, OTHER]), spy.count_cells(domain, [OTHER, PAIR, OTHER]))
    assert cached.count_rows() == spy.count_rows() == 500
    assert cached.has_rows(500) and not cached.has_rows(501)
    assert (cached.schema, cached.kind, cached.name) == (spy.schema, spy.kind, spy.name)
    assert cached.count_by(domain, []) == cached.count_cells(domain, []) == []
    cached.check_readable()


def test_each_set_is_counted_once(spy: Spy, domain: Domain):
    cached = CachedTable(spy)
    cached.count_by(domain, [("a",), ("b",), ("a",)])
    cached.count_by(domain, [("b",), ("a", "b")])
    cached.count_cells(domain, [PARITY])
    cached.count_cells(domain, [PARITY, Parity(("a", "b"))])
    assert spy.counted == [("a",), ("b",), ("a", "b"), PARITY]


def test_grids_at_every_resolution_are_summed_up_from_one_count(spy: Spy, domain: Domain):
    cached = CachedTable(spy)
    cached.count_cells(domain, [PAIR, Grid(PAIR.columns, PAIR.groups), FINEST])
    cached.count_cells(domain, [COARSEST, PARITY, OTHER])
    cached.count_by(domain, [("a", "b")])
    assert spy.counted == [("a", "b"), ("b",), PARITY]


def test_partitions_that_are_summed_up_and_counted_keep_their_order(spy: Spy, domain: Domain):
    asked = [PARITY, PAIR, Grid(("b", "a"), PAIR.groups[::-1]), OTHER, PARITY, COARSEST, FINEST]
    assert same(CachedTable(spy).count_cells(domain, asked), spy.count_cells(domain, asked))


GAPS = {
    "first": ((1, 2, 1), (0, 1, 2, 3)),
    "middle": ((0, 2, 2), (0, 3, 0, 3)),
    "unsorted": ((2, 0, 2), (4, 1, 1, 0)),
    "all but the last": ((3, 3, 3), (0, 0, 0, 0)),
}


@pytest.mark.parametrize("gap", GAPS)
def test_a_group_that_no_code_is_in_counts_nothing(gap: str, spy: Spy, domain: Domain):
    grid = Grid(("a", "b"), GAPS[gap])
    assert same(CachedTable(spy).count_cells(domain, [grid]), spy.count_cells(domain, [grid]))


def test_grids_over_more_cells_than_the_limit_are_counted(spy: Spy, domain: Domain, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "MOST_GRID_CELLS", 11)
    cached = CachedTable(spy)
    expected = spy._table.count_cells(domain, [PAIR, OTHER])
    assert same(cached.count_cells(domain, [PAIR, OTHER]), expected)  # over 12 and 4 cells
    assert same(cached.count_cells(domain, [PAIR, OTHER]), expected)
    assert spy.counted == [("b",), PAIR]


def test_a_set_and_a_partition_of_the_same_columns_are_not_mixed_up(spy: Spy, domain: Domain):
    cached = CachedTable(spy)
    finer = Grid(("a", "b"), ((0, 1, 2), (0, 1, 2, 3)))
    assert cached.count_by(domain, [("a", "b")])[0].shape == (3, 4)
    assert [c.size for c in cached.count_cells(domain, [PAIR, finer])] == [6, 12]


def test_another_domain_forgets(spy: Spy, domain: Domain):
    """Codes mean something else there, even where the names are the same."""
    narrow = Domain.of(Schema.loads(SCHEMA.dumps().replace("max = 3", "max = 1")))
    cached = CachedTable(spy)
    wide = cached.count_by(domain, [("b",)])[0]
    clamped = cached.count_by(narrow, [("b",)])[0]
    assert same([clamped], spy.count_by(narrow, [("b",)])) and (wide.size, clamped.size) == (4, 2)
    assert same(cached.count_by(domain, [("b",)]), [wide])
    assert spy.counted == [("b",)] * 4  # three of them through the cache


def test_beyond_the_limit_counts_are_made_again(spy: Spy, domain: Domain, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "MOST_CELLS", 13)
    cached = CachedTable(spy)
    sets = [("a", "b"), ("c",), ("b", "c")]  # 12, 2 and 8 cells: only the first fits
    for _ in range(2):
        assert same(cached.count_by(domain, sets), spy._table.count_by(domain, sets))
    assert spy.counted == [*sets, ("c",), ("b", "c")]
    assert cached._cells == 12
    monkeypatch.setattr(cache, "MOST_CELLS", 14)
    cached.count_by(domain, [("c",)])
    cached.count_by(domain, [("c",)])
    assert cached._cells == 14
