"""Distances between the distribution of a column in the real and in the synthetic table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime
from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable
from understudy.lab.evaluation.measure import INFINITY, LOWER, Measure, MeasurePart, MeasureResult

SECTION = "Single columns"
TABLES = ("real", "synthetic")
NO_LINES = "no column holds numbers or dates"
NO_LISTS = "no column holds categories"
COLUMNS_SAY = "no column has a figure; the columns say why"
TOO_LARGE = "the numbers are too large to be computed with"

Numbers = NDArray[np.float64]
OfColumn = Callable[[Comparison, Variable], MeasurePart]


class NoFigureError(ValueError):
    """Why a column has no figure; it becomes the reason of its part."""


@dataclass(frozen=True)
class SortedValues:
    """The values of a column on a line that are not missing, sorted; and how far the real ones spread."""

    real: Numbers
    synthetic: Numbers
    deviation: float

    def scaled(self, raw: float) -> float:
        """In standard deviations of the real column."""
        if raw == 0:  # two equal constants are as near as can be, though they have no spread
            return 0.0
        if self.deviation == 0:
            raise NoFigureError(
                f"the real column is constant, so there is no spread to divide the distance {_raw_text(raw)} by"
            )
        return raw / self.deviation


def line_of(comparison: Comparison, variable: Variable) -> SortedValues:
    """Of a column whose values are all finite and not all missing."""
    real, synthetic = (np.sort(values) for values in present_values(comparison, variable))
    for which, values in zip(TABLES, (real, synthetic), strict=True):
        if np.isinf(values[[0, -1]]).any():  # sorted: whatever is infinite stands at an end
            raise NoFigureError(f"the {which} table has infinite values")
    return SortedValues(real, synthetic, deviation(real))


def present_values(comparison: Comparison, variable: Variable) -> tuple[Numbers, Numbers]:
    """The values of a column on a line that are not missing: the real ones, and the synthetic ones."""
    real, synthetic = (sample.present(variable.name) for sample in comparison.both)
    for which, values in zip(TABLES, (real, synthetic), strict=True):
        if not len(values):
            raise NoFigureError(f"all values are missing in the {which} table")
    return real, synthetic


def deviation(values: Numbers) -> float:
    """The standard deviation; exactly 0 for a constant, which rounding may hide."""
    if values.min() == values.max():
        return 0.0
    largest = float(np.abs(values).max())  # the squares of very large numbers would overflow
    return float((values / largest).std()) * largest


def part_of(variable: Variable, compute: OfColumn, comparison: Comparison) -> MeasurePart:
    """What is computed of a column, or the reason why it can't be."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            part = compute(comparison, variable)
    except NoFigureError as reason:
        return MeasurePart(variable.name, None, str(reason))
    # JSON has no infinity, and a mean with one says nothing of the other columns.
    numbers = (part.value, part.raw, part.reference)
    if not all(math.isfinite(x) for x in numbers if x is not None):
        return MeasurePart(variable.name, None, TOO_LARGE)
    return part


def mean_over(comparison: Comparison, variables: Sequence[Variable], none: str, compute: OfColumn) -> MeasureResult:
    """The mean over some columns; `none` is said where there are none of them."""
    if not variables:
        return MeasureResult.undefined(none)
    return MeasureResult.mean([part_of(v, compute, comparison) for v in variables], COLUMNS_SAY)


def in_deviations(variable: Variable, line: SortedValues, raw: float) -> MeasurePart:
    """A distance in standard deviations of the real column, beside the distance in the units of the column."""
    unit = f" {variable.column.resolution}s" if isinstance(variable.column, Datetime) else ""
    return MeasurePart(variable.name, line.scaled(raw), note=f"{_raw_text(raw)}{unit}", raw=raw)


def _raw_text(raw: float) -> str:
    if 1e4 <= raw < 1e15:
        return f"{raw:,.0f}"
    return f"{raw:.4g}"


