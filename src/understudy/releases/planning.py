"""`understudy.plan`: what each method would cost and how far off it would be, before a budget is spent."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.privacy.budget import Budget
from understudy.releases.synthesis import DEFAULT_DELTA
from understudy.schema.schema import Schema
from understudy.synthesizers.coefficients import COEFFICIENTS
from understudy.synthesizers.forecast import ASSUMED_ROWS, Forecast, forecasts
from understudy.synthesizers.registry import METHODS, recommended


@dataclass(frozen=True)
class Outlook:
    """The forecasts of all methods, the smallest error first, and what `auto` would take where no target is named."""

    forecasts: tuple[Forecast, ...]
    rows: int
    method: str
    reason: str


def plan(schema: Schema, *, epsilon: float, delta: float = DEFAULT_DELTA, rows: int = ASSUMED_ROWS) -> Outlook:
    """Forecasts error, time and memory of each method from public facts alone: reads no row and spends nothing.

    `rows` is a guess of how many rows the table has, which only the steward may know. The error is the mean total
    variation distance of pairs of columns, for a table whose columns are related as is typical; `low` and `high` hold
    it for four tables of five. Methods whose errors were not measured on many tables have no forecast.

    >>> import understudy as us
    >>> schema = us.Schema.loads('[columns.a]\\ntype = "boolean"\\n[columns.b]\\ntype = "boolean"')
    >>> outlook = us.plan(schema, epsilon=1.0, rows=5000)
    >>> all(f.low <= f.error <= f.high for f in outlook.forecasts)
    True
    """
    expected = forecasts(schema, Budget(epsilon, delta), rows, tuple(m for m in METHODS if m in COEFFICIENTS))
    choice = recommended(expected, rows)
    return Outlook(tuple(expected), rows, choice.method.name, choice.reason)
