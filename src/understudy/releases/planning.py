"""`understudy.plan`: what each method would cost and how far off it would be, before a budget is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.schema import Schema
from understudy.card import Card
from understudy.errors import InputError
from understudy.inference.discovery import provisional
from understudy.methods.forecast.caution import cautions_before, rough, spoken
from understudy.methods.forecast.forecast import (
    ASSUMED_ROWS,
    Forecast,
    check_rows,
    coefficients_of,
    forecast,
    forecasts,
)
from understudy.methods.forecast.spending import Public
from understudy.methods.method import Method, Options
from understudy.methods.parts.workload import stated_targets
from understudy.methods.registry import AUTO, METHODS, choose, spoken_seconds
from understudy.parameters import number_between
from understudy.releases.certificate import Certificate
from understudy.releases.priors import load_prior

LEAST_EPSILON, MOST_EPSILON = 0.01, 20.0
"""Where an ε for a wanted error is looked for."""


@dataclass(frozen=True, repr=False)
class Outlook(Card):
    """The forecasts of all methods, the smallest error first, and what `auto` would take, told the same targets."""

    forecasts: tuple[Forecast, ...]
    rows: int
    method: str
    reason: str
    epsilon: float
    delta: float
    targets: ColumnSet = ()
    cautions: tuple[str, ...] = ()
    """What public facts alone are a reason to say before the budget is spent."""

    @property
    def expected(self) -> Forecast | None:
        """The forecast of the method that `auto` would take."""
        return next((f for f in self.forecasts if f.method == self.method), None)

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        facts = [("epsilon", f"{self.epsilon:g} (delta {self.delta:g})"), ("auto would take", self.method)]
        if self.expected is not None:
            facts += [("expected", spoken(self.expected, self.rows)), ("time", spoken_seconds(self.expected.seconds))]
        listed = ", ".join(f"{f.method} {rough(f.error)}" for f in self.forecasts)
        return "Plan", [*facts, ("errors", listed), *(("caution", c) for c in self.cautions)]


def plan(
    schema: Schema,
    *,
    epsilon: float | None = None,
    error: float | None = None,
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
        error: In its place: the error that is wanted of the method that `auto` takes, such as 0.03. The outlook is then
            that of the smallest ε, to two digits, at which it is expected.
        delta: The probability that its claim may fail; 0 asks for pure ε.
        rows: A guess of how many rows the table has, which only the steward may know.
        target: What `synthesize` will be told. `auto` may choose by it; the forecasts do not depend on it.
        prior: Likewise: an earlier release, or a file of public rows, which is looked at and may be refused.

    Returns:
        An `Outlook`: the forecasts, what `auto` would take and why, the ε, and cautions.

    Raises:
        InputError: Both or neither of `epsilon` and `error` are given, or no ε up to 20 is expected to reach the error.

    >>> import understudy as us
    >>> schema = us.Schema.loads('[columns.a]\\ntype = "boolean"\\n[columns.b]\\ntype = "boolean"')
    >>> outlook = us.plan(schema, epsilon=1.0, rows=5000)
    >>> all(f.low <= f.error <= f.high for f in outlook.forecasts)
    True
    >>> us.plan(schema, error=0.03, rows=5000).expected.error <= 0.03
    True
    """
    targets = stated_targets(target)
    if (epsilon is None) == (error is None):
        raise InputError("a plan needs either epsilon, such as 1, or the error that is wanted, such as 0.03", error)
    domain = Domain.of(provisional(schema))
    for name in targets:
        domain[name]  # raises as a release would, where it is no column or is never modelled
    known = None if prior is None else load_prior(prior, schema)
    options = Options(targets, prior=known)
    if epsilon is None:
        assert error is not None
        epsilon = epsilon_for(error, schema, delta=delta, rows=rows, options=options)
    budget = Budget(epsilon, delta)
    # A pure budget has no δ, without which Gaussian noise has no finite ε.
    possible = [m for m in METHODS.values() if m.traits.pure or not budget.pure]
    expected = forecasts(schema, budget, rows, [m for m in possible if coefficients_of(m) is not None])
    choice = choose(AUTO, options, schema, budget)
    return Outlook(
        tuple(expected),
        rows,
        choice.method.name,
        choice.reason,
        epsilon=epsilon,
        delta=delta,
        targets=targets,
        cautions=cautions_before(choice.method, schema, budget),
    )


def epsilon_for(error: float, schema: Schema, *, delta: float, rows: int, options: Options) -> float:
    """The smallest ε, to two digits, at which the method that `auto` takes there is expected to err by no more."""
    number_between("error", error, 1e-4, 0.99)
    check_rows(rows)

    def expected(epsilon: float) -> tuple[float, str]:
        budget = Budget(epsilon, delta)
        method = choose(AUTO, options, schema, budget).method
        return forecast(method, Public.of(schema, budget, rows)).error, method.name

    least, method = expected(MOST_EPSILON)
    if least > error:
        raise InputError(
            f"an error of {rough(error)} is not expected with {rows:,} rows: at epsilon {MOST_EPSILON:g} {method} is "
            f"expected to err by {rough(least)}; accept that, or take fewer columns or bins, or a smaller max_rows",
            error,
        )
    # Errors fall as ε grows. Where another method takes over they may jump; what is found keeps the error all the same.
    low, high = math.log(LEAST_EPSILON), math.log(MOST_EPSILON)
    while high - low > 0.005:
        middle = (low + high) / 2
        if expected(math.exp(middle))[0] <= error:
            high = middle
        else:
            low = middle
    found = two_digits(math.exp(high))
    while expected(found)[0] > error and found < MOST_EPSILON:
        found = two_digits(found * 1.01)
    return min(found, MOST_EPSILON)


def two_digits(number: float) -> float:
    """Rounded up.

    >>> two_digits(0.4321), two_digits(1.2)
    (0.44, 1.2)
    """
    place = 10.0 ** (1 - math.floor(math.log10(number)))
    # By less than a digit could show, so that 1.2, which is 1.2000000000000002 after a product, stays as it is.
    return math.ceil(number * place * (1 - 1e-12)) / place


def forecast_of(certificate: Certificate, schema: Schema, total: float | None = None) -> Forecast | None:
    """What releases of other tables lead to expect of this one: from public facts and the noisy number of rows.

    The latter is `total`; without it, the synthetic rows are taken to be as many.
    """
    method = METHODS.get(certificate.method)
    if method is None or certificate.parameters.get("given"):
        return None
    return forecast_after(method, schema, certificate.asked, certificate.rows if total is None else total)


def forecast_after(method: Method, schema: Schema, budget: Budget, total: float) -> Forecast | None:
    """The forecast of a method that was measured, with the noisy number of rows."""
    if coefficients_of(method) is None:
        return None
    return forecast(method, Public.of(schema, budget, max(1, round(total))))
