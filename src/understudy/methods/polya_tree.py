"""`polya-tree`: columns of numbers at full resolution, through trees that halve them again and again.

By noise (the default): noisy counts of the nodes of a few levels, made consistent, shrunk as a Polya tree shrinks them;
pairs of columns are then measured over groups of equal mass along one tree, as `mst` does. By sampling: draws from the
posterior of each column, whose privacy is that of the draws themselves; columns are unrelated to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Draws, Marginals, Partitions, Total
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.posterior import Prior, check_draws, least_concentration, polya_prior
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.partition import Grid, Partition
from understudy.errors import MethodError
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.grouping import Grouping
from understudy.inference.model import Model
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import NoisyTable, project_to_simplex, settled
from understudy.inference.polya.dyadic import Dyadic, LevelEstimates, best_levels, depth_of
from understudy.methods.method import CHOOSES_SEVERAL, NOISE, SAMPLING, Method, Options, Traits, Variant
from understudy.methods.mst import SELECTION_SHARE
from understudy.methods.params import Params, parameter
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
        measured = self.measure(curator, rest if alone else rest.part(COLUMNS_SHARE), at_least(rows))
        total = _pooled(rows, measured)
        estimates = {c: m.estimate(self.domain[c], total) for c, m in measured.items()}
        if alone:
            return IndependentModel({c: e.counts for c, e in estimates.items()}, total)
        return self._joint(estimates, total, curator)

    def measure(self, curator: Queryable, amount: Amount, rows: float) -> dict[str, MeasuredColumn]:
        """All columns: levels of the lines, and plain counts of the others."""
        # The levels of one line are asked for together: a row is in one node of each, so that their costs add up.
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
            asked += [(Dyadic(line.name, line.levels, j, line.apart), weight * w) for j, w in levels]
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
        (measured,) = self.counts
        shrunk = denoised(measured.counts.astype(np.float64), measured.variance, coding)
        weights = settled(project_to_simplex(shrunk, total))
        return NoisyTable(measured.columns, weights, max(measured.variance, LEAST_VARIANCE))

    def _tree(self, coding: Coding, total: float) -> NoisyTable:
        """Missing and special values first: they and the rest share the rows by how precisely each is known."""
        nodes = [d.by_node(m.counts) for d, m in zip(self.levels, self.counts, strict=True)]
        precision = np.array([1 / m.variance for m in self.counts])
        by_level = zip(self.levels, nodes, precision, strict=True)
        measured = {d.level: NoisyTable(d.columns, n, 1 / p) for d, (n, _), p in by_level}
        found, rows, apart = LevelEstimates.of(coding.levels, measured), total, np.zeros(0)
        if coding.apart:
            beside = precision @ np.array([n for _, n in nodes]) / precision.sum()
            present, variance = found.total
            # What is over or missing is divided by variance: the less precise part takes more of it.
            share = variance / (variance + coding.apart / float(precision.sum()))
            rows = float(np.clip(present + (total - present - float(beside.sum())) * share, 0.0, total))
            # Special values and a missing one share the rest as they were counted.
            seen = np.maximum(beside, 0.0) if (beside > 0).any() else np.ones(coding.apart)
            apart = (total - rows) * (seen / seen.sum())
        weights = settled(np.concatenate([found.posterior_mean(rows), apart]))
        # The variance that pairs go by is that of nodes about as large as their groups, not that of single codes.
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
    return line.followed_by(coding.apart)


EXTRA_LEVELS = 3
"""Of a tree to sample from, where codes are no power of two: each code then has 8 leaves at least."""
DEEPEST = 20
SAMPLING_ERROR, PRIOR_ERROR = 0.3, 0.1
"""Wasserstein-1 distances on a unit line: of one draw from its law, and of a base measure from a typical column."""


@dataclass(frozen=True)
class PolyaParams(Params):
    """The options of `polya-tree`."""

    exponent: float = parameter(2.0, "by sampling: pseudo-counts grow as this power of the level", low=0.0, high=4.0)


@dataclass(frozen=True)
class PolyaTree:
    """The recipe. By sampling, `draws` says how many (a good number by default), with pseudo-counts c·j^exponent."""

    by: str = NOISE
    draws: int | None = None
    exponent: float = PolyaParams.exponent

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedNoise | CalibratedSampling:
        if self.by not in (NOISE, SAMPLING):
            raise MethodError(f"by ({self.by!r}) of method polya-tree must be {NOISE!r} or {SAMPLING!r}", self)
        if self.by == NOISE:
            if self.draws is not None:
                raise MethodError("draws are limited by sampling only; leave draws out, or use by='sampling'", self)
            if self.exponent != PolyaParams.exponent:
                raise MethodError("exponent is for sampling only; leave it out, or use by='sampling'", self)
            return CalibratedNoise(domain, amount)
        polya_prior(1.0, 1, self.exponent)
        return CalibratedSampling(
            domain, amount, None if self.draws is None else check_draws(self.draws), self.exponent
        )


@dataclass(frozen=True)
class CalibratedSampling:
    domain: Domain
    amount: Amount
    draws: int | None
    exponent: float

    def fit(self, curator: Queryable, rng: np.random.Generator) -> IndependentModel:
        rows, rest = noisy_rows(curator, self.amount)
        total = max(1.0, float(rows.counts[0]))
        parts = rest.split([1.0] * len(self.domain.names))
        epsilon = parts[0].pure_epsilon() / curator.schema.rows_per_unit
        depths = [sampled_depth(c) for c in self.domain]
        # ε depends on c and m through m/c alone, so that any number of draws shows their ratio
        # (docs/concepts/nonparametric).
        draws = self.draws or good_draws(
            at_least(rows), least_concentration(epsilon, 1000, max(depths), self.exponent) / 1000
        )
        trees = [self._tree(c, depth, epsilon, draws) for c, depth in zip(self.domain, depths, strict=True)]
        counts = curator.ask(Draws(self.domain, [p for p, _ in trees], [prior for _, prior in trees], draws))
        weights = {c.name: by_code(n, c, d) for c, n, d in zip(self.domain, counts, depths, strict=True)}
        return IndependentModel(weights, total)

    def _tree(self, coding: Coding, depth: int, epsilon: Fraction, draws: int) -> tuple[Partition, Prior]:
        """The leaves of a column, and the least prior that keeps its draws within ε."""
        concentration = least_concentration(epsilon, draws, depth, self.exponent)
        prior = polya_prior(concentration, depth, self.exponent)
        if is_line(coding):
            return Dyadic(coding.name, coding.size, depth), prior
        return Grid((coding.name,), (tuple(range(coding.size)),)), prior


def sampled_depth(coding: Coding) -> int:
    """Of the tree of a column to sample from; one level, with all values at once, where they have no order."""
    if not is_line(coding):
        return 1
    exact = coding.size & (coding.size - 1) == 0
    return min(DEEPEST, depth_of(coding.size) + (0 if exact else EXTRA_LEVELS))


def by_code(leaves: NDArray[np.int64], coding: Coding, depth: int) -> Floats:
    """Draws by leaf as draws by code: a leaf belongs to the code that it lies in."""
    if not is_line(coding):
        return leaves.astype(np.float64)
    codes = (np.arange(len(leaves)) * coding.size) >> depth
    return np.asarray(np.bincount(codes, leaves, coding.size), dtype=np.float64)


def good_draws(rows: float, share: float) -> int:
    """How many draws err least, with c = share·draws: few err by chance, many by their prior.

    The error a/√m + b·2c/n, in Wasserstein-1 on a unit line, is least where its derivative is 0.
    """
    return max(1, round(min(rows, (SAMPLING_ERROR * rows / (4 * PRIOR_ERROR * share)) ** (2 / 3))))


METHOD = Method(
    name="polya-tree",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="columns of numbers at full resolution, and one tree of pairs",
    limits="one pair per column; give numbers many bins in the schema",
    build=lambda options, params: PolyaTree(options.by, options.draws, params.exponent),
    params=PolyaParams,
    traits=Traits(samples=True),
    variants=(
        Variant(mutants=CHOOSES_SEVERAL),
        # Draws from a posterior cost the same where one row takes the place of another.
        Variant("-by-sampling", lambda names: Options(by=SAMPLING), immune=("index-blocks",)),
    ),
)
