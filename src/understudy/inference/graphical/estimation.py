"""Fitting a graphical model to noisy marginals: soft iterative proportional fitting on the junction tree.

The estimate is p(x) ∝ base(x)·exp(Σ θ_c(x_c)), one θ per measured set c, which minimises
n·ln Z(θ) − Σ y·θ + ½ Σ λθ². It is convex and has no constraint. Where the penalty λ vanishes, this is the
maximum-entropy fit of the measurements; where a cell is mostly noise, it is shrunk towards what the rest of the model
expects. With all else fixed, a cell of one set has its optimum at y − m·exp(θ − θ_old) = λθ, where m is the model's
present count: a scalar equation, solved by Newton for all cells of the set at once, and then scaled back to n.
A tour of the tree updates every set with one message per link and direction, so that a sweep costs as much as one
exact inference. Before that, the measurements are made to agree on what they share, by inverse variance: otherwise
sets that overlap would pull the same margin in different directions, and never settle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree, Table, margin, spread
from understudy.inference.marginal_model import make_consistent
from understudy.inference.noisy_table import NoisyTable

NEWTON_STEPS = 2
LARGEST_STEP = 2.0
LARGEST_THETA = 8.0
"""e^8: no measured set multiplies what the others expect of a cell by more than three thousand. So a cell that was
measured as empty keeps up to e^-8 of that (decision 6)."""
ONE_WAY_SPREAD = 100.0
"""The prior variance of a one-way θ: it may move freely, since the base is only a first guess of the same counts."""
LARGEST_SPREAD, SMALLEST_SPREAD = 4.0, 0.01
FLOOR = 1e-12
LOG_OF_ZERO = -1e4
"""The logarithm of nothing: finite, so that sums of it stay numbers; its exponential is exactly 0."""


@dataclass
class GraphicalEstimator:
    """A model in the making. `base` is a first guess per column; adding observations keeps what was learned.

    `zeros` marks cells that can't occur, for sets of columns in the order of `sizes`: they never get any mass.
    """

    sizes: Mapping[str, int]
    base: Mapping[str, NDArray[np.float64]]
    total: float
    fixed_total: bool = False
    zeros: Mapping[ColumnSet, NDArray[np.bool_]] = field(default_factory=dict)
    observations: dict[ColumnSet, NoisyTable] = field(default_factory=dict)
    model: GraphicalModel = field(init=False)
    _targets: dict[ColumnSet, Table] = field(default_factory=dict)
    _theta: dict[ColumnSet, Table] = field(default_factory=dict)
    _spreads: dict[ColumnSet, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rebuild()

    @property
    def sets(self) -> list[ColumnSet]:
        """Every set of columns that the model's tree has to hold."""
        return [*self.observations, *self.zeros]

    def observe(self, new: Sequence[NoisyTable]) -> None:
        """Takes observations in; of a set that was seen before, the average counts."""
        order = list(self.sizes)
        fresh = [o.sorted_by(order) for o in new]
        for seen in fresh:
            known = self.observations.get(seen.columns)
            self.observations[seen.columns] = seen if known is None else known.averaged_with(seen)
            self._theta.setdefault(seen.columns, np.zeros(seen.counts.shape))
        self._agree()
        self._rebuild()
        for seen in fresh:
            # Judged once, against the model without this set: later its own θ would hide how much it matters.
            self._spreads.setdefault(seen.columns, self._spread(seen.columns))

    def fit(self, sweeps: int) -> GraphicalModel:
        """Some sweeps more, from where the last ones ended."""
        # Private-PGM (McKenna, Sheldon & Miklau 2019) fits the same family by mirror descent, with one inference for
        # each step; a sweep here costs one for all sets, and there is no step size to find (decision 6).
        homes: dict[int, list[ColumnSet]] = {}
        for columns in self.observations:
            homes.setdefault(self.model.tree.home(columns), []).append(columns)
        for _ in range(sweeps):
            for clique in self.model.tour():
                for columns in homes.get(clique, ()):
                    self._update(clique, columns)
        return self.model

    def _agree(self) -> None:
        """Targets that agree on every margin, and on the total: the known one, or the best estimate of it."""
        self._targets = {c: o.counts.copy() for c, o in self.observations.items()}
        variances = {c: float(np.mean(o.variance)) for c, o in self.observations.items()}
        # The public number of rows takes part as one more table, of no columns and next to no variance.
        if self.fixed_total:
            self._targets[()], variances[()] = np.array(self.total), FLOOR
        make_consistent(self._targets, variances)
        self._targets.pop((), None)
        if not self.fixed_total:
            self.total = max(1.0, float(next(iter(self._targets.values())).sum()))

    def _rebuild(self) -> None:
        """Recalibrates on a tree that covers all sets: the base and every θ are its potentials."""
        tree = JunctionTree.over(self.sets, self.sizes)
        potentials: dict[ColumnSet, Table] = {(c,): np.log(np.maximum(b, FLOOR)) for c, b in self.base.items()}
        for columns, theta in self._theta.items():
            potentials[columns] = potentials.get(columns, 0.0) + theta
        for columns, forbidden in self.zeros.items():
            potentials[columns] = potentials.get(columns, 0.0) + np.where(forbidden, LOG_OF_ZERO, 0.0)
        self.model = GraphicalModel.from_potentials(self.sizes, tree, potentials, self.total)

    def _update(self, clique: int, columns: ColumnSet) -> None:
        held = self.model.tree.cliques[clique]
        expected = margin(self.model.tables[clique], held, columns)
        target, old = self._targets[columns], self._theta[columns]
        penalty = self._penalty(columns, expected, target)
        theta = old.copy()
        # Newton for all cells at once. From far off the tangent of an exponential overshoots: steps are clipped.
        for _ in range(NEWTON_STEPS):
            moved = expected * np.exp(theta - old)
            theta += np.clip((target - moved - penalty * theta) / (moved + penalty), -LARGEST_STEP, LARGEST_STEP)
        np.clip(theta, -LARGEST_THETA, LARGEST_THETA, out=theta)
        factor = np.exp(theta - old)
        # Else the penalty would let every update move the total a little (decision 6).
        factor *= self.total / float((expected * factor).sum())
        self._theta[columns] = theta
        self.model.tables[clique] *= spread(factor, columns, held)

    def _penalty(self, columns: ColumnSet, expected: Table, target: Table) -> Table:
        """λ that gives θ the prior variance s: at the optimum (y − m)·m/σ² = θ/s, with m taken as the cell's scale."""
        variance = np.asarray(self.observations[columns].variance)
        scale = np.maximum(np.maximum(expected, np.sqrt(variance)), target)
        return variance / (self._spreads[columns] * scale)

    def _spread(self, columns: ColumnSet) -> float:
        """How much a set's cells differ from what the model expects of them, net of noise (empirical Bayes)."""
        if len(columns) == 1:
            return ONE_WAY_SPREAD
        seen, expected = self.observations[columns], self.model.marginal(columns)
        # E(y − m)² is the noise plus what is really different; what is left of it, relative to m, is a variance of θ.
        excess = ((seen.counts - expected) ** 2 - seen.variance).sum() / (expected**2).sum()
        return float(np.clip(LARGEST_SPREAD * excess, SMALLEST_SPREAD, LARGEST_SPREAD))
