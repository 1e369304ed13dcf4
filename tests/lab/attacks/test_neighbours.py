"""The index against every distance there is."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.lab.attacks import nearest_rows as neighbours
from understudy.lab.attacks.nearest_rows import Index


def brute(asked: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(asked[:, np.newaxis].astype(float) - rows[np.newaxis].astype(float)).sum(axis=2))


@pytest.mark.parametrize(("rows", "dimensions"), [(1, 1), (2, 3), (7, 4), (1024, 5), (1025, 5), (3000, 12)])
@pytest.mark.parametrize("count", [1, 3, 20])
def test_nearest_is_brute_force(rows: int, dimensions: int, count: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(neighbours, "BLOCK_BYTES", 40_000)  # many blocks
    rng = np.random.default_rng(rows)
    among = (rng.normal(size=(rows, dimensions)) * 3 + 50).astype(np.float32)
    asked = (rng.normal(size=(60, dimensions)) * 3 + 50).astype(np.float32)
    found = Index.of(among).nearest(asked, count)
    every = brute(asked, among)
    wanted = np.sort(every, axis=1)[:, :count]
    assert found.distances == pytest.approx(wanted, abs=1e-6)
    assert np.take_along_axis(every, found.places, 1) == pytest.approx(found.distances)


def test_indicators_have_ties_and_copies_have_no_distance():
    rng = np.random.default_rng(0)
    among = rng.integers(0, 2, (2500, 8)).astype(np.float32)
    found = Index.of(among).nearest(among[:100], 4)
    assert (found.distances == np.sort(brute(among[:100], among), axis=1)[:, :4]).all()
    assert (found.distances[:, 0] == 0).all()


def test_a_row_is_not_its_own_neighbour():
    rng = np.random.default_rng(0)
    among = rng.normal(size=(2500, 3)).astype(np.float32)
    chosen = np.array([0, 3, 1024, 2499])
    every = brute(among[chosen], among)
    every[np.arange(4), chosen] = np.inf
    found = Index.of(among).nearest(among[chosen], 2, own=chosen)
    assert (found.places == every.argsort(axis=1)[:, :2]).all()
    two = Index.of(among[:2]).nearest(among[:2], 5, own=np.arange(2))
    assert two.places.tolist() == [[1], [0]]
