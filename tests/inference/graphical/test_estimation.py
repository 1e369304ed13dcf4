"""Estimation in its limits: without noise the measurements come back; with noise, the better one counts more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graphs import SHAPES, SIZES, shapes
from understudy.inference.graphical import estimation
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.graphical.graphical_model import marginalise, spread
from understudy.inference.noisy_table import NoisyTable

COLUMNS = tuple(SIZES)
TOTAL = 10_000.0
QUIET = 1e-6
SWEEPS = 300


def truth(seed: int = 0) -> np.ndarray:
    """A joint table in which every column depends on every other, and no cell is empty."""
    rng = np.random.default_rng(seed)
    joint = rng.gamma(1.0, size=tuple(SIZES.values())) + 0.2
    return joint * TOTAL / joint.sum()


def seen(joint: np.ndarray, columns: tuple[str, ...], variance: float = QUIET) -> NoisyTable:
    return NoisyTable(columns, marginalise(joint, COLUMNS, columns), variance)


def uniform() -> dict[str, np.ndarray]:
    return {c: np.full(n, TOTAL / n) for c, n in SIZES.items()}


def estimator(total: float = TOTAL, fixed_total: bool = False) -> GraphicalEstimator:
    return GraphicalEstimator(SIZES, uniform(), total, fixed_total)


def everything(joint: np.ndarray, shape: str) -> list[NoisyTable]:
    return [seen(joint, s) for s in dict.fromkeys([*((c,) for c in COLUMNS), *SHAPES[shape]])]


def error(fit: GraphicalEstimator, joint: np.ndarray, columns: tuple[str, ...]) -> float:
    return float(np.abs(fit.model.marginal(columns) - marginalise(joint, COLUMNS, columns)).max()) / TOTAL


@shapes
@pytest.mark.parametrize("fixed_total", [False, True])
def test_without_noise_every_marginal_comes_back(shape: str, fixed_total: bool):
    joint = truth()
    fit = estimator(fixed_total=fixed_total)
    fit.observe(everything(joint, shape))
    fit.fit(SWEEPS)
    assert all(error(fit, joint, o.columns) < 1e-6 for o in fit.observations.values())
    assert fit.model.total == pytest.approx(TOTAL)


def test_mutant_one_sweep_is_not_enough_on_a_cycle():
    joint = truth()
    fit = estimator()
    fit.observe(everything(joint, "cycle"))
    fit.fit(1)
    assert max(error(fit, joint, s) for s in SHAPES["cycle"]) > 1e-6


@shapes
def test_what_is_learned_later_counts_as_much(shape: str):
    joint = truth(1)
    at_once, in_turn = estimator(), estimator()
    at_once.observe(everything(joint, shape))
    at_once.fit(SWEEPS)
    for one in everything(joint, shape):
        in_turn.observe([one])
        in_turn.fit(5)
    in_turn.fit(SWEEPS)
    assert in_turn.model.tree == at_once.model.tree
    for a, b in zip(in_turn.model.tables, at_once.model.tables, strict=True):
        assert np.abs(a - b).max() < 1e-6 * TOTAL


def test_more_observations_start_from_what_was_learned():
    """Recalibration changes nothing: the model just after an observation is the model just before it."""
    joint = truth(2)
    fit = estimator()
    fit.observe(everything(joint, "chain"))
    fit.fit(30)
    before = {s: fit.model.marginal(s) for s in SHAPES["chain"]}
    fit.observe([seen(joint, ("a", "e"))])
    assert all(np.abs(fit.model.marginal(s) - t).max() < 1e-6 * TOTAL for s, t in before.items())


def test_a_set_may_come_in_any_order_of_its_columns():
    joint = truth(3)
    one, other = estimator(), estimator()
    one.observe([seen(joint, ("a", "d"))])
    other.observe([seen(joint, ("d", "a"))])
    assert list(one.observations) == list(other.observations) == [("a", "d")]
    assert np.array_equal(one.fit(20).tables[0], other.fit(20).tables[0])


# --- Maximum entropy --------------------------------------------------------------------------------------------------


def test_columns_that_were_never_seen_together_are_independent_given_the_tree():
    """On the chain a–b–c–d–e: P(a, b, c) = P(a, b)·P(c | b), whatever the truth is."""
    joint = truth(4)
    fit = estimator()
    fit.observe(everything(joint, "chain"))
    fit.fit(SWEEPS)
    fit.observe([NoisyTable(("a", "b", "c"), np.zeros((2, 3, 2)), 1e30)])  # says nothing, but makes one clique of it
    ab, bc = (marginalise(joint, COLUMNS, s) for s in (("a", "b"), ("b", "c")))
    expected = ab[:, :, None] * bc[None, :, :] / bc.sum(axis=1)[None, :, None]
    assert np.abs(fit.model.marginal(("a", "b", "c")) - expected).max() < 1e-5 * TOTAL
    assert np.abs(expected - marginalise(joint, COLUMNS, ("a", "b", "c"))).max() > 1e-3 * TOTAL


def test_nothing_seen_leaves_the_base():
    base = {c: np.arange(1.0, n + 1) for c, n in SIZES.items()}
    model = GraphicalEstimator(SIZES, base, TOTAL).fit(3)
    for column, weights in base.items():
        assert np.allclose(model.marginal((column,)), weights * TOTAL / weights.sum())


# --- Noise ------------------------------------------------------------------------------------------------------------


def test_the_precise_observation_wins():
    """a is 3:7 to within 1, and 7:3 to within a thousand, in turn and in either order."""
    precise = NoisyTable(("a",), np.array([3000.0, 7000.0]), 1.0)
    noisy = NoisyTable(("a", "b"), np.repeat([[7000.0], [3000.0]], 3, axis=1) / 3, 1e6)
    for order in itertools.permutations([precise, noisy]):
        fit = estimator()
        for one in order:
            fit.observe([one])
        assert np.abs(fit.fit(100).marginal(("a",)) - [3000, 7000]).max() < 5


def test_of_two_equally_precise_observations_the_mean_counts():
    fit = estimator()
    fit.observe([NoisyTable(("a",), np.array([c, TOTAL - c]), 1e-4) for c in (4000.0, 5000.0)])
    assert np.allclose(fit.fit(50).marginal(("a",)), [4500, 5500], atol=0.01)


@given(
    st.lists(st.tuples(st.floats(-1e4, 1e4), st.floats(1e-3, 1e6)), min_size=2, max_size=6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_repeated_observations_are_averaged_by_inverse_variance(found, random):
    counts, variances = (np.array(x) for x in zip(*found, strict=True))
    one = NoisyTable(("a",), np.array([counts[0], 0.0]), variances[0])
    for count, variance in found[1:]:
        per_cell = variance if random.random() < 0.5 else np.full(2, variance)
        one = one.averaged_with(NoisyTable(("a",), np.array([count, 0.0]), per_cell))
    precision = 1 / variances
    assert np.allclose(one.counts[0], (counts * precision).sum() / precision.sum(), rtol=1e-9, atol=1e-6)
    assert np.allclose(one.variance, 1 / precision.sum())


def test_a_public_total_is_kept_whatever_was_measured():
    """The measurements say 10,000; that there are 8,000 is known."""
    joint = truth(5)
    fit = estimator(8000.0, fixed_total=True)
    fit.observe([seen(joint, s, 25.0) for s in SHAPES["chain"]])
    assert fit.fit(30).total == pytest.approx(8000.0)
    assert fit.total == 8000.0


def test_a_private_total_is_estimated_from_the_measurements():
    joint = truth(5)
    fit = estimator(8000.0)
    fit.observe([seen(joint, s, 25.0) for s in SHAPES["chain"]])
    assert fit.fit(30).total == pytest.approx(TOTAL)


def test_noise_alone_is_shrunk_away():
    """Independent columns, and a pair whose every cell is noise as large as its count: nearly no dependence is learned,
    where the same figures with a tiny variance are believed.
    """
    rng = np.random.default_rng(7)
    noise = rng.normal(0, 500, (4, 3))
    counts = np.full((4, 3), TOTAL / 12) + noise - noise.mean()
    found = {}
    for variance in (500.0**2, QUIET):
        fit = estimator()
        fit.observe([NoisyTable((c,), np.full(SIZES[c], TOTAL / SIZES[c]), 1.0) for c in ("d", "e")])
        fit.fit(10)
        fit.observe([NoisyTable(("d", "e"), counts, variance)])
        found[variance] = np.abs(fit.fit(100).marginal(("d", "e")) - TOTAL / 12).sum()
    assert found[500.0**2] < 0.25 * np.abs(counts - TOTAL / 12).sum()
    assert found[QUIET] > 0.9 * np.abs(counts - TOTAL / 12).sum()


@given(st.integers(0, 10**6), st.sampled_from([1.0, 100.0, 1e4, 1e8]))
@settings(max_examples=40, deadline=None)
def test_negative_and_contradicting_counts_break_nothing(seed: int, scale: float):
    rng = np.random.default_rng(seed)
    fit = estimator()
    for shape in ("star", "cycle", "clique"):
        sets = SHAPES[shape]
        fit.observe([NoisyTable(s, rng.normal(0, scale, [SIZES[c] for c in s]), scale**2) for s in sets])
        model = fit.fit(5)
    assert all(np.isfinite(t).all() and (t >= 0).all() for t in model.tables)
    assert model.total == pytest.approx(fit.total, rel=1e-6)
    assert fit.total >= 1.0


def test_empty_cells_come_back_nearly_empty():
    """θ is bounded, so that a cell measured as empty keeps at most e^-8 of what the rest expects there."""
    counts = np.array([[5000.0, 0, 0], [0, 2000, 3000]])
    fit = estimator()
    fit.observe([NoisyTable(("a", "b"), counts, QUIET)])
    assert np.abs(fit.fit(100).marginal(("a", "b")) - counts).max() < 2 * np.exp(-estimation.LARGEST_THETA) * TOTAL


def test_columns_of_one_value_and_columns_without_any_count():
    sizes = {"one": 1, "two": 2, "none": 3}
    base = {"one": np.array([50.0]), "two": np.array([50.0, 0.0]), "none": np.zeros(3)}
    fit = GraphicalEstimator(sizes, base, 50.0)
    fit.observe([NoisyTable((c,), b, 1.0) for c, b in base.items() if c != "none"])
    fit.observe([NoisyTable(("one", "two"), np.array([[50.0, 0.0]]), 1.0)])
    fit.observe([NoisyTable(("none", "two"), np.zeros((3, 2)), 1.0)])
    model = fit.fit(30)
    assert all(np.isfinite(t).all() for t in model.tables)
    assert {c: len(v) for c, v in model.sample(9, np.random.default_rng(0)).items()} == dict.fromkeys(sizes, 9)


@pytest.mark.parametrize("shape", ["chain", "cycle", "single nodes"])
def test_forbidden_cells_never_get_mass_and_all_else_still_fits(shape: str):
    """The zeros link two columns that no measurement may have together."""
    joint = truth()
    forbidden = np.zeros((SIZES["a"], SIZES["e"]), dtype=bool)
    forbidden[0, 1:] = True
    joint *= np.where(spread(forbidden, ("a", "e"), COLUMNS), 0.0, 1.0)
    joint *= TOTAL / joint.sum()
    fit = GraphicalEstimator(SIZES, uniform(), TOTAL, zeros={("a", "e"): forbidden})
    fit.observe(everything(joint, shape) or [seen(joint, (c,)) for c in COLUMNS])
    model = fit.fit(SWEEPS)
    assert (model.marginal(("a", "e"))[forbidden] == 0).all()
    for columns in fit.observations:
        assert error(fit, joint, columns) < 1e-6, columns


def test_mutant_without_the_zeros_gives_forbidden_cells_mass():
    joint = truth()
    joint[0, ..., 1:] = 0.0
    fit = estimator(float(joint.sum()))
    fit.observe([seen(joint, (c,)) for c in COLUMNS])
    model = fit.fit(SWEEPS)
    assert np.outer(model.marginal(("a",)), model.marginal(("e",)))[0, 1:].sum() > 0.01 * model.total**2
