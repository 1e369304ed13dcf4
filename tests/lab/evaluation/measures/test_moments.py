"""Means, variances, quantiles and paired errors: by hand, and against scikit-learn and scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import wasserstein_distance
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from understudy.boundary.schema.column import Number
from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures.moments import MEASURES

BY_NAME = {m.name: m for m in MEASURES}
PAIRED = ("rmse-paired", "mae-paired")


def value_of(name: str, comparison: Comparison) -> float:
    value = BY_NAME[name].of(comparison).value
    assert value is not None
    return value


def compared(real: Sequence[float | None], synthetic: Sequence[float | None], seed: int = 0) -> Comparison:
    """Two tables of one column of numbers."""
    tables = (pa.table({"x": pa.array(values, pa.float64())}) for values in (real, synthetic))
    return Comparison.of(*tables, schema=Schema((Number("x", minimum=0, maximum=10, missing=True),)), seed=seed)


def test_moments_by_hand() -> None:
    comparison = compared([0, 0, 4, 4], [2, 2, 10, 10])
    # means 2 and 6, standard deviations 2 and 4
    assert value_of("mean", comparison) == pytest.approx(2.0)
    assert value_of("variance", comparison) == pytest.approx(math.log(4))
    # quantiles: (0, 0, 2, 4, 4) against (2, 2, 6, 10, 10)
    assert value_of("quantiles", comparison) == pytest.approx((2 + 2 + 4 + 6 + 6) / 5 / 2)
    part = BY_NAME["variance"].of(comparison).parts[0]
    assert (part.raw, part.reference) == (pytest.approx(16.0), pytest.approx(4.0))


def test_the_log_ratio_has_no_side() -> None:
    first, second = [0, 1, 2], [0, 3, 6]
    assert value_of("variance", compared(first, second)) == pytest.approx(math.log(9))
    assert value_of("variance", compared(second, first)) == pytest.approx(math.log(9))


def test_one_synthetic_value_pairs_with_all_real_ones() -> None:
    """Where all synthetic values are alike, the order of the real rows does not matter."""
    comparison = compared([0, 0, 6, 6], [1, 1, 1, 1])
    for kind in ("paired", "sorted"):
        assert value_of(f"rmse-{kind}", comparison) == pytest.approx(math.sqrt((1 + 1 + 25 + 25) / 4) / 3)
        assert value_of(f"mae-{kind}", comparison) == pytest.approx((1 + 1 + 5 + 5) / 4 / 3)


def test_paired_errors_are_those_of_scikit_learn_on_a_seeded_sample(people: pa.Table, others: pa.Table) -> None:
    comparison = Comparison.of(people, others.slice(0, 900), seed=7)
    rows = np.random.Generator(np.random.PCG64(7)).choice(2000, 900, replace=False)
    real, synthetic = comparison.real.values["age"], comparison.synthetic.values["age"]
    for name, error in (("rmse-paired", root_mean_squared_error), ("mae-paired", mean_absolute_error)):
        part = BY_NAME[name].of(comparison).parts[0]
        assert part.raw == pytest.approx(error(real[rows], synthetic))
        assert part.value == pytest.approx(part.raw / real.std())
    for name, error in (("rmse-sorted", root_mean_squared_error), ("mae-sorted", mean_absolute_error)):
        part = BY_NAME[name].of(comparison).parts[0]
        assert part.raw == pytest.approx(error(np.sort(real[rows]), np.sort(synthetic)))


def test_file_order_punishes_a_perfect_table_and_sorting_does_not(people: pa.Table, others: pa.Table) -> None:
    comparison = Comparison.of(people, others)
    # Independent rows of one population differ by √2 standard deviations on average.
    assert value_of("rmse-paired", comparison) == pytest.approx(math.sqrt(2), rel=0.1)
    assert value_of("rmse-sorted", comparison) < 0.1
    middles = {c: [float(np.mean(comparison.real.present(c)))] * 2000 for c in ("age", "income")}
    dull = Comparison.of(people.select(["age", "income"]), pa.table(middles))
    assert value_of("rmse-paired", dull) < 1.1 < value_of("rmse-paired", comparison)
    assert value_of("rmse-sorted", dull) > 0.9


def test_sorted_errors_of_equal_tables_are_wasserstein(people: pa.Table, others: pa.Table) -> None:
    comparison = Comparison.of(people.select(["age"]), others.select(["age"]))
    raw = BY_NAME["mae-sorted"].of(comparison).parts[0].raw
    assert raw == pytest.approx(
        wasserstein_distance(comparison.real.present("age"), comparison.synthetic.present("age"))
    )


def test_more_synthetic_than_real_rows_are_paired_with_repeated_ones() -> None:
    comparison = compared([3, 5], [4] * 9)
    assert value_of("mae-paired", comparison) == pytest.approx(1.0)


def test_identical_and_shuffled_tables_agree_in_all_that_is_sorted(people: pa.Table, shuffled: pa.Table) -> None:
    for synthetic in (people, shuffled):
        comparison = Comparison.of(people, synthetic)
        assert {n: value_of(n, comparison) for n in BY_NAME if n not in PAIRED} == pytest.approx(
            dict.fromkeys(set(BY_NAME) - set(PAIRED), 0.0), abs=1e-12
        )


def test_constant_columns() -> None:
    constant, varied = [3, 3, 3], [1, 3, 5]
    same = compared(constant, constant)
    assert {n: value_of(n, same) for n in BY_NAME} == dict.fromkeys(BY_NAME, 0.0)
    assert BY_NAME["variance"].of(compared(varied, constant)).parts[0].reason == (
        "the synthetic column is constant, so the variances have no ratio"
    )
    assert BY_NAME["rmse-paired"].of(compared(constant, varied)).value is None


def test_rows_of_which_no_pair_has_both_values() -> None:
    seeds = [compared([None, 1], [None, 1], seed) for seed in range(8)]
    reasons = {BY_NAME["mae-paired"].of(c).parts[0].reason for c in seeds}
    assert reasons == {"", "no pair of rows has both values"}
    assert value_of("mean", seeds[0]) == 0.0


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)
def test_broken_tables_give_figures_or_reasons(measure, broken_comparison: Comparison, check_sound) -> None:
    check_sound(measure, measure.of(broken_comparison))
