"""Merged values: counts add up, groups are opened in proportion, and nothing is merged where there is no noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.privacy.measurement import Measurement
from understudy.inference.noisy_table import NoisyTable
from understudy.methods.parts.compression import MOST_GROUPS, STANDS_OUT, Compression, OpenedModel

counts_lists = st.lists(st.integers(-50, 500), min_size=1, max_size=30)


def measured(counts: list[int], scale: float = 10.0, column: str = "a") -> Measurement:
    return Measurement((column,), np.array(counts), "discrete-gaussian", scale)


def compressed(counts: list[int], scale: float = 10.0) -> Compression:
    return Compression.of([measured(counts, scale)], max(1.0, float(sum(counts))))


def test_values_in_the_noise_share_the_last_group():
    assert compressed([100, 29, 30, -4, 500]).groups["a"].labels == (0, 3, 1, 3, 2)
    assert compressed([100, 29, 30, -4, 500]).sizes == {"a": 4}


def test_one_value_in_the_noise_stays_as_it_is():
    assert compressed([100, 2, 300]).groups["a"].labels == (0, 1, 2)


@pytest.mark.parametrize(("counts", "groups"), [([0, 1, 2], (0, 0, 0)), ([7], (0,)), ([1000], (0,))])
def test_all_and_single_values(counts: list[int], groups: tuple[int, ...]):
    assert compressed(counts).groups["a"].labels == groups


@given(st.lists(st.integers(0, 500), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_nothing_is_merged_without_noise(counts: list[int]):
    """With next to none, what is merged are values that nobody has."""
    assert compressed(counts, scale=0.0).groups["a"].labels == tuple(range(len(counts)))
    groups = compressed(counts, scale=1e-9).groups["a"].of_code
    assert all(not np.array(counts)[groups == g].any() for g in groups if np.count_nonzero(groups == g) > 1)


@given(counts_lists, st.floats(0.1, 100))
@settings(max_examples=100, deadline=None)
def test_merged_counts_are_sums(counts: list[int], scale: float):
    one = measured(counts, scale)
    compression = Compression.of([one], max(1.0, float(sum(counts))))
    groups = compression.groups["a"].of_code
    merged = compression.merge(one)
    variance = np.asarray(merged.variance)
    for group in range(compression.sizes["a"]):
        members = groups == group
        assert merged.counts[group] == one.counts[members].sum()
        assert variance[group] == pytest.approx(scale**2 * members.sum())
        assert compression.base()["a"][group] == pytest.approx(compression.weights["a"][members].sum(), abs=1e-9)
        assert members.sum() == 1 or (one.counts[members] < STANDS_OUT * scale).all()
    assert sorted(set(groups)) == list(range(compression.sizes["a"]))
    assert (compression.weights["a"] >= 0).all()


def test_the_grid_counts_by_group():
    one, two = measured([100, 3, 50, 2]), measured([90, 65], column="b")
    compression = Compression.of([one, two], 155.0)
    grid = compression.grid(("b", "a"))
    codes = {"a": np.array([0, 1, 2, 3]), "b": np.array([1, 0, 1, 0])}
    assert grid.shape == (2, 3)
    assert list(grid.assign(codes)) == [3, 2, 4, 2]
    seen = NoisyTable.of(Measurement(("b", "a"), np.arange(6), "discrete-gaussian", 2.0, grid))
    assert seen.counts.tolist() == [[0, 1, 2], [3, 4, 5]] and seen.variance == 4.0


@given(counts_lists, st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_opened_codes_lie_in_their_group_in_the_right_proportions(counts: list[int], seed: int):
    """Systematic draws: within each group, every value as often as its weight says, to within one row."""
    compression = compressed(counts)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, compression.sizes["a"], 1000)
    opened = compression.expand({"a": drawn}, rng)["a"]
    groups, weights = compression.groups["a"].of_code, compression.weights["a"]
    assert (groups[opened] == drawn).all()
    for group in range(compression.sizes["a"]):
        members = np.flatnonzero(groups == group)
        share = weights[members] if weights[members].sum() > 0 else np.ones(len(members))
        expected = share / share.sum() * np.count_nonzero(drawn == group)
        assert np.abs(np.bincount(opened, minlength=len(groups))[members] - expected).max() < 1 + 1e-6


def test_a_group_without_any_weight_is_opened_evenly():
    compression = compressed([1000, -5, -5, -5, -5])
    opened = compression.expand({"a": np.full(400, 1)}, np.random.default_rng(1))["a"]
    assert np.bincount(opened, minlength=5).tolist() == [0, 100, 100, 100, 100]


def test_an_opened_model_draws_codes_of_the_domain():
    class Groups:
        total = 12.0

        def sample(self, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {"a": np.arange(rows) % 2}

    model = OpenedModel(Groups(), compressed([1000, 6, 3, 0]))
    assert model.total == 12.0
    drawn = model.sample(18, np.random.default_rng(2))["a"]
    assert (drawn[::2] == 0).all()
    assert np.abs(np.bincount(drawn, minlength=4) - [9, 6, 3, 0]).max() < 2


def test_a_group_is_impossible_only_where_all_its_values_are():
    """Values 1 and 3 of column a are rare and share its last group; column b keeps its two values."""
    merged = Compression.of([measured([500, 2, 400, 3]), measured([500, 405], column="b")], 905.0)
    forbidden = np.zeros((4, 2), dtype=bool)
    forbidden[1] = True
    forbidden[3, 0] = True
    (found,) = merged.zeros({("a", "b"): forbidden}).values()
    assert found.tolist() == [[False, False], [False, False], [True, False]]


def test_where_nothing_is_impossible_by_group_there_are_no_zeros():
    merged = compressed([500, 2, 400, 3])
    assert merged.zeros({("a",): np.array([False, True, False, False])}) == {}


def test_of_very_many_values_the_heaviest_keep_their_own_group():
    counts = np.random.default_rng(0).permutation(np.arange(1000, 1000 + MOST_GROUPS + 50))
    groups = compressed(counts.tolist()).groups["a"].of_code
    assert max(groups) == MOST_GROUPS
    assert np.array_equal(np.sort(counts[groups == MOST_GROUPS]), np.arange(1000, 1050))
