"""Choosing rows among weighted particles so that their counts are those of the weights, up to rounding.

Systematic resampling keeps the counts along one order of the rows; all others get sampling error, which at tens of
thousands of rows is as large as the noise. So rows are exchanged for other particles, always for ones that bring the
counts of all pairs of columns closer to their weighted counts: to within a row where few rows are expected, and less so
where there are many. Whole rows are exchanged, never values inside them: what three and more columns have in common
stays what the model says.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.conditional import LIMITS, ConditioningLimits, resample
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import settled
from understudy.inference.particles import kernels
from understudy.inference.particles.gibbs import sweep
from understudy.inference.particles.particles import Particles, cells_of

ROUNDS = 2500
FIRST_SHARE, LAST_SHARE = 1e-3, 3e-5
"""The rows that are exchanged at once, fewer and fewer: exchanges that meet in a cell spoil each other."""
LOOKED_AT = 300
"""Many short rounds: few rows are exchanged at once, so to look at many more of them is of no use."""
DUE = 0.9
"""A value with at least so many rows by weight gets one: single columns are met up to a small part of a row."""
ROW = 1 << 24
"""One row, where excess and prices are whole numbers of parts of it: their sums don't depend on the order."""
COMPLETING_SWEEPS = 3
MOST_CELLS = 20_000_000
"""How many cell numbers are held in memory; with more pairs of columns than that, a random choice of them counts, and
with far more, single columns."""


