"""Clipped sums of per-row gradients, against a loop over rows that knows no trick."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.subsampling import GRID_SCALE, Course
from understudy.boundary.privacy.mechanisms.training import (
    Deep,
    GradientShape,
    GradientSums,
    Groups,
    Training,
    lengths,
    pair_counts,
    symmetric,
)
from understudy.errors import InternalError

SIZES = (3, 2, 4)
GROUPS = Groups(SIZES)


def some_codes(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, s, rows) for s in SIZES], axis=1)


def some_critic(seed: int, hidden: int = 5, size: float = 1.0) -> Deep:
    rng = np.random.default_rng(seed)
    return Deep(
        size * rng.standard_normal((9, hidden)), size * rng.standard_normal(hidden), size * rng.standard_normal(hidden)
    )


def slow_gradient(critic: Deep, row: np.ndarray) -> np.ndarray:
    """By differences: the definition of a gradient."""
    flat, step = critic.flat(), 1e-6
    found = np.empty(len(flat))
    for i in range(len(flat)):
        ends = []
        for sign in (1.0, -1.0):
            moved = flat.copy()
            moved[i] += sign * step
            at = Deep.of(moved, len(row), len(critic.bias))
            before = row @ at.first + at.bias
            ends.append(float((before / (1 + np.exp(-before))) @ at.last))
        found[i] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("longest", [0.1, 3.0, 1e6])
def test_the_clipped_sum_is_that_of_a_loop_over_rows(longest: float) -> None:
    critic, rows = some_critic(1), GROUPS.one_hot(some_codes(7, 2))
    wanted = np.zeros(critic.cells)
    for row in rows:
        slope = slow_gradient(critic, row)
        wanted += slope * min(1.0, longest / np.linalg.norm(slope))
    assert np.allclose(critic.clipped_sum(rows, longest), wanted, atol=1e-6 * max(1.0, np.abs(wanted).max()))


def test_no_rows_have_no_gradient() -> None:
    assert not some_critic(1).clipped_sum(np.zeros((0, 9)), 1.0).any()


def test_pairs_are_counted_as_by_a_loop() -> None:
    codes = some_codes(50, 3)
    table = symmetric(GROUPS, pair_counts(GROUPS, GROUPS.one_hot(codes)).astype(float))
    wanted = np.zeros((9, 9))
    for row in codes:
        places = row + GROUPS.starts[:-1]
        for a in range(3):
            for b in range(3):
                wanted[places[a], places[b]] += a != b
    assert np.array_equal(table, wanted)


def test_the_number_of_cells_is_counted() -> None:
    assert GradientShape(SIZES).cells == 3 * 2 + 3 * 4 + 2 * 4 == len(GROUPS.upper[0])
    assert GradientShape(SIZES, 5, 0.25).cells == 26 + some_critic(1).cells


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_both_parts_together_are_of_length_one(share: float) -> None:
    assert math.hypot(*lengths(GROUPS, share)) == pytest.approx(1.0)
    assert lengths(Groups((4,)), 0.25) == (0.0, 1.0)  # one column has no pairs


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40), st.sampled_from([0.01, 1.0, 15.0]), st.sampled_from([0.3, 1.0, 40.0]))
def test_a_row_moves_the_sums_by_one_length_at_most(seed: int, rows: int, size: float, noise: float) -> None:
    """The declared sensitivity, on the grid, roundings included; GRID_SCALE steps are `noise` lengths."""
    sums = some_sums(some_codes(0, 1), noise)
    critic, codes = some_critic(seed, size=size), some_codes(rows + 1, seed)
    change = sums.sums(codes, critic) - sums.sums(codes[1:], critic)
    assert np.linalg.norm(change.astype(float)) <= GRID_SCALE / noise


def test_the_sensitivity_test_rejects_a_training_that_does_not_clip() -> None:
    class Unclipped(GradientSums):
        def clipped(self, critic: Deep, rows: np.ndarray) -> np.ndarray:
            return critic.clipped_sum(rows, 1e9)

    sums = some_sums(some_codes(0, 1), 1.0, Unclipped)
    change = sums.sums(some_codes(1, 4), some_critic(4, size=20.0)).astype(float)
    assert np.linalg.norm(change) > 10 * GRID_SCALE


def some_sums(codes: np.ndarray, noise: float, kind: type[GradientSums] = GradientSums, steps: int = 3) -> GradientSums:
    return kind(codes, GradientShape(SIZES, 5, 0.25), Course(0.3, noise, steps), ExactRandomness.seeded(5))


def a_training(codes: np.ndarray, noise: float, kind: type[GradientSums] = GradientSums, steps: int = 3) -> Training:
    return Training(some_sums(codes, noise, kind, steps))


def test_wide_sums_are_rows_and_deep_sums_are_lengths_again() -> None:
    class Everyone(GradientSums):
        def batch(self) -> np.ndarray:
            return np.arange(len(self.codes))

        def noise(self, size: int) -> np.ndarray:
            return np.zeros(size, dtype=np.int64)

    codes, critic = some_codes(5000, 6), some_critic(6)
    noisy = a_training(codes, 2.0, Everyone).gradients(critic)
    rows = GROUPS.one_hot(codes)
    assert np.array_equal(noisy.pairs, pair_counts(GROUPS, rows))
    assert np.allclose(noisy.deep, critic.clipped_sum(rows, 1.0), rtol=1e-3, atol=1e-3)


def as_noisy_as_stated(values: np.ndarray, scale: float) -> bool:
    """χ² of the squares, two-sided at 1e-9."""
    from scipy.stats import chi2

    total = float(((values / scale) ** 2).sum())
    return bool(min(chi2.cdf(total, values.size), chi2.sf(total, values.size)) > 0.5e-9)


def test_an_empty_batch_gives_noise_of_the_declared_size_alone() -> None:
    noise, steps = 4.0, 100
    training = a_training(some_codes(0, 1), noise, steps=steps)
    critic = some_critic(1)
    found = [training.gradients(critic) for _ in range(steps)]
    pairs = np.concatenate([n.pairs for n in found])
    deep = np.concatenate([n.deep for n in found])
    wide_scale = noise * math.sqrt(3) / math.sqrt(0.75)  # three pairs of columns share the wide length √0.75
    assert as_noisy_as_stated(pairs, wide_scale) and as_noisy_as_stated(deep, noise / math.sqrt(0.25))
    assert not as_noisy_as_stated(pairs / 2, wide_scale) and not as_noisy_as_stated(deep / 2, noise / math.sqrt(0.25))


@pytest.mark.parametrize("weight", [np.inf, np.nan, 1e9])
def test_a_critic_that_could_overflow_is_refused(weight: float) -> None:
    training, critic = a_training(some_codes(9, 1), 1.0), some_critic(1)
    first = critic.first.copy()
    first[0, 0] = weight
    with pytest.raises(InternalError, match="must be finite"):
        training.gradients(replace(critic, first=first))


def test_steps_that_are_not_paid_for_are_refused() -> None:
    training = a_training(some_codes(9, 1), 1.0, steps=1)
    training.gradients(some_critic(1))
    with pytest.raises(InternalError, match="1 steps can't take another"):
        training.gradients(some_critic(1))
