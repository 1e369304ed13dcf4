"""Distances to the nearest synthetic rows, against scipy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import cdist
from tables import compared, people

from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures import nearest_distances as reconstruction
from understudy.lab.evaluation.measures.nearest_distances import MEASURES, nearest
from understudy.lab.evaluation.row_features import Features

PLAIN, SCALED = (m.of for m in MEASURES)


@pytest.mark.parametrize("scaled", [False, True])
def test_the_distance_is_that_of_scipy(scaled: bool):
    comparison = compared(people(80), people(70, 5))
    others = [v for v in comparison.variables if v.name != "rich"]
    features = Features.fit(others, comparison.real)
    rows = [features.one_hot(t, scaled) for t in (comparison.real, comparison.synthetic)]
    expected = np.sort(cdist(*rows), axis=1)[:, :3].mean()
    assert (SCALED if scaled else PLAIN)(comparison).value == pytest.approx(expected)


def test_by_hand():
    """3 and 4 apart, and another category, which counts as √2."""
    real = pa.table({"x": [0.5], "y": [0.25], "c": ["a"]})
    synthetic = pa.table({"x": [3.5, 0.5], "y": [4.25, 0.25], "c": ["a", "b"]})
    assert PLAIN(Comparison.of(real, synthetic)).value == pytest.approx((5 + 2**0.5) / 2)


def test_rows_that_are_there_three_times_have_no_distance():
    real = people(60)
    comparison = compared(real, pa.concat_tables([real] * 3))
    assert PLAIN(comparison).value == pytest.approx(0.0, abs=1e-12)
    assert SCALED(comparison).value == pytest.approx(0.0, abs=1e-12)


def test_distances_of_large_numbers_keep_their_digits():
    rows = np.array([[1e12, 0.0], [1e12, 7.0]])
    assert nearest(rows, rows + np.array([0.0, 0.5]), 1).tolist() == [[0.5], [0.5]]


def test_the_target_does_not_count():
    real, synthetic = people(50), people(50, 5)
    without = compared(real.drop_columns(["rich"]), synthetic, target=None)
    assert PLAIN(compared(real, synthetic)).value == pytest.approx(PLAIN(without).value)
    assert PLAIN(compared(real, synthetic, target=None)).value > PLAIN(without).value


def test_scaled_distances_do_not_depend_on_the_unit():
    def table(factor: float, seed: int) -> pa.Table:
        return pa.table({"x": np.random.default_rng(seed).normal(size=100) * factor})

    small, large = (Comparison.of(table(f, 1), table(f, 2)) for f in (1.0, 1000.0))
    assert SCALED(large).value == pytest.approx(SCALED(small).value)
    assert PLAIN(large).value == pytest.approx(1000 * PLAIN(small).value)


def test_large_tables_are_drawn_from(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reconstruction, "MOST_REAL", 20)
    found = PLAIN(compared(people(50), people(40, 5)))
    assert found.note == "20 real rows against 40 synthetic ones"


def test_the_target_alone_has_a_reason():
    only = compared(people(5).select(["rich"]), people(5), groups=())
    assert "no column beside 'rich'" in PLAIN(only).reason


def test_numbers_alone_leave_text_and_dates_out():
    """Real rows lie at 0 and 10, synthetic ones at 1: one away and nine, whatever their text says."""
    real = pa.table({"x": [0.0, 10.0], "wide": [0.0, 1e6], "text": ["a", "b"]})
    synthetic = pa.table({"x": [1.0, 1.0, 1.0], "wide": [0.0, 1e6, 5e5], "text": ["c", "c", "c"]})
    known = Schema.loads(
        '[columns.x]\ntype = "number"\nmin = 0\nmax = 99\n[columns.wide]\ntype = "number"\nmin = 0\nmax = 1_000_000\n'
        '[columns.text]\ntype = "categorical"\nvalues = ["a", "b", "c"]\n'
    )
    found = Comparison.of(real, synthetic, schema=known)
    parts = {p.name: p.value for p in PLAIN(found).parts}
    assert parts["numbers without wide"] == pytest.approx((1 + 9) / 2)
    assert parts["without wide"] > parts["numbers without wide"]
    assert parts["all numbers"] > 1e5
    assert not [p for p in SCALED(found).parts if "numbers" in p.name]


def test_numbers_alone_need_some():
    real = pa.table({"text": ["a", "b"], "x": pa.array([None, None], pa.float64())})
    assert not [p for p in PLAIN(Comparison.of(real, real)).parts if "number" in p.name]
