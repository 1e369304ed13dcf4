"""Pictures: shares that add up, densities against scipy, axes against scikit-learn, and broken tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import gaussian_kde, ks_2samp
from sklearn.decomposition import PCA

from understudy.boundary.schema.column import Categorical, Number
from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.heatmap import pairs
from understudy.lab.evaluation.picture_data import (
    MOST_DOTS,
    MOST_LABELS,
    POINTS,
    ROWS_SHOWN,
    AssociationPicture,
    DensityPicture,
    Pictures,
    SharesPicture,
    _bandwidth,
    draw,
)


@pytest.fixture(scope="module")
def pictures(people: pa.Table, others: pa.Table, schema: Schema) -> Pictures:
    return draw(Comparison.of(people, others, schema=schema))


def by_name(pictures: Pictures) -> dict[str, SharesPicture | DensityPicture]:
    return {c.column: c for c in pictures.columns}


def area(picture: DensityPicture, heights: tuple[float, ...]) -> float:
    return float(np.trapezoid(heights, picture.points))


def test_every_column_is_drawn_as_a_person_would(pictures: Pictures) -> None:
    kinds = {name: type(c) for name, c in by_name(pictures).items()}
    assert kinds == {
        "age": DensityPicture,
        "income": DensityPicture,
        "job": SharesPicture,
        "smoker": SharesPicture,
        "hired": DensityPicture,
    }


def test_curves_are_shares_up_to_each_value(pictures: Pictures, people: pa.Table) -> None:
    curves = {c.column: c for c in pictures.cumulative}
    assert set(curves) == {"age", "income", "hired"}
    ages = people["age"].to_numpy()
    age = curves["age"]
    assert age.real == pytest.approx([np.nanmean(ages <= x) for x in age.points])
    assert all(a <= b for a, b in itertools.pairwise(age.synthetic))


def test_the_distance_of_curves_is_that_of_kolmogorov_and_smirnov(
    pictures: Pictures, people: pa.Table, others: pa.Table
) -> None:
    for curve in pictures.cumulative:
        if curve.column != "hired":
            real, made = (t[curve.column].drop_null().to_numpy() for t in (people, others))
            assert curve.distance == pytest.approx(ks_2samp(real, made).statistic)
    assert [c.distance for c in pictures.cumulative] == sorted((c.distance for c in pictures.cumulative), reverse=True)


def test_rows_are_rows_of_their_tables(pictures: Pictures, people: pa.Table) -> None:
    rows = pictures.rows
    assert rows is not None and len(rows.real) == len(rows.synthetic) == ROWS_SHOWN
    place = {name: rows.columns.index(name) for name in ("age", "job")}
    known = {
        (None if a is None else f"{a:,.8g}", j) for a, j in zip(*(people[c].to_pylist() for c in place), strict=True)
    }
    assert {(r[place["age"]], r[place["job"]]) for r in rows.real} <= known


def test_the_strongest_pairs_of_either_table_are_drawn() -> None:
    real = ((1.0, 0.1, 0.8), (0.1, 1.0, None), (0.8, None, 1.0))
    made = ((1.0, -0.9, 0.7), (-0.9, 1.0, 0.2), (0.7, 0.2, 1.0))
    figure = pairs(AssociationPicture("association", ("a", "b", "c"), real, made))
    assert figure.numbers.rows == (("a and b", "0.100", "−0.900", "−1.000"), ("a and c", "0.800", "0.700", "−0.100"))
    assert "most for a and b" in figure.description


def test_the_worst_columns_come_first(people: pa.Table, others: pa.Table) -> None:
    wrong = others.set_column(2, "job", pa.array(["cook"] * others.num_rows))
    columns = draw(Comparison.of(people, wrong)).columns
    assert columns[0].column == "job"
    assert all(a.distance >= b.distance for a, b in itertools.pairwise(columns))


def test_shares_come_by_frequency_and_add_up(pictures: Pictures) -> None:
    job = by_name(pictures)["job"]
    assert isinstance(job, SharesPicture) and set(job.labels) == {"clerk", "cook", "nurse", "judge", "missing"}
    assert list(job.real) == sorted(job.real, reverse=True)
    assert sum(job.real) == pytest.approx(1) and sum(job.synthetic) == pytest.approx(1)
    assert job.distance == pytest.approx(sum(abs(a - b) for a, b in zip(job.real, job.synthetic, strict=True)) / 2)


def test_long_lists_end_in_others() -> None:
    values = [f"v{i}" for i in range(100) for _ in range(100 - i)]
    table = pa.table({"c": values})
    (column,) = draw(Comparison.of(table, table.slice(0, 100), schema=Schema((Categorical("c"),)))).columns
    assert len(column.labels) == MOST_LABELS and column.labels[0] == "v0" and column.labels[-1] == "71 others"
    assert column.real[-1] == pytest.approx(sum(range(1, 72)) / 5050)
    assert column.synthetic == (1.0, *[0.0] * 29)


def test_few_numbers_are_bars_in_their_order() -> None:
    table = pa.table({"x": [3.5, 1.5, 1.5, -2.0, None, 10.0]})
    (column,) = draw(Comparison.of(table, table)).columns
    assert isinstance(column, SharesPicture)
    assert column.labels == ("-2", "1.5", "3.5", "10", "missing")
    assert column.real == pytest.approx([1 / 6, 2 / 6, 1 / 6, 1 / 6, 1 / 6])


def test_a_heavy_value_among_many_is_a_bar_of_its_own() -> None:
    rng = np.random.default_rng(1)
    gains = np.where(rng.random(3000) < 0.9, 0.0, rng.lognormal(8, 1, 3000).round(2))
    table = pa.table({"gain": gains})
    (column,) = draw(Comparison.of(table, table)).columns
    assert isinstance(column, SharesPicture) and len(column.labels) <= MOST_LABELS
    assert column.labels[0] == "0" and column.real[0] == pytest.approx(np.mean(gains == 0))


def test_a_density_is_that_of_scipy_away_from_the_ends() -> None:
    rng = np.random.default_rng(2)
    real, synthetic = rng.normal(5, 2, 4000), rng.normal(6, 1, 3000)
    (picture,) = draw(Comparison.of(pa.table({"x": real}), pa.table({"x": synthetic}))).columns
    assert isinstance(picture, DensityPicture) and len(picture.points) == POINTS
    points = np.array(picture.points)
    width = _bandwidth(real, points[1] - points[0])
    for values, heights in ((real, picture.real), (synthetic, picture.synthetic)):
        expected = gaussian_kde(values, bw_method=width / values.std(ddof=1))(points)
        assert np.array(heights) == pytest.approx(expected, abs=0.01 * expected.max())
        assert area(picture, heights) == pytest.approx(1, abs=0.02)


def test_a_density_does_not_sink_at_the_ends_of_a_column() -> None:
    even = pa.table({"x": np.linspace(0, 1, 5001)})
    (picture,) = draw(Comparison.of(even, even)).columns
    assert isinstance(picture, DensityPicture)
    assert np.array(picture.real) == pytest.approx(np.ones(POINTS), abs=0.02)


def test_whole_numbers_are_no_comb() -> None:
    ages = pa.table({"age": np.repeat(np.arange(20, 80), 50)})
    (picture,) = draw(Comparison.of(ages, ages)).columns
    assert isinstance(picture, DensityPicture)
    assert max(picture.real) < 1.2 * min(picture.real)
    assert picture.labels == ("20", "50", "79")


def test_narrow_whole_numbers_with_long_tails_are_no_comb_either() -> None:
    steps = np.rint(np.random.default_rng(6).laplace(0, 3, 100_000))
    table = pa.table({"x": steps})
    (picture,) = draw(Comparison.of(table, table)).columns
    assert isinstance(picture, DensityPicture)
    right = np.array(picture.real)[np.array(picture.points) > 0.5]
    assert (np.diff(right) < 0.001 * right[0]).all()


def test_an_outlier_does_not_flatten_the_curve() -> None:
    rng = np.random.default_rng(3)
    real = rng.normal(0, 1, 2000)
    (picture,) = draw(Comparison.of(pa.table({"x": [*real, 1e9]}), pa.table({"x": real}))).columns
    assert isinstance(picture, DensityPicture) and picture.points[-1] < 4


def test_dates_are_called_by_their_day(pictures: Pictures) -> None:
    hired = by_name(pictures)["hired"]
    assert isinstance(hired, DensityPicture)
    assert [label[:4] for label in hired.labels] == ["2020", "2021", "2021"]


def test_the_matrix_is_symmetric_and_empty_where_a_column_is_constant(people: pa.Table) -> None:
    constant = people.set_column(0, "age", pa.array([40] * people.num_rows))
    matrix = draw(Comparison.of(people, constant)).matrix
    assert matrix is not None and matrix.columns == tuple(people.column_names)
    assert [matrix.real[i][i] for i in range(5)] == [1.0] * 5
    assert all(matrix.real[i][j] == matrix.real[j][i] for i in range(5) for j in range(5))
    assert matrix.synthetic[0] == (None,) * 5 and matrix.synthetic[1][1] == 1.0


def test_the_axes_are_the_principal_components_of_the_real_rows() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3))
    table = pa.table({f"x{i}": values[:, i] for i in range(3)})
    cloud = draw(Comparison.of(table, table)).cloud
    assert cloud is not None and len(cloud.real) == 400
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    fitted = PCA(2).fit(standard)
    assert cloud.explained == pytest.approx(fitted.explained_variance_ratio_)
    expected = np.abs(fitted.transform(standard))
    assert np.sort(np.abs(np.array(cloud.real)), axis=0) == pytest.approx(np.sort(expected, axis=0), abs=1e-3)


def test_the_middle_of_the_cloud_is_that_of_the_real_rows(people: pa.Table) -> None:
    few = people.slice(0, MOST_DOTS).select(["age", "job"])
    cloud = draw(Comparison.of(few, few.set_column(0, "age", pa.array([90] * MOST_DOTS)))).cloud
    assert cloud is not None
    assert np.mean(cloud.real, axis=0) == pytest.approx([0, 0], abs=1e-3)
    assert np.abs(np.mean(cloud.synthetic, axis=0)).max() > 1


def test_a_cloud_keeps_few_dots_and_follows_the_seed(people: pa.Table, others: pa.Table) -> None:
    first, again, other = (draw(Comparison.of(people, others, seed=s)).cloud for s in (1, 1, 2))
    assert first == again != other
    assert first is not None and len(first.real) == len(first.synthetic) == MOST_DOTS


def test_a_single_constant_column_leaves_reasons() -> None:
    table = pa.table({"c": ["a", "a"]})
    drawn = draw(Comparison.of(table, table))
    assert drawn.matrix is None and drawn.cloud is None
    assert dict(drawn.reasons) == {
        "matrix": "it needs two columns",
        "cloud": "all columns of the real table are constant",
    }


def test_broken_tables_are_drawn_with_finite_numbers(broken_comparison: Comparison) -> None:
    pictures = draw(broken_comparison)
    for column in pictures.columns:
        assert all(map(math.isfinite, (*column.real, *column.synthetic, column.distance)))
    if pictures.cloud is not None:
        assert np.isfinite([*pictures.cloud.real, *pictures.cloud.synthetic]).all()
        assert 0 <= sum(pictures.cloud.explained) <= 1 + 1e-9
    for row in (*pictures.matrix.real, *pictures.matrix.synthetic) if pictures.matrix else ():
        assert all(x is None or -1 <= x <= 1 for x in row)


def test_many_infinite_and_huge_numbers_are_drawn() -> None:
    rng = np.random.default_rng(5)
    good, line = rng.normal(size=500), Schema((Number("x", minimum=-5, maximum=5),))
    for odd in (np.inf, -np.inf, 1e308, -1e308):
        bad = np.where(rng.random(500) < 0.1, odd, good)
        for pair in ((good, bad), (bad, good)):
            (column,) = draw(Comparison.of(*(pa.table({"x": p}) for p in pair), schema=line)).columns
            assert all(map(math.isfinite, (*column.real, *column.synthetic)))