def choose_rows(
    particles: Particles,
    rows: int,
    rng: np.random.Generator,
    rounds: int = ROUNDS,
    most_cells: int = MOST_CELLS,
) -> NDArray[np.intp]:
    """That many indices of particles."""
    chosen = particles.draw(rows, rng)
    sets: list[ColumnSet] = list(itertools.combinations(particles.sizes, 2))
    affordable = max(1, most_cells // particles.count)
    if len(sets) > affordable:
        sets = [sets[i] for i in np.sort(rng.choice(len(sets), affordable, replace=False))]
    if len(particles.sizes) > max(2, len(sets)):
        # So few pairs leave columns out, and to follow them for long makes all others worse. With 120 columns of
        # 100,000 rows, pairs erred by .0289 with 100 of them, by .0283 without any exchange, and by .0281 so.
        sets, rounds = [(c,) for c in particles.sizes], rounds // 10
    if not sets:
        return chosen
    exchange = RowExchange(particles, sets, chosen)
    for share in np.geomspace(FIRST_SHARE, LAST_SHARE, rounds):
        exchange.improve(max(1, round(share * rows)), rng)
    _keep_values(particles, exchange, rng)
    return exchange.chosen


def _keep_values(particles: Particles, exchange: RowExchange, rng: np.random.Generator) -> None:
    """Brings in a row of every value that is due one and has none, for a row whose values all have others left."""
    rows = len(exchange.chosen)
    held = {c: np.bincount(v[exchange.chosen], minlength=particles.sizes[c]) for c, v in particles.codes.items()}
    for name, codes in particles.codes.items():
        due = np.bincount(codes, particles.weights, particles.sizes[name]) * (rows / particles.total)
        for value in np.flatnonzero((due >= DUE) & (held[name] == 0)):
            places = rng.integers(0, rows, LOOKED_AT)
            others = [held[c][v[exchange.chosen[places]]] > 1 for c, v in particles.codes.items()]
            places = places[np.all(others, axis=0)]
            if not len(places):
                continue
            own = np.flatnonzero(codes == value)
            line = np.cumsum(settled(particles.weights[own]))
            coming = own[min(int(np.searchsorted(line, rng.random() * line[-1], side="right")), len(own) - 1)]
            place = exchange.fullest(places)
            for c, v in particles.codes.items():
                held[c][v[exchange.chosen[place]]] -= 1
                held[c][v[coming]] += 1
            exchange.replace(np.array([place]), np.array([coming]))


class RowExchange:
    """A choice of rows, and by how much each cell of each set of columns holds too many of them.

    Excess is counted in parts of a row, times what a row too many costs in its cell: the less, the more are expected,
    about as chance would have it. Squares alone would spend all exchanges on the fullest cells (decision 22).
    """

    def __init__(self, particles: Particles, sets: list[ColumnSet], chosen: NDArray[np.intp]) -> None:
        self.chosen = chosen
        self._line = np.cumsum(settled(particles.weights))
        shapes = [tuple(particles.sizes[c] for c in s) for s in sets]
        starts = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        # By row: what one row needs lies together.
        self._cells = np.empty((particles.count, len(sets)), dtype=np.int32)
        self._excess = np.empty(starts[-1], dtype=np.int64)
        self._price = np.empty(starts[-1], dtype=np.int64)
        for i, (columns, shape) in enumerate(zip(sets, shapes, strict=True)):
            cells = cells_of(particles.codes, columns, [np.arange(n) for n in shape])
            size = math.prod(shape)
            wanted = np.bincount(cells, particles.weights, size) * (len(chosen) / particles.total)
            excess = np.bincount(cells[chosen], minlength=size) - wanted
            here, price = slice(starts[i], starts[i + 1]), np.rint(ROW * price_of(wanted))
            self._price[here], self._excess[here] = price, np.rint(excess * price)
            self._cells[:, i] = cells + starts[i]
        self._price_of_row = kernels.score(self._price, self._cells, np.arange(particles.count))

    @property
    def loss(self) -> float:
        """The sum of squared excess, each times its price."""
        return float(((self._excess / ROW) ** 2 / (self._price / ROW)).sum())

    def improve(self, most: int, rng: np.random.Generator) -> None:
        """Exchanges the rows that lie in the fullest cells for particles that lie in the emptiest."""
        places = np.sort(rng.integers(0, len(self.chosen), min(LOOKED_AT, len(self.chosen))))
        places = places[np.diff(places, prepend=-1) > 0]  # as `np.unique` in less time
        fresh = self._proposed(len(places), rng)
        # With price p and excess e of its cells, a row that leaves changes the loss by Σp − 2Σpe, one that comes by
        # Σp + 2Σpe.
        here = self.chosen[places]
        full = 2 * self._score(here) - self._price_of_row[here]
        empty = 2 * self._score(fresh) + self._price_of_row[fresh]
        leaving, coming = np.argsort(-full), np.argsort(empty)
        gain = full[leaving] - empty[coming]
        count = min(most, int(np.searchsorted(-gain, 0)))
        out, into = places[leaving[:count]], fresh[coming[:count]]
        self.replace(out, into)

    def fullest(self, places: NDArray[np.intp]) -> int:
        """Of some chosen rows the one whose cells hold most too many."""
        return int(places[np.argmax(self._score(self.chosen[places]))])

    def replace(self, out: NDArray[np.intp], into: NDArray[np.intp]) -> None:
        """Other particles in these places."""
        left, entered = self._cells[self.chosen[out]].ravel(), self._cells[into].ravel()
        np.subtract.at(self._excess, left, self._price[left])
        np.add.at(self._excess, entered, self._price[entered])
        self.chosen[out] = into

    def _proposed(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Particles by weight: one that the model all but rules out must not come in because its pairs would do."""
        places = np.sort(rng.random(count)) * self._line[-1]  # in order, they are found in half the time
        return np.minimum(np.searchsorted(self._line, places, side="right"), len(self._line) - 1)

    def _score(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        return kernels.score(self._excess, self._cells, rows)


def price_of(wanted: NDArray[np.floating]) -> NDArray[np.floating]:
    """What a squared row too many costs in a cell: (rows expected + 1) to the power of −3/4."""
    # By square roots, which all processors round alike: a release must replay elsewhere.
    root = np.sqrt(wanted + 1.0)
    return 1.0 / (root * np.sqrt(root))


@dataclass(frozen=True)
class PlainDraws:
    """Particles drawn by weight, none exchanged for a better one."""

    particles: Particles

    @property
    def total(self) -> float:
        return self.particles.total

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        drawn = self.particles.draw(rows, rng)
        return {c: v[drawn] for c, v in self.particles.codes.items()}

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        return resample(self, given, rng)


@dataclass(frozen=True)
class ParticleModel:
    """Fitted particles, to draw rows from."""

    particles: Particles
    rounds: int = ROUNDS
    """In which chosen rows are exchanged for better ones."""
    limits: ConditioningLimits = LIMITS

    @property
    def total(self) -> float:
        return self.particles.total

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        chosen = rng.permutation(choose_rows(self.particles, rows, rng, self.rounds))
        return {c: v[chosen] for c, v in self.particles.codes.items()}

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Particles that agree with the evidence best, moved by Gibbs sampling of the columns that are not given."""
        # Of a hundred thousand draws those are kept that agree: rows that were exchanged for each other's sake would be
        # no better, and take a second.
        moving = self._moving(resample(PlainDraws(self.particles), given, rng, self.limits))
        for _ in range(COMPLETING_SWEEPS):
            self._sweep(moving, rng, frozenset(given))
        return moving.codes

    def _moving(self, codes: CodeColumns) -> Particles:
        """Other rows under the same factors, which no evidence moves any more."""
        rows = len(next(iter(codes.values())))
        moving = Particles(self.particles.sizes, self.total, codes, np.full(rows, self.total / rows))
        for factor in self.particles.factors:
            moving.add(replace(factor, seen=None))
        return moving

    def _sweep(self, moving: Particles, rng: np.random.Generator, fixed: frozenset[str]) -> None:
        sweep(moving, rng, fixed)
