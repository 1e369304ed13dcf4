"""Many columns, many values: what is public is still small enough to be asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.tuning import tune
from understudy.boundary.schema.column import Categorical


def wide(columns: int, rows: int = 4000) -> tuple[pa.Table, us.Schema]:
    """Each column repeats the one before it four times out of five."""
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, 3, rows)]
    for _ in range(columns - 1):
        codes.append(np.where(rng.random(rows) < 0.8, codes[-1], rng.integers(0, 3, rows)))
    names = [f"c{i}" for i in range(columns)]
    schema = us.Schema(tuple(Categorical(n, values=("0", "1", "2")) for n in names))
    return pa.table({n: c.astype(str) for n, c in zip(names, codes, strict=True)}), schema


def selections(release: us.Release) -> list[int]:
    return [a.question["k"] for a in release.record if a.question["ask"] == "select"]


def test_with_many_columns_a_round_of_aim_picks_several_sets(monkeypatch: pytest.MonkeyPatch, tmp_path):
    tune(monkeypatch, "aim", columns_per_pick=12)
    table, schema = wide(24)
    release = us.synthesize(us.open(table, schema), epsilon=3.0, method="aim", seed=1)
    assert set(selections(release)) == {3} and len(selections(release)) == 8
    folder = release.save(tmp_path / "release")
    assert us.verify(folder).epsilon <= 3.0 and us.replay(folder).rows == release.table.num_rows


def test_with_few_columns_a_round_picks_one():
    table, schema = wide(7)
    assert set(selections(us.synthesize(us.open(table, schema), epsilon=1000.0, method="aim", seed=1))) == {1}


@pytest.mark.parametrize("method", ["privbayes", "mst"])
def test_two_columns_of_thousands_of_values(method: str):
    """Their joint table would have 25 million cells, more than the curator allows; every value stands out.

    `mwem` and `aim` begin as `mst` does.
    """
    rows = np.repeat(np.arange(5000), 2)
    rng = np.random.default_rng(0)
    table = pa.table({c: rng.permutation(rows).astype(str) for c in "ab"})
    schema = us.Schema(tuple(Categorical(c, values=tuple(map(str, range(5000)))) for c in "ab"))
    release = us.synthesize(us.open(table, schema), epsilon=200.0, method=method, rows=100, seed=1)
    assert release.table.num_rows == 100
