"""Telling tables apart: closed forms where there is one, a second optimiser where there is none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from tables import compared, people, shuffled

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures import propensity
from understudy.lab.evaluation.measures.propensity import Mixture, pmse, pmse_ratio, propensity_auc


def test_one_category_has_a_closed_form():
    """Each value has its own probability: the share of its rows that are synthetic."""
    real = pa.table({"c": ["a"] * 600 + ["b"] * 400})
    synthetic = pa.table({"c": ["a"] * 200 + ["b"] * 300})
    share = 500 / 1500
    expected = (800 * (200 / 800 - share) ** 2 + 700 * (300 / 700 - share) ** 2) / 1500
    comparison = Comparison.of(real, synthetic)
    assert pmse(comparison).value == pytest.approx(expected, rel=1e-3)
    by_chance = 1 * (1 - share) ** 2 * share / 1500
    assert pmse_ratio(comparison).value == pytest.approx(expected / by_chance, rel=1e-3)


def test_the_error_is_that_of_a_second_optimiser():
    comparison = compared(people(300), people(200, 5))
    mixture = Mixture.of(comparison)
    matrix = np.column_stack([mixture.features.one_hot(mixture.rows), np.ones(500)])
    sign = 2 * mixture.synthetic - 1

    def loss(weights: np.ndarray) -> float:
        penalty = propensity.PENALTY * np.square(weights[:-1]).sum() / 2
        return float(np.logaddexp(0, -sign * (matrix @ weights)).sum()) + penalty

    weights = minimize(loss, np.zeros(matrix.shape[1]), method="BFGS").x
    likely = 1 / (1 + np.exp(-matrix @ weights))
    assert pmse(comparison).value == pytest.approx(np.mean((likely - 0.4) ** 2), rel=1e-3)


def letters(rng: np.random.Generator) -> pa.Table:
    return pa.table({name: rng.choice(list("abcdefghijklmnop"), 2000) for name in ("p", "q", "r", "s")})


@pytest.mark.slow
def test_rows_of_a_right_model_have_a_ratio_of_one_and_other_real_rows_of_two():
    """χ² with 60 degrees of freedom over 60, mean of 10: 6 of its deviations are 0.35."""
    rng = np.random.default_rng(8)
    fitted, fresh = [], []
    for _ in range(10):
        real = letters(rng)
        fitted.append(pmse_ratio(Comparison.of(real, real.take(rng.integers(0, 2000, 2000)))).value)
        fresh.append(pmse_ratio(Comparison.of(real, letters(rng))).value)
    assert np.mean(fitted) == pytest.approx(1.0, abs=0.35)
    assert np.mean(fresh) == pytest.approx(2.0, abs=0.7)


def test_identical_tables_can_not_be_told_apart():
    real = people(300)
    comparison = compared(real, real)
    assert pmse(comparison).value == pytest.approx(0.0, abs=1e-12)
    assert pmse_ratio(comparison).value == pytest.approx(0.0, abs=1e-6)
    assert propensity_auc(comparison).value == 0.5


def test_other_rows_of_the_same_population_can_hardly_be_told_apart():
    assert propensity_auc(compared(people(1000), people(1000, 5))).value < 0.56


def test_a_shuffled_table_is_told_apart_by_trees_alone():
    real = people(1000)
    comparison = compared(real, shuffled(real))
    assert pmse(comparison).value < 1e-6
    assert propensity_auc(comparison).value > 0.75


def test_tables_without_a_common_value_are_told_apart_surely():
    real, synthetic = pa.table({"x": np.arange(100) / 7}), pa.table({"x": 1000 + np.arange(100) / 7})
    comparison = Comparison.of(real, synthetic)
    assert pmse(comparison).value == pytest.approx(0.25, rel=0.01)
    assert propensity_auc(comparison).value == 1.0


def test_large_tables_are_drawn_from(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(propensity, "MOST_ROWS", 40)
    comparison = compared(people(100), people(30, 5))
    mixture = Mixture.of(comparison)
    assert (mixture.rows.rows, mixture.share) == (70, 30 / 70)
    assert propensity_auc(comparison).note == "70 rows"


def test_reasons():
    constant = pa.table({"c": ["a"] * 40})
    comparison = Comparison.of(constant, constant)
    assert pmse(comparison).value == 0.0
    assert "all columns are constant" in pmse_ratio(comparison).reason
    single = compared(people(50), people(1))
    assert "at least two rows" in propensity_auc(single).reason
