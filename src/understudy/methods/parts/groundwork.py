"""What MST, AIM and MWEM begin with: noisy one-way marginals, merged values, and a model of independent columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Marginals, Partitions, Total
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.graphical.graphical_model import GraphicalModel
from understudy.inference.graphical.junction import JunctionTree
from understudy.inference.histogram import estimate_total
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.shrinkage import evened, smoothed
from understudy.inference.structural_zeros import Mask, Zeros, structural_zeros
from understudy.methods.parts.compression import Compression, OpenedModel
from understudy.methods.parts.share import error_weights

Floats = NDArray[np.float64]

FIRST_SHARE, MORE_SHARE, MOST_SHARE = 0.3, 0.3, 0.6
NOISY, VERY_NOISY = 0.033, 0.2
FIRST_SWEEPS = 5
FINAL_SWEEPS = 30
MOST_ZERO_CELLS = 500_000


@dataclass
class Groundwork:
    """The state of a select–measure–generate method: what was merged, and the model so far."""

    domain: Domain
    curator: Queryable
    compression: Compression
    estimator: GraphicalEstimator

    @classmethod
    def lay(cls, domain: Domain, curator: Queryable, amount: Amount) -> Groundwork:
        rows = public_rows(curator)
        one_ways = measure_columns(domain, curator, amount, rows)
        total = estimate_total(rows + one_ways)
        one_ways = [_smoothed(m, domain[m.columns[0]]) for m in one_ways]
        compression = Compression.of(one_ways, total)
        zeros = _affordable(compression.zeros(structural_zeros(domain)), compression.sizes)
        estimator = GraphicalEstimator(compression.sizes, compression.base(), total, curator.public_rows, zeros)
        estimator.observe([compression.merge(m) for m in one_ways])
        estimator.fit(FIRST_SWEEPS)
        return cls(domain, curator, compression, estimator)

    @property
    def signal(self) -> float:
        """How many times the rows exceed the noise that all that is left of the budget would put on one count."""
        left = self.curator.remaining()
        return self.total / left.noise_scale(self.curator.count_sensitivity(left))

    @property
    def sizes(self) -> dict[str, int]:
        return self.compression.sizes

    @property
    def total(self) -> float:
        return self.estimator.total

    @property
    def model(self) -> GraphicalModel:
        return self.estimator.model

    def cells(self, columns: ColumnSet) -> int:
        return self.compression.grid(columns).cells

    def one_way(self, column: str) -> NDArray[np.float64]:
        return self.model.marginal((column,))

    def measure(self, sets: list[ColumnSet], amount: Amount, sweeps: int) -> list[Measurement]:
        """Measures sets of columns by group, and fits them in."""
        grids = [self.compression.grid(s) for s in sets]
        weights = [float(g.cells) ** 0.5 for g in grids]
        measured = self.curator.ask(Partitions(self.domain, grids, amount, weights))
        self.estimator.observe([NoisyTable.of(m) for m in measured])
        self.estimator.fit(sweeps)
        return measured

    def finish(self) -> OpenedModel:
        return OpenedModel(self.estimator.fit(FINAL_SWEEPS).settled(), self.compression)


def measure_columns(
    domain: Domain, curator: Queryable, amount: Amount, rows: Sequence[Measurement]
) -> list[Measurement]:
    """Every one-way marginal with FIRST_SHARE of the amount, and again with more of it where noise rules.

    On small tables with fine columns, single columns are where most of the error is; where even they are hardly known,
    all but a tenth goes to them, for no relation would be found. A single column gets everything.
    """
    if len(domain.names) == 1:
        return measure_each(domain, curator, amount)
    one_ways = measure_each(domain, curator, amount.part(FIRST_SHARE))
    error = _expected_error(one_ways, estimate_total([*rows, *one_ways]))
    if error <= NOISY:
        return one_ways
    again = measure_each(domain, curator, amount.part(MORE_SHARE if error <= VERY_NOISY else MOST_SHARE))
    return [_averaged(a, b) for a, b in zip(one_ways, again, strict=True)]


def public_rows(curator: Queryable) -> list[Measurement]:
    """The number of rows where it is public, as one measurement without noise; else none."""
    return [curator.ask(Total())] if curator.public_rows else []


def _affordable(zeros: Zeros, sizes: dict[str, int]) -> Zeros:
    """Those that a small model can hold, the smallest first; other rules are kept by redrawing the rows."""
    held: dict[ColumnSet, Mask] = {}
    for columns in sorted(zeros, key=lambda s: zeros[s].size):
        if JunctionTree.over([*held, columns], sizes).cells(sizes) <= MOST_ZERO_CELLS:
            held[columns] = zeros[columns]
    return held


def measure_each(domain: Domain, curator: Queryable, amount: Amount) -> list[Measurement]:
    """Every one-way marginal once, with the amount shared so that their errors add up to the least."""
    sets = [(name,) for name in domain.names]
    return curator.ask(Marginals(domain, sets, amount, error_weights([domain.cells(s) for s in sets], amount.pure)))


def _expected_error(one_ways: Sequence[Measurement], total: float) -> float:
    """The mean total variation that noise alone puts between a column's measured and true distribution."""
    return float(np.mean([0.4 * m.counts.size * m.deviation / total for m in one_ways]))


def _smoothed(one_way: Measurement, coding: Coding) -> Measurement:
    counts = np.rint(denoised(one_way.counts.astype(np.float64), one_way.variance, coding)).astype(np.int64)
    return Measurement(one_way.columns, counts, one_way.mechanism, one_way.scale)


def denoised(counts: NDArray[np.float64], variance: float | NDArray[np.float64], coding: Coding) -> NDArray[np.float64]:
    """Counts shrunk as far as they are noise: along a line towards their neighbours, else towards even ones.

    The missing value of a column along a line stays as it is.
    """
    noise = np.broadcast_to(np.asarray(variance, dtype=np.float64), counts.shape)
    if coding.edges is None:
        return evened(counts, noise)
    line = smoothed(counts[: coding.levels], noise[: coding.levels])
    return np.concatenate([line, counts[coding.levels :]])


def _averaged(a: Measurement, b: Measurement) -> Measurement:
    """Two measurements of one column as one, by inverse variance; rounded, since a measurement is of whole counts."""
    weight = b.variance / (a.variance + b.variance)
    counts = np.rint(weight * a.counts + (1 - weight) * b.counts).astype(np.int64)
    scale = float(np.sqrt(1 / (1 / a.variance + 1 / b.variance)))
    return Measurement(a.columns, counts, "discrete-gaussian", scale)