def transport(real: Numbers, synthetic: Numbers, power: int) -> float:
    """The Wasserstein distance of sorted samples: the mean of |F⁻¹ − G⁻¹|^p over all levels, to the power 1/p.

    Both quantile functions are steps, so the mean is a sum over the levels where one of them steps. Levels are counted
    in parts of n·m, which keeps them whole numbers for samples of different sizes.
    """
    n, m = len(real), len(synthetic)
    # In floats two levels that are the same would seldom meet, and add steps of a rounding's width.
    steps = np.unique(np.concatenate([np.arange(1, n + 1) * m, np.arange(1, m + 1) * n]))
    gaps = np.abs(real[(steps - 1) // m] - synthetic[(steps - 1) // n])
    largest = float(gaps.max())
    if largest == 0:
        return 0.0
    # Gaps are taken in parts of the largest, since powers of very large ones would overflow.
    weights = np.diff(steps, prepend=0) / (n * m)
    return largest * float(weights @ (gaps / largest) ** power) ** (1 / power)


def _wasserstein(comparison: Comparison, variable: Variable, power: int) -> MeasurePart:
    line = line_of(comparison, variable)
    return in_deviations(variable, line, transport(line.real, line.synthetic, power))


def _largest_gap(comparison: Comparison, variable: Variable) -> MeasurePart:
    """Kolmogorov and Smirnov: where the distribution functions are furthest apart. Infinite values have an order."""
    real, synthetic = (np.sort(values) for values in present_values(comparison, variable))
    points = np.concatenate([real, synthetic])
    # Two step functions are furthest apart at a point where one of them steps.
    below = np.searchsorted(real, points, side="right") / len(real)
    gaps = np.abs(below - np.searchsorted(synthetic, points, side="right") / len(synthetic))
    return MeasurePart(variable.name, float(gaps.max()))


def _shares(comparison: Comparison, variable: Variable) -> tuple[Numbers, Numbers]:
    real, synthetic = (s.counts([variable]) / s.rows for s in comparison.both)
    return real, synthetic


def _jensen_shannon(comparison: Comparison, variable: Variable) -> MeasurePart:
    p, q = _shares(comparison, variable)
    middle = (p + q) / 2  # above 0 wherever p or q is, so that the divergences are finite
    # In bits it ends at 1; and its root, unlike itself, is a metric (Endres & Schindelin 2003).
    bits = (_divergence(p, middle) + _divergence(q, middle)) / 2
    return MeasurePart(variable.name, math.sqrt(min(max(bits, 0.0), 1.0)))


def _divergence(p: Numbers, q: Numbers) -> float:
    """Kullback and Leibler's, in bits; a cell without p adds nothing."""
    some = p > 0
    return float((p[some] * np.log2(p[some] / q[some])).sum())


def _hellinger(comparison: Comparison, variable: Variable) -> MeasurePart:
    p, q = _shares(comparison, variable)
    return MeasurePart(variable.name, math.sqrt(min(float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum()) / 2, 1.0)))


def _density_distance(comparison: Comparison, variable: Variable) -> MeasurePart:
    """∫|p − q| of two histograms over the same cells is the sum of |p − q| over them, whatever their widths."""
    p, q = (_shares_of_present(s, variable, which) for s, which in zip(comparison.both, TABLES, strict=True))
    return MeasurePart(variable.name, min(float(np.abs(p - q).sum()), 2.0), note=f"{len(p)} cells")


def _shares_of_present(sample: RowSample, variable: Variable, which: str) -> Numbers:
    counts = sample.counts([variable])[: len(variable.labels)]
    if not counts.sum():
        raise NoFigureError(f"all values are missing in the {which} table")
    return np.asarray(counts / counts.sum())


def _homogeneity(comparison: Comparison, variable: Variable) -> MeasurePart:
    """Pearson's test that two samples come from one population; cells that both lack are no cells."""
    from scipy.special import chdtrc

    counts = np.array([s.counts([variable]) for s in comparison.both], dtype=np.float64)
    counts = counts[:, counts.sum(axis=0) > 0]
    freedom = counts.shape[1] - 1
    if not freedom:
        raise NoFigureError("both tables have a single value, the same")
    # Both tables are samples: expected is what the two together have, in the proportion of their rows.
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    # The law behind p is approximate where cells are expected to hold fewer than about five rows (Cochran 1954).
    statistic = float(((counts - expected) ** 2 / expected).sum())
    note = f"χ² = {statistic:.4g} with {freedom} degrees of freedom, p = {float(chdtrc(freedom, statistic)):.3g}"
    return MeasurePart(variable.name, statistic / freedom, note=note, raw=statistic)


def _one_sided(comparison: Comparison, variable: Variable) -> MeasurePart:
    """The real counts, brought to as many rows, against the synthetic ones, as if these were the truth."""
    # As Merchant (2024) prints it (`studies.layout`): the expected counts are synthetic ones, which are a sample too.
    real, synthetic = (s.counts([variable]).astype(np.float64) for s in comparison.both)
    real *= comparison.synthetic.rows / comparison.real.rows
    some = synthetic > 0
    if real[~some].any():
        raise NoFigureError("the synthetic table lacks a real category, which makes it infinite")
    return MeasurePart(variable.name, float(((real[some] - synthetic[some]) ** 2 / synthetic[some]).sum()))


def over_all(comparison: Comparison, compute: OfColumn) -> MeasureResult:
    return mean_over(comparison, comparison.variables, "there is no column", compute)


def over_lines(comparison: Comparison, compute: OfColumn) -> MeasureResult:
    return mean_over(comparison, comparison.on_line, NO_LINES, compute)


def over_lists(comparison: Comparison, compute: OfColumn) -> MeasureResult:
    return mean_over(comparison, comparison.listed, NO_LISTS, compute)


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0, high=1.0, unit="column")

