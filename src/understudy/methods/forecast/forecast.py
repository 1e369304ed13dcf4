"""What each method will cost and how far off its table will be, before anything is spent: from public facts alone.

The public facts are the schema, the budget and a guess of the number of rows; what a method makes of them is known from
its own rules (`Method.spending`), and so is what noise and sampling then do to pairs of columns.
What public facts can't say is how closely the columns are related, on which much of the error rests: a forecast is that
of a table as closely related as is typical, with a range that most tables fall into. The few numbers that remain are
fitted to measured releases by `scripts/bench plan`.

A pair of columns is told from unrelated ones by a *departure* r: that of the population, which is how closely the
columns are related, and that of the sample, √(cells/rows). To measure the pair costs noise v, which grows with its
cells; whoever shrinks a noisy table as far as it is noise errs by neither more than v nor more than r. Of what a method
does not reach a share of r stays. And the noise of single columns is in each of their pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.methods.forecast.coefficients import COEFFICIENTS, RELATED, SHAPE
from understudy.methods.forecast.spending import SHARE_OF_NOISE, Floats, Public, Spending
from understudy.parameters import whole_number

if TYPE_CHECKING:
    from understudy.methods.method import Method

ASSUMED_ROWS = 10_000
MOST_ROWS = 10**12
FEWEST_TABLES = 5
"""A forecast that rests on fewer tables says so."""
FOUR_OF_FIVE = 1.2816
"""Standard deviations either side of the mean that hold four fifths of a normal distribution."""
COUNTED, LOUD = 1e6, 9.0
"""Numbers that are counted before counting is felt; the logarithm of a signal from which on models become large."""
COST_FACTS = ("counting", "columns", "values", "sets", "signal")

MOST_EFFECTIVE = 40.0
"""Values of a column are not equally frequent: k of them count as k/(1 + k/40) in the noise and in the sampling of a
table. Measured on columns of eleven public tables, where a column's count is (Σ√p)² (`scripts/bench plan`)."""
POINTS = (np.arange(32) + 0.5) / 32
"""Pairs, and columns, are represented by so many quantiles."""
ROUNDING, LARGEST = 6.0, 0.999
"""No distance exceeds one; what would is bent below it."""


@dataclass(frozen=True)
class Forecast:
    """What is to be expected of one method. The error is the mean total variation distance of pairs of columns."""

    method: str
    error: float
    low: float
    high: float
    """Four of five tables lie between them."""
    seconds: float
    megabytes: float
    tables: int = FEWEST_TABLES
    """On how many tables the method was measured."""

    @property
    def firm(self) -> bool:
        return self.tables >= FEWEST_TABLES


def coefficients_of(method: Method) -> Mapping[str, Sequence[float]] | None:
    """Those that were measured for it here, or that it brings along; none where nobody measured it."""
    return COEFFICIENTS.get(method.name, method.coefficients)


def forecast(method: Method, facts: Public) -> Forecast:
    """By a method's own rules and its coefficients."""
    bought, of = method.expected_spending(facts), coefficients_of(method)
    if of is None:
        raise InputError(f"method {method.name} was never measured, so that it has no forecast", method)
    error, low, high = _errors(Setting.of(facts, bought), of["error"], of["range"][0])
    seconds, megabytes = _costs(of, facts, bought)
    return Forecast(method.name, error, low, high, seconds, megabytes, tables=round(of["tables"][0]))


def _errors(setting: Setting, coefficients: Sequence[float], reach: float) -> tuple[float, float, float]:
    """Of a table as related as is typical, and the range: what relations leave open, and what else does (`reach`)."""
    waste, unreached = (np.array([math.exp(c)]) for c in coefficients)
    typical, between = RELATED
    error, loosely, closely = (
        float(expected_error(setting, Shape(*SHAPE), np.array([math.exp(typical + z * between)]), waste, unreached))
        for z in (0.0, -FOUR_OF_FIVE, FOUR_OF_FIVE)
    )
    # What the relations leave open and what else does are taken to be independent, so that their squares add up.
    below, above = math.hypot(math.log(error / loosely), reach), math.hypot(math.log(closely / error), reach)
    return error, error * math.exp(-below), min(error * math.exp(above), (1 + error) / 2)


