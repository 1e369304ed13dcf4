"""A first model without pairs: one tree that the rows choose, and every column inside each of its leaves.

For tables of so many columns that their pairs are too many to look at, the structure can't come from a proxy: there is
none. So the exponential mechanism picks splits, one for all nodes of a level, by how much they tell of some column;
then each column is counted by leaf. Inside a leaf columns are independent, and what is noise there is shrunk towards
the leaf above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.score import Departure
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Crossed, Split, Tree, code_bits, code_mask
from understudy.inference.grouping import Floats, Groups, summed, summing
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import NoisyTable, settled
from understudy.inference.sampling import CODE, draw_given
from understudy.methods.dp_arf.tuning import TUNING, FirstTreeTuning
from understudy.methods.parts.one_ways import error_weights
from understudy.methods.parts.resolution import Resolutions

QUANTILES = (0.25, 0.5, 0.75)
LEAST_MASS = 1e-9
LARGEST_THETA = 7.0

Choice = tuple[str, int]
"""A column, and the mask of its codes that go right."""


@dataclass(frozen=True)
class ColumnEstimates:
    """What is known of each column before: its noisy counts, made non-negative, and how they are merged."""

    domain: Domain
    weights: Mapping[str, Floats]
    resolutions: Resolutions
    total: float
    tuning: FirstTreeTuning = TUNING.first_tree

    @property
    def divisible(self) -> bool:
        """Whether some column has two values to split by, and another to be told of."""
        return len(self.weights) > 1 and any(w.size > 1 for w in self.weights.values())

    def share(self, column: str, groups: NDArray[np.intp]) -> Floats:
        counts = np.bincount(groups, self.weights[column])
        return np.asarray(counts / counts.sum())

    def groups(self, column: str, most: int) -> NDArray[np.intp]:
        return self.resolutions.groups((column,), max(most, min(self.resolutions.groupings[column])))[0]


@dataclass(frozen=True)
class LeafMixture:
    """Leaves with their rows, and the distribution of every column inside each."""

    tree: Tree
    rows: Floats
    shares: Mapping[str, Floats]
    """By leaf and code."""
    measured: Sequence[Measurement]

    def draw(self, count: int, rng: np.random.Generator) -> CodeColumns:
        leaf = draw_given(np.zeros(count, dtype=CODE), self.rows[None, :], rng)
        return {c: draw_given(leaf, settled(table), rng) for c, table in self.shares.items()}

    def margins(self) -> list[NoisyTable]:
        """What all leaves together say of each column."""
        leaves, found = self.tree.cells, []
        for m in self.measured:
            assert isinstance(m.partition, Crossed)
            counts = m.counts.reshape(leaves, -1).sum(axis=0).astype(np.float64)
            groups = np.array(m.partition.groups, dtype=np.intp)
            found.append(NoisyTable((m.partition.column,), counts, m.variance * leaves, (groups,)))
        return found

    def factors(self, known: ColumnEstimates) -> Iterator[tuple[Tree | Crossed, Floats]]:
        """The log-factors by which this differs from independent columns.

        A row's probability is w(L)·Π p_j(x|L), and p_j(x|L) is p_j(x) times a number for each group inside the leaf.
        """
        yield self.tree, np.log(np.maximum(self.rows, LEAST_MASS) / self.rows.sum())
        for m in self.measured:
            part = m.partition
            assert isinstance(part, Crossed)
            alone = known.weights[part.column] / known.weights[part.column].sum()
            inside = _by_group(self.shares[part.column], np.array(part.groups))
            allowed = _by_group(np.where(self.shares[part.column] > 0, alone, 0.0), np.array(part.groups))
            ratio = np.maximum(inside, LEAST_MASS) / np.maximum(allowed, LEAST_MASS)
            yield part, np.clip(np.log(ratio), -LARGEST_THETA, LARGEST_THETA).ravel()


def grow_directly(known: ColumnEstimates, curator: Queryable, amount: Amount, rng: np.random.Generator) -> LeafMixture:
    """Splits by the exponential mechanism, then every column by leaf."""
    selecting, measuring = amount.split([known.tuning.selection_share, 1.0 - known.tuning.selection_share])
    levels = level_count(known, curator, measuring)
    choices: list[Choice] = []
    # One split for all nodes of a level, so that a level costs one selection however many nodes it has.
    for part in selecting.split([1.0] * levels):
        choices += _pick(choices, known, curator, part, rng)
    return _measured(oblivious(choices, known.domain), choices, known, curator, measuring)


def level_count(known: ColumnEstimates, curator: Queryable, amount: Amount) -> int:
    """As many as leave each leaf enough rows for its columns to be seen through their noise."""
    each = amount.part(1.0 / len(known.domain.names))
    noise = each.noise_scale(curator.count_sensitivity(each))
    return int(
        np.clip(math.log2(max(known.total / (known.tuning.rows_per_noise * noise), 1.0)), 1, known.tuning.most_levels)
    )


def oblivious(choices: Sequence[Choice], domain: Domain) -> Tree:
    """The tree that makes the same choice in all nodes of a level; leaf i went right where i has a bit, first high."""
    columns = tuple(c for c in domain.names if c in {c for c, _ in choices})
    splits = []
    for level, (column, right) in enumerate(choices):
        for i in range(1 << level):
            if level + 1 < len(choices):
                low = (1 << level + 1) - 1 + 2 * i
                high = low + 1
            else:  # leaf j is written as -1 - j
                low = -1 - 2 * i
                high = low - 1
            splits.append(Split(columns.index(column), right, low, high))
    return Tree(columns, domain.shape(columns), tuple(splits))


def _pick(
    before: Sequence[Choice], known: ColumnEstimates, curator: Queryable, amount: Amount, rng: np.random.Generator
) -> list[Choice]:
    """The split that tells most of some other column, within the leaves so far; none where all are made."""
    offered = [(c, mask) for c in known.domain.names for mask in _cuts(known, c) if (c, mask) not in before]
    pairs = [(choice, other) for choice in offered for other in known.domain.names if other != choice[0]]
    # A random choice that depends on no row: which candidates are left out tells nothing.
    if len(pairs) > known.tuning.most_candidates:
        pairs = [pairs[i] for i in np.sort(rng.choice(len(pairs), known.tuning.most_candidates, replace=False))]
    if not pairs:
        return []
    trees = {choice: oblivious([*before, choice], known.domain) for choice, _ in pairs}
    candidates = []
    for choice, other in pairs:
        groups = known.groups(other, known.tuning.scored_groups)
        part = Crossed(trees[choice], other, tuple(groups.tolist()))
        candidates.append(Departure(part.columns, known.share(other, groups), part))
    (chosen,) = curator.ask(Select(known.domain, candidates, amount))
    return [pairs[chosen][0]]


def _cuts(known: ColumnEstimates, column: str) -> list[int]:
    """Masks that halve or quarter a column by its noisy counts, in its order or from its commonest value on."""
    weights, coding = known.weights[column], known.domain[column]
    if weights.size < 2:
        return []
    order = np.arange(weights.size)
    if coding.edges is None:
        order = np.argsort(-weights, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    places = sorted({int(np.argmin(np.abs(below[:-1] - q))) for q in QUANTILES})
    masks = []
    for place in places:
        right = np.zeros(weights.size, dtype=np.bool_)
        right[order[place + 1 :]] = True
        masks.append(code_mask(right))
    return masks


def _measured(
    tree: Tree, choices: Sequence[Choice], known: ColumnEstimates, curator: Queryable, amount: Amount
) -> LeafMixture:
    groups = {c: known.groups(c, known.tuning.counted_groups) for c in known.domain.names}
    parts = [Crossed(tree, c, tuple(g.tolist())) for c, g in groups.items()]
    # Every row is in one leaf, but in a table of each column: leaves are parallel, columns share the budget.
    shares = error_weights([p.cells for p in parts], amount.pure)
    measured = curator.ask(Partitions(known.domain, parts, amount, shares))
    rows = _leaf_rows(measured, possible(choices, tree), known.total)
    tables: dict[str, Floats] = {}
    for m, (column, g) in zip(measured, groups.items(), strict=True):
        counts = m.counts.reshape(tree.cells, -1).astype(np.float64)
        by_leaf = shrunk(counts, m.variance, known.share(column, g), rows)
        tables[column] = _opened(by_leaf, g, known.weights[column], allowed(choices, column, tree))
    return LeafMixture(tree, rows, tables, measured)


def _leaf_rows(measured: Sequence[Measurement], filled: NDArray[np.bool_], total: float) -> Floats:
    """Every table says how many rows a leaf has: their mean by inverse variance, made to add up."""
    sums = np.stack([m.counts.reshape(len(filled), -1).sum(axis=1) for m in measured]).astype(np.float64)
    weights = np.array([len(filled) / (m.counts.size * m.variance) for m in measured])
    rows = np.where(filled, np.maximum(weights @ sums / weights.sum(), LEAST_MASS), 0.0)
    return np.asarray(rows * (total / rows.sum()))


def possible(choices: Sequence[Choice], tree: Tree) -> NDArray[np.bool_]:
    """Which leaves a row can be in: two splits of one column may contradict each other."""
    return np.all([allowed(choices, c, tree).any(axis=1) for c in tree.columns], axis=0)


def shrunk(counts: Floats, variance: float, share: Floats, rows: Floats) -> Floats:
    """The column's distribution in each leaf, shrunk level by level towards that of the node above (James & Stein).

    How far is learned from all nodes of a level together: noise that explains all of their differences leaves none.
    """
    above = share[None, :]
    for nodes in (1 << level for level in range(1, int(math.log2(len(counts))) + 1)):
        seen = counts.reshape(nodes, -1, counts.shape[1]).sum(axis=1)
        size = rows.reshape(nodes, -1).sum(axis=1)[:, None]
        expected = size * np.repeat(above, nodes // len(above), axis=0)
        # The sum of squares that noise alone would give: a node adds up several leaves, and their variances.
        noise = variance * len(counts) / nodes * seen.size
        squares = float(((seen - expected) ** 2).sum())
        # The positive part: a factor below 0 would turn the differences round.
        kept = max(0.0, 1.0 - noise / max(squares, 1e-300))
        table = np.maximum(expected + kept * (seen - expected), 0.0) + LEAST_MASS
        above = table / table.sum(axis=1, keepdims=True)
    return np.asarray(above)


def allowed(choices: Sequence[Choice], column: str, tree: Tree) -> NDArray[np.bool_]:
    """By leaf and code, which codes of a column can be in which leaf."""
    size = 0
    if column in tree.columns:
        size = tree.sizes[tree.columns.index(column)]
    found = np.ones((tree.cells, size), dtype=np.bool_)
    for level, (split, right) in enumerate(choices):
        if split == column:
            went_right = (np.arange(tree.cells) >> (len(choices) - 1 - level)) & 1
            found &= code_bits(right, size)[None, :] == went_right[:, None].astype(np.bool_)
    return found


def _opened(by_leaf: Floats, groups: NDArray[np.intp], weights: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Shares by leaf and group as shares by leaf and code; none for codes that can't be in the leaf."""
    mass = np.broadcast_to(weights + LEAST_MASS, (len(by_leaf), weights.size))
    mass = mass * inside if inside.size else mass
    sums = _by_group(mass, groups)
    table = mass * (by_leaf / np.maximum(sums, 1e-300))[:, groups]
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300))


def _by_group(table: Floats, groups: Groups) -> Floats:
    """Columns of a table, summed by group."""
    return summed(table, (None, summing(groups)))
