"""Particles: raking against exact answers, blocks against one factor at a time, and weights that stay weights."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from understudy.inference.grouping import refine
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.particles import particles as module
from understudy.inference.particles.particles import Block, LogFactor, Particles, cells_of

SIZES = {"a": 3, "b": 4, "c": 6}
TOTAL = 1000.0
EVERY = {c: np.arange(n) for c, n in SIZES.items()}
MERGED = {"a": np.array([0, 1, 1]), "b": np.array([0, 0, 1, 1]), "c": np.array([0, 0, 1, 1, 2, 2])}
CROSSING = {"a": np.array([0, 0, 1]), "b": np.array([0, 1, 1, 0]), "c": np.array([0, 1, 1, 2, 2, 0])}
"""Not nested in the merged groups: neither merges the other."""
NEARLY_NOTHING = 1e-9
"""A variance so small that raking has nothing to shrink."""


def whole_domain(sizes: dict[str, int] = SIZES, total: float = TOTAL) -> Particles:
    codes = dict(zip(sizes, (g.ravel() for g in np.indices(tuple(sizes.values()))), strict=True))
    cells = len(codes[next(iter(sizes))])
    return Particles(sizes, total, codes, np.full(cells, total / cells))


def random_joint(seed: int = 1) -> np.ndarray:
    joint = np.random.default_rng(seed).gamma(1.0, size=tuple(SIZES.values())) + 0.1
    return joint * (TOTAL / joint.sum())


def counted(joint: np.ndarray, columns: tuple[str, ...], groups: tuple[np.ndarray, ...]) -> np.ndarray:
    """The counts of a grid, by brute force over the rows of the whole domain."""
    cells = cells_of(whole_domain().codes, columns, groups)
    shape = tuple(int(g.max()) + 1 for g in groups)
    return np.bincount(cells, joint.ravel(), int(np.prod(shape))).reshape(shape)


def evidence(joint: np.ndarray, columns: str, groupings: dict[str, np.ndarray], variance: float = NEARLY_NOTHING):
    names, groups = tuple(columns), tuple(groupings[c] for c in columns)
    return LogFactor.evidence(NoisyTable(names, counted(joint, names, groups), variance, groups), spread=4.0)


OVERLAPPING = [
    *((c, EVERY) for c in SIZES),
    ("ab", EVERY),
    ("ab", MERGED),
    ("bc", MERGED),
    ("bc", CROSSING),
    ("ac", CROSSING),
    ("abc", MERGED),
]


# --- The loss, and single columns -------------------------------------------------------------------------------------


def test_the_loss_grows_when_weights_degenerate():
    joint = random_joint()
    particles = whole_domain()
    for columns in ("a", "b", "ab"):
        particles.add(evidence(joint, columns, EVERY, variance=4.0))
    particles.rake(20)
    good = particles.loss()
    # A few rows carry nearly all of the weight: the chance of those few would excuse any error.
    particles.weights = np.full(particles.count, 1e-9)
    particles.weights[:2] = TOTAL / 2
    assert particles.loss() > 20 * good
    excused = np.mean(
        [x for b in particles.blocks.values() for x in b.losses(particles.codes, particles.weights, TOTAL / 2)]
    )
    assert excused < particles.loss() / 5


def test_columns_are_fitted_to_their_counts():
    joint, particles = random_joint(), whole_domain()
    particles.weights = np.random.default_rng(3).gamma(0.3, size=particles.count)
    wanted = {c: counted(joint, (c,), (EVERY[c],)) for c in SIZES}
    particles.fit_columns(wanted, passes=30, close=0.0)
    for name, counts in wanted.items():
        found = np.bincount(particles.codes[name], particles.weights, len(counts))
        assert found == pytest.approx(counts, rel=1e-6)


def test_a_value_without_particles_stays_without():
    particles = whole_domain()
    particles.weights = particles.weights * (particles.codes["a"] != 1)
    particles.fit_columns({"a": np.array([200.0, 300.0, 500.0])})
    assert np.bincount(particles.codes["a"], particles.weights, 3) == pytest.approx([TOTAL * 2 / 7, 0, TOTAL * 5 / 7])


# --- Raking -----------------------------------------------------------------------------------------------------------


def worst(particles: Particles, joint: np.ndarray) -> float:
    """The largest relative error over all cells of all evidence."""
    law = particles.weights.reshape(joint.shape)
    return max(
        float(np.abs(counted(law, f.columns, f.groups) / counted(joint, f.columns, f.groups) - 1).max())
        for f in particles.factors
    )


def test_without_noise_the_whole_domain_reproduces_every_grid():
    particles, joint = whole_domain(), random_joint()
    for columns, groupings in OVERLAPPING:
        particles.add(evidence(joint, columns, groupings))
    before = worst(particles, joint)
    particles.rake(200, sampling=False)
    assert before > 0.5 and worst(particles, joint) < 1e-6
    assert particles.weights.sum() == pytest.approx(TOTAL, rel=1e-12)


def test_the_weights_are_those_of_the_factors():
    """p ∝ exp(Σ θ): the rows that Gibbs sampling draws and the weights that raking sets are of one law."""
    particles, joint = whole_domain(), random_joint()
    for columns, groupings in OVERLAPPING:
        particles.add(evidence(joint, columns, groupings, variance=4.0))
    particles.rake(5)
    log = sum(f.theta.ravel()[cells_of(particles.codes, f.columns, f.groups)] for f in particles.factors)
    law = np.exp(log)
    assert np.allclose(particles.weights, TOTAL * law / law.sum(), rtol=1e-9)


def one_by_one(particles: Particles, factors: list[LogFactor], noise: float) -> None:
    """The same as a block, but every factor counts the rows itself."""
    for f in factors:
        cells = cells_of(particles.codes, f.columns, f.groups)
        expected = np.bincount(cells, particles.weights, f.theta.size).reshape(f.theta.shape)
        particles.weights *= f.step(expected, noise).ravel()[cells]


@pytest.mark.parametrize("noise", [0.0, 2.5])
def test_a_block_of_nested_and_crossing_groups_equals_its_factors_one_by_one(noise: float):
    rng = np.random.default_rng(3)
    codes = {c: rng.integers(0, n, 500) for c, n in SIZES.items()}
    weights = rng.gamma(1.0, size=500)
    together, apart = (Particles(SIZES, TOTAL, codes, weights.copy()) for _ in range(2))
    mixed = MERGED | {"a": CROSSING["a"]}
    kinds = [MERGED, EVERY, CROSSING, mixed]
    block, alone = Block(("a", "c")), [evidence(random_joint(), "ac", g, variance=9.0) for g in kinds]
    for grouping in kinds:
        block.add(evidence(random_joint(), "ac", grouping, variance=9.0))
    for _ in range(4):
        block.rake(codes, together.weights, noise)
        one_by_one(apart, alone, noise)
    assert np.allclose(together.weights, apart.weights, rtol=1e-10)
    assert all(np.allclose(x.theta, y.theta, atol=1e-10) for x, y in zip(block.factors, alone, strict=True))
    assert np.abs(together.weights / weights - 1).max() > 0.5
    expected = sum(f.theta[np.ix_(f.groups[0], f.groups[1])] for f in alone)
    assert np.allclose(block.theta()[np.ix_(*block.groups)], expected, atol=1e-10)


def test_losses_are_squared_errors_in_units_of_noise():
    particles, joint = whole_domain(), random_joint()
    factors = [evidence(joint, "ab", EVERY, 4.0), evidence(joint, "ab", CROSSING, 9.0), evidence(joint, "c", EVERY)]
    factors[2].seen = replace(factors[2].seen, variance=np.arange(1.0, 7.0))
    for factor in factors:
        particles.add(factor)
    flat = np.full_like(joint, TOTAL / joint.size)
    expected = [counted(flat, f.columns, f.groups) for f in factors]
    for noise in (0.0, TOTAL / particles.count):  # so much weight has each particle
        wanted = [
            ((f.seen.counts - e) ** 2 / (f.seen.variance + noise * np.maximum(e, f.seen.counts))).mean()
            for f, e in zip(factors, expected, strict=True)
        ]
        found = [x for b in particles.blocks.values() for x in b.losses(particles.codes, particles.weights, noise)]
        assert np.allclose(found, wanted)
    assert particles.loss() == pytest.approx(np.mean(wanted))


def test_refine_finds_the_coarsest_grouping_that_all_merge():
    groups, coarse = refine([MERGED["c"], CROSSING["c"]])
    pairs = list(zip(MERGED["c"].tolist(), CROSSING["c"].tolist(), strict=True))
    assert groups.max() + 1 == len(set(pairs)) == len(coarse)
    assert [tuple(coarse[g]) for g in groups] == pairs
    for x, y in itertools.combinations(range(6), 2):
        assert (groups[x] == groups[y]) == (pairs[x] == pairs[y])


def test_a_histogram_is_by_value():
    rng = np.random.default_rng(5)
    particles = Particles(SIZES, TOTAL, {c: rng.integers(0, n, 99) for c, n in SIZES.items()}, rng.random(99))
    expected = np.zeros((6, 3))
    np.add.at(expected, (particles.codes["c"], particles.codes["a"]), particles.weights)
    assert np.allclose(particles.histogram(("c", "a"), [np.arange(particles.sizes[c]) for c in "ca"]), expected)


# --- Shrinkage --------------------------------------------------------------------------------------------------------


def test_the_spread_is_judged_by_what_exceeds_the_noise():
    expected = np.full(4, 100.0)
    noise = np.array([3.0, -3.0, 3.0, -3.0])
    far = LogFactor.evidence(NoisyTable(("b",), expected + 10 * noise, 9.0, (EVERY["b"],)))
    near = LogFactor.evidence(NoisyTable(("b",), expected + noise, 9.0, (EVERY["b"],)))
    very_far = LogFactor.evidence(NoisyTable(("b",), expected * np.array([9, 0, 0, 0]), 9.0, (EVERY["b"],)))
    for factor in (far, near, very_far):
        factor.judge(expected)
    # (900 − 9) / 100², four times: exactly what the formula says.
    assert far.spread == pytest.approx(4 * 891 / 10_000)
    assert (near.spread, very_far.spread) == (module.SMALLEST_SPREAD, module.LARGEST_SPREAD)


def test_evidence_is_judged_once_and_before_it_is_learnt():
    particles, joint = whole_domain(), random_joint()
    factor = evidence(joint, "ab", EVERY, variance=4.0)
    factor.spread, flat = 0.0, counted(np.full_like(joint, TOTAL / joint.size), factor.columns, factor.groups)
    excess = ((factor.seen.counts - flat) ** 2 - 4.0).sum() / (flat**2).sum()
    particles.add(factor)
    judged = factor.spread
    particles.rake(3)
    assert factor.spread == judged == pytest.approx(4 * excess)
    known = evidence(joint, "bc", EVERY, variance=4.0)
    particles.add(known)
    assert known.spread == 4.0


def raked_to_noise(sampling: bool, spread: float = 0.0) -> float:
    """What share of pure noise the particles follow, in L1; its deviation is a quarter of each count."""
    sizes, total = {"x": 40, "y": 40}, 1600 * 80.0
    particles, noise = whole_domain(sizes, total), np.random.default_rng(8).normal(0, 20, (40, 40))
    groups = (np.arange(40), np.arange(40))
    particles.add(LogFactor.evidence(NoisyTable(("x", "y"), 80.0 + noise, 400.0, groups), spread))
    particles.rake(20, sampling=sampling)
    return float(
        np.abs(particles.histogram(("x", "y"), [np.arange(particles.sizes[c]) for c in "xy"]) - 80.0).sum()
        / np.abs(noise).sum()
    )


def test_pure_noise_is_shrunk_away():
    # The smallest spread leaves 80/(80 + 400/(0.01·100)) = 17 % of it, and a spread of 4 leaves all but 1 %.
    assert raked_to_noise(sampling=False) < 0.25
    assert raked_to_noise(sampling=False, spread=4.0) > 0.9


def test_few_particles_are_fitted_less_than_the_domain():
    assert raked_to_noise(sampling=True, spread=0.05) < 0.9 * raked_to_noise(sampling=False, spread=0.05)


def theta_of_an_empty_cell(count: float, noise: float) -> float:
    """After ten passes over a cell in which no particle stands, beside one with a thousand rows."""
    every = (np.arange(2),)
    factor = LogFactor.evidence(NoisyTable(("x",), np.array([1000.0, count]), 1.0, every), spread=4.0)
    for _ in range(10):
        factor.step(np.array([1000.0, 0.0]), noise)
    return float(factor.theta[1])


def test_a_cell_without_particles_is_not_raised_by_a_little_noise():
    """Three rows of noise, where a particle weighs a tenth of a row; as many as a thousand rows are evidence."""
    assert theta_of_an_empty_cell(3.0, 0.1) == 0.0
    assert theta_of_an_empty_cell(3.0, 0.0) > 2.0  # what it would come to if the particles were the whole domain
    assert theta_of_an_empty_cell(1000.0, 0.1) > 2.0


def bits(columns: int, count: int) -> Particles:
    """Fair coins, with a strong relation to learn between each and the next."""
    names = [f"x{i}" for i in range(columns)]
    codes = dict(zip(names, np.random.default_rng(5).integers(0, 2, (columns, count)), strict=True))
    particles = Particles(dict.fromkeys(names, 2), TOTAL, codes, np.full(count, TOTAL / count))
    every = (np.arange(2), np.arange(2))
    linked = TOTAL * np.array([[0.4, 0.1], [0.1, 0.4]])
    for pair in itertools.pairwise(names):
        particles.add(LogFactor.evidence(NoisyTable(pair, linked, 1.0, every), spread=4.0))
    return particles


def visits(particles: Particles) -> list[bool]:
    """Of which blocks the factor has moved."""
    return [bool(block.factors[0].theta.any()) for block in particles.blocks.values()]


def test_raking_ends_where_too_few_particles_are_effective_and_goes_on_from_there(monkeypatch):
    monkeypatch.setattr(module, "STRETCH", 2)
    particles, all_at_once = bits(columns=41, count=5_000), bits(columns=41, count=5_000)
    particles.rake(1, fewest=0.2)
    first = sum(visits(particles))
    assert 0 < first < 40 and visits(particles) == [True] * first + [False] * (40 - first)
    assert particles.visited == first
    # As after a refresh: equal weights again.
    particles.resample(5_000, np.random.default_rng(1))
    particles.rake(1, fewest=0.2)
    assert sum(visits(particles)) > first and particles.weights.sum() == pytest.approx(TOTAL)
    # In one go next to nothing is left of them.
    all_at_once.rake(1)
    assert all_at_once.effective < 0.02 * 5_000 and all(visits(all_at_once)) and all_at_once.visited == 0


# --- Hostile counts ---------------------------------------------------------------------------------------------------

HOSTILE = {
    "negative": -np.arange(12.0).reshape(3, 4) * 50,
    "huge": np.full((3, 4), 1e12),
    "hugely negative": np.full((3, 4), -1e12),
    "zero": np.zeros((3, 4)),
    "one cell": np.pad([[1e9]], ((0, 2), (0, 3)), constant_values=-1e9),
}


@pytest.mark.parametrize("sampling", [True, False])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_weights_stay_weights_whatever_the_counts_are(hostile: str, sampling: bool):
    """Among the particles are cells that none is in, and a column of one value."""
    rng = np.random.default_rng(2)
    sizes = SIZES | {"one": 1}
    codes = {"a": rng.integers(0, 2, 50), "b": rng.integers(1, 4, 50), "c": np.full(50, 5), "one": np.zeros(50, int)}
    particles = Particles(sizes, TOTAL, codes, np.full(50, TOTAL / 50))
    for spread in (0.0, 4.0):
        groups = (EVERY["a"], EVERY["b"])
        particles.add(LogFactor.evidence(NoisyTable(("a", "b"), HOSTILE[hostile], 1e-3, groups), spread))
        particles.add(
            LogFactor.evidence(NoisyTable(("a", "b"), -HOSTILE[hostile], np.full((3, 4), 1e6), groups), spread)
        )
    particles.add(LogFactor.evidence(NoisyTable(("one",), np.array([-3.0]), 1.0, (np.zeros(1, dtype=np.intp),))))
    particles.add(
        LogFactor.evidence(
            NoisyTable(("one", "c"), np.full((1, 6), 7.0), 1.0, (np.zeros(1, dtype=np.intp), EVERY["c"]))
        )
    )
    particles.rake(30, sampling=sampling)
    assert np.isfinite(particles.weights).all() and (particles.weights > 0).all()
    assert particles.weights.sum() == pytest.approx(TOTAL) and 1.0 <= particles.effective <= 50.0 + 1e-9
    assert all(np.isfinite(f.theta).all() and np.abs(f.theta).max() <= 7.0 for f in particles.factors)
    assert np.isfinite(particles.loss())


# --- The rows ---------------------------------------------------------------------------------------------------------


def test_effective_counts_equal_weights():
    codes = {"a": np.zeros(8, dtype=int)}
    assert Particles({"a": 1}, 1.0, codes, np.full(8, 3.0)).effective == pytest.approx(8.0)
    assert Particles({"a": 1}, 1.0, codes, np.eye(8)[2]).effective == pytest.approx(1.0)
    assert Particles({"a": 1}, 1.0, codes, np.array([2.0, 2, 2, 2, 0, 0, 0, 0])).effective == pytest.approx(4.0)
    assert Particles({"a": 1}, 1.0, codes, np.arange(8.0)).effective == pytest.approx(28**2 / 140)


def state(particles: Particles) -> list[np.ndarray]:
    cells = [block.histogram(particles.codes, particles.weights) for block in particles.blocks.values()]
    return [*particles.codes.values(), particles.weights.copy(), *(f.theta.copy() for f in particles.factors), *cells]


def test_restoring_a_snapshot_restores_everything_and_can_be_done_twice():
    particles, joint = whole_domain(), random_joint()
    for columns, groupings in OVERLAPPING:
        particles.add(evidence(joint, columns, groupings, variance=4.0))
    particles.rake(2)
    before, snapshot = state(particles), particles.snapshot()
    for _ in range(2):
        particles.resample(31, np.random.default_rng(1))
        particles.rake(3)
        assert particles.count == 31
        particles.restore(snapshot)
        after = state(particles)
        assert len(before) == len(after) and all(map(np.array_equal, before, after))
        particles.rake(1)
        assert not np.array_equal(particles.weights, before[len(SIZES)])
        particles.restore(snapshot)


@pytest.mark.parametrize("count", [1, 7, 72, 1000, 5000])
def test_resampling_rounds_each_weight_up_or_down(count: int):
    rng = np.random.default_rng(4)
    particles = whole_domain()
    particles.weights = rng.gamma(0.3, size=72) + 1e-12
    expected = particles.weights * count / particles.weights.sum()
    drawn = np.bincount(particles.draw(count, rng), minlength=72)
    # Ten significant bits move a weight by a thousandth, and the place on the line by at most that of the whole.
    assert drawn.sum() == count and (np.abs(drawn - expected) <= 1.0 + 2e-3 * count).all()
    particles.resample(count, rng)
    assert particles.count == count and {len(c) for c in particles.codes.values()} == {count}
    assert np.allclose(particles.weights, TOTAL / count)


def test_a_particle_without_weight_is_not_drawn():
    particles = whole_domain()
    particles.weights[particles.codes["a"] == 1] = 0.0
    assert not (particles.codes["a"][particles.draw(10_000, np.random.default_rng(0))] == 1).any()
