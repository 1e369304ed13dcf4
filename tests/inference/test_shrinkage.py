"""Empirical Bayes: noise is taken away, and what stands out of it stays. Statistical tests have fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.inference import shrinkage
from understudy.inference.shrinkage import LARGEST_FACTOR, SMALLEST_FACTOR, dependence, evened, smoothed


def flat(size: int, value: float = 1.0) -> np.ndarray:
    return np.full(size, value)


# --- Along a line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(1, 41))
def test_every_size_keeps_its_total_and_noiseless_counts(size: int):
    rng = np.random.default_rng(size)
    counts, variances = rng.normal(50, 40, size), rng.uniform(1, 900, size)
    noisy = smoothed(counts, variances)
    assert noisy.shape == (size,) and np.isfinite(noisy).all()
    assert noisy.sum() == pytest.approx(counts.sum(), abs=1e-9 * size * 100)
    assert np.allclose(smoothed(counts, flat(size, 1e-9)), counts, atol=1e-6)
    assert np.array_equal(noisy, counts) == (size == 1)


@pytest.mark.parametrize(("size", "left"), [(3, 1.0), (9, 0.9), (16, 0.8), (37, 0.6), (100, 0.5)])
def test_pure_noise_is_flattened(size: int, left: float):
    rng = np.random.default_rng(size)
    off = []
    for _ in range(50):
        counts = 100.0 + rng.normal(0, 10, size)
        off.append([np.abs(x - x.mean()).mean() for x in (smoothed(counts, flat(size, 100.0)), counts)])
    after, before = np.mean(off, axis=0)
    assert after < left * before
    # The mutant that takes the noise to be small keeps it.
    assert np.abs(smoothed(counts, flat(size, 1.0)) - counts).mean() < 0.1 * before


def test_a_spike_that_stands_out_is_kept_while_its_neighbours_are_smoothed(monkeypatch: pytest.MonkeyPatch):
    """Ten deviations high, in one value of 256: the mean of 20 tables."""
    rng, truth, others = np.random.default_rng(4), flat(256, 100.0), np.arange(256) != 77
    truth[77] = 200.0
    counts = truth + rng.normal(0, 10, (20, 256))
    found = np.array([smoothed(c, flat(256, 100.0)) for c in counts])
    assert abs(found[:, 77].mean() - 200.0) < 20.0
    assert np.abs(found - truth)[:, others].mean() < 0.6 * np.abs(counts - truth)[:, others].mean()
    # The mutant for which nothing stands out loses most of it.
    monkeypatch.setattr(shrinkage, "STANDS_OUT", 1e9)
    assert np.mean([smoothed(c, flat(256, 100.0))[77] for c in counts]) < 160.0


def test_a_slope_is_estimated_better_than_by_its_counts():
    rng = np.random.default_rng(5)
    truth = np.linspace(0, 300, 50)
    counts = truth + rng.normal(0, 30, (40, 50))
    found = np.array([smoothed(c, flat(50, 900.0)) for c in counts])
    assert ((found - truth) ** 2).mean() < 0.5 * ((counts - truth) ** 2).mean()


def test_a_line_of_few_values_is_shrunk_as_well():
    """Means over 300 tables; even splits of the sum, which know no slope, are the mutant."""
    rng = np.random.default_rng(7)
    truth = np.array([300.0, 240.0, 180.0, 120.0, 60.0])
    counts = truth + rng.normal(0, 100, (300, 5))
    found = np.array([smoothed(c, flat(5, 1e4)) for c in counts])
    assert np.abs(found - truth).mean() < 0.85 * np.abs(counts - truth).mean()
    even = np.repeat(counts.mean(axis=1, keepdims=True), 5, axis=1)
    assert np.abs(found - truth).mean() < np.abs(even - truth).mean()


def test_a_full_segment_keeps_more_than_an_empty_one():
    """A hill of 8 values in 64, no row elsewhere: what noise says of the empty part is taken away; the hill stays."""
    rng, hill = np.random.default_rng(8), np.arange(64) // 8 == 3
    truth = np.where(hill, 1000.0, 0.0)
    counts = truth + rng.normal(0, 100, (40, 64))
    off = np.abs(np.array([smoothed(c, flat(64, 1e4)) for c in counts]) - truth).mean(axis=0)
    noise = np.abs(counts - truth).mean(axis=0)
    assert off[~hill].mean() < 0.6 * noise[~hill].mean()
    assert off[hill].mean() < 1.1 * noise[hill].mean()


def test_of_two_parts_the_noisier_takes_the_difference():
    """The first four values are known. Shrinking the halves moves the sum above them, and must not move them."""
    counts = np.concatenate([flat(4, 10.0), [200.0, 180.0, 220.0, 190.0], flat(8, 150.0)])
    found = smoothed(counts, np.concatenate([flat(4, 1e-6), flat(12, 1e6)]))
    assert np.allclose(found[:4], 10.0, atol=0.01)
    assert abs(found[:8].sum() - counts[:8].sum()) > 50.0


# --- Tables -----------------------------------------------------------------------------------------------------------


def margins_of(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return table.sum(axis=1), table.sum(axis=0)


def independent(rows: int, columns: int, total: float = 1e5) -> np.ndarray:
    rng = np.random.default_rng(rows + columns)
    return np.outer(rng.dirichlet(flat(rows, 3.0)), rng.dirichlet(flat(columns, 3.0))) * total


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (5, 8), (12, 12)])
def test_the_margins_are_restored(shape: tuple[int, int]):
    rng = np.random.default_rng(1)
    truth = independent(*shape) * rng.gamma(2.0, 0.5, shape)
    rows, columns = margins_of(truth)
    factor = dependence(truth + rng.normal(0, 20, shape), (rows, columns), 400.0)
    table = factor * np.outer(rows, columns) / rows.sum()
    assert factor.shape == shape
    assert np.allclose(table.sum(axis=0), columns, rtol=1e-6) and np.allclose(table.sum(axis=1), rows, rtol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_independent_columns_stay_independent(seed: int):
    truth = independent(10, 14)
    noise = np.random.default_rng(seed).normal(0, 200, truth.shape)
    factor = dependence(truth + noise, margins_of(truth), 200.0**2)
    raw = np.abs((truth + noise) / truth - 1)
    weighted = truth / truth.sum()
    assert (np.abs(factor - 1) * weighted).sum() < 0.4 * (raw * weighted).sum()


def diagonal(size: int = 12, total: float = 20_000.0) -> np.ndarray:
    """Nine rows of ten are where both columns agree."""
    return (np.eye(size) * 0.9 / size + 0.1 / size**2) * total


def test_a_strong_diagonal_is_found_through_the_noise():
    truth = diagonal()
    factor = dependence(truth + np.random.default_rng(3).normal(0, 100, truth.shape), margins_of(truth), 100.0**2)
    expected = truth / (np.outer(*margins_of(truth)) / truth.sum())
    assert np.allclose(np.diag(factor), np.diag(expected), rtol=0.15)  # 10.9
    found = factor * np.outer(*margins_of(truth)) / truth.sum()
    # Nine of ten, where independence says one of twelve; off the diagonal little of the noise is left.
    assert np.trace(found) / found.sum() == pytest.approx(0.9, abs=0.05)
    assert np.abs(found - truth).sum() < 0.3 * 144 * 100 * np.sqrt(2 / np.pi)


@pytest.mark.parametrize("hostile", ["empty margins", "negative", "huge", "tiny noise", "loud noise"])
def test_factors_stay_finite_and_within_their_bounds(hostile: str):
    truth, variance = diagonal(5, 1000.0), 100.0
    counts, (rows, columns) = truth.copy(), margins_of(truth)
    match hostile:
        case "empty margins":
            rows, columns = np.array([1000.0, 0, 0, 0, 0]), np.array([0.0, 0, 1000, 0, 0])
        case "negative":
            counts = -counts
        case "huge":
            counts = counts * 1e9
        case "tiny noise":
            variance = 1e-12
        case "loud noise":
            variance = 1e12
    factor = dependence(counts, (rows, columns), variance)
    assert np.isfinite(factor).all() and factor.min() >= SMALLEST_FACTOR and factor.max() <= LARGEST_FACTOR


# --- Values without an order ------------------------------------------------------------------------------------------


@settings(derandomize=True, database=None)
@given(st.lists(st.floats(-1e5, 1e6), min_size=1, max_size=60), st.floats(1e-3, 1e9))
def test_evened_counts_keep_their_sum_and_order(counts: list[float], variance: float):
    found = evened(np.array(counts), flat(len(counts), variance))
    assert found.sum() == pytest.approx(sum(counts), rel=1e-9, abs=1e-3)
    assert (np.diff(found[np.argsort(counts)]) >= -1e-6).all()


@pytest.mark.parametrize(("size", "share"), [(2, 0.65), (5, 0.45), (40, 0.25)])
def test_where_noise_rules_even_counts_are_better_than_what_was_read(size: int, share: float):
    """Tables drawn from even Dirichlets; the noise of each count is as large as all rows, and leaves their number."""
    rng = np.random.default_rng(size)
    truth = 1000 * rng.dirichlet(np.ones(size), 200)
    noise = rng.normal(0, 1000, truth.shape)
    counts = truth + noise - noise.mean(axis=1, keepdims=True)
    found = np.array([evened(c, flat(size, 1e6)) for c in counts])
    assert np.abs(found - truth).mean() < share * np.abs(counts - truth).mean()


def test_counts_far_above_their_noise_stay_where_they_are():
    counts = np.array([30_000.0, 4_000.0, 900.0, 100.0, 0.0])
    assert np.abs(evened(counts, flat(5, 25.0)) - counts).max() < 0.5


def test_a_concentrated_column_is_hardly_shrunk_and_one_of_noise_alone_is():
    """What the counts themselves say of their spread outweighs the prior, in both directions."""
    rng = np.random.default_rng(6)
    concentrated, even = np.concatenate([[1e5], np.zeros(99)]), flat(100, 1000.0)
    noise = rng.normal(0, 500, (20, 100))
    kept = np.mean([evened(concentrated + n, flat(100, 500.0**2))[0] for n in noise])
    assert kept > 0.99e5
    spread = np.mean([evened(even + n, flat(100, 500.0**2)).std() for n in noise])
    assert spread < 0.3 * 500


def test_an_uneven_column_keeps_its_large_values_and_loses_the_noise_of_the_small_ones(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(9)
    truth = 1000.0 * 0.5 ** np.arange(1, 11)
    counts = truth + rng.normal(0, 60, (200, 10))

    def error() -> float:
        found = np.array([evened(c, flat(10, 3600.0)) for c in counts])
        return float(np.abs(found - truth).mean() / np.abs(counts - truth).mean())

    assert error() < 0.75
    # The mutant that takes all columns to be nearly even.
    monkeypatch.setattr(shrinkage, "SHAPES", (20.0,))
    assert error() > 0.9
