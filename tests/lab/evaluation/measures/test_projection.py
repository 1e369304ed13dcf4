"""Principal axes, against scikit-learn's and by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.decomposition import PCA
from tables import compared, people, shuffled

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures.projection import CELLS, Axes, pca_overlap, pca_variance
from understudy.lab.evaluation.row_features import Features


def test_axes_are_those_of_scikit_learn():
    comparison = compared(people(300), people(200, 5))
    features = Features.fit(comparison.variables, comparison.real)
    real, synthetic = features.one_hot(comparison.real), features.one_hot(comparison.synthetic)
    axes, other = Axes.of(real), PCA().fit(real)
    assert axes.shares == pytest.approx(other.explained_variance_ratio_, abs=1e-12)
    assert np.abs(axes.place(synthetic)) == pytest.approx(np.abs(other.transform(synthetic)[:, :2]), abs=1e-6)
    shares = PCA().fit(synthetic).explained_variance_ratio_
    expected = np.abs(shares - other.explained_variance_ratio_)[:5]
    found = pca_variance(comparison)
    assert [p.value for p in found.parts] == pytest.approx(expected)
    assert found.value == pytest.approx(expected.mean())


def test_overlap_is_what_histograms_of_numpy_share():
    comparison = compared(people(300), people(200, 5))
    features = Features.fit(comparison.variables, comparison.real)
    real, synthetic = features.one_hot(comparison.real), features.one_hot(comparison.synthetic)
    axes = Axes.of(real)
    places = [axes.place(m) for m in (real, synthetic)]
    cuts = [np.quantile(a, np.arange(1, CELLS) / CELLS, method="lower") for a in places[0].T]
    edges = [np.concatenate([[-np.inf], np.unique(c), [np.inf]]) for c in cuts]
    counts = [np.histogram2d(*p.T, bins=edges)[0] / len(p) for p in places]
    assert pca_overlap(comparison).value == pytest.approx(np.minimum(*counts).sum())


def test_identical_tables_overlap_wholly_in_any_order():
    real = people(300)
    assert pca_overlap(compared(real, real)).value == 1.0
    assert pca_overlap(compared(real, real.take(np.random.default_rng(1).permutation(300)))).value == 1.0
    assert pca_variance(compared(real, real)).value == pytest.approx(0.0, abs=1e-12)


def test_shuffled_tables_overlap_less_than_other_rows_of_the_population():
    real, other = people(1000), people(1000, 5)
    assert pca_overlap(compared(real, shuffled(real))).value < pca_overlap(compared(real, other)).value - 0.1
    assert pca_variance(compared(real, shuffled(real))).value > 0.05 > pca_variance(compared(real, other)).value


def test_half_of_a_line():
    """The synthetic rows are the upper half: half of the real ones have nothing in their cells."""
    real = pa.table({"x": np.arange(1200) / 8})
    found = pca_overlap(Comparison.of(real, real.slice(600)))
    assert found.value == pytest.approx(0.5, abs=0.01)


def test_a_far_table_does_not_overlap():
    real = pa.table({"x": np.arange(120) / 8, "y": np.arange(120)[::-1] / 8})
    away = pa.table({"x": np.arange(120) / 8 + 500, "y": np.arange(120)[::-1] / 8 - 500})
    assert pca_overlap(Comparison.of(real, away)).value <= 1 / CELLS + 0.01


def test_a_constant_table_has_no_axis():
    constant = pa.table({"c": ["a"] * 4, "x": [1.5] * 4})
    varied = pa.table({"c": ["a", "b"] * 2, "x": [1.5, 2.5] * 2})
    assert "constant" in pca_overlap(Comparison.of(constant, varied)).reason
    assert "constant" in pca_variance(Comparison.of(constant, constant)).reason
    assert pca_variance(Comparison.of(varied, constant)).value is not None
