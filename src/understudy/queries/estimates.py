"""One figure of an answer with its interval, from noisy totals and the law of their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from statistics import NormalDist

import numpy as np

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.tables.tally import ValueSum
from understudy.parameters import number_between

LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.9999

Value = float | int | datetime


@dataclass(frozen=True)
class Figure:
    """What was asked for, with noise. With probability `confidence` of the answer the truth is from `low` to `high`.

    `value` is the noisy figure as it was drawn: a small count may be negative, and sums of many stay unbiased.
    """

    value: Value
    low: Value
    high: Value


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
        ratio = math.exp(-1 / measured.scale)
        return max(0, math.ceil(measured.scale * math.log(2 / (miss * (1 + ratio)))) - 1)
    return math.ceil(measured.scale * NormalDist().inv_cdf(1 - miss / 2))


def count_figures(measured: Measurement, confidence: float) -> list[Figure]:
    """Counts; what is below zero can't be."""
    m = reach(measured, confidence)
    return [Figure(n, max(0, n - m), max(0, n + m)) for n in map(int, measured.counts.ravel())]


def sum_figures(measured: Measurement, summand: ValueSum, confidence: float) -> list[Figure]:
    """Sums in the column's own units; the sum of numbers that are never negative is not negative."""
    m, steps = reach(measured, confidence), summand.steps
    least = 0.0 if summand.low >= 0 else -math.inf
    most = 0.0 if summand.high <= 0 else math.inf

    def possible(units: int) -> float:
        return min(max(_tidy(units, steps), least), most)

    return [Figure(_tidy(n, steps), possible(n - m), possible(n + m)) for n in map(int, measured.counts.ravel())]


def average_figures(
    total: Measurement, rows: Measurement, summand: ValueSum, bounds: tuple[float, float], confidence: float
) -> list[Figure]:
    """Averages: the noisy sum around the centre over the noisy count. Each gets half of the probability of a miss."""
    each = (1 + confidence) / 2
    spread, doubt = reach(total, each), reach(rows, each)
    pairs = zip(map(int, total.counts.ravel()), map(int, rows.counts.ravel()), strict=True)
    return [_average(s, n, spread, doubt, summand, bounds) for s, n in pairs]


def _average(s: int, n: int, spread: int, doubt: int, summand: ValueSum, bounds: tuple[float, float]) -> Figure:
    """The extremes of a ratio lie at the corners; no average is outside of the column's bounds."""
    fewest, most = max(1, n - doubt), max(1, n + doubt)
    corners = [(s + e) / d for e in (-spread, spread) for d in (fewest, most)]

    def placed(steps: float) -> float:
        return float(np.clip(summand.centre + steps / summand.steps, *bounds))

    return Figure(placed(s / max(1, n)), placed(min(corners)), placed(max(corners)))


def _tidy(units: int, steps: float) -> float:
    """Whole units divided by a power of ten, without a tail of digits."""
    return units / steps if steps >= 1 else float(units * round(1 / steps))
