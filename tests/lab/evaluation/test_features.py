"""Rows as matrices, against scikit-learn's own transformers and by hand."""

from __future__ import annotations

import dataclasses
import gc

import numpy as np
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import NAMES, changed, compared, people

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.row_features import (
    FAR,
    LARGEST,
    MOST_CLASSES,
    WIDEST,
    Features,
    SharedResult,
    Standardisation,
    Target,
    commonest_first,
    draw,
    join,
)


def features(comparison: Comparison) -> Features:
    return Features.fit(comparison.variables, comparison.real)


def test_numbers_are_standardised_by_the_table_that_was_fitted():
    first, second = np.array([1.0, 2.0, 4.0, 9.0]), np.array([3.0, -5.0])
    other = StandardScaler().fit(first[:, np.newaxis]).transform(second[:, np.newaxis])
    assert Standardisation.of(first).standardise(second) == pytest.approx(other[:, 0])


def test_what_is_missing_stands_at_the_mean_and_what_is_infinite_far_out():
    scale = Standardisation.of(np.array([1.0, 3.0, np.nan, np.inf]))
    assert (scale.centre, scale.spread) == (2.0, 1.0)
    odd = np.array([np.nan, np.inf, -np.inf, 3.0, 1e300])
    assert scale.standardise(odd).tolist() == [0.0, FAR, -FAR, 1.0, FAR]
    assert scale.complete(odd).tolist() == [2.0, 3.0, 1.0, 3.0, LARGEST]


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, -np.inf], [7.0, 7.0], [0.0, 0.0]])
def test_a_column_without_spread_keeps_its_unit(values: list[float]):
    scale = Standardisation.of(np.array(values, dtype=float))
    assert scale.spread == 1.0
    assert scale.standardise(np.array([scale.centre + 2.0])).tolist() == [2.0]


def test_numbers_whose_squares_overflow_have_a_scale():
    scale = Standardisation.of(np.array([1e308, -1e308]))
    assert (scale.centre, scale.spread) == (0.0, 1e308)
    assert scale.standardise(np.array([1e308, -1.5e308])).tolist() == [1.0, -1.5]


def test_indicators_are_those_of_scikit_learn():
    table = people(200).select(["grade", "sex"])
    found = features(compared(table, table, holdout=None, target=None, groups=())).one_hot
    comparison = compared(table, table, holdout=None, target=None, groups=())
    encoder = OneHotEncoder(categories=[["low", "middle", "high"], ["f", "m"]], sparse_output=False)
    assert np.array_equal(found(comparison.real), encoder.fit_transform(np.array([*table.to_pydict().values()]).T))


def test_columns_for_trees_by_hand():
    table = pa.table({"hours": [1.0, None, 3.0], "job": ["cook", "clerk", None]})
    comparison = compared(table, table, holdout=None, target=None, groups=())
    assert features(comparison).ordinal(comparison.real).tolist() == [[-1, 0, 1], [0, 1, 0], [1, 0, 2]]
    assert features(comparison).one_hot(comparison.real).tolist() == [
        [-1, 0, 0, 1, 0],
        [0, 1, 1, 0, 0],
        [1, 0, 0, 0, 1],
    ]
    assert features(comparison).one_hot(comparison.real, scaled=False)[:, 0].tolist() == [1, 2, 3]


def test_the_rarest_values_share_the_last_indicator():
    assert commonest_first(np.array([3, 3, 3, 1, 1, 0]), 4, 3).tolist() == [2, 1, 2, 0]
    assert commonest_first(np.array([3, 3]), 4, 4).tolist() == [0, 1, 2, 3]


def test_a_table_of_many_categories_stays_narrow():
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": [f"v{v}" for v in rng.integers(0, 90, 300)] for i in range(40)})
    comparison = Comparison.of(table, table)
    assert len(comparison.listed) == 40
    matrix = features(comparison).one_hot(comparison.real)
    assert matrix.shape[1] <= WIDEST
    assert (matrix.sum(axis=1) == 40).all()


def test_a_draw_has_each_row_once_and_is_the_same_for_the_same_seed():
    sample = compared(people(50), people(50)).real
    drawn = draw(sample, 20, 3)
    assert drawn.rows == 20
    assert all(np.array_equal(drawn.codes[n], draw(sample, 20, 3).codes[n]) for n in NAMES)
    assert draw(sample, 50, 3) is sample
    ages = sample.values["age"].tolist()
    assert all(ages.count(a) >= drawn.values["age"].tolist().count(a) for a in set(ages))


def test_joined_tables_hold_the_rows_of_both():
    comparison = compared(people(5), people(7, 2))
    both = join(comparison.real, comparison.synthetic)
    assert both.rows == 12
    assert both.codes["job"].tolist() == [*comparison.real.codes["job"], *comparison.synthetic.codes["job"]]
    assert np.array_equal(both.values["hours"][5:], comparison.synthetic.values["hours"], equal_nan=True)


def test_rows_without_a_target_are_dropped():
    comparison = compared(changed(people(4), rich=[True, None, False, True]), people(4))
    target = Target.of(comparison)
    assert target.read(target.known(comparison.real)).tolist() == [1, 0, 1]
    assert (target.rarer, target.count, target.pooled) == (0, 2, False)
    assert target.known(comparison.synthetic) is comparison.synthetic


def test_a_target_of_many_classes_pools_the_rarest():
    letters = [chr(97 + i) for i in range(20) for _ in range(i + 1)]
    table = pa.table({"letter": letters, "x": np.arange(len(letters)) / 7})
    target = Target.of(Comparison.of(table, table, target="letter"))
    assert target.pooled
    assert target.count == MOST_CLASSES
    assert target.classes[19] == 0
    assert (target.classes[: 21 - MOST_CLASSES] == MOST_CLASSES - 1).all()


def test_a_shared_result_is_computed_once_and_forgotten_with_its_comparison():
    calls: list[int] = []
    shared = SharedResult(lambda comparison: calls.append(comparison.seed) or comparison.seed)
    first = compared(people(5), people(5), seed=1)
    second = dataclasses.replace(first, seed=2)
    assert [shared(first), shared(second), shared(first)] == [1, 2, 1]
    assert calls == [1, 2]
    del first
    gc.collect()
    assert len(shared) == 1
    del second
    gc.collect()
    assert len(shared) == 0


def test_a_shared_result_that_failed_is_tried_again():
    answers = iter([ValueError("no"), 5])

    def compute(comparison: Comparison) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shared, comparison = SharedResult(compute), compared(people(5), people(5))
    with pytest.raises(ValueError, match="no"):
        shared(comparison)
    assert shared(comparison) == 5
