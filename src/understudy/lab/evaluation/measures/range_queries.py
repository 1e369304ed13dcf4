"""Counting queries: what share of the rows satisfies a condition on a few columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable
from understudy.lab.evaluation.measure import INFINITY, LOWER, Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.row_features import Floats, SharedResult
from understudy.pages.formatting import counted

SECTION = "Counts"
QUERIES, MOST_COLUMNS = 500, 3
# The sanity bound of Xiao, Wang & Gehrke (Privelet, 2010): 0.1 % of the rows.
SANITY = 0.001
"""A share below this counts as this, so that an error on a handful of rows is not endless."""
NOTHING = "no column of the real table has a finite value to ask for"


@dataclass(frozen=True)
class Interval:
    """A number from one real quantile to another, both included."""

    column: str
    low: float
    high: float

    def holds(self, table: RowSample) -> NDArray[np.bool_]:
        values = table.values[self.column]
        return (values >= self.low) & (values <= self.high)


@dataclass(frozen=True)
class Subset:
    """Some values of a column of categories."""

    column: str
    accepted: tuple[bool, ...]
    """Of each code."""

    def holds(self, table: RowSample) -> NDArray[np.bool_]:
        return np.array(self.accepted)[table.codes[self.column]]


@dataclass(frozen=True)
class RangeQuery:
    """Conditions that hold together."""

    conditions: tuple[Interval | Subset, ...]

    def share(self, table: RowSample) -> float:
        kept = self.conditions[0].holds(table)
        for condition in self.conditions[1:]:
            kept = kept & condition.holds(table)
        return float(np.count_nonzero(kept)) / table.rows


def random_queries(comparison: Comparison, count: int = QUERIES) -> list[RangeQuery]:
    """From the seed of the comparison; of one column, of two, of three, in turn. None where no column can be asked."""
    rng = np.random.Generator(np.random.PCG64(comparison.seed))
    finite = {name: np.sort(values[np.isfinite(values)]) for name, values in comparison.real.values.items()}
    askable = [v for v in comparison.variables if not v.on_line or len(finite[v.name])]
    if not askable:
        return []
    sizes = [min(1 + i % MOST_COLUMNS, len(askable)) for i in range(count)]
    # All choices of columns are drawn before the conditions: the order of draws is what a seed means.
    chosen = [rng.choice(len(askable), size, replace=False) for size in sizes]
    return [RangeQuery(tuple(_condition(askable[i], finite, rng) for i in columns)) for columns in chosen]


def _condition(variable: Variable, finite: Mapping[str, Floats], rng: np.random.Generator) -> Interval | Subset:
    """On the sorted finite values of a number, or on the codes of a category."""
    if variable.on_line:
        values = finite[variable.name]
        # Ends at real values: of a skewed column, most intervals between evenly drawn ends would hold no rows.
        low, high = values[np.sort(rng.integers(len(values), size=2))].tolist()
        return Interval(variable.name, low, high)
    accepted = np.zeros(variable.size, dtype=bool)
    if variable.column.ordered:
        low, high = np.sort(rng.integers(len(variable.labels), size=2))
        accepted[low : high + 1] = True
    else:
        most = max(1, variable.size - 1)  # all values would be no condition
        accepted[rng.choice(variable.size, rng.integers(1, most, endpoint=True), replace=False)] = True
    return Subset(variable.name, tuple(accepted.tolist()))


@dataclass(frozen=True)
class QueryAnswers:
    """The shares that the queries have in both tables."""

    columns: NDArray[np.int64]
    """How many each query asks about."""
    real: Floats
    synthetic: Floats


def _ask(comparison: Comparison) -> QueryAnswers:
    queries = random_queries(comparison)
    return QueryAnswers(
        np.array([len(q.conditions) for q in queries], dtype=np.int64),
        np.array([q.share(comparison.real) for q in queries]),
        np.array([q.share(comparison.synthetic) for q in queries]),
    )


answers = SharedResult(_ask)


def query_error(comparison: Comparison) -> MeasureResult:
    found = answers(comparison)
    return _summed_up(found, np.abs(found.synthetic - found.real), np.mean)


def query_relative(comparison: Comparison) -> MeasureResult:
    found = answers(comparison)
    # The median, since a few queries for rare rows have relative errors beyond all others.
    return _summed_up(found, np.abs(found.synthetic - found.real) / np.maximum(found.real, SANITY), np.median)


def _summed_up(found: QueryAnswers, errors: Floats, middle: Callable[[Floats], np.floating]) -> MeasureResult:
    if not len(errors):
        return MeasureResult.undefined(NOTHING)
    sizes = sorted(set(found.columns.tolist()))
    parts = [MeasurePart(counted(size, "column"), float(middle(errors[found.columns == size]))) for size in sizes]
    return MeasureResult(float(middle(errors)), parts=tuple(parts), note=f"{len(errors)} random queries")


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0, unit="number of columns")

MEASURES: tuple[Measure, ...] = (
    _measure("query-error", "Error of random counts", high=1.0, compute=query_error,
             explanation="How far the share of rows that satisfy a random condition on one to three columns is off, "
             "on average."),
    _measure("query-relative", "Relative error of random counts", high=INFINITY, compute=query_relative,
             explanation="The same error as a part of the true share, in the median; a share below 0.1 % of the rows "
             "counts as 0.1 %."),
)  # fmt: skip
