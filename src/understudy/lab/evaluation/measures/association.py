"""How strongly every two columns hang together, in either table, and how far the two tables differ in it.

Two numbers have Pearson's correlation (-1 to 1), two categories Cramér's V and a number with a category the correlation
ratio η (both 0 to 1, without correction for small tables). A date is a number. A missing category is a category of its
own; rows where a number is missing are left out of its associations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable
from understudy.lab.evaluation.measure import LOWER, Measure, MeasurePart, MeasureResult

SECTION = "Columns together"
FLAT = 1e-10
"""A variance of a standardised column below this is that of rounding."""

Numbers = NDArray[np.float64]
Pair = tuple[int, int]
Chosen = Callable[[Variable, Variable], bool]


def _both_on_line(first: Variable, second: Variable) -> bool:
    return first.on_line and second.on_line


def _both_listed(first: Variable, second: Variable) -> bool:
    return not (first.on_line or second.on_line)


def _one_of_each(first: Variable, second: Variable) -> bool:
    return first.on_line != second.on_line


def _any(first: Variable, second: Variable) -> bool:
    return True


def association_matrix(comparison: Comparison, sample: RowSample) -> Numbers:
    """The association of every two columns of one table; NaN where a column is constant or has no numbers."""
    variables = comparison.variables
    matrix = _associations(comparison, sample, _pairs(variables, _any))
    varied = [not trouble(sample, v) for v in variables]  # a constant is associated with nothing, not even itself
    matrix[np.diag_indices_from(matrix)] = np.where(varied, 1.0, np.nan)
    return matrix


def _pairs(variables: Sequence[Variable], chosen: Chosen) -> list[Pair]:
    every = itertools.combinations(range(len(variables)), 2)
    return [(i, j) for i, j in every if chosen(variables[i], variables[j])]


def _associations(comparison: Comparison, sample: RowSample, pairs: Sequence[Pair]) -> Numbers:
    variables = comparison.variables
    matrix = np.full((len(variables), len(variables)), np.nan)
    # All correlations are one matrix product; a table of 200 numbers has 20,000 pairs.
    if any(_both_on_line(variables[i], variables[j]) for i, j in pairs):
        lines = [i for i, v in enumerate(variables) if v.on_line]
        matrix[np.ix_(lines, lines)] = correlations([sample.values[variables[i].name] for i in lines])
    for i, j in pairs:
        if not _both_on_line(variables[i], variables[j]):
            matrix[i, j] = matrix[j, i] = _association(sample, variables[i], variables[j])
    return matrix


def trouble(sample: RowSample, variable: Variable) -> str:
    """Why a column has no association with any other; empty if it may have."""
    values: NDArray[np.int64] | Numbers = sample.codes[variable.name]
    if variable.on_line:
        values = sample.present(variable.name)
        if not len(values):
            return "has no values"
        if np.isinf(values).any():
            return "has infinite values"
    return "is constant" if values.min() == values.max() else ""


def correlations(columns: list[Numbers]) -> Numbers:
    """Pearson's correlation of every two columns over the rows where both have a value; NaN where there is none."""
    values = np.column_stack([_standardised(c) for c in columns])
    there = ~np.isnan(values)
    values, there = np.where(there, values, 0.0), there.astype(np.float64)
    rows = np.maximum(there.T @ there, 1.0)
    # Entry (i, j) is the mean of column i over the rows where column j has a value too: hence the transposes below.
    means, squares = values.T @ there / rows, (values**2).T @ there / rows
    variances = squares - means**2
    spread = np.sqrt(np.maximum(variances, 0.0) * np.maximum(variances.T, 0.0))
    flat = (variances < FLAT) | (variances.T < FLAT)
    covariances = values.T @ values / rows - means * means.T
    return np.where(flat, np.nan, np.clip(covariances / np.where(flat, 1.0, spread), -1.0, 1.0))


def _standardised(values: Numbers) -> Numbers:
    """With mean 0 and variance 1, so that sums of squares lose no digits; all NaN where that can't be."""
    present = values[~np.isnan(values)]
    if not len(present) or np.isinf(present).any() or present.min() == present.max():
        return np.full(len(values), np.nan)
    scaled = values / np.abs(present).max()  # first, since the squares of very large numbers would overflow
    scaled = scaled - np.nanmean(scaled)
    return np.asarray(scaled / np.nanstd(scaled))


def _association(sample: RowSample, first: Variable, second: Variable) -> float:
    """Of two columns of which at least one is of categories."""
    if first.on_line:
        return correlation_ratio(_standardised(sample.values[first.name]), sample.codes[second.name])
    if second.on_line:
        return correlation_ratio(_standardised(sample.values[second.name]), sample.codes[first.name])
    return cramers_v(sample.codes[first.name], sample.codes[second.name])


