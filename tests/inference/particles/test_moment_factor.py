"""Moments raked into particles: the mean of a function of two columns becomes what was measured, and margins stay."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.inference.noisy_table import NoisyTable
from understudy.inference.particles.moment_factor import MomentFactor
from understudy.inference.particles.particles import LogFactor, Particles

SIZE, ROWS = 5, 10_000
EVERY = np.arange(SIZE)
SCORES = np.clip(np.outer(EVERY - 2, EVERY - 2) / 2.0, -1, 1)


def independent(third: int = 1) -> Particles:
    """Every cell of two or three columns, with equal weights, and margins that are evidence."""
    cells = np.unravel_index(np.arange(SIZE * SIZE * third), (SIZE, SIZE, third))
    sizes = {"a": SIZE, "b": SIZE, "c": third}
    codes = {c: code.astype(np.int32) for c, code in zip(sizes, cells, strict=True)}
    particles = Particles(sizes, ROWS, codes, np.full(len(cells[0]), ROWS / len(cells[0])))
    for name, size in sizes.items():
        seen = NoisyTable((name,), np.full(size, ROWS / size), 1.0, (np.arange(size),))
        particles.add(LogFactor.evidence(seen, spread=1.0))
    return particles


def moment(seen: float, variance: float = 1.0) -> MomentFactor:
    table = NoisyTable(("a", "b"), np.array([seen]), variance, (EVERY, EVERY))
    return MomentFactor.of(table, SCORES, by_last=False)


def mean_score(particles: Particles) -> float:
    return float(particles.weights @ SCORES[particles.codes["a"], particles.codes["b"]])


@pytest.mark.parametrize("wanted", [-2500.0, 0.0, 3000.0])
def test_the_mean_becomes_what_was_measured(wanted: float) -> None:
    particles = independent()
    particles.add(moment(wanted))
    particles.rake(30, sampling=False)
    assert mean_score(particles) == pytest.approx(wanted, abs=2.0)
    assert particles.loss() < 1.0
    for name in "ab":
        assert np.allclose(np.bincount(particles.codes[name], particles.weights), ROWS / SIZE, rtol=0.01)


def test_noise_is_not_followed() -> None:
    """With a variance that explains it all, next to nothing is learned."""
    particles = independent()
    particles.add(moment(1000.0, variance=1e9))
    particles.rake(30, sampling=False)
    assert abs(mean_score(particles)) < 50.0


def test_each_group_of_the_last_column_has_its_own_mean() -> None:
    particles, wanted = independent(third=2), np.array([2000.0, -500.0])
    table = NoisyTable(("a", "b", "c"), wanted, 1.0, (EVERY, EVERY, np.arange(2)))
    particles.add(MomentFactor.of(table, np.stack([SCORES, SCORES], axis=-1), by_last=True))
    particles.rake(40, sampling=False)
    scores = SCORES[particles.codes["a"], particles.codes["b"]] * particles.weights
    assert np.bincount(particles.codes["c"], scores) == pytest.approx(wanted, abs=3.0)


def test_a_snapshot_brings_it_back() -> None:
    particles = independent()
    factor = moment(2000.0)
    particles.add(factor)
    particles.rake(10, sampling=False)
    kept, theta = particles.snapshot(), factor.theta.copy()
    factor.seen = moment(-2000.0).seen
    particles.rake(10, sampling=False)
    particles.restore(kept)
    assert np.array_equal(factor.theta, theta)
    factor.seen = moment(2000.0).seen
    particles.rake(3, sampling=False)
    assert np.allclose(factor.theta, theta, atol=0.01)
