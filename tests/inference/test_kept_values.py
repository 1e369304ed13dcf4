"""Declared values that are rare keep a row: in counts made into distributions, and in the rows that are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.inference.marginal_model import MarginalModel
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import LEAST_ROWS, SHARE_OF_LEAST, keep_every_value, project_to_simplex
from understudy.inference.particles.particles import LogFactor, Particles
from understudy.inference.particles.rounding import DUE, choose_rows
from understudy.methods.parts.compression import Compression

COUNTS = st.lists(st.floats(-500, 5_000), min_size=1, max_size=40).map(np.array)


@given(counts=COUNTS, total=st.floats(1, 1e6))
def test_counts_keep_their_total_and_every_value_where_it_takes_few_rows(counts, total):
    kept = keep_every_value(counts, total, 4.0)
    assert np.isclose(kept.sum(), total) and np.all(kept >= 0)
    if LEAST_ROWS * len(counts) <= SHARE_OF_LEAST * total:
        assert kept.min() >= LEAST_ROWS
        # What is added to some is taken evenly from the others: together no more than the stated share.
        plain = project_to_simplex(counts, total)
        assert np.abs(kept - plain).sum() / 2 <= SHARE_OF_LEAST * total + 1e-6 * total
    else:
        assert np.allclose(kept, project_to_simplex(counts, total))


@given(counts=COUNTS)
def test_counts_that_are_large_enough_are_as_before(counts):
    counts = np.abs(counts) + 200.0
    total = float(counts.sum())
    assert np.allclose(keep_every_value(counts, total, 4.0), counts)


def test_where_nothing_is_hidden_counts_are_the_very_same():
    """So that releases made before the rule are rebuilt to the last digit."""
    counts, total = np.array([700.3, 250.1, 61.7]), 1000.0
    assert np.array_equal(keep_every_value(counts, total, 4.0), project_to_simplex(counts, total))


HIDDEN = np.array([1400, 560, 9, -7, -12, 30])
"""Noisy counts of six values, two of them below 0."""


def one_way(column):
    return Measurement((column,), HIDDEN, "rounded-gaussian", 10.0)


def test_single_columns_by_themselves_hold_every_value():
    model = IndependentModel.fit([one_way("a"), one_way("b")])
    for codes in model.sample(2_000, np.random.default_rng(0)).values():
        assert np.bincount(codes, minlength=len(HIDDEN)).min() >= 1


def test_marginals_of_single_columns_hold_every_value():
    domain = Domain.of(Schema.loads('[columns.a]\ntype = "categorical"\nvalues = [1, 2, 3, 4, 5, 6]\n'))
    model = MarginalModel.fit(domain, [one_way("a")])
    assert np.bincount(model.sample(2_000, np.random.default_rng(0))["a"], minlength=len(HIDDEN)).min() >= 1


def test_a_merged_group_is_opened_to_every_value():
    """Of the four rare values that share a group, two have a noisy count below 0."""
    compression = Compression.of([one_way("a")], 2_000.0)
    assert compression.groups["a"].labels == (0, 1, 2, 2, 2, 2)
    opened = compression.expand({"a": np.full(40, 2)}, np.random.default_rng(0))["a"]
    assert set(opened) == {2, 3, 4, 5}


def test_without_noise_a_count_of_none_is_none():
    assert keep_every_value(np.array([1000.0, 0.0]), 1000, 0.25).tolist() == [1000.0, 0.0]


def rare_particles(rng, rows=2_000, each=4):
    """Three columns of 12 values, of which all but two are due about one row each."""
    values = np.concatenate([np.arange(2, 12), np.zeros(rows * 3 // 5, int), np.ones(rows * 2 // 5 - 10, int)])
    codes = {c: rng.permutation(np.repeat(values, each)) for c in "abc"}
    return Particles(dict.fromkeys("abc", 12), float(rows), codes, np.full(rows * each, 1 / each))


def lost(particles, chosen):
    rows = len(chosen)
    found = 0
    for v in particles.codes.values():
        due = np.bincount(v, particles.weights, 12) * rows / particles.total
        found += np.count_nonzero((due >= DUE) & (np.bincount(v[chosen], minlength=12) == 0))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_chosen_rows_hold_every_value_that_is_due_one(seed):
    """For certain, whatever is drawn: a row of each value that has none is brought in. The mutant is the choice without
    that step, which loses some."""
    rng = np.random.default_rng(seed)
    particles = rare_particles(rng)
    chosen = choose_rows(particles, 2_000, rng, rounds=20)
    assert len(chosen) == 2_000 and lost(particles, chosen) == 0


def test_the_draw_by_weight_alone_loses_some():
    rng = np.random.default_rng(0)
    particles = rare_particles(rng)
    assert lost(particles, particles.draw(2_000, rng)) > 0


def test_fewer_rows_than_values_are_still_chosen():
    rng = np.random.default_rng(0)
    assert len(choose_rows(rare_particles(rng), 3, rng, rounds=2)) == 3


def test_a_value_that_no_particle_has_is_taken_by_some():
    """By particles that a factor allows it to: never by those that it forbids; and no value is lost for it."""
    rng = np.random.default_rng(0)
    codes = {"a": np.arange(1_000) % 3, "b": np.arange(1_000) % 2}
    particles = Particles({"a": 4, "b": 2}, 1_000.0, codes, np.ones(1_000))
    every = (np.arange(4), np.arange(2))
    forbidden = np.zeros((4, 2))
    forbidden[3, 0] = -1e9
    particles.add(LogFactor(("a", "b"), every, forbidden))
    counts = {"a": np.array([400.0, 300.0, 297.0, 3.0]), "b": np.array([500.0, 500.0])}
    particles.populate(counts, rng)
    taken = particles.codes["a"] == 3
    assert taken.sum() == 3 and np.all(particles.codes["b"][taken] == 1)
    particles.fit_columns(counts, passes=50)
    assert np.allclose(np.bincount(particles.codes["a"], particles.weights), counts["a"], rtol=1e-3)


def test_the_last_particle_of_a_value_stays():
    codes = {"a": np.array([0, 1, 2])}
    particles = Particles({"a": 4}, 900.0, codes, np.full(3, 300.0))
    particles.populate({"a": np.array([299.0, 299.0, 299.0, 3.0])}, np.random.default_rng(0))
    assert particles.codes["a"].tolist() == [0, 1, 2]
