"""What the pictures of a report show, computed from the rows: columns, associations, a cloud of rows, and some rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Integer
from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable, value_text
from understudy.lab.evaluation.measures.association import association_matrix
from understudy.lab.evaluation.measures.contingency import total_variation


@dataclass(frozen=True)
class SharesPicture:
    """A column of categories: the share of each in the real and in the synthetic table, most frequent first."""

    column: str
    labels: tuple[str, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float
    """Total variation between the two, by which the worst come first."""


@dataclass(frozen=True)
class CurvePicture:
    """A column on a line: something of it in the real and in the synthetic table over the same points."""

    column: str
    points: tuple[float, ...]
    labels: tuple[str, ...]
    """What a few of the points are called, as (first, middle, last): dates are not numbers."""
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float


@dataclass(frozen=True)
class OverlayPicture:
    """A column of numbers in the real table and in those of several methods, over the same points."""

    column: str
    points: tuple[float, ...]
    curves: dict[str, tuple[float, ...]]
    """By name, the real rows first."""
    cumulative: bool
    """Shares of the rows up to each point, where a density would hide heavy values."""


@dataclass(frozen=True)
class DensityPicture(CurvePicture):
    """The density of a column; the distance is total variation."""


@dataclass(frozen=True)
class CumulativePicture(CurvePicture):
    """The share of the rows up to each point; the distance is the largest gap between the two anywhere (that of
    Kolmogorov and Smirnov)."""


@dataclass(frozen=True)
class RowsPicture:
    """A few rows of each table as texts, chosen at random; None is a missing value."""

    columns: tuple[str, ...]
    real: tuple[tuple[str | None, ...], ...]
    synthetic: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class AssociationPicture:
    """Association of every two columns, from -1 to 1; NaN becomes None, where a column is constant."""

    name: str
    columns: tuple[str, ...]
    real: tuple[tuple[float | None, ...], ...]
    synthetic: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class ScatterPicture:
    """Rows of both tables on the two axes along which the real table varies most."""

    real: tuple[tuple[float, float], ...]
    synthetic: tuple[tuple[float, float], ...]
    explained: tuple[float, float]
    """The share of the real variance on each axis."""


Column = SharesPicture | DensityPicture


@dataclass(frozen=True)
class Pictures:
    """Columns come worst first; a picture that can't be had is None, and `reasons` says why."""

    columns: tuple[Column, ...]
    matrix: AssociationPicture | None
    cloud: ScatterPicture | None
    reasons: tuple[tuple[str, str], ...] = ()
    cumulative: tuple[CumulativePicture, ...] = ()
    """Of the columns on a line, those with the largest gaps first."""
    rows: RowsPicture | None = None


ROWS_SHOWN = 10
MOST_LABELS = 30
POINTS = 128
CELLS = 2048
"""Of the fine histogram that is smoothed."""
HEAVY = 0.2
"""A share of the rows in one single value that no curve can show: the column is drawn as bars."""
TAIL = 0.005
LARGEST = 1e150
MOST_ROWS, MOST_DOTS = 2_000, 600
MOST_INDICATORS = 50
"""Categories of a column that get an axis of their own in the cloud; the others are alike."""
FURTHEST = 8.0
"""Standard deviations beyond which a number is drawn at this distance in the cloud."""
LEAST_SPREAD = 1e-9

Numbers = NDArray[np.float64]


def draw(comparison: Comparison) -> Pictures:
    """All pictures, the worst columns first."""
    columns = sorted((_column(comparison, v) for v in comparison.variables), key=lambda c: -c.distance)
    matrix, cloud = _matrix(comparison), _cloud(comparison)
    reasons = []
    if matrix is None:
        reasons.append(("matrix", "it needs two columns"))
    if cloud is None:
        reasons.append(("cloud", "all columns of the real table are constant"))
    curves = sorted(filter(None, (_cumulative(comparison, v) for v in comparison.variables)), key=lambda c: -c.distance)
    return Pictures(tuple(columns), matrix, cloud, tuple(reasons), tuple(curves), _some_rows(comparison))


