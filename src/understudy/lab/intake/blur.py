"""How far bins blur a column: its mean, median and quantiles before, and after rows were coded and decoded again.

No noise is in it. What moves here moves in every release, however large its budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime
from understudy.boundary.schema.domain import Domain
from understudy.inference.values import decode
from understudy.lab.intake.looking import QUANTILES

MOST_ROWS = 100_000
"""Rows that stand for a column; the shares of its codes are those of all rows."""
MEDIAN = QUANTILES.index(0.5)
MIDDLE_HALF = (QUANTILES.index(0.25), QUANTILES.index(0.75))


@dataclass(frozen=True)
class Blur:
    """A column's figures before and after; of a date in units of its resolution since its `start`."""

    mean: tuple[float, float]
    quantiles: tuple[tuple[float, float], ...]
    """At `QUANTILES`."""
    spread: float
    """The width of the middle half of the values; of nine tenths where that is nothing."""

    @property
    def median(self) -> tuple[float, float]:
        return self.quantiles[MEDIAN]

    @property
    def moved(self) -> float:
        """How far the median moves, as a share of the spread."""
        before, after = self.median
        return abs(after - before) / self.spread if self.spread else float(after != before)

    @property
    def mean_moved(self) -> float:
        before, after = self.mean
        return abs(after - before) / self.spread if self.spread else float(after != before)


def blur_of(
    domain: Domain, name: str, mean: float | None, quantiles: Sequence[float], codes: Mapping[int, int]
) -> Blur | None:
    """From the mean and the quantiles of the values, and the rows of each code; None where there is no value."""
    if not codes or mean is None:
        return None
    decoded = decode({name: _representatives(codes)}, domain, np.random.Generator(np.random.PCG64(0)))[name]
    after = _on_line(domain, name, decoded.data)
    found = np.quantile(after, QUANTILES)
    low, high = MIDDLE_HALF
    spread = quantiles[high] - quantiles[low] or quantiles[-1] - quantiles[0]
    pairs = tuple((float(b), float(a)) for b, a in zip(quantiles, found, strict=True))
    return Blur((mean, float(after.mean())), pairs, float(spread))


def _representatives(codes: Mapping[int, int]) -> NDArray[np.intp]:
    """The codes of all rows, or of as many as stand for them in the same shares."""
    order = sorted(codes)
    rows = np.array([codes[c] for c in order], dtype=np.float64)
    most = min(float(MOST_ROWS), rows.sum())
    ends = np.round(np.cumsum(rows) / rows.sum() * most).astype(np.intp)
    return np.repeat(np.array(order, dtype=np.intp), np.diff(ends, prepend=0))


def _on_line(domain: Domain, name: str, data: NDArray[np.generic]) -> NDArray[np.float64]:
    column = domain[name].column
    if not isinstance(column, Datetime):
        return data.astype(np.float64)
    seconds = (data.astype("datetime64[s]") - np.datetime64(column.start, "s")) / np.timedelta64(1, "s")
    return np.asarray(seconds / column.unit_seconds, dtype=np.float64)