def _costs(of: Mapping[str, Sequence[float]], facts: Public, bought: Spending) -> tuple[float, float]:
    """Seconds and megabytes; facts beyond those that a method was measured with count as the nearest of these."""
    costs = cost_facts(facts, bought)
    # Both are log-linear in the facts, and a straight line is not to be trusted beyond where it was fitted.
    seen = np.array([1.0, *np.clip(costs, of["lowest"], of["highest"])])
    seconds, megabytes = (math.exp(float(seen @ of[name])) for name in ("seconds", "megabytes"))
    # Time goes on growing with the rows, whatever was measured: each row is read and counted.
    return seconds * math.exp(max(0.0, float(costs[0]) - of["highest"][0])), megabytes


def cost_facts(facts: Public, bought: Spending) -> Floats:
    """What time and memory go by: the numbers that are counted, and the size and number of what is fitted."""
    columns = len(facts.domain.names)
    counted = math.log1p(facts.rows * columns / COUNTED)
    loud = max(0.0, math.log(facts.signal) - LOUD)
    values = float(np.log(facts.sizes).mean())
    return np.array([counted, math.log(columns), values, math.log(max(1, bought.sets)), loud])


@dataclass(frozen=True)
class Setting:
    """What the error of a method follows from; every field may be an array over cases, quantiles being last."""

    columns: Floats
    """The noise of single columns, as a total variation: its quantiles."""
    pairs: Floats
    """The effective cells of pairs: their quantiles."""
    rows: NDArray[np.float64]
    noise: NDArray[np.float64]
    """In each cell of what is measured together; none is measured where it is 0."""

    @classmethod
    def of(cls, public: Public, spending: Spending) -> Setting:
        effective = effective_sizes(public.sizes)
        return cls(
            quantiles(spending.columns), pairs_of(effective), np.array([public.rows]), np.array([spending.noise])
        )


def effective_sizes(sizes: Floats) -> Floats:
    return np.asarray(sizes / (1 + sizes / MOST_EFFECTIVE))


def pairs_of(effective: Floats) -> Floats:
    """Quantiles of the cells of pairs; one column alone has none.

    Columns of the same size are taken together: of thousands there are millions of pairs, but few sizes.
    """
    if effective.size < 2:
        return np.zeros(POINTS.size)
    sizes, columns = np.unique(effective, return_counts=True)
    one, other = np.triu_indices(sizes.size)
    pairs = np.where(one == other, columns[one] * (columns[one] - 1) // 2, columns[one] * columns[other])
    cells = sizes[one] * sizes[other]
    order = np.argsort(cells, kind="stable")
    reached = np.cumsum(pairs[order])
    return np.asarray(cells[order][np.searchsorted(reached, POINTS * reached[-1])])


def quantiles(values: Floats) -> Floats:
    return np.asarray(np.quantile(values, POINTS, method="inverted_cdf"))


@dataclass(frozen=True)
class Shape:
    """What all methods have in common."""

    shrinking: float
    """How sharply the error turns from noise to departure."""
    columns: float
    """How much of the noise of single columns is in their pairs."""
    damping: float
    """How soon that noise stops growing: counts can't be negative."""


def expected_error(of: Setting, shape: Shape, related: Floats, waste: Floats, unreached: Floats) -> NDArray[np.float64]:
    """The mean total variation of pairs. `related` is the mean distance of pairs from unrelated columns."""
    rows, noise = of.rows, of.noise
    sampled = of.pairs / rows
    departure = np.sqrt(sampled + np.where(of.pairs > 0, (related / SHARE_OF_NOISE) ** 2, 0.0))
    noisy = waste * of.pairs * noise / rows
    # A smooth minimum of the two: shrinkage errs by the smaller, but for about where they are equal.
    low, high = np.minimum(noisy, departure), np.maximum(np.maximum(noisy, departure), 1e-300)
    known = low / (1 + (low / high) ** shape.shrinking) ** (1 / shape.shrinking)
    pairs = SHARE_OF_NOISE * np.sqrt(known**2 + unreached * departure**2).mean(axis=-1)
    columns = (of.columns / (1 + shape.damping * of.columns)).mean(axis=-1)
    error = np.sqrt(pairs**2 + (shape.columns * columns) ** 2)
    return np.asarray(np.minimum(error / (1 + error**ROUNDING) ** (1 / ROUNDING), LARGEST))


def check_rows(rows: int) -> int:
    return whole_number("rows", rows, 1, MOST_ROWS)


def forecasts(schema: Schema, budget: Budget, rows: int, methods: Sequence[Method]) -> list[Forecast]:
    """Of these methods, the smallest expected error first."""
    facts = Public.of(schema, budget, check_rows(rows))
    return sorted((forecast(m, facts) for m in methods), key=lambda f: f.error)