def _some_rows(comparison: Comparison) -> RowsPicture:
    rng = np.random.Generator(np.random.PCG64(comparison.seed))
    real, synthetic = (s.take(rng.permutation(s.rows)[:ROWS_SHOWN]) for s in comparison.both)
    names = tuple(v.name for v in comparison.variables)
    return RowsPicture(names, *(_row_texts(comparison.variables, s) for s in (real, synthetic)))


def _row_texts(variables: Sequence[Variable], sample: RowSample) -> tuple[tuple[str | None, ...], ...]:
    return tuple(zip(*([_value(v, sample, i) for i in range(sample.rows)] for v in variables), strict=True))


def _value(variable: Variable, sample: RowSample, row: int) -> str | None:
    """By itself where it is a number, whose code may stand for a bin of many."""
    if variable.on_line:
        value = float(sample.values[variable.name][row])
        return None if math.isnan(value) else value_text(variable.column, value)
    code = int(sample.codes[variable.name][row])
    return variable.labels[code] if code < len(variable.labels) else None


def _column(comparison: Comparison, variable: Variable) -> Column:
    """A person draws bars for categories and for few or heavy values, and a curve for the rest."""
    distance = total_variation(comparison, [variable])
    if not variable.on_line or len(variable.labels) <= MOST_LABELS:
        return _shares(comparison, variable, distance)
    values = (s.values[variable.name] for s in comparison.both)
    real, synthetic = (v[np.isfinite(v)] for v in values)
    if _has_curve(real) and _has_curve(synthetic):
        return _density(variable, real, synthetic, distance)
    return _shares(comparison, variable, distance)


def _has_curve(values: Numbers) -> bool:
    """Whether no single value is heavy, and no number so large that its square can't be computed."""
    if len(values) < 2 or np.abs(values).max() > LARGEST:
        return False
    _, counts = np.unique(values, return_counts=True)
    return bool(counts.max() <= HEAVY * len(values))


def _shares(comparison: Comparison, variable: Variable, distance: float) -> SharesPicture:
    """Bars in the order of the column, if it has one, else by frequency; what does not fit is one bar at the end."""
    real, synthetic = (s.counts([variable]) / s.rows for s in comparison.both)
    by_frequency = np.lexsort((-synthetic, -real))  # the last key counts first: by the real shares, then the synthetic
    by_frequency = by_frequency[(real + synthetic)[by_frequency] > 0]
    kept, rest = by_frequency, by_frequency[:0]
    if len(by_frequency) > MOST_LABELS:
        kept, rest = np.split(by_frequency, [MOST_LABELS - 1])
    if variable.column.ordered:
        kept = np.sort(kept)
    labels = [variable.all_labels[i] for i in kept]
    bars = [[*map(float, p[kept])] for p in (real, synthetic)]
    if len(rest):
        labels.append(f"{len(rest):,} others")
        for bar, shares in zip(bars, (real, synthetic), strict=True):
            bar.append(float(shares[rest].sum()))
    return SharesPicture(variable.name, tuple(labels), tuple(bars[0]), tuple(bars[1]), distance)


def _density(variable: Variable, real: Numbers, synthetic: Numbers, distance: float) -> DensityPicture:
    """Both with the same kernel, so that what differs is the data; over the middle 99 % of either table."""
    points = _points(real, synthetic)
    bounds = min(real.min(), synthetic.min()), max(real.max(), synthetic.max())
    # One bandwidth, that of the real rows: two would show a difference where only the sizes of the tables differ.
    width = _bandwidth(real, float(points[1] - points[0]))
    curve, other = (_smoothed(values, points, bounds, width) for values in (real, synthetic))
    return DensityPicture(variable.name, tuple(map(float, points)), _ticks(variable, points), curve, other, distance)


