"""Numbers as people read them: on axes, in tables, in sentences."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal


def written(value: float) -> str:
    """A number beside a tick.

    >>> written(0.25), written(20000.0), written(2.5e6), written(-0.0)
    ('0.25', '20,000', '2.5 M', '0')
    """
    # Beyond these letters, and below a ten-thousandth, an exponent is shorter than the digits.
    for unit, letter in ((1e9, "G"), (1e6, "M")):
        if unit <= abs(value) < 1e12:
            return f"{value / unit:.6g} {letter}"
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e6:
        return f"{value:,.6g}"
    return f"{value:.3g}"


def valued(value: float) -> str:
    """A figure for display: three decimals, or as many digits as a small or large one needs.

    >>> valued(0.5), valued(0.00123), valued(-12.345), valued(123456.7), valued(0.0)
    ('0.500', '0.0012', '−12.3', '123,457', '0')
    """
    size = abs(value)
    if not size:
        return "0"
    limits = ((1e-5, ".1e"), (0.01, ".2g"), (10, ".3f"), (1000, ".1f"), (1e9, ",.0f"), (math.inf, ".1e"))
    form = next(form for limit, form in limits if size < limit or limit == math.inf)
    sign = "−" if value < 0 else ""
    return f"{sign}{size:{form}}"


def percent(share: float) -> str:
    """A share for display, whose sign no line break parts from it.

    >>> percent(0.256) == "25.6\N{NO-BREAK SPACE}%", percent(0.00001) == "< 0.1\N{NO-BREAK SPACE}%"
    (True, True)
    """
    if share == 0:
        return "0\N{NO-BREAK SPACE}%"
    if 0 < share < 0.001:
        return "< 0.1\N{NO-BREAK SPACE}%"
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def round_percent(share: float) -> str:
    """A share beside a tick, where all are round.

    >>> round_percent(0.2)
    '20 %'
    """
    return f"{100 * share:.4g} %"


def upward(value: float, digits: int = 4) -> str:
    """A number of a claim, rounded up, so that what is shown is never smaller than the truth.

    >>> upward(0.43001), upward(0.9999999999990906), upward(float("inf"))
    ('0.4301', '1', '∞')
    """
    if math.isinf(value):
        return "∞"
    # By its shortest decimal: the float 0.1 itself lies just above 0.1, and would be shown as 0.1001.
    shown = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(value)))).normalize()
    if not shown or Decimal("1e-4") <= shown < 10**9:
        return f"{shown:,f}"
    return f"{shown:e}"


def duration(seconds: float) -> str:
    """A time for display.

    >>> duration(0.04), duration(12.34), duration(95)
    ('under 0.1 s', '12.3 s', '1 min 35 s')
    """
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)  # rounded first, or 119.7 s would be 1 min 60 s
    return f"{minutes} min {rest} s"


def counted(number: int, thing: str, things: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(32561, "row"), counted(2, "category", "categories")
    ('1 row', '32,561 rows', '2 categories')
    """
    if number != 1:
        thing = things or f"{thing}s"
    return f"{number:,} {thing}"
