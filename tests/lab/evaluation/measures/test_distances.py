"""Distances of single columns, against scipy, POT and cases computed by hand."""

from __future__ import annotations

import math

import numpy as np
import ot
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from understudy.boundary.schema.column import Number
from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import MeasurePart
from understudy.lab.evaluation.measures.distances import MEASURES, transport

BY_NAME = {m.name: m for m in MEASURES}
LINE = Schema((Number("x", minimum=0, maximum=10),))
NUMBERS = st.lists(st.integers(-50, 50), min_size=1, max_size=30)


def parts_of(name: str, comparison: Comparison) -> dict[str, MeasurePart]:
    return {p.name: p for p in BY_NAME[name].of(comparison).parts}


@pytest.fixture(scope="module")
def compared(people: pa.Table, others: pa.Table) -> Comparison:
    return Comparison.of(people, others.slice(0, 1234))


@given(NUMBERS, NUMBERS)
def test_transport_is_what_scipy_and_pot_find_for_any_two_sizes(first: list[int], second: list[int]) -> None:
    real, synthetic = np.sort(np.array(first, dtype=float)), np.sort(np.array(second, dtype=float))
    assert transport(real, synthetic, 1) == pytest.approx(stats.wasserstein_distance(real, synthetic), abs=1e-9)
    squared = float(ot.emd2_1d(real, synthetic, metric="sqeuclidean"))
    assert transport(real, synthetic, 2) == pytest.approx(math.sqrt(max(squared, 0.0)), abs=1e-6)


def test_wasserstein_is_in_real_standard_deviations_with_the_raw_distance_beside_it(compared: Comparison) -> None:
    for name, part in parts_of("wasserstein-1", compared).items():
        real, synthetic = compared.real.present(name), compared.synthetic.present(name)
        raw = stats.wasserstein_distance(real, synthetic)
        assert part.raw == pytest.approx(raw)
        assert part.value == pytest.approx(raw / real.std())
    assert parts_of("wasserstein-1", compared)["hired"].note.endswith(" days")


def test_wasserstein_by_hand() -> None:
    real, synthetic = pa.table({"x": [0.0, 2.0]}), pa.table({"x": [3.0, 5.0]})
    comparison = Comparison.of(real, synthetic, schema=LINE)
    assert BY_NAME["wasserstein-1"].of(comparison).value == pytest.approx(3.0)
    assert BY_NAME["wasserstein-2"].of(comparison).value == pytest.approx(3.0)
    assert BY_NAME["ks"].of(comparison).value == 1.0


def test_ks_is_what_scipy_finds(compared: Comparison) -> None:
    for name, part in parts_of("ks", compared).items():
        expected = stats.ks_2samp(compared.real.present(name), compared.synthetic.present(name), method="asymp")
        assert part.value == pytest.approx(expected.statistic)


def test_jensen_shannon_and_hellinger_are_what_scipy_and_numpy_find(compared: Comparison) -> None:
    bits, roots = parts_of("js", compared), parts_of("hellinger", compared)
    for variable in compared.variables:
        p, q = (s.counts([variable]) / s.rows for s in (compared.real, compared.synthetic))
        assert bits[variable.name].value == pytest.approx(jensenshannon(p, q, base=2), abs=1e-7)
        assert roots[variable.name].value == pytest.approx(math.sqrt(1 - np.sqrt(p * q).sum()), abs=1e-7)


def test_tables_without_a_common_value_are_as_far_as_can_be() -> None:
    comparison = Comparison.of(
        pa.table({"c": ["a", "b"], "x": [1.5, 2.5]}), pa.table({"c": ["y", "z"], "x": [7.0, 8.0]})
    )
    for name, most in (("js", 1.0), ("hellinger", 1.0), ("l1-density", 2.0), ("ks", 1.0)):
        assert BY_NAME[name].of(comparison).value == pytest.approx(most)


