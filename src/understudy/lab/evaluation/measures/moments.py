"""Means, variances, quantiles and errors of paired values, column by column, measured by the spread of the real one."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from understudy.lab.evaluation.comparison import Comparison, Variable
from understudy.lab.evaluation.measure import INFINITY, LOWER, Measure, MeasurePart
from understudy.lab.evaluation.measures.distances import (
    SECTION,
    NoFigureError,
    deviation,
    in_deviations,
    line_of,
    over_lines,
    transport,
)

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def _mean(comparison: Comparison, variable: Variable) -> MeasurePart:
    line = line_of(comparison, variable)
    raw = abs(float(line.real.mean()) - float(line.synthetic.mean()))
    return in_deviations(variable, line, raw)


def _variance(comparison: Comparison, variable: Variable) -> MeasurePart:
    line = line_of(comparison, variable)
    real, synthetic = line.deviation, deviation(line.synthetic)
    if real != synthetic and min(real, synthetic) == 0:
        which = "real" if real == 0 else "synthetic"
        raise NoFigureError(f"the {which} column is constant, so the variances have no ratio")
    value = 0.0  # two constants too have the same variance, though no logarithm of it
    if real != synthetic:
        # Of the deviations, twice: the variances themselves may overflow.
        value = 2 * abs(math.log(synthetic) - math.log(real))
    return MeasurePart(variable.name, value, raw=synthetic * synthetic, reference=real * real)


def _quantiles(comparison: Comparison, variable: Variable) -> MeasurePart:
    line = line_of(comparison, variable)
    raw = float(np.abs(np.quantile(line.real, LEVELS) - np.quantile(line.synthetic, LEVELS)).mean())
    return in_deviations(variable, line, raw)


def _sampled(comparison: Comparison) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which real rows stand beside the synthetic ones: each at most once, if there are enough of them."""
    rng = np.random.Generator(np.random.PCG64(comparison.seed))
    rows, wanted = comparison.real.rows, comparison.synthetic.rows
    # With replacement where there are too few real rows, so that every synthetic row has a partner.
    return rng.choice(rows, wanted, replace=wanted > rows)


def _in_file_order(comparison: Comparison, variable: Variable, power: int) -> MeasurePart:
    line = line_of(comparison, variable)
    real = comparison.real.values[variable.name][_sampled(comparison)]
    # Merchant (2024) pairs rows by their place in the file. For independent ones E(x − y)² = 2σ²: hence √2 deviations
    # between two perfect samples.
    gaps = np.abs(real - comparison.synthetic.values[variable.name])
    gaps = gaps[~np.isnan(gaps)]
    if not len(gaps):
        raise NoFigureError("no pair of rows has both values")
    return in_deviations(variable, line, float((gaps**power).mean() ** (1 / power)))


def _sorted(comparison: Comparison, variable: Variable, power: int) -> MeasurePart:
    """Of the same rows. Missing values may leave different numbers of values, which quantile functions don't mind."""
    line = line_of(comparison, variable)
    real = comparison.real.values[variable.name][_sampled(comparison)]
    real = np.sort(real[~np.isnan(real)])
    if not len(real):
        raise NoFigureError("all values are missing in the sample of the real table")
    raw = transport(real, line.synthetic, power)
    return in_deviations(variable, line, raw)


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0, high=INFINITY, unit="column")

MEASURES: tuple[Measure, ...] = (
    _measure("mean", "Difference of means", compute=partial(over_lines, compute=_mean),
             explanation="How far apart the means of a column are, in standard deviations of the real column."),
    _measure("variance", "Log ratio of variances", compute=partial(over_lines, compute=_variance),
             explanation="|log(synthetic variance / real variance)|: 0 where a column spreads as it should, 0.69 at "
             "twice or half."),
    _measure("quantiles", "Difference of quantiles", compute=partial(over_lines, compute=_quantiles),
             explanation="The mean difference at 5, 25, 50, 75 and 95 %, in standard deviations of the real column."),
    _measure("rmse-paired", "RMSE of rows in file order",
             compute=partial(over_lines, compute=partial(_in_file_order, power=2)),
             explanation="Unrelated rows are paired, so it shows the spread of both tables only: two perfect samples "
             "have about 1.4."),
    _measure("mae-paired", "MAE of rows in file order",
             compute=partial(over_lines, compute=partial(_in_file_order, power=1)),
             explanation="As before with absolute errors; it says nothing about fidelity, and a table of nothing but "
             "means does better."),
    _measure("rmse-sorted", "RMSE of sorted columns", compute=partial(over_lines, compute=partial(_sorted, power=2)),
             explanation="The same rows with each column sorted first, so that quantiles meet; among as many rows it "
             "is Wasserstein-2."),
    _measure("mae-sorted", "MAE of sorted columns", compute=partial(over_lines, compute=partial(_sorted, power=1)),
             explanation="The same rows with each column sorted first, so that quantiles meet; among as many rows it "
             "is Wasserstein-1."),
)  # fmt: skip
