"""Trees grown on rows that cost nothing: drawn from a model, so that their splits are post-processing.

An adversarial tree tells the rows from the same rows with every column shuffled, so it cuts where columns depend on
each other. A predicting tree tells the classes of a target. All splits of a level are found at once, from counts of
whole rows: the same trees on every processor.

What of such a tree may be counted are its leaves, or fewer of them, perhaps by the classes of a target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Crossed, Split, Tree, code_mask
from understudy.inference.grouping import Floats, Groups
from understudy.inference.model import CodeColumns
from understudy.inference.particles.leaf_particles import LeafyParticles, nested
from understudy.methods.dp_arf.tuning import TUNING, DpArfTuning

Counts = NDArray[np.int64]
Codes = NDArray[np.integer]


@dataclass(frozen=True)
class ProxyTree:
    """A grown tree. Its splits have an order, so that it can be cut back to any number of leaves."""

    columns: ColumnSet
    sizes: tuple[int, ...]
    splits: tuple[Split, ...]
    order: tuple[int, ...]
    """The splits, the most telling first, each after its parent."""

    @property
    def leaves(self) -> int:
        return len(self.splits) + 1

    @cached_property
    def whole(self) -> Tree:
        return Tree(self.columns, self.sizes, self.splits)

    def cut(self, leaves: int) -> tuple[Tree, NDArray[np.intp]]:
        """The tree with that many leaves at most, and for each leaf of the whole tree the one that holds it."""
        kept = sorted(self.order[: leaves - 1])
        place = {split: i for i, split in enumerate(kept)}
        # Nodes of the whole tree: its splits, then its leaves. Each finds the kept split or new leaf that it lies in.
        inside = np.zeros(len(self.splits) + self.leaves, dtype=np.intp)
        splits, new = [], 0
        for i, split in enumerate(self.splits):
            ends = []
            for child in (split.low, split.high):
                node = child if child >= 0 else len(self.splits) - 1 - child
                if i not in place:
                    inside[node] = inside[i]
                elif child not in place:
                    inside[node] = new
                    new += 1
                ends.append(place.get(child, -1 - int(inside[node])))
            if i in place:
                splits.append(Split(split.column, split.right, ends[0], ends[1]))
        return self._used(splits), inside[len(self.splits) :]

    def _used(self, splits: Sequence[Split]) -> Tree:
        """Only the columns that are left: others need not be read."""
        used = sorted({s.column for s in splits})
        place = {c: i for i, c in enumerate(used)}
        columns, sizes = tuple(self.columns[c] for c in used), tuple(self.sizes[c] for c in used)
        return Tree(columns, sizes, tuple(s._replace(column=place[s.column]) for s in splits))


@dataclass(frozen=True)
class TrainingSample:
    """Rows to grow on, all of the same weight."""

    domain: Domain
    codes: CodeColumns
    least: float
    """The fewest rows that a leaf may hold."""
    tuning: DpArfTuning = TUNING

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def adversary(self, columns: ColumnSet, rng: np.random.Generator) -> ProxyTree:
        """A tree over some columns that tells rows from shuffled ones.

        Shuffling leaves every column as it is, so no first split tells anything: it halves a random column.
        """
        # The first round of an adversarial random forest (Watson et al. 2023): the made-up rows have the same columns,
        # each on its own.
        shuffled = {c: rng.permutation(self.codes[c]) for c in columns}
        return self.against(shuffled, columns[int(rng.integers(len(columns)))], rng)

    def against(self, made: CodeColumns, root: str, rng: np.random.Generator) -> ProxyTree:
        """A tree over the columns of made-up rows that tells the rows from them; it begins by halving one column."""
        columns = tuple(made)
        codes = [np.concatenate([self.codes[c], made[c]]) for c in columns]
        count = len(made[root])
        first = (columns.index(root), self._halves(root, rng))
        return self._grow(columns, codes, np.repeat([1, 0], [self.rows, count]), 2, 1, first)

    def predictor(self, columns: ColumnSet, classes: Codes, rng: np.random.Generator) -> ProxyTree:
        """A tree over some columns that tells the class of a row."""
        count = int(classes.max()) + 1
        return self._grow(columns, [self.codes[c] for c in columns], classes, count, int(rng.integers(count)))

    def _grow(
        self,
        columns: ColumnSet,
        codes: Sequence[Codes],
        classes: Codes,
        count: int,
        marked: int,
        first: tuple[int, NDArray[np.bool_]] | None = None,
    ) -> ProxyTree:
        least = self.least * len(classes) / self.rows
        builder = TreeBuilder(
            self.domain, columns, codes, classes, count=count, marked=marked, least=least, tuning=self.tuning
        )
        if first:
            builder.divide(np.ones(1), np.array([first[0]]), {first[0]: first[1][None, :]})
        while builder.ends:
            builder.extend()
        return builder.tree()

    def _halves(self, column: str, rng: np.random.Generator) -> NDArray[np.bool_]:
        """The values above a cut in about the middle of the rows, in their order or, where they have none, in any."""
        coding = self.domain[column]
        if coding.edges is not None:
            order = np.arange(coding.size)
        else:
            order = rng.permutation(coding.size)
        below = np.cumsum(np.bincount(self.codes[column], minlength=coding.size)[order])
        cut = int(np.argmin(np.abs(2 * below - below[-1])))
        right = np.ones(coding.size, dtype=np.bool_)
        right[order[: cut + 1]] = False
        return right


@dataclass
class TreeBuilder:
    """A tree while it grows, level by level."""

    domain: Domain
    columns: ColumnSet
    codes: Sequence[Codes]
    classes: Codes
    count: int
    marked: int
    """The class by whose share the values of a column without order are ordered."""
    least: float
    tuning: DpArfTuning
    splits: list[Split] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    at: NDArray[np.intp] = field(init=False)
    rows: NDArray[np.intp] = field(init=False)
    ends: list[tuple[int, bool]] = field(default_factory=lambda: [(-1, False)])
    """For each open node the split that it hangs on, and whether on its right."""
    leaves: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.rows = np.arange(len(self.classes))
        self.at = np.zeros(len(self.classes), dtype=np.intp)

    def extend(self) -> None:
        """Splits every open node that is worth it; the others become leaves."""
        best = np.zeros(len(self.ends))
        chosen = np.zeros(len(self.ends), dtype=np.intp)
        sides: dict[int, NDArray[np.bool_]] = {}
        if self.depth < self.tuning.deepest and len(self.splits) + len(self.ends) <= self.tuning.most_splits:
            for i in range(len(self.columns)):
                gain, sides[i] = self._best(i, len(self.ends))
                chosen[gain > best] = i
                best = np.maximum(best, gain)
        self.divide(best, chosen, sides)

    def _best(self, column: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        size = self.domain.size(self.columns[column])
        cells = (self.classes[self.rows] * nodes + self.at) * size + self.codes[column][self.rows]
        table = np.bincount(cells, minlength=nodes * size * self.count).reshape(self.count, nodes, size)
        if self.domain[self.columns[column]].edges is not None:
            return best_cut(table, self.least)
        return best_cut_in_order(table, by_share(table, self.marked), self.least)

    def divide(
        self, best: NDArray[np.float64], chosen: NDArray[np.intp], sides: Mapping[int, NDArray[np.bool_]]
    ) -> None:
        """Splits the open nodes that gain anything, each by its chosen column; `sides` says which values go right."""
        splitting = np.flatnonzero(best > 0)
        child = np.full(len(best), -1, dtype=np.intp)
        child[splitting] = 2 * np.arange(len(splitting))
        right = np.zeros(len(self.rows), dtype=np.intp)
        for i, side in sides.items():
            mine = np.flatnonzero(chosen[self.at] == i)
            right[mine] = side[self.at[mine], self.codes[i][self.rows[mine]]]
        first, ends = len(self.splits), []
        for node, (parent, on_right) in enumerate(self.ends):
            if child[node] < 0:
                self._attach(parent, on_right, -1 - self.leaves)
                self.leaves += 1
                continue
            self._attach(parent, on_right, first + int(child[node]) // 2)
            column = int(chosen[node])
            self.splits.append(Split(column, code_mask(sides[column][node]), 0, 0))
            self.gains.append(float(best[node]))
            ends += [(len(self.splits) - 1, False), (len(self.splits) - 1, True)]
        goes_on = child[self.at] >= 0
        self.at = (child[self.at] + right)[goes_on]
        self.rows, self.ends = self.rows[goes_on], ends
        self.depth += 1

    def _attach(self, parent: int, on_right: bool, child: int) -> None:
        if parent >= 0:
            self.splits[parent] = self.splits[parent]._replace(**{"high" if on_right else "low": child})

    def tree(self) -> ProxyTree:
        # A split is worth no more than its parent, and ties keep their order: a parent comes before its children, so
        # that the first splits are a tree for every number of leaves.
        worth = np.array(self.gains)
        for i, split in enumerate(self.splits):
            for child in (split.low, split.high):
                if child >= 0:
                    worth[child] = min(worth[child], worth[i])
        order = tuple(int(i) for i in np.argsort(-worth, kind="stable"))
        return ProxyTree(self.columns, self.domain.shape(self.columns), tuple(self.splits), order)


def by_share(table: Counts, marked: int) -> NDArray[np.intp]:
    """The values of each node, those with the smallest share of the marked class first.

    For two classes one of the cuts in this order is the best of all (Breiman et al. 1984, section 4.2.2). A value that
    the node has no row of stands where the node's own share is.
    """
    rows, of_class = table.sum(axis=0), table[marked]
    own = of_class.sum(axis=1, keepdims=True) / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    return np.argsort((of_class + own) / (rows + 1.0), axis=1, kind="stable")


def best_cut_in_order(
    table: Counts, order: NDArray[np.intp], least: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """As `best_cut`, along an order of each node's own."""
    gain, above = best_cut(np.take_along_axis(table, order[None, ...], axis=2), least)
    right = np.empty_like(above)
    np.put_along_axis(right, order, above, axis=1)
    return gain, right


