"""`understudy.plan`: what each method would cost and how far off it would be, before a budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.schema import Schema
from understudy.inference.discovery import provisional
from understudy.methods.forecast.forecast import ASSUMED_ROWS, Forecast, coefficients_of, forecast, forecasts
from understudy.methods.forecast.spending import Public
from understudy.methods.method import Options
from understudy.methods.parts.workload import stated_targets
from understudy.methods.registry import AUTO, METHODS, choose
from understudy.releases.certificate import Certificate
from understudy.releases.priors import load_prior


@dataclass(frozen=True)
class Outlook:
    """The forecasts of all methods, the smallest error first, and what `auto` would take, told the same targets."""

    forecasts: tuple[Forecast, ...]
    rows: int
    method: str
    reason: str
    targets: ColumnSet = ()


def plan(
    schema: Schema,
    *,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    rows: int = ASSUMED_ROWS,
    target: str | Sequence[str] | None = None,
    prior: str | Path | None = None,
) -> Outlook:
    """Forecasts error, time and memory of each method from public facts alone: reads no row and spends nothing.

    The error is the mean total variation distance of pairs of columns, for a table whose columns are related as is
    typical; `low` and `high` hold it for four tables of five. A forecast whose `firm` is false rests on few tables;
    methods that were measured on none have no forecast.

    Args:
        schema: The public facts of the table.
        epsilon: The privacy loss that the release may have.
        delta: The probability that its claim may fail; 0 asks for pure ε.
        rows: A guess of how many rows the table has, which only the steward may know.
        target: What `synthesize` will be told. `auto` may choose by it; the forecasts do not depend on it.
        prior: Likewise: an earlier release, or a file of public rows, which is looked at and may be refused.

    >>> import understudy as us
    >>> schema = us.Schema.loads('[columns.a]\\ntype = "boolean"\\n[columns.b]\\ntype = "boolean"')
    >>> outlook = us.plan(schema, epsilon=1.0, rows=5000)
    >>> all(f.low <= f.error <= f.high for f in outlook.forecasts)
    True
    """
    targets, budget = stated_targets(target), Budget(epsilon, delta)
    domain = Domain.of(provisional(schema))
    for name in targets:
        domain[name]  # raises as a release would, where it is no column or is never modelled
    # A pure budget has no δ, without which Gaussian noise has no finite ε.
    possible = [m for m in METHODS.values() if m.traits.pure or not budget.pure]
    expected = forecasts(schema, budget, rows, [m for m in possible if coefficients_of(m) is not None])
    known = None if prior is None else load_prior(prior, schema)
    choice = choose(AUTO, Options(targets, prior=known), schema, budget)
    return Outlook(tuple(expected), rows, choice.method.name, choice.reason, targets)


def forecast_of(certificate: Certificate, schema: Schema) -> Forecast | None:
    """What releases of other tables lead to expect of this one: from public facts and the noisy number of rows."""
    method = METHODS.get(certificate.method)
    if method is None or coefficients_of(method) is None or certificate.parameters.get("given"):
        return None
    return forecast(method, Public.of(schema, certificate.asked, max(1, certificate.rows)))
