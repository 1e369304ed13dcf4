"""Values inside bins: every bin keeps its count, and the density inside follows the neighbours. Nothing here is luck:
rows of a bin are spread out over it, so that means and medians are known up to one part of the bin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.boundary.schema.column import Datetime, Integer, Number
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.inference.bin_density import draw_steps, log_slopes
from understudy.inference.values import decode


def rows_of(counts, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


def steps_of(counts, edges, seed=0):
    codes = rows_of(counts)
    return codes, draw_steps(codes, np.array(edges), np.random.default_rng(seed))


BINS = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 10**12)), min_size=1, max_size=12)


@given(bins=BINS, low=st.integers(-(10**15), 10**15), seed=st.integers(0, 2**32))
def test_every_bin_keeps_its_count(bins, low, seed):
    counts, sizes = np.array(bins, dtype=np.int64).T
    edges = low + np.concatenate([[0], np.cumsum(sizes)])
    codes, steps = steps_of(counts, edges, seed)
    assert steps.dtype == np.int64 and np.array_equal(np.searchsorted(edges, steps, side="right") - 1, codes)


@given(bins=BINS, seed=st.integers(0, 2**32))
def test_the_same_seed_draws_the_same_steps(bins, seed):
    counts, sizes = np.array(bins, dtype=np.int64).T
    edges = np.concatenate([[0], np.cumsum(sizes)])
    assert np.array_equal(steps_of(counts, edges, seed)[1], steps_of(counts, edges, seed)[1])


@given(bins=BINS)
def test_slopes_are_limited_by_both_neighbours(bins):
    """Their sign is that of both, they are 0 at a peak, and never more than twice the flatter side."""
    counts, sizes = np.array(bins, dtype=np.int64).T
    edges = np.concatenate([[0], np.cumsum(sizes)])
    slopes = log_slopes(counts, edges)
    assert np.isfinite(slopes).all()
    logs = np.log((counts + 2) / sizes)
    for i in range(1, len(counts) - 1):
        if min(sizes[i - 1 : i + 2]) == 1:
            continue
        reach = sizes[i] / np.array([sizes[i - 1] + sizes[i], sizes[i] + sizes[i + 1]]) * 2
        sides = np.array([logs[i] - logs[i - 1], logs[i + 1] - logs[i]]) * reach
        if sides[0] * sides[1] <= 0:
            assert slopes[i] == 0
        else:
            assert slopes[i] * sides[0] >= 0 and abs(slopes[i]) <= 2 * min(abs(sides)) * (1 + 1e-9)


def test_the_slope_of_the_mirrored_counts_is_mirrored():
    counts, edges = np.array([3, 50, 20, 9, 0, 1]), np.array([0, 4, 10, 40, 41, 100, 1000])
    mirrored = log_slopes(counts[::-1], edges[-1] - edges[::-1])
    assert np.allclose(-mirrored[::-1], log_slopes(counts, edges))


def test_an_exponential_density_comes_back_and_a_uniform_draw_misses_it():
    """Quantiles of an exponential law from ten equal bins: within 1 % of its scale, where a uniform draw (the mutant)
    misses by more than that."""
    edges = np.arange(11) * 500
    share = np.exp(-edges / 1000.0)
    counts = np.rint(100_000 * -np.diff(share) / (share[0] - share[-1])).astype(int)
    codes, steps = steps_of(counts, edges)
    uniform = np.random.default_rng(0).integers(edges[codes], edges[codes + 1])
    wanted = -1000 * np.log(1 - np.array([0.1, 0.25, 0.5, 0.75]) * (1 - share[-1]))
    found, even = (np.quantile(x, [0.1, 0.25, 0.5, 0.75]) for x in (steps, uniform))
    assert np.abs(found - wanted).max() < 10 < np.abs(even - wanted).max()


def test_rows_of_the_first_bin_lie_where_the_mass_must_be():
    """Amounts that nearly all lie in the first of wide bins are small: the density falls towards the empty bins."""
    _, steps = steps_of([980, 15, 5, 0], np.array([0, 1000, 2000, 3000, 4000]))
    assert np.median(steps) < 250


@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_a_point_mass_is_not_smeared(size):
    """Zeros in a bin of their own stay zeros, and change nothing about the amounts in the wide bin beside them."""
    edges = np.array([0, 1, 1 + size, 1 + 2 * size])
    with_zeros, without = steps_of([60_000, 500, 480], edges), steps_of([0, 500, 480], edges)
    assert not with_zeros[1][with_zeros[0] == 0].any()
    for codes, steps in (with_zeros, without):
        middle = steps[codes == 1].mean() / size
        assert abs(middle - 0.5) < 0.01 + 1 / size  # counts beside it are about even, and so is the density


def test_a_heap_beside_a_bin_between_others_bends_it_no_more_than_the_other_side():
    edges = np.array([0, 100, 1_000, 2_000, 3_000])
    slopes = log_slopes(np.array([60_000, 450, 520, 500]), edges)
    assert slopes[1] == 0  # falling on the left, rising on the right
    slopes = log_slopes(np.array([60_000, 450, 430, 400]), edges)
    assert -0.3 < slopes[1] < 0


def test_few_rows_bend_nothing_by_much():
    assert np.abs(log_slopes(np.array([1, 0, 0, 1, 0]), np.arange(6) * 10)).max() < 0.5


@pytest.mark.parametrize(
    "column",
    [
        Integer("x", minimum=0, maximum=9_999, cuts=(1, 10, 5_000), missing=True),
        Number("x", minimum=0, maximum=99.5, decimals=1, bins=7, missing=True),
        Datetime("x", minimum="2020-01-01", maximum="2023-12-31", bins=9, missing=True),
    ],
)
def test_values_without_the_missing_ones_are_drawn_as_if_there_were_none(column):
    """Missing values are in no bin, so that their number bends nothing."""
    domain = Domain.of(Schema((column,)))
    levels = domain["x"].levels
    present = np.repeat(np.arange(levels), 30)
    codes = np.concatenate([present, np.full(500, levels)])
    values = decode({"x": codes}, domain, np.random.default_rng(3))["x"]
    assert values.absent().tolist() == (codes == levels).tolist()
    again = decode({"x": present}, domain, np.random.default_rng(3))["x"]
    assert np.array_equal(values.data[: len(present)], again.data)


def test_no_rows_are_drawn_as_none():
    domain = Domain.of(Schema((Number("x", minimum=0, maximum=1, missing=True),)))
    assert len(decode({"x": np.zeros(0, dtype=np.int32)}, domain, np.random.default_rng(0))["x"].data) == 0
    full = decode({"x": np.full(4, 64)}, domain, np.random.default_rng(0))["x"]
    assert full.absent().all()