def _cumulative(comparison: Comparison, variable: Variable) -> CumulativePicture | None:
    """Over the middle 99 % of either table; the gap is looked for everywhere."""
    if not variable.on_line:
        return None
    real, synthetic = (np.sort(v[np.isfinite(v)]) for v in (s.values[variable.name] for s in comparison.both))
    if not len(real) or not len(synthetic) or max(np.abs(real).max(), np.abs(synthetic).max()) > LARGEST:
        return None
    points = _points(real, synthetic)
    if points[0] == points[-1]:
        return None
    one, other = (_share_up_to(values, points) for values in (real, synthetic))
    both = np.concatenate([real, synthetic])
    gap = np.abs(_share_up_to(real, both) - _share_up_to(synthetic, both)).max()
    line, first, second = (tuple(map(float, curve)) for curve in (points, one, other))
    return CumulativePicture(variable.name, line, _ticks(variable, points), first, second, float(gap))


def _share_up_to(sorted_values: Numbers, points: Numbers) -> Numbers:
    return np.searchsorted(sorted_values, points, side="right") / len(sorted_values)


def _points(real: Numbers, synthetic: Numbers) -> Numbers:
    """Over the middle 99 % of either table."""
    ends = np.quantile(real, [TAIL, 1 - TAIL]), np.quantile(synthetic, [TAIL, 1 - TAIL])
    return np.linspace(min(e[0] for e in ends), max(e[1] for e in ends), POINTS)


