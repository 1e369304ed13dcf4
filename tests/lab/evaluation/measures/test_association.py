"""Association of two columns, against numpy, pandas, scipy and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import contingency
from sklearn.linear_model import LinearRegression

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures.association import (
    MEASURES,
    association_matrix,
    correlation_ratio,
    correlations,
    cramers_v,
)

BY_NAME = {m.name: m for m in MEASURES}


def test_correlations_are_those_of_pandas_with_missing_values() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(1e6, 1.0, (300, 4)) @ rng.normal(size=(4, 4))
    values[rng.random(values.shape) < 0.2] = np.nan
    assert correlations(list(values.T)) == pytest.approx(pd.DataFrame(values).corr().to_numpy(), abs=1e-9)


def test_cramers_v_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(0, 5, 400)
    second = (first + rng.integers(0, 3, 400)) % 7
    table = contingency.crosstab(first, second).count
    expected = contingency.association(table, method="cramer", correction=False)
    assert cramers_v(first, second) == pytest.approx(expected)


def test_cramers_v_of_long_lists_needs_no_full_table() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 100_000, (2, 500))
    table = contingency.crosstab(first, second).count
    assert cramers_v(first, second) == pytest.approx(contingency.association(table, method="cramer"))
    assert cramers_v(first, first) == 1.0


def test_the_correlation_ratio_is_the_root_of_r_squared_on_indicators() -> None:
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 4, 300)
    values = codes**2 + rng.normal(size=300)
    values = (values - values.mean()) / values.std()
    indicators = np.eye(4)[codes]
    expected = math.sqrt(LinearRegression().fit(indicators, values).score(indicators, values))
    assert correlation_ratio(values, codes) == pytest.approx(expected)


def test_a_mixed_matrix_by_hand() -> None:
    table = pa.table({"x": [1.5, 2.5, 3.5, 4.5], "y": [8.5, 6.5, 4.5, 2.5], "c": list("aabb"), "d": list("uvuv")})
    comparison = Comparison.of(table, table)
    between = math.sqrt(4 / 5)  # the groups' means lie 1 from the middle, the values 1.5, 0.5, 0.5, 1.5
    inside = math.sqrt(1 / 5)
    expected = [[1, -1, between, inside], [-1, 1, between, inside], [between, between, 1, 0], [inside, inside, 0, 1]]
    assert association_matrix(comparison, comparison.real) == pytest.approx(np.array(expected))


def test_identical_tables_have_no_difference(people: pa.Table) -> None:
    comparison = Comparison.of(people, people)
    assert {m.name: m.of(comparison).value for m in MEASURES} == dict.fromkeys(BY_NAME, 0.0)


def test_shuffled_columns_lose_their_associations(people: pa.Table, shuffled: pa.Table, others: pa.Table) -> None:
    lost, sampled = Comparison.of(people, shuffled), Comparison.of(people, others)
    for measure in MEASURES:
        assert measure.of(lost).value > 3 * measure.of(sampled).value, measure.name
    worst = max(BY_NAME["association"].of(lost).parts, key=lambda p: p.value)
    assert worst.name == "age × income" and worst.reference > 0.7 > 0.1 > abs(worst.raw)


def test_every_pair_belongs_to_one_kind(people: pa.Table) -> None:
    comparison = Comparison.of(people, people.slice(0, 500))
    kinds = [BY_NAME[n].of(comparison).parts for n in ("pearson", "cramers-v", "correlation-ratio")]
    assert [len(parts) for parts in kinds] == [3, 1, 6]
    assert {p for parts in kinds for p in parts} == set(BY_NAME["association"].of(comparison).parts)


def test_a_constant_column_is_named_in_the_reason() -> None:
    real = pa.table({"x": [1.5, 2.5, 3.5], "y": [2.5, 1.5, 3.5], "z": [1.0, 2.5, 9.5]})
    synthetic = real.set_column(1, "y", pa.array([0.1, 0.1, 0.1]))
    figure = BY_NAME["pearson"].of(Comparison.of(real, synthetic))
    reasons = {p.name: p.reason for p in figure.parts}
    said = "'y' is constant in the synthetic table"
    assert reasons == {"x × y": said, "y × z": said, "x × z": ""} and figure.value == 0.0


def test_columns_that_never_meet_have_a_reason() -> None:
    table = pa.table({"x": [1.5, 2.5, None, None], "y": [None, None, 2.5, 3.5]})
    figure = BY_NAME["pearson"].of(Comparison.of(table, table))
    assert figure.value is None
    assert figure.parts[0].reason == "one of the columns is constant in the rows where both have a value"


@pytest.mark.slow_after(40)
@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)
def test_broken_tables_give_figures_or_reasons(measure, broken_comparison: Comparison, check_sound) -> None:
    check_sound(measure, measure.of(broken_comparison))
