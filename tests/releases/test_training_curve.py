"""The curve of a training: where it is shown, where its points are, and that a training is never shown as free."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.budget import Budget, Spend
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.releases.planning import forecast_of
from understudy.releases.report import _lines, _parts, render
from understudy.releases.report_figures import MEANING, curve_of, training_curve

CURVE = np.array([[50.0, 4.0], [100.0, 1.0]], dtype=np.float32)
TRAINED = RecordedAnswer({"ask": "train", "part": "curve", "steps": 100}, CURVE)
GENERATOR = RecordedAnswer({"ask": "train", "part": "generator", "steps": 100}, np.zeros(9, dtype=np.float32))
COUNTED = RecordedAnswer({"ask": "marginal", "columns": ["part"]}, np.array([3, 4]))
SCHEMA = us.Schema.loads('[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"')


@pytest.fixture(scope="module")
def release() -> us.Release:
    rows = pa.table({"a": [True, False] * 50, "b": [True, False] * 50})
    return us.synthesize(us.open(rows, SCHEMA), epsilon=1.0, delta=1e-6, method="independent", rows=40, seed=1)


def test_only_the_curve_of_a_training_is_one() -> None:
    assert curve_of([COUNTED, GENERATOR, TRAINED]) == ((50.0, 4.0), (100.0, 1.0))
    assert curve_of([COUNTED, GENERATOR]) == curve_of([]) == ()
    broken = dataclasses.replace(TRAINED, value=np.array([[1.0, np.nan], [2.0, 3.0]]))
    assert curve_of([broken]) == ((2.0, 3.0),)


def test_points_are_where_a_ruler_puts_them() -> None:
    """By hand: steps run from 44 to 386 for 0…100, gaps from 200 up to 46 for 0…4."""
    drawn = training_curve(curve_of([TRAINED]), width=400)
    assert re.search(r'<path d="([^"]*)"', drawn.svg)[1] == "M215 46L386 161.5"
    assert re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn.svg) == [("215", "46"), ("386", "161.5")]
    assert drawn.numbers.rows == (("50", "4.000"), ("100", "1.000"))
    assert "from 4 at step 50 to 1 at step 100" in drawn.description


@pytest.mark.parametrize("points", [((5.0, 2.0),), ((5.0, 0.0), (10.0, 0.0)), ((1.0, 1e-30), (2.0, 1e30))])
def test_odd_curves_can_be_drawn(points: tuple[tuple[float, float], ...]) -> None:
    assert len(re.findall("<circle", training_curve(points).svg)) == len(points)


def test_a_page_has_the_curve_just_where_there_is_one(release: us.Release) -> None:
    page = render(release.certificate, release.domain, release.arrow, record=(*release.record, GENERATOR, TRAINED))
    assert "critic" in page and MEANING.split("'")[0][:40] in page and "noisy sums alone" in page
    expected = forecast_of(release.certificate, release.schema, release.total)
    without = render(release.certificate, release.domain, release.arrow, record=release.record, expected=expected)
    assert without == render(release.certificate, release.domain, release.arrow, expected=expected)
    assert "critic" not in without
    assert without.encode() == release.files()["report.html"]


def trained(release: us.Release) -> us.Release:
    """The same release with the spends of a training: counts of g = 1/8 and 1/8, and a hundred noisy gradients."""
    counts = [Spend("rounded-gaussian", f"counts by {c}", 1.0, 2.0, cells=2) for c in "ab"]
    steps = Spend("sampled-gaussian", "100 noisy gradients over a, b", 1.0, 4.0, 5e-7, 4, rate=0.1, steps=100)
    certificate = dataclasses.replace(release.certificate, spends=(*counts, steps), asked=Budget(9.0, 1e-6))
    return dataclasses.replace(release, certificate=certificate)


def test_a_training_has_its_share_of_epsilon(release: us.Release) -> None:
    """It has no g; a page that showed costs by g alone would show it as free."""
    pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
    made = trained(release)
    lines, whole = _lines(made.certificate), made.certificate.composed[0]
    direct = float(made.certificate.spends[-1].cost.direct)
    assert [line.currency for line in lines] == ["g", "g", "ε"] and lines[-1].price == direct
    assert [line.share for line in lines] == pytest.approx([(1 - direct / whole) / 2] * 2 + [direct / whole])
    assert [line.start for line in lines] == pytest.approx([0.0, lines[0].share, 2 * lines[0].share])
    assert 0.05 < lines[-1].share < 0.95
    parts = [name for name, _ in _parts(lines, made.domain).numbers.rows]
    assert parts == ["single columns", "training a network"]
    page = render(made.certificate, made.domain, made.arrow)
    assert "noisy gradients" in page and "4 sums in each step" in page and "its cost isn't in g" in page


def test_a_release_without_training_is_divided_by_its_costs(release: us.Release) -> None:
    lines = _lines(release.certificate)
    prices = [float(s.cost.gdp) for s in release.certificate.spends]
    assert [line.share for line in lines] == pytest.approx([p / sum(prices) for p in prices])
    assert "its cost isn't in g" not in render(release.certificate, release.domain, release.arrow)
