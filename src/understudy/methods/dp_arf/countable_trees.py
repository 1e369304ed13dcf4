"""What of a grown tree may be counted: its leaves, or fewer of them, perhaps by target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from understudy.boundary.schema.partition import Crossed, Tree
from understudy.inference.grouping import Floats, Groups
from understudy.inference.particles.leaf_particles import LeafyParticles, nested
from understudy.methods.dp_arf.proxy_trees import ProxyTree

CUTS = (1, 4, 16)
"""A tree is offered whole, and with a quarter and a sixteenth of its leaves."""
COARSER = (16, 4)


@dataclass(frozen=True)
class CandidateTree:
    """A tree of the pool, and the target that it predicts, if any, with the classes of its values."""

    tree: ProxyTree
    target: str = ""
    classes: tuple[int, ...] = (0,)

    @property
    def across(self) -> int:
        return max(self.classes) + 1

    def table(self, particles: LeafyParticles) -> Floats:
        """The particles' weight by leaf of the whole tree and class."""
        cells = self.tree.whole.assign(particles.codes) * self.across
        if self.target:
            cells += np.array(self.classes, dtype=np.intp)[particles.codes[self.target]]
        counts = np.bincount(cells, particles.weights, self.tree.leaves * self.across)
        return np.asarray(counts, dtype=np.float64).reshape(-1, self.across)

    def cuts(self, most_leaves: int) -> Iterator[PrunedTree]:
        most = min(self.tree.leaves, most_leaves)
        for leaves in sorted({max(2, most // x) for x in CUTS}):
            tree, within = self.tree.cut(leaves)
            yield PrunedTree(self, Crossed(tree, self.target, self.classes) if self.target else tree, within)


@dataclass(frozen=True, eq=False)
class PrunedTree:
    """A tree with some of its leaves: what may be counted."""

    candidate: CandidateTree
    partition: Tree | Crossed
    within: Groups
    """For each leaf of the whole tree the leaf of this one that holds it."""

    def expected(self, table: Floats) -> Floats:
        """Counts by leaf (and class) from those of the whole tree."""
        leaves = self.partition.cells // self.candidate.across
        summed = np.zeros((leaves, table.shape[1]))
        np.add.at(summed, self.within, table)
        return summed if self.candidate.target else summed[:, 0]

    def coarser(self) -> Iterator[Groups]:
        """For each cell the cell of the same tree with fewer leaves, fewest first; then the cell itself."""
        leaves = self.partition.cells // self.candidate.across
        for fewer in (leaves // divisor for divisor in COARSER):
            if fewer > 1:
                yield nested(self.within, self.candidate.tree.cut(fewer)[1], self.candidate.across)
        yield np.arange(self.partition.cells)
