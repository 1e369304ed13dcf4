"""Codes packed by an engine come out as they went in, however many columns there are and wherever they are kept."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from helpers.postgres_cluster import load
from understudy.boundary.schema.column import Categorical, Integer
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.partition import Split, Tree
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables import cache
from understudy.boundary.tables import kept as kept_rows
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.packing import WORD_BITS, PackedRows, Packing

SIZES = st.lists(
    st.sampled_from([1, 2, 3, 16, 255, 256, 257, 40_000, 65_536, 65_537, 100_000]), min_size=1, max_size=20
)


ENGINE = duckdb.connect()


def domain_of(sizes: list[int]) -> us.Domain:
    columns = [
        Integer(f"c{i}", minimum=0, maximum=size - 1, bins=size) if size > 1 else Categorical(f"c{i}", values=("a",))
        for i, size in enumerate(sizes)
    ]
    return us.Domain.of(Schema(tuple(columns)))


def made(sizes: list[int], rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {f"c{i}": rng.integers(0, size, rows) for i, size in enumerate(sizes)}
    for i, size in enumerate(sizes):  # the ends of each field, which its neighbours must not reach
        found[f"c{i}"][:2] = [0, size - 1]
    return found


def packed(codes: dict[str, np.ndarray], layout: Packing) -> np.ndarray:
    """By an engine, from the expressions."""
    given = pa.table({f"code_{i}": codes[c].astype(np.int64) for i, c in enumerate(layout.columns)})
    words = [exp.alias_(w, f"word_{i}") for i, w in enumerate(layout.expressions())]
    ENGINE.register("given", given)
    found = ENGINE.sql(exp.select(*words).from_("given").sql(dialect="duckdb")).fetchnumpy()
    return np.stack([found[f"word_{i}"] for i in range(layout.words)], axis=1)


@settings(max_examples=15)
@given(SIZES, st.integers(0, 2**32))
def test_what_an_engine_packs_is_unpacked(sizes: list[int], seed: int):
    codes, domain = made(sizes, 50, seed), domain_of(sizes)
    layout = Packing(domain, domain.names)
    assert all(p.shift + p.bits <= WORD_BITS for p in layout.places)
    words = packed(codes, layout)
    assert (words >= 0).all()
    found = layout.unpacked(words, domain.names[::-1])
    assert list(found) == list(domain.names[::-1])
    for name, wanted in codes.items():
        np.testing.assert_array_equal(found[name], wanted)


def test_fifteen_columns_of_sixteen_codes_are_one_number():
    assert Packing(domain_of([16] * 15), tuple(f"c{i}" for i in range(15))).words == 1


@pytest.mark.parametrize("room", [0, 1_000, 1 << 20])
def test_rows_are_kept_in_memory_or_in_a_file_without_a_name(room: int, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_rows, "spill_directory", lambda: str(tmp_path / "spill"))
    sizes = [9, 70_000, 300, 5, 90_000, 90_000]
    codes, domain = made(sizes, 1_000, 3), domain_of(sizes)
    layout = Packing(domain, domain.names)
    words = packed(codes, layout)
    kept = PackedRows(layout, room=room)
    passed = list(kept.filled(np.array_split(words, 7)))
    assert kept.complete and sum(map(len, passed)) == 1_000
    for columns in (("c1",), ("c5", "c0")):
        batches = list(kept.batches(columns))
        for name in columns:
            np.testing.assert_array_equal(np.concatenate([b[name] for b in batches]), codes[name])
    assert list(tmp_path.rglob("*")) in ([], [tmp_path / "spill"])


def test_a_snapshot_reads_the_table_twice_at_most(postgres: str, monkeypatch: pytest.MonkeyPatch):
    """Also where its codes are too many for the cache, which then stops in the middle of a scan."""
    monkeypatch.setattr(cache, "MOST_CODE_BYTES", 0)
    rng = np.random.default_rng(1)
    rows = pa.table({c: rng.integers(0, 4, 3_000) for c in "abc"})
    schema = us.Schema.loads("".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = 3\n' for c in "abc"))
    domain, table = us.Domain.of(schema), us.open(load(postgres, "read twice", rows), schema)
    frame, snapshot = us.open(rows, schema), table.snapshot()
    scans: list[object] = []
    words = snapshot._server.words
    monkeypatch.setattr(snapshot._server, "words", lambda *given: scans.append(given) or words(*given))
    cached = CachedTable(snapshot)
    tree = Tree(("a", "b"), (4, 4), (Split(0, 0b1100, -1, 1), Split(1, 0b10, -2, -3)))
    for _ in range(2):
        np.testing.assert_array_equal(cached.count_cells(domain, [tree])[0], frame.count_cells(domain, [tree])[0])
        np.testing.assert_array_equal(cached.count_by(domain, [("b", "c")])[0], frame.count_by(domain, [("b", "c")])[0])
    assert len(scans) == 2
