"""What each method will cost and how far off its table will be, before anything is spent: from public facts alone.

The public facts are the schema, the budget and a guess of the number of rows. What they can't say is how closely the
columns depend on each other, on which much of the error rests; so a forecast of the error is that of a typical table,
with a range that most tables fall into. The coefficients are fitted to measured releases by `scripts/bench plan`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.privacy.budget import Amount, Budget
from understudy.schema.domain import Domain
from understudy.schema.schema import Schema
from understudy.synthesizers.coefficients import COEFFICIENTS, HIGHEST, LOWEST
from understudy.synthesizers.discovery import provisional
from understudy.synthesizers.share import error_weights

ASSUMED_ROWS = 10_000
MOST_ROWS = 10**12
FACTS = ("columns' noise", "its square", "sampling", "columns", "ordered", "values", "rows")
SHARE_OF_NOISE = 0.4
"""Half of the mean absolute value of a standard normal: what a cell's noise adds to a total variation distance."""


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


def forecast(method: str, facts: NDArray[np.float64]) -> Forecast:
    """By a method's coefficients; facts beyond those that were measured count as the nearest that were."""
    seen = np.array([1.0, *np.clip(facts, LOWEST, HIGHEST)])
    of = COEFFICIENTS[method]
    logit, width = float(seen @ of["error"]), of["range"][0]
    low, error, high = (1.0 / (1.0 + math.exp(-(logit + w))) for w in (-width, 0.0, width))
    # Time and memory go on growing with the rows, whatever was measured: each row is read and counted.
    beyond = max(0.0, float(facts[-1]) - HIGHEST[-1])
    seconds, megabytes = (math.exp(float(seen @ of[name])) for name in ("seconds", "megabytes"))
    return Forecast(method, error, low, high, seconds * math.exp(beyond), megabytes)


def facts_of(schema: Schema, budget: Budget, rows: int) -> NDArray[np.float64]:
    """The numbers that a forecast goes by; a column whose values are private counts with the fewest it may have."""
    domain = Domain.of(provisional(schema))
    sizes = np.array([domain.size(name) for name in domain.names], dtype=np.float64)
    noise = math.log(_noise_of_columns(sizes, budget.capacity, _change(schema, budget), rows))
    pairs = [a * b for a, b in itertools.combinations(sizes, 2)] or [float(sizes[0])]
    sampling = np.mean(np.minimum(1.0, SHARE_OF_NOISE * np.sqrt(np.array(pairs) / rows)))
    ordered = np.mean([domain[name].edges is not None for name in domain.names])
    return np.array(
        [noise, noise**2, np.log(sampling), np.log(sizes.size), ordered, np.log(sizes).mean(), math.log(rows)]
    )


def _noise_of_columns(sizes: NDArray[np.float64], amount: Amount, change: float, rows: int) -> float:
    """The mean total variation that noise would put into the columns, if all of the budget went to them."""
    parts = amount.split(error_weights([int(s) for s in sizes], amount.pure))
    scales = np.array([part.noise_scale(change) for part in parts])
    return float(np.mean(np.minimum(1.0, SHARE_OF_NOISE * sizes * scales / rows)))


def _change(schema: Schema, budget: Budget) -> float:
    """How far one unit moves a histogram, in the norm of the noise."""
    cells = 2 if schema.neighbours == "replace-one" else 1
    return float(schema.rows_per_unit * (cells if budget.pure else math.sqrt(cells)))


def check_rows(rows: int) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise InputError(f"rows ({rows}) must be a whole number from 1 to {MOST_ROWS:,}", rows)
    return rows


def forecasts(schema: Schema, budget: Budget, rows: int, methods: Sequence[str]) -> list[Forecast]:
    """Of these methods, the smallest expected error first."""
    facts = facts_of(schema, budget, check_rows(rows))
    return sorted((forecast(m, facts) for m in methods), key=lambda f: f.error)
