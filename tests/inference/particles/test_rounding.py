"""Choosing rows among particles: as many as asked, closer to the weights than a draw, and none that has no weight."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from understudy.inference.particles import rounding
from understudy.inference.particles.particles import LogFactor, Particles, cells_of
from understudy.inference.particles.rounding import ParticleModel, RowExchange, price_of

ALPHA = 1e-9
PARTICLES = 3000


choose_rows = partial(rounding.choose_rows, rounds=150)


def weighted(seed: int, sizes: tuple[int, ...] = (2, 3, 4, 5), count: int = PARTICLES) -> Particles:
    rng = np.random.default_rng(seed)
    codes = {f"c{i}": rng.integers(0, n, count).astype(np.int32) for i, n in enumerate(sizes)}
    weights = rng.gamma(1.0, size=count)
    return Particles({f"c{i}": n for i, n in enumerate(sizes)}, float(count), codes, weights * count / weights.sum())


def pairs(particles: Particles) -> list[tuple[str, ...]]:
    return list(itertools.combinations(particles.sizes, 2))


def loss(particles: Particles, chosen: np.ndarray) -> float:
    """Σ (count − weighted count)² over the cells of all pairs, each at its price, by brute force."""
    found = 0.0
    for pair in pairs(particles):
        shape = tuple(particles.sizes[c] for c in pair)
        cells = np.ravel_multi_index([particles.codes[c] for c in pair], shape)
        wanted = np.bincount(cells, particles.weights, int(np.prod(shape))) * len(chosen) / particles.total
        excess = np.bincount(cells[chosen], minlength=int(np.prod(shape))) - wanted
        found += float((excess**2 * price_of(wanted)).sum())
    return found


@pytest.mark.parametrize("seed", range(5))
def test_pairs_come_much_closer_than_by_systematic_resampling(seed: int):
    particles, rng = weighted(seed, (3, 4, 5, 6, 4, 5, 3)), np.random.default_rng(seed)
    plain = loss(particles, particles.draw(1000, rng))
    assert loss(particles, choose_rows(particles, 1000, rng)) < 0.3 * plain


def test_the_excess_is_kept_up_to_date_and_every_exchange_helps():
    particles, rng = weighted(1), np.random.default_rng(1)
    exchange = RowExchange(particles, pairs(particles), particles.draw(500, rng))
    losses = [exchange.loss]
    for _ in range(20):
        exchange.improve(1, rng)
        losses.append(exchange.loss)
    assert losses[-1] == pytest.approx(loss(particles, exchange.chosen))
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.9 * losses[0]


SHAPES = {
    "one row": ((3, 3), 100, 1),
    "one column": ((4,), 100, 50),
    "one particle": ((3, 3, 2), 1, 7),
    "one value": ((1, 1, 3), 50, 20),
    "more rows than particles": ((3, 4, 2), 60, 5000),
    "as many rows": ((3, 4, 2), 60, 60),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_as_many_rows_as_asked(shape: str):
    sizes, count, rows = SHAPES[shape]
    particles = weighted(2, sizes, count)
    chosen = choose_rows(particles, rows, np.random.default_rng(2))
    assert chosen.shape == (rows,) and chosen.min() >= 0 and chosen.max() < count
    sample = ParticleModel(particles, rounds=150).sample(rows, np.random.default_rng(2))
    assert list(sample) == list(particles.sizes) and {len(v) for v in sample.values()} == {rows}


def test_with_too_many_pairs_a_random_choice_of_them_counts(monkeypatch: pytest.MonkeyPatch):
    particles = weighted(3, (3,) * 12, 500)
    counted = []

    class Spied(RowExchange):
        def __init__(self, particles: Particles, pairs: list[tuple[str, ...]], chosen: np.ndarray) -> None:
            counted.append(pairs)
            super().__init__(particles, pairs, chosen)

    monkeypatch.setattr(rounding, "RowExchange", Spied)
    plain = loss(particles, particles.draw(200, np.random.default_rng(3)))
    chosen = choose_rows(particles, 200, np.random.default_rng(3), most_cells=13 * 500)
    assert len(chosen) == 200 and len(set(counted[0])) == 13 and set(counted[0]) < set(pairs(particles))
    assert loss(particles, chosen) < plain
    # Fewer pairs than columns would leave some column out.
    assert len(choose_rows(particles, 200, np.random.default_rng(3), most_cells=11 * 500)) == 200
    assert counted[-1] == [(c,) for c in particles.sizes]


def whole(columns: int = 9, seed: int = 1) -> tuple[Particles, np.ndarray]:
    """Every cell of a domain of binary columns; those of odd parity in the first three have nearly no weight."""
    rng = np.random.default_rng(seed)
    codes = {f"c{i}": v.ravel() for i, v in enumerate(np.indices((2,) * columns))}
    impossible = (codes["c0"] + codes["c1"] + codes["c2"]) % 2 == 1
    weights = rng.gamma(0.5, size=2**columns) * np.where(impossible, 1e-9, 1.0)
    return Particles(dict.fromkeys(codes, 2), 400.0, codes, weights * 400.0 / weights.sum()), impossible


def impossible_rows(seed: int) -> int:
    particles, impossible = whole(seed=seed)
    return int(impossible[choose_rows(particles, 400, np.random.default_rng(seed))].sum())


def test_rows_of_no_weight_do_not_come_in_though_their_pairs_would_do(monkeypatch: pytest.MonkeyPatch):
    """No pair sees the parity of three columns. Of 3 × 60,000 proposals one in 10⁹ has the wrong one."""
    assert sum(map(impossible_rows, range(3))) == 0
    # The mutant proposes any particle alike.
    monkeypatch.setattr(RowExchange, "_proposed", lambda self, count, rng: rng.integers(0, len(self._cells), count))
    assert sum(map(impossible_rows, range(3))) > 0


def test_the_same_seed_chooses_the_same_rows():
    first, again, other = (choose_rows(weighted(4), 300, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


# --- Given values -----------------------------------------------------------------------------------------------------

SIZES = {"a": 2, "b": 3, "c": 4}
GIVEN_ROWS = 60_000


def fitted(seed: int = 1) -> Particles:
    """The whole of a tiny domain, under factors of one, two and three columns."""
    rng = np.random.default_rng(seed)
    codes = {c: v.ravel().astype(np.int32) for c, v in zip(SIZES, np.indices(tuple(SIZES.values())), strict=True)}
    particles = Particles(SIZES, 5000.0, codes, np.ones(24))
    halves = np.array([0, 0, 1, 1])
    for columns in ("a", "b", "c", "ab", "bc", "abc"):
        groups = tuple(halves if c == "c" and len(columns) == 3 else np.arange(SIZES[c]) for c in columns)
        particles.add(LogFactor(tuple(columns), groups, rng.normal(0, 0.5, [int(g.max()) + 1 for g in groups])))
    log = sum(f.theta.ravel()[cells_of(codes, f.columns, f.groups)] for f in particles.factors)
    particles.weights = np.exp(log) * (5000.0 / np.exp(log).sum())
    return particles


def statistic(particles: Particles, given: dict[str, np.ndarray], made: dict[str, np.ndarray]) -> tuple[float, int]:
    """Pearson's statistic of whole rows against the conditional law of what was not given; its degrees of freedom."""
    law = particles.weights.reshape(tuple(SIZES.values()))
    others = tuple(i for i, c in enumerate(SIZES) if c not in given)
    conditional = law / law.sum(axis=others, keepdims=True)
    evidence = np.zeros(tuple(1 if i in others else n for i, n in enumerate(SIZES.values())))
    np.add.at(evidence, tuple(given.get(c, 0) for c in SIZES), 1.0)
    counts = np.zeros(law.shape)
    np.add.at(counts, tuple(made[c] for c in SIZES), 1.0)
    seen = np.broadcast_to(evidence > 0, law.shape)
    wanted = (conditional * evidence)[seen]
    assert wanted.min() > 100
    return float(((counts[seen] - wanted) ** 2 / wanted).sum()), int(seen.sum() - (evidence > 0).sum())