MEASURES: tuple[Measure, ...] = (
    _measure("js", "Jensen–Shannon distance", compute=partial(over_all, compute=_jensen_shannon),
             explanation="0 where a column is distributed as in the real table, 1 where the tables have no value of "
             "it in common."),
    _measure("hellinger", "Hellinger distance", compute=partial(over_all, compute=_hellinger),
             explanation="As Jensen–Shannon from 0 to 1; rare values weigh more than in total variation."),
    _measure("l1-density", "L1 distance of densities", high=2.0,
             compute=partial(over_lines, compute=_density_distance),
             explanation="∫|p − q| of the densities of a number or date, by histograms over common cells; missing "
             "values are left out."),
    _measure("wasserstein-1", "Wasserstein-1 distance", high=INFINITY,
             compute=partial(over_lines, compute=partial(_wasserstein, power=1)),
             explanation="How far a value must move on average, in standard deviations of the real column, to make "
             "the columns equal."),
    _measure("wasserstein-2", "Wasserstein-2 distance", high=INFINITY,
             compute=partial(over_lines, compute=partial(_wasserstein, power=2)),
             explanation="The same with squared ways, root of their mean: far outliers weigh more."),
    _measure("ks", "Kolmogorov–Smirnov distance", compute=partial(over_lines, compute=_largest_gap),
             explanation="The largest gap between the shares of real and of synthetic values below any one point."),
    _measure("chi2", "χ² per degree of freedom", high=INFINITY, compute=partial(over_lists, compute=_homogeneity),
             explanation="Test statistic of the counts of categories: about 1 if both tables come from one "
             "population; grows with rows."),
    _measure("chi2-one-sided", "χ² of real counts against synthetic ones", high=INFINITY,
             compute=partial(over_lists, compute=_one_sided),
             explanation="As it has been printed: the synthetic counts are taken for the truth, so a rare category "
             "that they lack makes it infinite; chi2 is the test that treats both tables alike."),
)  # fmt: skip
