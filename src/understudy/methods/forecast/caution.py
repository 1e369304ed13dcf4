"""When a forecast is a reason to stop: where noise exceeds signal, and where ε hardly protects.

Before a release only public facts are known, and how many rows a table has is none. What can be said is from how many
rows on a release would be worth its budget. Afterwards the noisy total says whether this one was.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import Schema
from understudy.methods.forecast.forecast import ASSUMED_ROWS, MOST_ROWS, Forecast, coefficients_of, forecast
from understudy.methods.forecast.spending import Public
from understudy.pages.formatting import counted

if TYPE_CHECKING:
    from understudy.methods.method import Method

NOISY = 0.3
"""From this error on noise exceeds signal. Of a typical pair of columns a tenth of the rows would have to move for them
to be unrelated: a table that errs three times as much tells less than columns that were drawn each by itself."""
HIGH_EPSILON = 5.0
REMEDY = "ask for more epsilon, fewer columns or bins, or a smaller max_rows"


def rows_worth(method: Method, schema: Schema, budget: Budget) -> int:
    """The fewest rows, to two digits, of which a release is expected to hold more signal than noise."""
    low, high = 0.0, math.log10(MOST_ROWS)
    while high - low > 0.004:
        middle = (low + high) / 2
        if forecast(method, Public.of(schema, budget, round(10**middle))).error < NOISY:
            high = middle
        else:
            low = middle
    return round(float(f"{10**high:.2g}"))


def cautions_before(method: Method, schema: Schema, budget: Budget) -> tuple[str, ...]:
    """What public facts alone are a reason to say before a budget is spent."""
    said = [*_high(budget)]
    if coefficients_of(method) is not None:
        worth = rows_worth(method, schema, budget)
        if worth > ASSUMED_ROWS:
            said.append(
                f"at epsilon {budget.epsilon:g} noise exceeds signal in a table of fewer than about {worth:,} rows; if "
                f"yours has fewer, {REMEDY}"
            )
    return tuple(said)


def cautions_after(expected: Forecast | None, rows: int, budget: Budget) -> tuple[str, ...]:
    """What the noisy number of rows is a reason to say."""
    said = [*_high(budget)]
    if expected is not None and expected.error >= NOISY:
        said.append(f"noise exceeds signal with about {counted(rows, 'row')}; {REMEDY}")
    return tuple(said)


def _high(budget: Budget) -> list[str]:
    if budget.epsilon <= HIGH_EPSILON:
        return []
    odds = f"10^{math.ceil(budget.epsilon / math.log(10))}"
    if budget.epsilon < 14:  # beyond it nobody reads the digits, and e^ε may be more than a double holds
        odds = f"{math.ceil(math.exp(budget.epsilon)):,}"
    return [
        f"epsilon {budget.epsilon:g} is above {HIGH_EPSILON:g}: one person may change the odds of an outcome by a "
        f"factor of {odds}, which is a promise on paper (docs/concepts/choosing-epsilon.md)"
    ]


def rough(share: float) -> str:
    """A share that is known to two digits at best.

    >>> rough(0.0771), rough(0.999)
    ('7.7 %', '100 %')
    """
    return f"{float(f'{100 * share:.2g}'):g} %"


def spoken(expected: Forecast, rows: int) -> str:
    """A forecast in words, the same wherever it is said.

    >>> spoken(Forecast("rake", 0.077, 0.05, 0.12, 1.0, 100.0), 1340)
    '7.7 % of the rows misplaced per pair of columns (most tables: 5 % to 12 %), with about 1,340 rows'
    """
    error, low, high = map(rough, (expected.error, expected.low, expected.high))
    between = f"most tables: {low} to {high}"
    return f"{error} of the rows misplaced per pair of columns ({between}), with about {counted(rows, 'row')}"