def cramers_v(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Without bias correction. Only the pairs of values that occur are counted, so long lists cost no memory."""
    rows, columns = np.bincount(first), np.bincount(second)
    # By the values that occur in this table: a value that only the other table has must not lower V here.
    most = min(np.count_nonzero(rows), np.count_nonzero(columns)) - 1
    if most < 1:
        return float("nan")
    pairs, counts = _counted(first * len(columns) + second, len(rows) * len(columns))
    expected = rows[pairs // len(columns)].astype(np.float64) * columns[pairs % len(columns)]
    # χ²/n = Σ n_ij² / (n_i· n_·j) − 1: cells without rows add nothing to this form, and need not be visited.
    contingency = float((counts.astype(np.float64) ** 2 / expected).sum()) - 1.0
    return float(np.sqrt(min(max(contingency / most, 0.0), 1.0)))


def _counted(codes: NDArray[np.int64], cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The codes that occur and how often: by sorting only where a count of every cell would be long."""
    if cells > 4 * len(codes):  # then clearing and scanning the cells costs more than sorting the rows
        found, counts = np.unique(codes, return_counts=True)
        return found, counts.astype(np.int64)
    all_counts = np.bincount(codes, minlength=cells)
    found = np.flatnonzero(all_counts)
    return found, all_counts[found]


def correlation_ratio(values: Numbers, codes: NDArray[np.int64]) -> float:
    """η: the root of the share of the variance of a standardised number that lies between the categories."""
    there = ~np.isnan(values)
    values, codes = values[there], codes[there]
    if not len(values) or codes.min() == codes.max():
        return float("nan")
    # η² is the R² of a one-way analysis of variance; like Cramér's V it does not see a direction, only a strength.
    rows, sums = np.bincount(codes), np.bincount(codes, weights=values)
    some = rows > 0
    # The values have mean 0, so the sums of squares need not be taken about it.
    between = float((sums[some] ** 2 / rows[some]).sum())
    return float(np.sqrt(min(between / float((values**2).sum()), 1.0)))


def _figure(comparison: Comparison, chosen: Chosen, nothing: str) -> MeasureResult:
    pairs = _pairs(comparison.variables, chosen)
    if not pairs:
        return MeasureResult.undefined(nothing)
    parts = list(_parts(comparison, pairs))
    return MeasureResult.mean(parts, "no pair has an association in both tables; the pairs say why")


def _parts(comparison: Comparison, pairs: Sequence[Pair]) -> Iterator[MeasurePart]:
    samples = comparison.both
    real, synthetic = (_associations(comparison, s, pairs) for s in samples)
    troubles = [[trouble(s, v) for v in comparison.variables] for s in samples]
    for i, j in pairs:
        first, second = comparison.variables[i], comparison.variables[j]
        name = f"{first.name} × {second.name}"
        there, here = float(real[i, j]), float(synthetic[i, j])
        if np.isnan(there - here):  # no association in at least one of the tables
            yield MeasurePart(name, None, _reason(comparison, (i, j), troubles))
        else:
            yield MeasurePart(
                name, abs(there - here), note=f"{there:.3f} real, {here:.3f} synthetic", raw=here, reference=there
            )


def _reason(comparison: Comparison, pair: Pair, troubles: list[list[str]]) -> str:
    for which, of in zip(("real", "synthetic"), troubles, strict=True):
        for i in pair:
            if of[i]:
                return f"{comparison.variables[i].name!r} {of[i]} in the {which} table"
    return "one of the columns is constant in the rows where both have a value"


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0, high=1.0, unit="pair")

MEASURES: tuple[Measure, ...] = (
    _measure("pearson", "Correlation of numbers", high=2.0,
             compute=partial(_figure, chosen=_both_on_line, nothing="it needs two columns of numbers or dates"),
             explanation="The mean difference of Pearson's correlations of numbers and dates between the two tables."),
    _measure("cramers-v", "Cramér's V of categories",
             compute=partial(_figure, chosen=_both_listed, nothing="it needs two columns of categories"),
             explanation="The mean difference of Cramér's V (without bias correction) of two categories between the "
             "tables."),
    _measure("correlation-ratio", "Correlation ratio",
             compute=partial(_figure, chosen=_one_of_each,
                             nothing="it needs a column of numbers or dates and one of categories"),
             explanation="The mean difference of η, which says how much of a number a category explains, between the "
             "tables."),
    _measure("association", "Association of all columns", high=2.0,
             compute=partial(_figure, chosen=_any, nothing="it needs two columns"),
             explanation="The mean difference over all pairs: correlation, Cramér's V or correlation ratio, as the "
             "columns are."),
)  # fmt: skip
