"""Buying what a schema keeps private: the values of a column by thresholded keys, its bounds by a coarse histogram."""

from __future__ import annotations

import dataclasses
import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from understudy.boundary.privacy.asks import Keys, Marginals
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.column import (
    DEFAULT_BINS,
    LARGEST_INTEGER,
    Categorical,
    Column,
    Datetime,
    Integer,
    Number,
)
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.schema import Schema

SHARE_PER_COLUMN = 0.05
LARGEST_SHARE = 0.3
FALSE_BUCKET_RATE = 1e-3
"""How often an empty bucket may widen the bounds by mistake; a matter of utility, not of privacy."""
OTHER = "other"


def discover(schema: Schema, curator: Queryable) -> Schema:
    """The schema with every private part bought; as it is, and nothing spent, where nothing is private."""
    wanted = schema.private
    if not wanted:
        return schema
    # The split depends on public facts alone: how many parts are private, and what the budget is.
    share = min(LARGEST_SHARE, SHARE_PER_COLUMN * len(wanted))
    parts = curator.remaining().part(share).split([1.0] * len(wanted))
    return schema.with_columns(_bought(c, curator, part) for c, part in zip(wanted, parts, strict=True))


def provisional(schema: Schema) -> Schema:
    """The schema with the least that could stand for each private part: enough to refuse what can't work at all."""
    return schema.with_columns(_least(c) for c in schema.private)


def _least(column: Column) -> Column:
    match column:
        case Categorical():
            return dataclasses.replace(column, values=(column.other or OTHER,))
        case Datetime():
            start = column.minimum or column.maximum or datetime(2000, 1, 1)
            return dataclasses.replace(column, minimum=start, maximum=column.maximum or start)
        case Integer():
            edges = _buckets(column)
            return dataclasses.replace(column, minimum=int(edges[0]), maximum=int(edges[-1]) - 1)
        case Number():
            edges = _buckets(column)
            return dataclasses.replace(column, minimum=edges[0], maximum=edges[-1])
    return column


def _bought(column: Column, curator: Queryable, amount: Amount) -> Column:
    match column:
        case Categorical():
            return with_values(column, curator, amount)
        case Datetime():
            return _with_days(column, curator, amount)
        case Integer() | Number():
            return _with_bounds(column, curator, amount)
    return column


def with_values(column: Categorical, curator: Queryable, amount: Amount) -> Categorical:
    """The keys that passed; all other values count as `other`, which needs a label of its own."""
    other = column.other or OTHER
    # A record of texts can't keep trailing NULs, so two keys may read the same there.
    keys = tuple(dict.fromkeys(v for v in curator.ask(Keys(column.name, amount)).values if v != other))
    return dataclasses.replace(column, values=(*keys, other), other=other)


def _with_bounds(column: Integer | Number, curator: Queryable, amount: Amount) -> Column:
    """Bounds that are powers of two, from a noisy histogram over all of them: public buckets, so sensitivity 1."""
    edges = _buckets(column)
    low, high = _span(column, edges, curator, amount)
    if column.cuts:
        # Public cuts lie within the bounds, whatever the rows are.
        low = min(low, max((e for e in edges if e < column.cuts[0]), default=low))
        high = max(high, min((e for e in edges if e > column.cuts[-1]), default=high))
    bounds: dict[str, Any] = {"minimum": low, "maximum": high}
    if isinstance(column, Integer):
        # A bucket holds whole numbers up to, not including, its upper edge.
        bounds = {"minimum": int(low), "maximum": int(high) - 1}
    # A declared bound stays.
    return dataclasses.replace(column, **{n: v for n, v in bounds.items() if getattr(column, n) is None})


def _buckets(column: Integer | Number) -> tuple[float, ...]:
    """Powers of two of either sign, within the bound that is declared, if one is."""
    # So bounds are at most twice as wide as the rows need them, and from a millionth to 2^52 there are few buckets,
    # each of which the noise could fill. Beyond 2^53 doubles skip whole numbers.
    rising = [2.0**k for k in range(0 if isinstance(column, Integer) else -20, 53)]
    low, high = -float(LARGEST_INTEGER), float(LARGEST_INTEGER)
    if column.minimum is not None:
        low = float(column.minimum)
    if column.maximum is not None:
        high = float(column.maximum) + isinstance(column, Integer)
    edges = [low]
    for edge in (*(-x for x in reversed(rising)), 0.0, *rising):
        if low < edge < high and min(edge - edges[-1], high - edge) >= _least_width(column):
            edges.append(edge)
    return (*edges, high)


def _least_width(column: Integer | Number) -> float:
    """A bucket that may become the whole range of a column must have a value of its decimals in every bin."""
    if isinstance(column, Integer):
        return 1.0
    if column.decimals is None:
        return 0.0
    return (column.bins or DEFAULT_BINS) * 10.0**-column.decimals


def _span(column: Column, edges: tuple[float, ...], curator: Queryable, amount: Amount) -> tuple[float, float]:
    """The outer edges of the buckets whose noisy counts stand out of the noise."""
    coding = Coding(dataclasses.replace(column, missing=True), edges=edges)
    domain = Domain(curator.schema, (coding,))
    (measured,) = curator.ask(Marginals(domain, [(column.name,)], amount))
    counts = measured.counts[: coding.levels]
    # Noise alone reaches the bar in no bucket, but for FALSE_BUCKET_RATE: a union bound over the tails, which are at
    # most exp(−t/b) for Laplace noise and exp(−t²/2σ²) for Gaussian noise.
    rate = FALSE_BUCKET_RATE / measured.counts.size
    bar = measured.scale * math.sqrt(measured.noises * 2 * math.log(1 / rate))
    if measured.mechanism == "discrete-laplace":
        bar = measured.noises * measured.scale * math.log(measured.noises / rate)
    full = np.flatnonzero(counts > bar)
    first, last = (full[0], full[-1]) if len(full) else (int(counts.argmax()),) * 2
    return edges[first], edges[last + 1]


def _with_days(column: Datetime, curator: Queryable, amount: Amount) -> Datetime:
    """Bounds on the quarters (of 91 days) from 1900 to 2100."""
    start, end = column.minimum or datetime(1900, 1, 1), column.maximum or datetime(2100, 1, 1)
    whole = dataclasses.replace(column, minimum=start, maximum=end)
    quarter = 91 * 86400 // column.unit_seconds
    units = int((end - start).total_seconds()) // column.unit_seconds + 1
    first, last = _span(whole, (*map(float, range(0, units, quarter)), float(units)), curator, amount)
    unit = timedelta(seconds=column.unit_seconds)
    return dataclasses.replace(
        column,
        minimum=column.minimum or start + int(first) * unit,
        maximum=column.maximum or start + (int(last) - 1) * unit,
    )
