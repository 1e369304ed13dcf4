"""The answer to a metered query: what it cost, and estimates with intervals that follow from the law of the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from statistics import NormalDist
from typing import Any

import numpy as np

from understudy.boundary.privacy.ledger.ledger import Receipt
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.grouped_sums import ValueSum
from understudy.card import Card
from understudy.parameters import number_between
from understudy.releases.certificate import DRAFT_REASON, SEEDED_REASON

LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.9999

MOST_LISTED = 20
"""Groups that an answer shows when it shows itself."""

Value = float | int | datetime
Key = str | int | bool | None


def spoken(value: Value) -> str:
    """A figure of an answer for people.

    >>> spoken(1234), spoken(0.1234567), spoken(datetime(2023, 5, 1))
    ('1,234', '0.123457', '2023-05-01')
    """
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1e6:
        return f"{value:,.6g}"
    return f"{value:,.2f}"


@dataclass(frozen=True)
class IntervalEstimate:
    """What was asked for, with noise. With probability `confidence` of the answer the truth is from `low` to `high`.

    `value` is the noisy figure as it was drawn: a small count may be negative, and sums of many stay unbiased.
    """

    value: Value
    low: Value
    high: Value

    def __str__(self) -> str:
        return f"{spoken(self.value)} ({spoken(self.low)} to {spoken(self.high)})"


@dataclass(frozen=True)
class Group:
    """One row of an answer: its keys (None stands for a missing value) and its figures."""

    keys: tuple[Key, ...]
    figures: tuple[IntervalEstimate, ...]


@dataclass(frozen=True, repr=False)
class Answer(Card):
    """Figures of one query. `recorded` says that it was asked before, and cost nothing this time.

    `guarantee` is the (ε, δ) that was paid when it was first asked; None for noise that a seed made repeatable, and
    where the schema is a draft that nobody confirmed. `ledger` says which debit paid, if one did this time.
    """

    sql: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[Group, ...]
    confidence: float
    epsilon: float
    delta: float
    recorded: bool
    secure: bool
    draft: bool = False
    ledger: Receipt | None = field(default=None, compare=False)

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        facts = [("query", self.sql), ("interval", f"{100 * self.confidence:g} %")]
        for group in self.groups[:MOST_LISTED]:
            keys = ", ".join("missing" if key is None else str(key) for key in group.keys)
            for name, figure in zip(self.names, group.figures, strict=True):
                facts.append((f"{name} of {keys}" if keys else name, str(figure)))
        if len(self.groups) > MOST_LISTED:
            facts.append(("and", f"{len(self.groups) - MOST_LISTED:,} more groups"))
        paid = "nothing: asked before" if self.recorded else f"epsilon {self.epsilon:g} at delta {self.delta:g}"
        return "Answer", [*facts, ("cost", paid), *([("guarantee", f"none: {self.void}")] if self.void else [])]

    @property
    def void(self) -> str | None:
        """Why nothing is guaranteed, in words."""
        if not self.secure:
            return SEEDED_REASON
        if self.draft:
            return DRAFT_REASON
        return None

    @property
    def guarantee(self) -> tuple[float, float] | None:
        return None if self.void else (self.epsilon, self.delta)

    @property
    def figure(self) -> IntervalEstimate:
        """The first figure of the first group: all there is, of a query for one number."""
        return self.groups[0].figures[0]

    @property
    def value(self) -> Value:
        return self.figure.value

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; dates as ISO texts."""
        guarantee = None
        if self.guarantee is not None:
            guarantee = {"epsilon": self.epsilon, "delta": self.delta}
        return {
            "query": self.sql,
            "confidence": self.confidence,
            "guarantee": guarantee,
            "no_guarantee_because": self.void,
            "recorded": self.recorded,
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
            "rows": [self._row(group) for group in self.groups],
        }

    def _row(self, group: Group) -> dict[str, Any]:
        row: dict[str, Any] = dict(zip(self.keys, group.keys, strict=True))
        for name, figure in zip(self.names, group.figures, strict=True):
            row[name] = {"value": _plain(figure.value), "low": _plain(figure.low), "high": _plain(figure.high)}
        return row


def _plain(value: Value) -> float | int | str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value


def check_confidence(confidence: float) -> float:
    return number_between("confidence", confidence, LEAST_CONFIDENCE, MOST_CONFIDENCE)


def reach(measured: Measurement, confidence: float) -> int:
    """The least m known to have P[|noise| > m] ≤ 1 − confidence.

    Laplace: P[|Z| ≥ m] = 2rᵐ/(1+r) with r = exp(−1/b). Gaussian: P[Z ≥ m+1] ≤ P[N(0, σ²) ≥ m] (Canonne, Kamath &
    Steinke 2020, Proposition 25).
    """
    miss = 1 - confidence
    if measured.mechanism == "public":
        return 0
    if measured.mechanism == "discrete-laplace":
        # The noises of several sites: none passes its own bound but for its share of the misses, so all are within all.
        ratio, miss = math.exp(-1 / measured.scale), miss / measured.noises
        one = max(0, math.ceil(measured.scale * math.log(2 / (miss * (1 + ratio)))) - 1)
        return math.ceil(measured.noises * one)
    if measured.noises > 1:
        return math.ceil(measured.deviation * NormalDist().inv_cdf(1 - miss / 2))
    return math.ceil(measured.scale * NormalDist().inv_cdf(1 - miss / 2))


def count_estimates(measured: Measurement, confidence: float) -> list[IntervalEstimate]:
    """Counts; what is below zero can't be."""
    m = reach(measured, confidence)
    return [IntervalEstimate(n, max(0, n - m), max(0, n + m)) for n in map(int, measured.counts.ravel())]


def sum_estimates(measured: Measurement, summand: ValueSum, confidence: float) -> list[IntervalEstimate]:
    """Sums in the column's own units; the sum of numbers that are never negative is not negative."""
    m, steps = reach(measured, confidence), summand.steps
    # Clipping the ends of an interval to what is possible loses no coverage: the truth is possible.
    least, most = -math.inf, math.inf
    if summand.low >= 0:
        least = 0.0
    if summand.high <= 0:
        most = 0.0

    def possible(units: int) -> float:
        return min(max(_tidy(units, steps), least), most)

    return [
        IntervalEstimate(_tidy(n, steps), possible(n - m), possible(n + m)) for n in map(int, measured.counts.ravel())
    ]


def average_estimates(
    total: Measurement, rows: Measurement, summand: ValueSum, bounds: tuple[float, float], confidence: float
) -> list[IntervalEstimate]:
    """Averages: the noisy sum around the centre over the noisy count."""
    # A union bound over the two: the sum and the count miss with probability (1 − confidence)/2 each.
    each = (1 + confidence) / 2
    spread, doubt = reach(total, each), reach(rows, each)

    def possible(steps: float) -> float:
        """No average is outside of the column's bounds."""
        return float(np.clip(summand.centre + steps / summand.steps, *bounds))

    found = []
    for s, n in zip(map(int, total.counts.ravel()), map(int, rows.counts.ravel()), strict=True):
        # Of all sums and counts within their intervals, the extremes of the ratio lie at the corners: it is monotone
        # in either as long as the count is positive, and an average is over at least one row.
        corners = [(s + e) / max(1, n + d) for e in (-spread, spread) for d in (-doubt, doubt)]
        found.append(IntervalEstimate(possible(s / max(1, n)), possible(min(corners)), possible(max(corners))))
    return found


def _tidy(units: int, steps: float) -> float:
    """Whole units divided by a power of ten, without a tail of digits."""
    if steps >= 1:
        return units / steps
    return float(units * round(1 / steps))
