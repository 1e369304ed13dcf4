"""`privbayes` and `mwem`: releases that hold, and that keep relations which `independent` loses."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import understudy as us

CLASSICS = ("privbayes", "mwem")
TEXT = "".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = 3\n' for c in "abcdef")


def linked(rows: int = 4000) -> pa.Table:
    """Each column mostly repeats the one before."""
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 4, rows)]
    for _ in range(5):
        columns.append(np.where(rng.random(rows) < 0.8, columns[-1], rng.integers(0, 4, rows)))
    return pa.table(dict(zip("abcdef", columns, strict=True)))


def error(schema: us.Schema, real: pa.Table, synthetic: pa.Table) -> float:
    domain, pairs = us.Domain.of(schema), list(itertools.combinations("abcdef", 2))
    a, b = (us.open(t, schema).count_by(domain, pairs) for t in (real, synthetic))
    return float(np.mean([0.5 * np.abs(x / x.sum() - y / y.sum()).sum() for x, y in zip(a, b, strict=True)]))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("method", CLASSICS)
def test_a_release_verifies_and_replays(method: str, delta: float, relation: str, tmp_path):
    schema = us.Schema.loads(f'neighbours = "{relation}"\n' + TEXT)
    release = us.synthesize(us.open(linked(), schema), method=method, epsilon=1.0, delta=delta)
    release.save(tmp_path / "out")
    assert 0.98 <= us.verify(tmp_path / "out").epsilon <= 1.0
    assert us.replay(tmp_path / "out").rows == release.table.num_rows


@pytest.mark.parametrize("method", CLASSICS)
def test_it_beats_independent_where_columns_depend(method: str):
    # With this noise the errors are about 0.02 and 0.3: a tenth of the distance would be a gross fault.
    schema, real = us.Schema.loads(TEXT), linked()
    made = [
        us.synthesize(us.open(real, schema), method=m, epsilon=2.0, seed=1, test_only_noise_seed=5).table
        for m in (method, "independent")
    ]
    ours, baseline = (error(schema, real, t) for t in made)
    assert ours < 0.5 * baseline


@pytest.mark.parametrize("method", CLASSICS)
def test_one_column_gets_the_whole_budget(method: str):
    schema = us.Schema.loads('[columns.a]\ntype = "integer"\nmin = 0\nmax = 3\n')
    release = us.synthesize(us.open(linked().select(["a"]), schema), method=method, epsilon=1.0)
    assert release.certificate.composed[0] >= 0.98