def _ticks(variable: Variable, points: Numbers) -> tuple[str, ...]:
    """Three labels, which fit under any picture; where the points are numbers, the axis has round ones instead."""
    return tuple(_tick(variable, float(points[i]), float(np.ptp(points))) for i in (0, POINTS // 2, -1))


REAL_ROWS = "real"


def overlay(comparisons: Mapping[str, Comparison], name: str) -> OverlayPicture:
    """One column of all tables; the comparisons share their real rows."""
    some = next(iter(comparisons.values()))
    tables = {REAL_ROWS: some.real, **{method: c.synthetic for method, c in comparisons.items()}}
    values = {table: s.values[name][np.isfinite(s.values[name])] for table, s in tables.items()}
    values = {table: v for table, v in values.items() if len(v)}
    if not values:
        return OverlayPicture(name, (), {}, cumulative=False)
    ends = [np.quantile(v, [TAIL, 1 - TAIL]) for v in values.values()]
    points = np.linspace(min(e[0] for e in ends), max(e[1] for e in ends), POINTS)
    cumulative = not all(_has_curve(v) for v in values.values()) or points[0] == points[-1]
    if cumulative:
        curves = {t: np.searchsorted(np.sort(v), points, side="right") / len(v) for t, v in values.items()}
        found = {table: tuple(map(float, heights)) for table, heights in curves.items()}
    else:
        bounds = min(float(v.min()) for v in values.values()), max(float(v.max()) for v in values.values())
        width = _bandwidth(values.get(REAL_ROWS, next(iter(values.values()))), float(points[1] - points[0]))
        found = {table: _smoothed(v, points, bounds, width) for table, v in values.items()}
    return OverlayPicture(name, tuple(map(float, points)), found, cumulative)


def _bandwidth(values: Numbers, step: float) -> float:
    """Silverman's rule, but never finer than the grid, nor than the steps between whole numbers."""
    low, high = np.quantile(values, [0.25, 0.75])
    # A normal distribution has quartiles 1.34 standard deviations apart; where they coincide, only the latter is left.
    spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
    whole = bool((values[:1000] == np.floor(values[:1000])).all())
    # Silverman (1986), equation 3.31.
    return max(0.9 * spread * len(values) ** -0.2, step, float(whole))


def _smoothed(values: Numbers, points: Numbers, bounds: tuple[float, float], width: float) -> tuple[float, ...]:
    """A Gaussian kernel over a fine histogram; near the ends the part of the kernel beyond them is given back."""
    from scipy.special import ndtr

    # Four bandwidths from a point a Gaussian kernel has fallen to 0.03 % of its height.
    reach = points[0] - 4 * width, points[-1] + 4 * width
    counts, edges = np.histogram(values, CELLS, reach)
    middles = (edges[:-1] + edges[1:]) / 2
    kernel = np.exp(-0.5 * ((points[:, None] - middles) / width) ** 2) / (width * math.sqrt(2 * math.pi))
    inside = ndtr((bounds[1] - points) / width) - ndtr((bounds[0] - points) / width)
    return tuple(map(float, kernel @ counts / len(values) / inside))


def _tick(variable: Variable, value: float, span: float) -> str:
    """A number is said to a hundredth of what is shown; a date as it is."""
    if variable.is_date:
        return value_text(variable.column, value)
    digits = 2 - math.floor(math.log10(span))
    if isinstance(variable.column, Integer):
        digits = min(digits, 0)
    return value_text(variable.column, round(value, digits))


def _matrix(comparison: Comparison) -> AssociationPicture | None:
    names = tuple(v.name for v in comparison.variables)
    if len(names) < 2:
        return None
    real, synthetic = (_rows(association_matrix(comparison, s)) for s in comparison.both)
    return AssociationPicture("association", names, real, synthetic)


def _rows(matrix: Numbers) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(None if math.isnan(x) else float(x) for x in row) for row in matrix)


def _cloud(comparison: Comparison) -> ScatterPicture | None:
    """Principal components of the real rows: numbers standardised, an indicator for each category."""
    rng = np.random.Generator(np.random.PCG64(comparison.seed))
    real, synthetic = (s.take(rng.permutation(s.rows)[:MOST_ROWS]) for s in comparison.both)
    features = [f for v in comparison.variables for f in _features(v, real, synthetic)]
    if not features:
        return None
    both = np.column_stack(features)
    # Centred and turned by the real rows alone: the synthetic ones are looked at from where the real ones stand.
    both = both - both[: real.rows].mean(axis=0)
    _, strengths, axes = np.linalg.svd(both[: real.rows], full_matrices=False)
    if not len(strengths) or strengths[0] < LEAST_SPREAD:
        return None
    axes = _pointed(axes[:2])
    # A table of one column varies along one axis: the second is nothing, and the cloud a line.
    explained = np.pad(strengths**2 / (strengths**2).sum(), (0, 1))
    dots = np.pad(both @ axes.T, ((0, 0), (0, 2 - len(axes))))
    shown = _dots(dots[: real.rows]), _dots(dots[real.rows :])
    return ScatterPicture(*shown, (float(explained[0]), float(explained[1])))


def _features(variable: Variable, real: RowSample, synthetic: RowSample) -> list[Numbers]:
    if variable.on_line:
        return _standardised(*(s.values[variable.name] for s in (real, synthetic)))
    codes = np.concatenate([s.codes[variable.name] for s in (real, synthetic)])
    frequent = np.argsort(-real.counts([variable]), kind="stable")[:MOST_INDICATORS]
    return [(codes == code).astype(np.float64) for code in frequent]


def _standardised(real: Numbers, synthetic: Numbers) -> list[Numbers]:
    """By the finite real values; a missing one lies in the middle. Nothing where the real ones are constant."""
    finite = real[np.isfinite(real)]
    if not len(finite) or finite.min() == finite.max():
        return []
    largest = np.abs(finite).max()  # in parts of it, since squares of very large numbers are not numbers
    middle, spread = (finite / largest).mean(), (finite / largest).std()
    with np.errstate(over="ignore"):
        scaled = (np.concatenate([real, synthetic]) / largest - middle) / spread
    return [np.where(np.isnan(scaled), 0.0, np.clip(scaled, -FURTHEST, FURTHEST))]


def _pointed(axes: Numbers) -> Numbers:
    """The sign of an axis is free: the largest part of it is made positive, so that a picture stays the same."""
    largest = np.abs(axes).argmax(axis=1)
    return np.asarray(axes * np.sign(axes[np.arange(len(axes)), largest])[:, None])


def _dots(dots: Numbers) -> tuple[tuple[float, float], ...]:
    return tuple((round(float(x), 4), round(float(y), 4)) for x, y in dots[:MOST_DOTS])