EVIDENCE = {
    "one column": lambda rng: {"a": rng.integers(0, 2, GIVEN_ROWS)},
    "one value": lambda rng: {"c": np.full(GIVEN_ROWS, 3)},
    "two columns": lambda rng: {"c": rng.integers(0, 4, GIVEN_ROWS), "a": rng.integers(0, 2, GIVEN_ROWS)},
}


@pytest.mark.parametrize("kind", EVIDENCE)
def test_completed_rows_keep_what_is_given_and_follow_the_conditional_law(kind: str):
    """The last sweep draws each row on its own, and errs at most as independent rows do: once in 10⁹ runs."""
    rng = np.random.default_rng(5)
    particles, given = fitted(), EVIDENCE[kind](rng)
    made = ParticleModel(particles, rounds=150).complete(given, rng)
    assert set(made) == set(SIZES) and all(np.array_equal(made[c], given[c]) for c in given)
    found, freedom = statistic(particles, given, made)
    assert found < chi2.isf(ALPHA, freedom)


def test_a_completion_that_ignores_what_is_given_is_found_out():
    rng = np.random.default_rng(5)
    particles, given = fitted(), EVIDENCE["one column"](rng)
    made = ParticleModel(particles, rounds=150).sample(GIVEN_ROWS, rng) | given
    found, freedom = statistic(particles, given, made)
    assert found > chi2.isf(ALPHA, freedom)


def test_values_that_no_particle_has_are_kept():
    particles = fitted()
    particles.move({c: v[particles.codes["c"] < 2] for c, v in particles.codes.items()})
    particles.weights = np.full(12, 5000.0 / 12)
    made = ParticleModel(particles, rounds=150).complete({"c": np.array([3, 3, 0])}, np.random.default_rng(1))
    assert made["c"].tolist() == [3, 3, 0] and {len(v) for v in made.values()} == {3}
    assert particles.count == 12  # the model is as it was


def test_completing_leaves_the_model_as_it_was():
    particles, model = fitted(), ParticleModel(fitted(), rounds=150)
    model.complete({"a": np.array([0, 1])}, np.random.default_rng(1))
    assert all(np.array_equal(model.particles.codes[c], particles.codes[c]) for c in SIZES)
    assert np.array_equal(model.particles.weights, particles.weights) and model.total == 5000.0