def best_cut(table: Counts, least: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """For counts by class, node and value: what the best cut gains (Gini), and the values above it.

    A gain of 0 means that no cut leaves `least` rows on both sides, or that none tells anything. Every sum runs in one
    order, class by class, so that it has the same last digits everywhere.
    """
    left = np.cumsum(table, axis=2)
    below = left.sum(axis=0)
    whole = below[:, -1:]
    over_left, over_right = (1.0 / np.maximum(rows, 1) for rows in (below, whole - below))
    found, before = np.zeros(below.shape), np.zeros(len(below))
    for of_class in left:
        all_of_it = of_class[:, -1:]
        found += of_class**2 * over_left + (all_of_it - of_class) ** 2 * over_right
        before += (all_of_it[:, 0] ** 2) / np.maximum(whole[:, 0], 1)
    found[(below < max(least, 1)) | (whole - below < max(least, 1))] = 0.0
    cut = np.argmax(found, axis=1)
    gain = np.take_along_axis(found, cut[:, None], axis=1)[:, 0] - before
    return np.maximum(gain, 0.0), np.arange(table.shape[2]) > cut[:, None]


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

    def cuts(self, most_leaves: int, divisors: Sequence[int] = TUNING.cuts) -> Iterator[PrunedTree]:
        """The tree with all of its leaves, and with fewer."""
        most = min(self.tree.leaves, most_leaves)
        for leaves in sorted({max(2, most // x) for x in divisors}):
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

    def coarser(self, divisors: Sequence[int] = TUNING.coarser) -> Iterator[Groups]:
        """For each cell the cell of the same tree with fewer leaves, fewest first; then the cell itself."""
        leaves = self.partition.cells // self.candidate.across
        for fewer in (leaves // divisor for divisor in divisors):
            if fewer > 1:
                yield nested(self.within, self.candidate.tree.cut(fewer)[1], self.candidate.across)
        yield np.arange(self.partition.cells)
