"""Columns of numbers from noisy counts of their halves, quarters, … at a few levels, and pairs of columns by groups.

All columns are measured first: lines by the levels of a tree (`inference.polya.dyadic`), other columns value by value.
Pairs are then chosen and measured along one spanning tree, as `mst` does, over groups of about equal mass; what is
drawn of a group is opened by the column's own estimate, so that the resolution of single columns is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Marginals, Partitions, Total
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, Domain
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.grouping import Grouping
from understudy.inference.histogram import project_to_simplex, settled
from understudy.inference.model import Model
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.polya.dyadic import Dyadic, LevelEstimates, best_levels
from understudy.methods.mst import SELECTION_SHARE
from understudy.methods.parts.compression import Compression
from understudy.methods.parts.one_ways import denoised, error_weights
from understudy.methods.parts.select_measure import SelectMeasureState, select_tree

Floats = NDArray[np.float64]

TOTAL_SHARE = 0.05
"""For the number of rows, where it is not public: it settles how deep trees go, and how many draws are worth it."""
COLUMNS_SHARE = 0.4
TREE_CELLS = 64
"""A tree of a finer column costs about as much error as a histogram of this many cells."""
MOST_GROUPS, CLEAR = 32, 3.0
"""Groups per column in a pair: as many as leave a cell this many standard deviations of its noise."""
LEAST_VARIANCE = 1e-9


def is_line(coding: Coding) -> bool:
    return coding.edges is not None and coding.levels > 1


def noisy_rows(curator: Queryable, amount: Amount) -> tuple[Measurement, Amount]:
    """The number of rows, public or for a small share; and what is left of the amount."""
    if curator.public_rows:
        return curator.ask(Total()), amount
    share, rest = amount.split([TOTAL_SHARE, 1 - TOTAL_SHARE])
    return curator.ask(Total(share)), rest


def at_least(rows: Measurement) -> float:
    """The number of rows to plan with: never below its own noise, which says nothing of so few."""
    return max(1.0, float(rows.counts[0]), rows.deviation)


@dataclass(frozen=True)
class CalibratedNoise:
    domain: Domain
    amount: Amount

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows, rest = noisy_rows(curator, self.amount)
        alone = len(self.domain.names) == 1
        measured = self._measure(curator, rest if alone else rest.part(COLUMNS_SHARE), at_least(rows))
        total = _pooled(rows, measured)
        estimates = {c: m.estimate(self.domain[c], total) for c, m in measured.items()}
        if alone:
            return IndependentModel({c: e.counts for c, e in estimates.items()}, total)
        return self._joint(estimates, total, curator)

    def _measure(self, curator: Queryable, amount: Amount, rows: float) -> dict[str, MeasuredColumn]:
        """All columns: levels of the lines, and plain counts of the others."""
        cells = [min(c.size, TREE_CELLS) if is_line(c) else c.size for c in self.domain]
        weight = dict(zip(self.domain.names, error_weights(cells, amount.pure), strict=True))
        lines = [c for c in self.domain if is_line(c)]
        plain = [(c.name,) for c in self.domain if not is_line(c)]
        pots = amount.split([w for w in (sum(weight[c.name] for c in lines), sum(weight[c] for (c,) in plain)) if w])
        found: dict[str, MeasuredColumn] = {}
        if lines:
            found |= self._measure_lines(curator, lines, pots[0], [weight[c.name] for c in lines], rows)
        if plain:
            counts = curator.ask(Marginals(self.domain, plain, pots[-1], [weight[c] for (c,) in plain]))
            found |= {m.columns[0]: MeasuredColumn([m]) for m in counts}
        return {c: found[c] for c in self.domain.names}

    def _measure_lines(
        self, curator: Queryable, lines: Sequence[Coding], amount: Amount, weights: Sequence[float], rows: float
    ) -> dict[str, MeasuredColumn]:
        asked: list[tuple[Dyadic, float]] = []
        for line, weight, part in zip(lines, weights, amount.split(weights), strict=True):
            scale = part.noise_scale(curator.count_sensitivity(part))
            # Of Laplace noise of scale b it is 2·b².
            variance = 2 * scale**2 if amount.pure else scale**2
            levels = best_levels(line.levels, rows, variance, amount.pure)
            asked += [(Dyadic(line.name, line.levels, j, line.column.missing), weight * w) for j, w in levels]
        counts = curator.ask(Partitions(self.domain, [d.listed() for d, _ in asked], amount, [w for _, w in asked]))
        found = {line.name: MeasuredColumn() for line in lines}
        for (dyadic, _), measurement in zip(asked, counts, strict=True):
            found[dyadic.column].counts.append(measurement)
            found[dyadic.column].levels.append(dyadic)
        return found

    def _joint(self, estimates: dict[str, NoisyTable], total: float, curator: Queryable) -> Model:
        """A spanning tree of pairs over groups of equal mass, as `mst` finds and measures it."""
        select, measure = curator.remaining().split([SELECTION_SHARE, 1 - SELECTION_SHARE])
        pairs = measure.split([1.0] * (len(estimates) - 1))[0]
        noise = pairs.noise_scale(curator.count_sensitivity(pairs))
        # A pair has groups² cells, each of which should hold CLEAR times its noise.
        groups = int(np.clip(np.sqrt(total / (CLEAR * noise)), 2, MOST_GROUPS))
        compression = Compression(
            {c: group_by_mass(e.counts, groups, self.domain[c]) for c, e in estimates.items()},
            {c: e.counts for c, e in estimates.items()},
        )
        base = compression.base()
        estimator = GraphicalEstimator(compression.sizes, base, total, curator.public_rows)
        estimator.observe([NoisyTable((c,), base[c], e.variance) for c, e in estimates.items()])
        state = SelectMeasureState(self.domain, curator, compression, estimator)
        state.measure(select_tree(state, select), measure, sweeps=0)
        return state.finish()


@dataclass(frozen=True)
class MeasuredColumn:
    """The noisy counts of one column: of some levels of its tree, or of each value."""

    counts: list[Measurement] = field(default_factory=list)
    levels: list[Dyadic] = field(default_factory=list)

    @property
    def total(self) -> tuple[float, float]:
        """The sum of all counts, by the most precise of them; and its variance."""
        return min(((float(m.counts.sum()), m.counts.size * m.variance) for m in self.counts), key=lambda t: t[1])

    def estimate(self, coding: Coding, total: float) -> NoisyTable:
        if self.levels:
            return self._tree(coding, total)
        return self._plain(coding, total)

    def _plain(self, coding: Coding, total: float) -> NoisyTable:
        (measured,) = self.counts
        shrunk = denoised(measured.counts.astype(np.float64), measured.variance, coding)
        weights = settled(project_to_simplex(shrunk, total))
        return NoisyTable(measured.columns, weights, max(measured.variance, LEAST_VARIANCE))

    def _tree(self, coding: Coding, total: float) -> NoisyTable:
        """Missing values first: they and the rest share the rows by how precisely each is known."""
        nodes = [d.by_node(m.counts) for d, m in zip(self.levels, self.counts, strict=True)]
        precision = np.array([1 / m.variance for m in self.counts])
        by_level = zip(self.levels, nodes, precision, strict=True)
        measured = {d.level: NoisyTable(d.columns, n, 1 / p) for d, (n, _), p in by_level}
        found, rows, missing = LevelEstimates.of(coding.levels, measured), total, list[float]()
        if coding.column.missing:
            absent = float(precision @ [n for _, n in nodes] / precision.sum())
            present, variance = found.total
            share = variance / (variance + 1 / float(precision.sum()))
            rows = float(np.clip(present + (total - present - absent) * share, 0.0, total))
            missing = [total - rows]
        weights = settled(np.concatenate([found.posterior_mean(rows), missing]))
        middle = found.levels[min(len(found.levels) - 1, MOST_GROUPS.bit_length() - 1)]
        return NoisyTable((coding.name,), weights, max(float(np.max(middle.variance)), LEAST_VARIANCE))


def _pooled(rows: Measurement, measured: dict[str, MeasuredColumn]) -> float:
    """The number of rows from all counts, by inverse variance; a public one settles it."""
    if rows.variance == 0:
        return max(1.0, float(rows.counts[0]))
    known = [(float(rows.counts[0]), rows.variance), *(m.total for m in measured.values())]
    precision = np.array([1 / v for _, v in known])
    return max(1.0, float(np.array([n for n, _ in known]) @ precision / precision.sum()))


def group_by_mass(weights: Floats, groups: int, coding: Coding) -> Grouping:
    """Codes along a line in groups of about equal mass, a missing value apart; of others those with a group's share of
    the rows by themselves."""
    if not is_line(coding):
        return Grouping.merging(weights >= float(weights.sum()) / groups**2)
    line = Grouping.equal_mass(weights[: coding.levels], groups)
    return line.followed_by_missing() if coding.column.missing else line
