"""`privbayes`: a Bayesian network chosen privately, then its noisy conditionals (Zhang et al. 2017).

Columns join the network one by one. The exponential mechanism picks the next column and its parents by how much they
depend on each other; parent sets are as large as *θ-usefulness* lets them be: the average cell of the joint table must
hold at least θ times its noise.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from understudy.models.estimation import Estimator
from understudy.models.model import Model
from understudy.models.network import BayesianNetwork, Family
from understudy.privacy.budget import Amount
from understudy.privacy.curator import Curator
from understudy.privacy.measurement import Measurement
from understudy.privacy.score import Dependence
from understudy.schema.domain import ColumnSet, Domain
from understudy.synthesizers.compression import OpenedModel
from understudy.synthesizers.groundwork import Groundwork

STRUCTURE_SHARE = 0.3
USEFULNESS = 4.0
CONDITIONAL_SWEEPS = 10
MOST_PARENTS = 3
MOST_PARENT_SETS = 500
"""Parent sets are tried up to the size at which there are more of them than this for one column."""
MOST_CANDIDATES = 2_000
"""With many columns there are more parent sets than can be scored; a random choice of them, made without the rows."""


@dataclass(frozen=True)
class PrivBayes:
    """The recipe."""

    usefulness: float = USEFULNESS

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedPrivBayes:
        return CalibratedPrivBayes(domain, amount, self.usefulness)


@dataclass(frozen=True)
class CalibratedPrivBayes:
    domain: Domain
    amount: Amount
    usefulness: float

    def fit(self, curator: Curator, rng: np.random.Generator) -> Model:
        names = self.domain.names
        ground = Groundwork.lay(self.domain, curator, self.amount)
        if len(names) == 1:
            return ground.finish()
        structure, conditionals = curator.remaining().split([STRUCTURE_SHARE, 1 - STRUCTURE_SHARE])
        largest = self._largest_table(ground, curator, conditionals)
        order = self._structure(ground, curator, structure, largest, rng)
        families = self._families(ground, curator, order)
        return OpenedModel(BayesianNetwork(ground.sizes, families, ground.total), ground.compression)

    def _families(self, ground: Groundwork, curator: Curator, order: list[ColumnSet]) -> list[Family]:
        """Measures every family that has parents; where none has, single columns get all that is left."""
        related = [s for s in order if len(s) > 1]
        left = curator.remaining()
        if not related:
            ground.measure_columns(left)
        grids = [ground.compression.grid(s) for s in related]
        measured = curator.partition(self.domain, grids, left) if related else []
        known = {m.columns: _family(ground, m) for m in measured}
        return [known.get(s) or Family(s[0], (), ground.one_way(s[0])[None, :]) for s in order]

    def _largest_table(self, ground: Groundwork, curator: Curator, amount: Amount) -> float:
        """θ-usefulness: rows/cells ≥ θ × noise, for the noise that one of d−1 equal parts of the amount buys."""
        part = amount.split([1.0] * (len(self.domain.names) - 1))[0]
        noise = part.noise_scale(curator.count_sensitivity(part)) * (1.0 if part.pure else math.sqrt(2 / math.pi))
        return max(1.0, ground.total / (self.usefulness * noise))

    def _structure(
        self, ground: Groundwork, curator: Curator, amount: Amount, largest: float, rng: np.random.Generator
    ) -> list[ColumnSet]:
        """Each column with its parents, in the order in which they join; the first one joins at random."""
        names = list(self.domain.names)
        order: list[ColumnSet] = [(names.pop(int(rng.integers(len(names)))),)]
        for part in amount.split([1.0] * len(names)):
            candidates = self._candidates(ground, names, [s[0] for s in order], largest, rng)
            scores = [Dependence(c, ground.compression.grid(c)) for c in candidates]
            (index,) = curator.select(self.domain, scores, part)
            order.append(candidates[index])
            names.remove(candidates[index][0])
        return order

    def _candidates(
        self, ground: Groundwork, names: list[str], joined: list[str], largest: float, rng: np.random.Generator
    ) -> list[ColumnSet]:
        """For each column that is left, every largest useful set of parents; none, where none is useful."""
        found: list[ColumnSet] = []
        for column in names:
            useful = _useful_parents(ground, column, joined, largest)
            found += [(column, *parents) for parents in useful or [()]]
        if len(found) > MOST_CANDIDATES:
            kept = np.sort(rng.choice(len(found), MOST_CANDIDATES, replace=False))
            found = [found[i] for i in kept]
        return found


def _useful_parents(ground: Groundwork, column: str, joined: list[str], largest: float) -> list[ColumnSet]:
    """The sets of parents that fit, and of which no larger one that fits contains them."""
    fits: list[ColumnSet] = []
    degrees = [k for k in range(1, MOST_PARENTS + 1) if math.comb(len(joined), k) <= MOST_PARENT_SETS]
    for degree in reversed(degrees):
        for parents in itertools.combinations(joined, degree):
            if ground.cells((column, *parents)) <= largest and not any(set(parents) <= set(f) for f in fits):
                fits.append(parents)
    return fits


def _family(ground: Groundwork, measured: Measurement) -> Family:
    """The conditional of a column, from its noisy joint table shrunk towards independence as far as noise demands."""
    sizes = {c: ground.sizes[c] for c in measured.columns}
    estimator = Estimator(sizes, {c: ground.one_way(c) for c in sizes}, ground.total, fixed_total=True)
    estimator.observe([ground.compression.observe(measured)])
    joint = estimator.fit(CONDITIONAL_SWEEPS).marginal(measured.columns)
    column, *parents = measured.columns
    return Family(column, tuple(parents), joint.reshape(sizes[column], -1).T)