def test_l1_of_densities_is_twice_the_total_variation_of_present_values() -> None:
    schema = Schema.loads('[columns.x]\ntype = "number"\nmin = 1\nmax = 2\nmissing = true')
    real, synthetic = pa.table({"x": [1.0, 1.0, 2.0, None]}), pa.table({"x": [1.0, 2.0, 2.0, 2.0]})
    comparison = Comparison.of(real, synthetic, schema=schema)
    assert BY_NAME["l1-density"].of(comparison).value == pytest.approx(2 / 3 - 1 / 4 + 3 / 4 - 1 / 3)


def test_chi_squared_is_the_test_of_scipy(compared: Comparison) -> None:
    for name, part in parts_of("chi2", compared).items():
        table = np.array([s.counts([compared[name]]) for s in (compared.real, compared.synthetic)])
        found = stats.chi2_contingency(table, correction=False)
        assert part.raw == pytest.approx(found.statistic)
        assert part.value == pytest.approx(found.statistic / found.dof)
        assert part.note.endswith(f"{found.dof} degrees of freedom, p = {found.pvalue:.3g}")


def test_a_category_of_the_hold_out_alone_is_no_cell() -> None:
    real, synthetic = pa.table({"c": list("aabb")}), pa.table({"c": list("abbb")})
    comparison = Comparison.of(real, synthetic, holdout=pa.table({"c": list("abcd")}))
    # 2, 2 and 1, 3 against 1.5, 2.5 each: χ² = 2 · (0.25 / 1.5 + 0.25 / 2.5)
    assert BY_NAME["chi2"].of(comparison).value == pytest.approx(2 * (0.25 / 1.5 + 0.25 / 2.5))


def test_identical_and_shuffled_tables_have_no_distance(people: pa.Table, shuffled: pa.Table) -> None:
    for synthetic in (people, shuffled):
        comparison = Comparison.of(people, synthetic)
        assert {m.name: m.of(comparison).value for m in MEASURES} == dict.fromkeys(BY_NAME, 0.0)


def test_a_constant_column_has_a_distance_only_to_itself() -> None:
    constant, other = pa.table({"x": [0.1] * 3}), pa.table({"x": [0.1, 0.1, 0.4]})
    assert BY_NAME["wasserstein-1"].of(Comparison.of(constant, constant)).value == 0.0
    figure = BY_NAME["wasserstein-1"].of(Comparison.of(constant, other))
    assert figure.value is None
    assert figure.parts[0].reason == "the real column is constant, so there is no spread to divide the distance 0.1 by"


def test_infinite_values_have_an_order_but_no_distance() -> None:
    comparison = Comparison.of(pa.table({"x": [1.0, 2.0, 3.0]}), pa.table({"x": [1.0, 2.0, math.inf]}))
    assert BY_NAME["ks"].of(comparison).value == pytest.approx(1 / 3)
    assert BY_NAME["wasserstein-2"].of(comparison).parts[0].reason == "the synthetic table has infinite values"


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)
def test_broken_tables_give_figures_or_reasons(measure, broken_comparison: Comparison, check_sound) -> None:
    check_sound(measure, measure.of(broken_comparison))


def test_the_printed_chi_squared_is_that_of_scipy():
    real = pa.table({"c": ["a"] * 30 + ["b"] * 10})
    synthetic = pa.table({"c": ["a"] * 12 + ["b"] * 8})
    found = BY_NAME["chi2-one-sided"].of(Comparison.of(real, synthetic))
    assert found.value == pytest.approx(stats.chisquare([15, 5], [12, 8]).statistic)


def test_the_printed_chi_squared_is_infinite_where_a_category_is_lacking():
    found = BY_NAME["chi2-one-sided"].of(
        Comparison.of(pa.table({"c": ["a", "b", "c"] * 9}), pa.table({"c": ["a", "b"] * 9}))
    )
    assert found.value is None and "which makes it infinite" in found.parts[0].reason
    more = BY_NAME["chi2-one-sided"].of(
        Comparison.of(pa.table({"c": ["a", "b"] * 9}), pa.table({"c": ["a", "b", "c"] * 6}))
    )
    assert more.value == pytest.approx(9.0)  # 3²/6 + 3²/6 + 6²/6
