"""Every attack on a case that can be worked out by hand, or by a second way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.lab.attacks.confidence import ranked_above
from understudy.lab.attacks.identification import (
    AT_LEAST,
    EQUAL,
    UNKNOWN,
    ColumnCondition,
    elected,
    guessed_right,
    matches,
    share_one,
    singled_out,
)
from understudy.lab.attacks.membership import by_density, by_distance, equal_rows, near_radius, reconstruction
from understudy.lab.attacks.shadow_models import agreeing, shadow_membership
from understudy.lab.attacks.threat import matrix

NUMBER = Schema.loads('[columns.x]\ntype = "number"\nmin = 0\nmax = 1_000\nmissing = true\n')


def numbers(*values: float | None) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.float64())})


def test_reconstruction_is_the_mean_of_three_distances(setting):
    """Members lie at 0 and others at 100 from synthetic rows at 0, 3 and 6: 3 and 97 away, in standard deviations."""
    tables = numbers(*[0.0] * 10), numbers(*[100.0] * 10), numbers(0.0, 3.0, 6.0)
    found = reconstruction(setting(*tables, given=NUMBER))
    assert (found.success, found.baseline) == pytest.approx((3 / 50, 97 / 50), rel=1e-5)
    assert found.advantage == pytest.approx(94 / 50, rel=1e-5) and found.verdict == "advantage"


def test_equal_rows_are_equal_in_all_columns(setting, train, holdout):
    synthetic = pa.concat_tables([train.slice(0, 5), holdout.slice(7, 1)])
    faced = setting(train, holdout, synthetic)
    inside, outside = equal_rows([faced.train, faced.holdout], faced.synthetic)
    rows = [tuple(r.values()) for r in synthetic.to_pylist()]
    assert inside.tolist() == [tuple(r.values()) in rows for r in train.to_pylist()]
    assert np.flatnonzero(outside).tolist() == [7]


def test_missing_values_are_equal_and_near_numbers_are_not(setting):
    faced = setting(numbers(None, 1.0, 2.0), numbers(1.0 + 1e-12), numbers(None, 1.0), given=NUMBER)
    inside, outside = equal_rows([faced.train, faced.holdout], faced.synthetic)
    assert inside.tolist() == [True, True, False] and outside.tolist() == [False]


def test_the_radius_is_the_first_percentile(setting, train, holdout):
    faced = setting(train, holdout, train)
    rows = matrix(faced.features, faced.train).astype(float)
    apart = np.sqrt(np.square(rows[:, np.newaxis] - rows[np.newaxis]).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    assert near_radius(faced) == pytest.approx(np.quantile(apart.min(axis=1), 0.01), rel=1e-5)


def test_the_secret_is_that_of_the_nearest_people(setting):
    schema = Schema.loads(
        '[columns.x]\ntype = "number"\nmin = 0\nmax = 100\n[columns.c]\ntype = "categorical"\nvalues = ["a", "b"]\n'
    )
    synthetic = pa.table({"x": [0.0] * 5 + [50.0] * 5, "c": ["a"] * 5 + ["b"] * 5})
    people = pa.table({"x": [1.0, 2.0, 49.0, 48.0], "c": ["a", "b", "b", "a"]})
    faced = setting(people, people, synthetic, given=schema)
    assert guessed_right(faced, "c", faced.train).tolist() == [True, False, True, False]


def test_votes_are_weighted_and_the_nearest_wins_a_tie():
    codes = np.array([[1, 2, 2], [1, 2, 2], [3, 4, 5]])
    weights = np.array([[3.0, 1.0, 1.0], [1.5, 1.0, 1.0], [1.0, 1.0, 1.0]])
    assert elected(codes, weights).tolist() == [1, 2, 3]


def test_two_halves_are_linked_by_one_row():
    first, second = np.array([[1, 2], [3, 4], [5, 6]]), np.array([[2, 9], [1, 2], [6, 5]])
    assert share_one(first, second).tolist() == [True, False, True]


def test_descriptions_single_out_one_row_and_count_it_once(setting):
    people = numbers(1.0, 2.0, 2.0, 9.0, None)
    sample = setting(people, people, people, given=NUMBER).train
    nine, one, two = ((ColumnCondition("x", EQUAL, v),) for v in (9.0, 1.0, 2.0))
    large, nobody, unknown = (
        (ColumnCondition("x", AT_LEAST, 5.0),),
        (ColumnCondition("x", EQUAL, 7.0),),
        (ColumnCondition("x", UNKNOWN),),
    )
    assert matches((*large, *nine), sample).tolist() == [False, False, False, True, False]
    assert [singled_out([d], sample) for d in (nine, one, two, large, nobody, unknown)] == [1, 1, 0, 1, 0, 1]
    assert singled_out([nine, large, one], sample) == 2


def test_membership_by_distance_learns_the_threshold(setting):
    """Members lie on synthetic rows and the others far away, so that every row is told rightly."""
    found = by_distance(setting(numbers(*range(50)), numbers(*range(500, 550)), numbers(*range(50)), given=NUMBER))
    assert found.success == 1.0 and found.interval[0] > 0.4


def test_membership_by_density_is_the_ranking_of_density_ratios(setting, train, holdout):
    """Again by hand: all distances, the mean logarithm of the three smallest, and pairs of members and others."""
    faced = setting(train, holdout, train.slice(0, 100))
    order = faced.generator(2).permutation(300)
    rows, others, synthetic = (
        matrix(faced.features, s).astype(float) for s in (faced.train, faced.holdout, faced.synthetic)
    )

    def closeness(asked, among):
        apart = np.sqrt(np.square(asked[:, np.newaxis] - among[np.newaxis]).sum(axis=2))
        return -np.log(np.sort(apart, axis=1)[:, :3] + 1e-3).mean(axis=1)

    reference, tested = others[order[:150]], others[order[150:]]
    inside, outside = (closeness(r, synthetic) - closeness(r, reference) for r in (rows, tested))
    found = by_density(faced)
    assert found.success == pytest.approx(ranked_above(inside, outside), abs=1e-4)
    assert found.verdict == "advantage" and set(found.parts) == {"at 1% false alarms", "at 10% false alarms"}


def test_shadows_count_the_rows_that_agree(setting):
    schema = Schema.loads(
        '[columns.a]\ntype = "categorical"\nvalues = ["x", "y"]\n'
        '[columns.b]\ntype = "categorical"\nvalues = ["u", "v"]\n'
    )
    real = pa.table({"a": ["x", "y"], "b": ["u", "v"]})
    synthetic = pa.table({"a": ["x", "x", "y"], "b": ["u", "v", "v"]})
    faced = setting(real, real, synthetic, given=schema)
    assert agreeing(faced.train, 0, faced.synthetic).tolist() == [3.0, 2.0, 1.0]


def test_shadows_tell_a_method_that_copies_from_one_that_does_not(schema, train):
    people = train.slice(0, 30)
    copied = shadow_membership(lambda table, seed: table, people, 4, schema=schema, shadows=20)
    fixed = shadow_membership(lambda table, seed: train.slice(100, 30 + seed % 5), people, 4, schema=schema, shadows=20)
    assert copied.success == 1.0 and copied.verdict == "advantage"
    assert fixed.verdict == "no advantage seen"


@pytest.mark.parametrize(("row", "shadows"), [(-1, 24), (30, 24), (0, 7)])
def test_shadows_refuse_what_they_cannot_do(train, row, shadows):
    with pytest.raises(InputError, match="must be"):
        shadow_membership(lambda table, seed: table, train.slice(0, 30), row, shadows=shadows)
