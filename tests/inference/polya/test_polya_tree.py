"""Polya trees against a slow second implementation, and noisy halves against plain least squares."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from understudy.boundary.schema.partition import Grid
from understudy.errors import InputError
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.polya.dyadic import Dyadic, LevelEstimates, best_levels, depth_of, nodes_of
from understudy.inference.polya.polya_prior import Floats, PolyaPosterior, PolyaPrior, Uniform

FALSE_ALARM = 1e-9


class SlowTree:
    """The definition, node by node: a node is a text of 0 and 1."""

    def __init__(self, tree: PolyaPrior, places: list[float]) -> None:
        self.tree = tree
        self.paths = [self.path(p) for p in places]

    def path(self, place: float) -> str:
        low, high, found = 0.0, 1.0, ""
        for _ in range(self.tree.depth):
            middle = (low + high) / 2
            found += "1" if place >= middle else "0"
            low, high = (middle, high) if place >= middle else (low, middle)
        return found

    def alpha(self, node: str) -> float:
        prior = self.tree.concentration * len(node) ** self.tree.exponent
        return prior + sum(p.startswith(node) for p in self.paths)

    def probability(self, leaf: str) -> float:
        steps = [leaf[: i + 1] for i in range(len(leaf))]
        return math.prod(self.alpha(s) / (self.alpha(s[:-1] + "0") + self.alpha(s[:-1] + "1")) for s in steps)

    def predictive(self) -> list[float]:
        return [self.probability("".join(bits)) for bits in itertools.product("01", repeat=self.tree.depth)]

    def sequence(self, leaves: list[int]) -> float:
        """One draw after the other, each seen before the next."""
        found = 1.0
        for leaf in leaves:
            path = f"{leaf:0{self.tree.depth}b}"
            found *= self.probability(path)
            self.paths.append(path)
        return found


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.1, 50),
    st.integers(1, 5),
    st.floats(0.0, 3.0),
    st.lists(st.floats(0, 0.999), max_size=8),
    st.lists(st.integers(0, 31), max_size=4),
)
def test_posterior_and_predictive_are_those_of_the_definition(
    c: float, depth: int, exponent: float, places: list[float], draws: list[int]
) -> None:
    tree = PolyaPrior(c, depth, exponent)
    posterior, slow = tree.posterior(np.array(places)), SlowTree(tree, places)
    assert np.allclose(posterior.predictive(), slow.predictive(), rtol=1e-10)
    leaves = [d % tree.leaves for d in draws]
    found = posterior.log_probability(np.bincount(np.array(leaves, dtype=int), minlength=tree.leaves))
    assert math.isclose(found, math.log(slow.sequence(leaves)), rel_tol=1e-9, abs_tol=1e-9)


def test_mutant_a_tree_of_another_exponent_is_told_apart() -> None:
    right, wrong = PolyaPrior(1.0, 3, 2.0), PolyaPrior(1.0, 3, 1.0)
    places = [0.1, 0.3, 0.31]
    assert not np.allclose(wrong.posterior(np.array(places)).predictive(), SlowTree(right, places).predictive())


def test_draws_of_the_posterior_have_its_mean_and_its_spread() -> None:
    """The variance of the root's Beta is known; χ² and z at a false alarm of one in a billion."""
    posterior = PolyaPrior(2.0, 4).posterior(np.array([0.1, 0.2, 0.8]))
    measures = posterior.measures(20_000, np.random.default_rng(2))
    assert np.allclose(measures.sum(axis=1), 1)
    z = (measures.mean(axis=0) - posterior.predictive()) / (measures.std(axis=0) / math.sqrt(20_000))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 32)
    left = measures[:, :8].sum(axis=1)
    assert stats.kstest(left, stats.beta(4, 3).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(left, stats.beta(8, 6).cdf).pvalue < FALSE_ALARM


def test_draws_have_the_joint_predictive_law() -> None:
    """All counts of two draws over four leaves: χ² at a false alarm of one in a billion; independent draws fail."""
    posterior, rng = PolyaPrior(0.3, 2).posterior(np.array([0.1, 0.6])), np.random.default_rng(4)
    outcomes = [np.bincount(pair, minlength=4) for pair in itertools.combinations_with_replacement(range(4), 2)]
    law = np.array([math.exp(posterior.log_probability(o)) * (2 if o.max() == 1 else 1) for o in outcomes])
    assert math.isclose(law.sum(), 1)
    drawn = [posterior.draw_counts(2, rng) for _ in range(5_000)]
    seen = np.array([sum(np.array_equal(d, o) for d in drawn) for o in outcomes])
    assert stats.chisquare(seen, law * 5_000).pvalue > FALSE_ALARM
    once = posterior.predictive()
    apart = np.array([once[np.flatnonzero(o)].prod() * 2 if o.max() == 1 else once[o.argmax()] ** 2 for o in outcomes])
    assert stats.chisquare(seen, apart * 5_000).pvalue < FALSE_ALARM


@dataclass(frozen=True)
class Quantiles:
    """Any continuous distribution of scipy, halved at its dyadic quantiles."""

    distribution: Any

    def place(self, values: Floats) -> Floats:
        return np.asarray(self.distribution.cdf(values))

    def value(self, places: Floats) -> Floats:
        return np.asarray(self.distribution.ppf(places))

    def log_density(self, values: Floats) -> Floats:
        return np.asarray(self.distribution.logpdf(values))


@dataclass(frozen=True)
class Bins:
    """Public bins, each as likely as any other and uniform inside: those of a schema, through their edges."""

    edges: tuple[float, ...]

    def place(self, values: Floats) -> Floats:
        return np.interp(values, self.edges, np.linspace(0.0, 1.0, len(self.edges)))

    def value(self, places: Floats) -> Floats:
        return np.interp(places, np.linspace(0.0, 1.0, len(self.edges)), self.edges)

    def log_density(self, values: Floats) -> Floats:
        edges = np.asarray(self.edges)
        bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        inside = (values >= edges[0]) & (values <= edges[-1])
        return np.where(inside, -np.log(np.diff(edges)[bins] * (len(edges) - 1)), -np.inf)


BASES = {
    "uniform": (Uniform(-2.0, 6.0), stats.uniform(-2, 8)),
    "normal": (Quantiles(stats.norm(3, 2)), stats.norm(3, 2)),
    "bins": (Bins((0.0, 1.0, 3.0, 7.0)), None),
}


@pytest.mark.parametrize("name", BASES)
def test_a_tree_without_data_is_its_base_measure(name: str) -> None:
    base, law = BASES[name]
    tree = PolyaPrior(5.0, 6, base=base)
    prior = PolyaPosterior.of_counts(tree, np.zeros(tree.leaves))
    values = base.value(np.linspace(0.01, 0.99, 50))
    assert np.allclose(prior.predictive(), 1 / tree.leaves)
    assert np.allclose(prior.log_density(values), base.log_density(values))
    assert np.allclose(base.place(values), np.linspace(0.01, 0.99, 50))
    if law is not None:
        assert np.allclose(prior.log_density(values), law.logpdf(values))
    assert np.isneginf(Uniform().log_density(np.array([-0.1, 1.1]))).all()


@pytest.mark.parametrize("name", ["uniform", "bins"])
def test_the_density_integrates_to_one(name: str) -> None:
    base, _ = BASES[name]
    low, high = float(base.value(np.array(0.0))), float(base.value(np.array(1.0)))
    posterior = PolyaPrior(1.0, 5, base=base).posterior(np.array([0.5, 2.0, 2.1]))
    middles = low + (np.arange(200_000) + 0.5) / 200_000 * (high - low)
    assert math.isclose(np.exp(posterior.log_density(middles)).mean() * (high - low), 1, rel_tol=1e-3)
    assert np.all((values := posterior.draw(500, np.random.default_rng(1))) >= low) and np.all(values <= high)


def test_large_c_trusts_the_base_and_small_c_the_data() -> None:
    values = np.full(100, 0.3)
    near, far = (PolyaPrior(c, 8).posterior(values).predictive().max() for c in (1e-6, 1e6))
    assert near > 0.999 and math.isclose(far, 1 / 256, rel_tol=1e-3)


def test_depth_twenty_is_no_matter() -> None:
    posterior = PolyaPrior(1.0, 20).posterior(np.random.default_rng(1).random(1000))
    assert (
        math.isclose(posterior.predictive().sum(), 1)
        and posterior.draw_counts(500, np.random.default_rng(2)).sum() == 500
    )


@pytest.mark.parametrize("bad", [{"concentration": 0.0}, {"concentration": math.inf}, {"depth": 0}, {"depth": 40}])
def test_impossible_trees_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        PolyaPrior(**({"concentration": 1.0, "depth": 3} | bad))


# --- Noisy halves -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(0, 9))
def test_nodes_are_nested_and_the_last_level_tells_codes_apart(codes: int, level: int) -> None:
    assert np.array_equal(nodes_of(codes, level + 1) // 2, nodes_of(codes, level))
    assert len(set(nodes_of(codes, depth_of(codes)))) == codes
    assert np.all(np.diff(nodes_of(codes, level)) >= 0)


@pytest.mark.parametrize("apart", [0, 1, 3])
def test_a_level_as_a_grid_is_the_same_partition(apart: int) -> None:
    for codes, level in ((5, 2), (5, 3), (64, 6), (74, 4)):
        dyadic, rows = Dyadic("a", codes, level, apart), {"a": np.arange(codes + apart)}
        grid = dyadic.listed()
        assert isinstance(grid, Grid) and grid.cells == len(np.unique(dyadic.assign(rows)))
        wanted = np.bincount(dyadic.assign(rows), minlength=dyadic.cells)
        for partition in (dyadic, grid):
            nodes, beside = dyadic.by_node(np.bincount(partition.assign(rows), minlength=partition.cells))
            assert np.array_equal(nodes, wanted[: 1 << level]) and beside.tolist() == [1] * apart
    assert isinstance(Dyadic("a", 5000, 3).listed(), Dyadic)


def plain_least_squares(codes: int, measured: dict[int, NoisyTable]) -> np.ndarray:
    """Over the nodes of the deepest level that have codes, by numpy's solver."""
    deepest = max(measured)
    live = np.unique(nodes_of(codes, deepest))
    rows, wanted = [], []
    for level, m in measured.items():
        for node in np.unique(nodes_of(codes, level)):
            inside = (live >> (deepest - level)) == node
            rows.append(inside / math.sqrt(m.variance))
            wanted.append(m.counts[node] / math.sqrt(m.variance))
    found = np.zeros(1 << deepest)
    found[live] = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
    return found


def split_down(codes: int, measured: dict[int, NoisyTable]) -> np.ndarray:
    """Downwards from the total, without any prior: what a node differs from the sum of its halves is theirs."""
    estimates = LevelEstimates.of(codes, measured)
    mass = estimates.levels[0].counts
    for level in range(1, len(estimates.levels)):
        left, _ = estimates.split(level, mass)
        mass = np.stack([left, mass - left], axis=1).ravel()
    return mass


def noisy(counts: np.ndarray, variance: float) -> NoisyTable:
    return NoisyTable(("a",), counts, variance)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.data())
def test_consistent_counts_are_the_weighted_least_squares(codes: int, data: st.DataObject) -> None:
    depth = depth_of(codes)
    levels = data.draw(st.lists(st.integers(0, depth), min_size=1, unique=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    measured = {j: noisy(rng.normal(0, 20, 1 << j), float(rng.uniform(0.5, 50))) for j in levels}
    assert np.allclose(split_down(codes, measured), plain_least_squares(codes, measured), atol=1e-8)


def test_mutant_equal_weights_are_told_apart() -> None:
    rng = np.random.default_rng(1)
    measured = {j: noisy(rng.normal(0, 20, 1 << j), v) for j, v in ((1, 1.0), (3, 9.0))}
    even = {j: noisy(m.counts, 1.0) for j, m in measured.items()}
    assert not np.allclose(split_down(8, even), plain_least_squares(8, measured), atol=1e-3)


@given(st.integers(2, 90), st.integers(0, 20))
def test_without_noise_the_posterior_mean_is_the_counts(codes: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 50, codes).astype(float)
    depth = depth_of(codes)
    measured = {depth: noisy(np.bincount(nodes_of(codes, depth), counts, 1 << depth), 1e-12)}
    assert np.allclose(LevelEstimates.of(codes, measured).posterior_mean(counts.sum()), counts, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 200), st.integers(0, 99), st.floats(1, 1e4))
def test_the_posterior_mean_is_never_negative_and_keeps_the_total(codes: int, seed: int, total: float) -> None:
    rng = np.random.default_rng(seed)
    measured = {j: noisy(rng.normal(0, 100, 1 << j), 100.0) for j in sorted({1, depth_of(codes)})}
    found = LevelEstimates.of(codes, measured).posterior_mean(total)
    assert found.shape == (codes,) and found.min() >= 0 and math.isclose(found.sum(), total, rel_tol=1e-9)


def mean_square(codes: int, measured: dict[int, float]) -> float:
    """Of the error of the distribution function between the ends of nodes, averaged: from the covariance itself."""
    deepest = max(measured)
    rows = [np.kron(np.eye(1 << j), np.ones(1 << (deepest - j))) / math.sqrt(v) for j, v in measured.items()]
    precision = sum(r.T @ r for r in rows) + 1e9 * np.ones((codes, codes))  # the total is known
    sums = np.tril(np.ones((codes, codes))) @ np.linalg.inv(precision) @ np.tril(np.ones((codes, codes))).T
    ends = np.concatenate([[0.0], np.diag(sums)])
    between = np.concatenate([[0.0], np.diag(sums, -1)])
    # Along a straight piece from a to b the mean square is (a² + ab + b²)/3.
    return float(np.mean((ends[:-1] + between + ends[1:]) / 3))


@pytest.mark.parametrize("measured", [{4: 2.0}, {1: 1.0, 4: 3.0}, {2: 5.0, 3: 1.0, 4: 2.0}])
def test_the_forecast_of_the_error_is_exact(measured: dict[int, float]) -> None:
    from understudy.inference.polya.dyadic import _mean_square

    assert math.isclose(_mean_square(measured, 4), mean_square(16, measured), rel_tol=1e-4)


@pytest.mark.parametrize("pure", [True, False])
def test_the_best_levels_share_the_budget_and_go_deeper_with_more_rows(pure: bool) -> None:
    plans = [best_levels(4096, rows, 4.0, pure) for rows in (30, 3_000, 300_000)]
    assert all(math.isclose(sum(share for _, share in plan), 1) for plan in plans)
    deepest = [max(level for level, _ in plan) for plan in plans]
    assert deepest == sorted(deepest) and deepest[0] < deepest[-1]
    assert best_levels(2, 10, 4.0, pure) == [(1, 1.0)]
