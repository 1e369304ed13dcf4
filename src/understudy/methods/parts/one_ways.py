"""Noisy counts of single columns, with which nearly every method begins: how they share the budget, and their noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Marginals, Total
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, Domain
from understudy.inference.noisy_table import estimate_total
from understudy.inference.shrinkage import evened, smoothed

FIRST_SHARE, MORE_SHARE, MOST_SHARE = 0.3, 0.3, 0.6
"""Of the budget, for single columns: at first, and again where noise rules, or rules nearly all.

`scripts/bench rake constants`: 0.15 or 0.6 for the first is better on some tables and worse on others."""
NOISY, VERY_NOISY = 0.033, 0.2
"""The expected total variation of a column from which on noise rules."""
NARROW = 40
"""Columns up to which these hold as they are. Of more, fewer of their pairs can be measured, while the noise of single
columns is in all pairs: noise rules the sooner."""


def error_weights(cells: Sequence[int], pure: bool, power: float = 1.0) -> list[float]:
    """Shares that minimise the summed L1 error of histograms with these numbers of cells.

    A histogram's L1 error grows as cells × noise scale: minimising Σ cᵢ·ρᵢ^(−1/2) under Σ ρᵢ = ρ gives ρᵢ ∝ cᵢ^(2/3),
    and minimising Σ cᵢ/εᵢ under Σ εᵢ = ε gives εᵢ ∝ cᵢ^(1/2). `power`: of the cells, with which it grows instead.
    """
    return [float(c) ** (power * (1 / 2 if pure else 2 / 3)) for c in cells]


def measure_columns(
    domain: Domain, curator: Queryable, amount: Amount, rows: Sequence[Measurement]
) -> list[Measurement]:
    """Every one-way marginal with FIRST_SHARE of the amount, and again with more of it where noise rules.

    On small tables with fine columns, single columns are where most of the error is; where even they are hardly known,
    all but a tenth goes to them, for no relation would be found. A single column gets everything.
    """
    if len(domain.names) == 1:
        return measure_each(domain, curator, amount)
    # Spent in two steps, so that the second can go elsewhere where the first was good enough.
    one_ways = measure_each(domain, curator, amount.part(FIRST_SHARE))
    error = error_of(one_ways, rows)
    # The error follows from noisy counts alone, so that it may decide what is paid next (adaptive composition).
    further = further_share(error, len(domain.names))
    if not further:
        return one_ways
    again = measure_each(domain, curator, amount.part(further))
    return [averaged(a, b) for a, b in zip(one_ways, again, strict=True)]


def further_share(error: float, columns: int) -> float:
    """What so many single columns get on top of the first share where noise puts so much into each of them.

    >>> [further_share(error, columns=14) for error in (0.02, 0.1, 0.3)]
    [0.0, 0.3, 0.6]
    >>> [further_share(error, columns=120) for error in (0.01, 0.02, 0.1)]
    [0.0, 0.3, 0.6]
    """
    sooner = min(1.0, NARROW / columns)
    if error <= NOISY * sooner:
        return 0.0
    if error <= VERY_NOISY * sooner:
        return MORE_SHARE
    return MOST_SHARE


def error_of(one_ways: Sequence[Measurement], rows: Sequence[Measurement]) -> float:
    """The mean total variation that noise alone puts between a column's measured and true distribution."""
    # 0.4 is about ½·√(2/π): half of the L1 distance, and the mean absolute value of Gaussian noise in each cell.
    total = estimate_total([*rows, *one_ways])
    return float(np.mean([0.4 * m.counts.size * m.deviation / total for m in one_ways]))


def public_rows(curator: Queryable) -> list[Measurement]:
    """The number of rows where it is public, as one measurement without noise; else none."""
    return [curator.ask(Total())] if curator.public_rows else []


def measure_each(domain: Domain, curator: Queryable, amount: Amount, power: float = 1.0) -> list[Measurement]:
    """Every one-way marginal once, with the amount shared so that their errors add up to the least."""
    sets = [(name,) for name in domain.names]
    weights = error_weights([domain.cells(s) for s in sets], amount.pure, power)
    return curator.ask(Marginals(domain, sets, amount, weights))


def denoised(counts: NDArray[np.float64], variance: float | NDArray[np.float64], coding: Coding) -> NDArray[np.float64]:
    """Counts shrunk as far as they are noise: along a line towards their neighbours, else towards even ones.

    The missing value of a column along a line stays as it is.
    """
    noise = np.broadcast_to(np.asarray(variance, dtype=np.float64), counts.shape)
    if coding.edges is None:
        return evened(counts, noise)
    # Behind the levels there is at most one code, that of a missing value, which has no neighbours.
    line = smoothed(counts[: coding.levels], noise[: coding.levels])
    return np.concatenate([line, counts[coding.levels :]])


def averaged(a: Measurement, b: Measurement) -> Measurement:
    """Two measurements of one column as one, by inverse variance; rounded, since a measurement is of whole counts."""
    # Called Gaussian whatever both were: only the variance is read from now on, and σ² is that of a Gaussian.
    weight = b.variance / (a.variance + b.variance)
    counts = np.rint(weight * a.counts + (1 - weight) * b.counts).astype(np.int64)
    scale = float(np.sqrt(1 / (1 / a.variance + 1 / b.variance)))
    # By the name of a law whose variance is the square of its scale.
    return Measurement(a.columns, counts, "discrete-gaussian", scale)
