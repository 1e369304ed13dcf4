"""Gibbs sampling: rows of the factors' law stay rows of that law. Every test of a law errs once in 10⁹ runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from understudy.inference.particles import threads
from understudy.inference.particles.gibbs import GRID, _draw_groups, sweep
from understudy.inference.particles.particles import LogFactor, Particles, cells_of
from understudy.inference.particles.vectorised import CHUNK

SIZES = {"a": 2, "b": 4, "c": 3}
SHAPE = tuple(SIZES.values())
ROWS = 20 * CHUNK + 17
ALPHA = 1e-9
EVERY = {c: np.arange(n) for c, n in SIZES.items()}
HALVES, CROSSING, ENDS = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 0])
GRIDS: tuple[tuple[str, tuple[np.ndarray, ...]], ...] = (
    ("a", (EVERY["a"],)),
    ("b", (EVERY["b"],)),
    ("c", (EVERY["c"],)),
    ("ab", (EVERY["a"], HALVES)),
    ("ab", (EVERY["a"], CROSSING)),
    ("cb", (ENDS, EVERY["b"])),
    ("ac", (EVERY["a"], EVERY["c"])),
    ("abc", (EVERY["a"], HALVES, ENDS)),
)


def factors(seed: int = 1) -> list[LogFactor]:
    rng = np.random.default_rng(seed)
    return [
        LogFactor(tuple(columns), groups, rng.normal(0, 0.4, [int(g.max()) + 1 for g in groups]))
        for columns, groups in GRIDS
    ]


def law(of: list[LogFactor]) -> np.ndarray:
    """p ∝ exp(Σ θ), over the whole domain."""
    every = dict(zip(SIZES, (g.ravel() for g in np.indices(SHAPE)), strict=True))
    weights = np.exp(sum(f.theta.ravel()[cells_of(every, f.columns, f.groups)] for f in of))
    return weights / weights.sum()


def rows_of(cells: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(SIZES, (v.astype(np.int32) for v in np.unravel_index(cells, SHAPE)), strict=True))


def particles_at(cells: np.ndarray, of: list[LogFactor]) -> Particles:
    particles = Particles(SIZES, 1000.0, rows_of(cells), np.full(len(cells), 1000.0 / len(cells)))
    for factor in of:
        particles.add(factor)
    return particles


def drawn(of: list[LogFactor], seed: int, rows: int = ROWS) -> Particles:
    """Rows of exactly that law, each on its own."""
    return particles_at(np.random.default_rng(seed).choice(int(np.prod(SHAPE)), rows, p=law(of)), of)


def cells(particles: Particles) -> np.ndarray:
    return cells_of(particles.codes, tuple(SIZES), list(EVERY.values()))


def follows(particles: Particles, expected: np.ndarray) -> bool:
    """Pearson's test. Rows are independent, for each is moved on its own; weights are off by 1/GRID, which is far less
    than it can see in these rows."""
    counts = np.bincount(cells(particles), minlength=expected.size)
    wanted = particles.count * expected
    assert wanted.min() > 100 and particles.count * (4 / GRID) ** 2 < 3
    return bool(((counts - wanted) ** 2 / wanted).sum() < chi2.isf(ALPHA, expected.size - 1))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_sweep_leaves_the_law_unchanged(seed: int):
    particles = drawn(factors(seed), seed)
    before = cells(particles)
    sweep(particles, np.random.default_rng(100 + seed))
    assert follows(particles, law(factors(seed)))
    assert (cells(particles) != before).mean() > 0.5  # it does move the rows


@pytest.mark.parametrize("ignored", range(len(GRIDS)))
def test_a_sweep_that_ignores_a_factor_is_found_out(ignored: int):
    particles, true = drawn(factors(), 1), law(factors())
    dropped = next(f for f in particles.factors if f.groups is GRIDS[ignored][1])
    dropped.theta = np.zeros_like(dropped.theta)
    sweep(particles, np.random.default_rng(2))
    assert not follows(particles, true)


def test_many_sweeps_from_a_wrong_start_reach_the_law():
    particles, rng = particles_at(np.zeros(ROWS, dtype=np.intp), factors()), np.random.default_rng(5)
    sweep(particles, rng)
    assert not follows(particles, law(factors()))
    for _ in range(8):
        sweep(particles, rng)
    assert follows(particles, law(factors()))


@pytest.mark.parametrize("fixed", [{"a"}, {"b", "c"}, {"a", "b", "c"}])
def test_fixed_columns_do_not_move_and_the_others_follow(fixed: set[str]):
    particles = drawn(factors(), 7)
    before = dict(particles.codes)
    sweep(particles, np.random.default_rng(8), frozenset(fixed))
    for column in SIZES:
        assert np.array_equal(before[column], particles.codes[column]) == (column in fixed)
    assert follows(particles, law(factors()))


def test_the_same_seed_gives_the_same_rows():
    found = []
    for seed in (3, 3, 4):
        particles = drawn(factors(), 1, rows=CHUNK + 1)
        sweep(particles, np.random.default_rng(seed))
        found.append(cells(particles))
        assert {v.dtype for v in particles.codes.values()} == {np.dtype(np.int32)}
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


def test_the_rows_are_the_same_on_any_number_of_processors(monkeypatch: pytest.MonkeyPatch):
    found = []
    for processors in (1, 2, 5):
        monkeypatch.setattr(threads, "processors", lambda count=processors: count)
        particles = drawn(factors(), 1)
        sweep(particles, np.random.default_rng(3))
        found.append(cells(particles))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_weights_stay_with_their_rows_and_histograms_follow_them():
    particles = drawn(factors(), 1)
    for block in particles.blocks.values():
        block.histogram(particles.codes, particles.weights)  # remembers the cells of the old rows
    sweep(particles, np.random.default_rng(1))
    block = particles.blocks[("a", "c")]
    counts = np.bincount(cells_of(particles.codes, block.columns, block.groups), particles.weights)
    assert np.allclose(block.histogram(particles.codes, particles.weights).ravel(), counts)


def test_what_has_no_mass_is_never_drawn():
    """A value of no weight alone in its group, another that shares its group, and a cell that a pair rules out."""
    gone = factors()
    gone[1].theta[:] = [0.0, -40.0, 0.0, 0.0]  # b = 1 shares a group with b = 0 in one grid, with b = 3 in another
    gone[2].theta[:] = [0.0, 0.0, -40.0]
    gone[6].theta[:] = [[0.0, -40.0, 0.0], [0.0, 0.0, 0.0]]
    particles = particles_at(np.random.default_rng(1).integers(0, 24, ROWS), gone)
    rng = np.random.default_rng(2)
    for _ in range(3):
        sweep(particles, rng)
        a, b, c = (particles.codes[x] for x in "abc")
        assert not (b == 1).any() and not (c == 2).any() and not ((a == 0) & (c == 1)).any()
        assert {(x, y) for x, y in zip(a[:500], c[:500], strict=True)} == {(0, 0), (1, 0), (1, 1)}


def test_far_below_the_heaviest_there_is_nothing():
    """At the very ends of the uniform range, where a weight of one in a million would still be drawn."""
    start = np.array([-20 * GRID, 0, -20 * GRID], dtype=np.int32)
    assert _draw_groups(start, [], {}, np.array([0.0, 0.5, np.nextafter(1.0, 0.0)])).tolist() == [1, 1, 1]
    near = np.array([-5 * GRID, 0, -5 * GRID], dtype=np.int32)
    assert _draw_groups(near, [], {}, np.array([0.0, 0.5, np.nextafter(1.0, 0.0)])).tolist() == [0, 1, 2]


def test_a_thousand_groups_are_drawn_alike():
    """The cumulative weights of so many groups still fit into 32 bits."""
    size, rows = 1000, 40_000
    particles = Particles({"x": size, "y": 1}, 1.0, {"x": np.zeros(rows, int), "y": np.zeros(rows, int)}, np.ones(rows))
    every, one = np.arange(size), np.zeros(1, dtype=np.intp)
    for factor in (
        LogFactor(("x",), (every,), np.zeros(size)),
        LogFactor(("y",), (one,), np.zeros(1)),
        LogFactor(("x", "y"), (every, one), np.zeros((size, 1))),
    ):
        particles.add(factor)
    sweep(particles, np.random.default_rng(3))
    counts = np.bincount(particles.codes["x"], minlength=size)
    assert ((counts - 40.0) ** 2 / 40.0).sum() < chi2.isf(ALPHA, size - 1)
    assert set(particles.codes["y"]) == {0}


def test_values_inside_a_group_follow_their_mass():
    """One group of all values, with a factor of no say: the one-way law itself."""
    share = np.array([0.5, 0.3, 0.0, 0.15, 0.05])
    particles = Particles({"x": 5}, 1.0, {"x": np.zeros(ROWS, int)}, np.ones(ROWS))
    particles.add(LogFactor(("x",), (np.arange(5),), np.log(np.maximum(share, 1e-30))))
    sweep(particles, np.random.default_rng(1))
    counts, wanted = np.bincount(particles.codes["x"], minlength=5), ROWS * share
    seen = share > 0
    assert counts[~seen].sum() == 0
    assert ((counts - wanted)[seen] ** 2 / wanted[seen]).sum() < chi2.isf(ALPHA, 3)
