"""Particles that obey counts of leaves as well as grids of columns.

The factors of `particles.particles` live on grids, whose Gibbs sampling is a table look-up. The leaves of a tree are no
grid; so a column is drawn from what the grids say, and the draw is kept with the probability that the leaves give it
(Metropolis & Hastings: the draw obeys detailed balance for the grids, and the ratio of the leaves' factors is the
rest).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.partition import Crossed, Partition, Tree
from understudy.inference.grouping import Floats, Groups, sum_by_group
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.particles.gibbs import DEEPEST, EXPONENTIALS, GRID, sweep
from understudy.inference.particles.particles import Block, LogFactor, Particles
from understudy.inference.particles.particles import Snapshot as GridSnapshot
from understudy.inference.particles.rounding import ParticleModel


@dataclass(eq=False)
class LeafFactors:
    """The log-factors of one partition: of its cells, and of sums of cells, which are known better than each."""

    partition: Partition
    factors: list[tuple[Groups, LogFactor]] = field(default_factory=list)
    """Each with the group of every cell."""
    _seen: dict[Tree, NDArray[np.intp]] = field(default_factory=dict, repr=False)
    """Where the particles stand in trees, which partitions by tree and column share."""
    _cells: NDArray[np.intp] | None = field(default=None, repr=False)

    def learn(self, groups: Groups, counts: Floats, variance: float, particles: Particles) -> None:
        """Noisy counts of the cells, summed by group; how far to believe them is judged by what the particles say."""
        noise = sum_by_group(groups, np.full(groups.size, variance))
        seen = NoisyTable(self.partition.columns, sum_by_group(groups, counts), noise, (groups,))
        factor = LogFactor.evidence(seen)
        factor.judge(sum_by_group(groups, self.histogram(particles.codes, particles.weights)))
        self.factors.append((groups, factor))

    def concerns(self, column: str) -> bool:
        return column in self.partition.columns

    def forget(self) -> None:
        """The particles have moved."""
        self._cells = None

    def stand(self, cells: NDArray[np.intp]) -> None:
        """The particles have moved, and it is known where to."""
        self._cells = cells

    def cells(self, codes: CodeColumns) -> NDArray[np.intp]:
        if self._cells is None:
            self._cells = self._assigned(codes)
        return self._cells

    def _assigned(self, codes: CodeColumns) -> NDArray[np.intp]:
        part = self.partition
        tree = part.tree if isinstance(part, Crossed) else part
        if not isinstance(tree, Tree):
            return part.assign(codes).astype(np.intp, copy=False)
        if tree not in self._seen:
            self._seen[tree] = tree.assign(codes)
        if isinstance(part, Crossed):
            return part.within(self._seen[tree], codes)
        return self._seen[tree]

    def histogram(self, codes: CodeColumns, weights: Floats) -> Floats:
        return np.asarray(np.bincount(self.cells(codes), weights, self.partition.cells), dtype=np.float64)

    def theta(self) -> Floats:
        return np.asarray(np.sum([factor.theta[groups] for groups, factor in self.factors], axis=0))

    def rake(self, codes: CodeColumns, weights: Floats, noise: float) -> None:
        table, change = self.histogram(codes, weights), np.ones(self.partition.cells)
        for groups, factor in self.factors:
            if factor.seen is not None:
                ratio = factor.step(sum_by_group(groups, table), noise)[groups]
                table *= ratio
                change *= ratio
        weights *= change[self.cells(codes)]

    def losses(self, codes: CodeColumns, weights: Floats, noise: float) -> list[float]:
        """For each piece of evidence the mean squared error of its cells, in units of their noise and chance."""
        table = self.histogram(codes, weights)
        return [f.loss(sum_by_group(groups, table), noise) for groups, f in self.factors if f.seen is not None]


@dataclass
class LeafSnapshot:
    """What is needed to go back."""

    grids: GridSnapshot
    thetas: list[Floats]


@dataclass(eq=False)
class LeafyParticles(Particles):
    """Weighted rows that obey factors on grids, and factors on leaves."""

    leaves: list[LeafFactors] = field(default_factory=list)
    _seen: dict[Tree, NDArray[np.intp]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, particles: Particles) -> LeafyParticles:
        return cls(particles.sizes, particles.total, particles.codes, particles.weights, particles.blocks)

    def grow(self, partition: Partition) -> LeafFactors:
        """Leaves that nothing is known of yet."""
        self.leaves.append(LeafFactors(partition, [], self._seen))
        return self.leaves[-1]

    def fix(self, partition: Partition, theta: Floats) -> LeafFactors:
        """Leaves with log-factors that no evidence moves."""
        every, leaves = np.arange(partition.cells), self.grow(partition)
        leaves.factors.append((every, LogFactor(partition.columns, (every,), theta)))
        return leaves

    def rake(self, passes: int, *, sampling: bool = True, fewest: float = 0.0) -> None:
        """Leaves first: what grids say of single columns is known best, and has the last word."""
        for _ in range(passes):
            noise = self.total / self.effective if sampling else 0.0
            # The other way round, the one-way error of the parity table was .0025 instead of .0006, and the two-way
            # error of mushroom .0490 instead of .0466 (docs/concepts/forests.md).
            for leaves in self.leaves:
                leaves.rake(self.codes, self.weights, noise)
            super().rake(1, sampling=sampling, fewest=fewest)
            if self.effective < fewest * self.count:
                return

    def loss(self) -> float:
        noise = self.total / self.effective
        evidence: list[Block | LeafFactors] = [*self.blocks.values(), *self.leaves]
        return float(np.mean([x for e in evidence for x in e.losses(self.codes, self.weights, noise)]))

    def move(self, codes: CodeColumns) -> None:
        super().move(codes)
        self._seen.clear()
        for leaves in self.leaves:
            leaves.forget()

    def snapshot_all(self) -> LeafSnapshot:
        return LeafSnapshot(self.snapshot(), [f.theta for leaves in self.leaves for _, f in leaves.factors])

    def restore_all(self, snapshot: LeafSnapshot) -> None:
        self.restore(snapshot.grids)
        factors = [f for leaves in self.leaves for _, f in leaves.factors]
        for factor, theta in zip(factors, snapshot.thetas, strict=True):
            factor.theta = theta

    def sweep(self, rng: np.random.Generator, fixed: frozenset[str] = frozenset()) -> None:
        """Draws every column that is not fixed once, in random order, and keeps what the leaves allow."""
        names = [c for c in self.sizes if c not in fixed]
        for i in rng.permutation(len(names)):
            self._draw(names[i], rng)

    def _draw(self, column: str, rng: np.random.Generator) -> None:
        before, old = self.codes, [leaves.cells(self.codes) for leaves in self.leaves]
        sweep(self, rng, fixed=frozenset(self.sizes) - {column})
        new = [leaves.cells(self.codes) if leaves.concerns(column) else None for leaves in self.leaves]
        ratio = np.zeros(self.count, dtype=np.int64)
        for leaves, was, now in zip(self.leaves, old, new, strict=True):
            if now is not None:
                theta = np.rint(leaves.theta() * GRID).astype(np.int64)
                ratio += theta[now] - theta[was]
        # The probability min(1, e^ratio) to keep the draw, in whole numbers as in `gibbs`.
        chance = EXPONENTIALS[np.clip(-ratio, 0, DEEPEST)]
        kept = rng.integers(0, int(EXPONENTIALS[0]), self.count) < chance
        self.move({**self.codes, column: np.where(kept, self.codes[column], before[column])})
        for leaves, was, now in zip(self.leaves, old, new, strict=True):
            leaves.stand(was if now is None else np.where(kept, now, was))


@dataclass(frozen=True)
class LeafyModel(ParticleModel):
    """Fitted particles with leaves, to draw rows from."""

    particles: LeafyParticles

    def _moving(self, codes: CodeColumns) -> LeafyParticles:
        moving = LeafyParticles.of(super()._moving(codes))
        for leaves in self.particles.leaves:
            moving.fix(leaves.partition, leaves.theta())
        return moving

    def _sweep(self, moving: Particles, rng: np.random.Generator, fixed: frozenset[str]) -> None:
        assert isinstance(moving, LeafyParticles)
        moving.sweep(rng, fixed)


def nested(fine: Groups, coarse: Groups, across: int = 1) -> Groups:
    """For each cell (leaf of `fine` × one of `across` groups) the same of the coarser leaf that holds its leaf."""
    holder = np.zeros(int(fine.max()) + 1, dtype=np.intp)
    holder[fine] = coarse
    return np.asarray((holder[:, None] * across + np.arange(across)).ravel(), dtype=np.intp)
