"""A release of a version that drew values in another way verifies as before, and `replay` names that version."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.schema.column import Categorical, Number
from understudy.errors import CheckFailed
from understudy.inference import values
from understudy.releases import synthesis

SCHEMA = us.Schema((Number("amount", minimum=0, maximum=100, bins=8), Categorical("kind", values=("a", "b"))))


def uniform_steps(codes, edges, rng):
    """How 0.1.0 drew values inside bins."""
    return rng.integers(edges[codes], edges[codes + 1])


@pytest.mark.parametrize("method", ["independent", "mst", "aim", "marginals", "privbayes", "mwem", "rake"])
def test_replay_names_the_version_that_rebuilds_a_release(method, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = pa.table({"amount": rng.exponential(20, 400).clip(0, 100), "kind": rng.choice(["a", "b"], 400)})
    options = {"marginals": [("amount", "kind")]} if method == "marginals" else {}
    with monkeypatch.context() as older:
        older.setattr(values, "draw_steps", uniform_steps)
        here = synthesis.versions()
        older.setattr(synthesis, "versions", lambda: here | {"understudy": "0.0.9"})
        table = us.open(rows, SCHEMA)
        release = us.synthesize(table, epsilon=1.0, delta=1e-6, method=method, seed=1, ledger=False, **options)
        release.save(tmp_path / "out")
    us.verify(tmp_path / "out")
    with pytest.raises(CheckFailed, match=r"it was made with understudy 0\.0\.9 \(here "):
        us.replay(tmp_path / "out")
