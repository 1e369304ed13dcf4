"""A graphical model held as calibrated tables on a junction tree: every table is a marginal of the model, in counts.

Inference is exact. A change of one clique's table reaches a neighbour through the table of their shared columns
(Hugin propagation: multiply by new over old). All tables stay in the scale of counts, so nothing overflows.

A junction tree joins cliques so that shared columns agree along it. Eliminating the columns one by one, each together
with its neighbours, triangulates the graph; the maximal neighbourhoods are the cliques, and a spanning tree of largest
overlap has the running-intersection property (Koller & Friedman 2009, chapter 10).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import settled
from understudy.inference.sampling import CODE, draw_given

Table = NDArray[np.float64]
Tables = Mapping[ColumnSet, Table]
TINY = 1e-290
"""Smaller masses are none: a quotient by them could leave the range of doubles."""


@dataclass(frozen=True)
class Link:
    """A clique hung below its parent; `shared` are the columns that they have in common (none across components)."""

    child: int
    parent: int
    shared: ColumnSet


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, and the links from each to its parent in an order that visits parents first; clique 0 is the root."""

    cliques: tuple[ColumnSet, ...]
    links: tuple[Link, ...]

    @classmethod
    def over(cls, sets: Iterable[ColumnSet], sizes: Mapping[str, int]) -> JunctionTree:
        """A tree whose cliques cover every given set and every column of `sizes`."""
        cliques = _maximal(_eliminate(sets, sizes), tuple(sizes))
        return cls(cliques, _span(cliques))

    @property
    def parts(self) -> int:
        """How many separate parts the columns fall into."""
        return 1 + sum(not link.shared for link in self.links)

    def cells(self, sizes: Mapping[str, int]) -> int:
        """How many numbers all its cliques hold together: what inference costs in memory."""
        return sum(math.prod(sizes[c] for c in clique) for clique in self.cliques)

    def home(self, columns: Sequence[str]) -> int:
        """The first clique that holds all these columns."""
        wanted = set(columns)
        return next(i for i, clique in enumerate(self.cliques) if wanted <= set(clique))


def _eliminate(sets: Iterable[ColumnSet], sizes: Mapping[str, int]) -> list[frozenset[str]]:
    """Neighbourhoods in a greedy elimination order: the smallest table next, then the fewest new edges."""
    neighbours: dict[str, set[str]] = {c: set() for c in sizes}
    for columns in sets:
        for a, b in itertools.permutations(columns, 2):
            neighbours[a].add(b)
    weight = {c: math.log(max(sizes[c], 2)) for c in sizes}
    order = {c: i for i, c in enumerate(sizes)}
    found = []

    def cost(column: str) -> tuple[float, int, int]:
        around = neighbours[column]
        fill = sum(b not in neighbours[a] for a, b in itertools.combinations(around, 2))
        # Rounded, since a set is walked in another order in every process, and sums of logarithms would differ in
        # their last digits; another order of elimination is another model, and a replay must find the same.
        return round(weight[column] + sum(weight[c] for c in around), 9), fill, order[column]

    # To find the order with the smallest cliques is NP-hard (Arnborg, Corneil & Proskurowski 1987).
    costs = {c: cost(c) for c in sizes}
    while neighbours:
        column = min(neighbours, key=lambda c: costs[c])
        around = neighbours.pop(column)
        found.append(frozenset(around | {column}))
        for a in around:
            neighbours[a] |= around - {a}
            neighbours[a].discard(column)
        # The fill of a column depends on the links among its neighbours, so that theirs changes too.
        touched = around | {b for a in around for b in neighbours[a]}
        costs |= {c: cost(c) for c in touched}
    return found


def _maximal(found: list[frozenset[str]], order: ColumnSet) -> tuple[ColumnSet, ...]:
    kept: list[frozenset[str]] = []
    for clique in sorted(found, key=len, reverse=True):
        if not any(clique <= other for other in kept):
            kept.append(clique)
    place = {c: i for i, c in enumerate(order)}
    return tuple(sorted((tuple(sorted(c, key=place.__getitem__)) for c in kept), key=lambda c: [place[x] for x in c]))


def _span(cliques: tuple[ColumnSet, ...]) -> tuple[Link, ...]:
    """Prim's maximum spanning tree by the number of shared columns, from clique 0; equal overlaps in clique order."""
    links: list[Link] = []
    # A spanning tree of cliques is a junction tree if and only if its overlaps add up to the most (Jensen 1994).
    best = {i: (len(set(cliques[0]) & set(c)), 0) for i, c in enumerate(cliques) if i}
    while best:
        child = max(best, key=lambda i: (best[i][0], -i))
        parent = best.pop(child)[1]
        links.append(Link(child, parent, tuple(c for c in cliques[child] if c in cliques[parent])))
        for i, (overlap, _) in best.items():
            shared = len(set(cliques[child]) & set(cliques[i]))
            if shared > overlap:
                best[i] = (shared, child)
    return tuple(links)


@dataclass(frozen=True)
class GraphicalModel:
    """Marginals of the cliques of a junction tree, and of what its links share; each sums to `total`."""

    sizes: Mapping[str, int]
    tree: JunctionTree
    tables: list[Table]
    shared: list[Table]
    children: Mapping[int, Sequence[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        below: dict[int, list[int]] = {}
        for i, link in enumerate(self.tree.links):
            below.setdefault(link.parent, []).append(i)
        object.__setattr__(self, "children", below)

    @classmethod
    def from_potentials(
        cls, sizes: Mapping[str, int], tree: JunctionTree, potentials: Tables, total: float
    ) -> GraphicalModel:
        """The model p(x) ∝ exp(Σ potentials(x)), calibrated; each potential's columns lie in one clique."""
        logs = [np.zeros(tuple(sizes[c] for c in clique)) for clique in tree.cliques]
        for columns, potential in potentials.items():
            home = tree.home(columns)
            logs[home] += spread(potential, columns, tree.cliques[home])
        # Upwards in logs, which leaves P(rest | shared) at each clique; then downwards, times the counts of the shared.
        for link in reversed(tree.links):
            message, logs[link.child] = _conditional(logs[link.child], tree.cliques[link.child], link.shared)
            logs[link.parent] += spread(message, link.shared, tree.cliques[link.parent])
        tables = [total * _conditional(logs[0], tree.cliques[0], ())[1], *logs[1:]]
        shared = []
        for link in tree.links:
            shared.append(margin(tables[link.parent], tree.cliques[link.parent], link.shared))
            tables[link.child] *= spread(shared[-1], link.shared, tree.cliques[link.child])
        return cls(sizes, tree, tables, shared)

    def settled(self) -> GraphicalModel:
        """The same model to ten significant bits, to draw from: see `noisy_table.settled`."""
        return GraphicalModel(self.sizes, self.tree, [*map(settled, self.tables)], [*map(settled, self.shared)])

    @property
    def total(self) -> float:
        return float(self.tables[0].sum())

    def pass_message(self, link: int, upward: bool) -> None:
        """Makes the table at one end of a link agree with the other end on the columns that they share."""
        # Jensen, Lauritzen & Olesen (1990): dividing by the old table of the link takes back what was passed before.
        tie = self.tree.links[link]
        source, target = (tie.child, tie.parent) if upward else (tie.parent, tie.child)
        new = margin(self.tables[source], self.tree.cliques[source], tie.shared)
        old = self.shared[link]
        # 0/0 is 0: a cell that has no mass gets none back.
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > TINY)
        self.tables[target] *= spread(ratio, tie.shared, self.tree.cliques[target])
        self.shared[link] = new

    def tour(self, clique: int = 0) -> Iterator[int]:
        """Visits every clique, each time after all messages that concern it have been passed; ends where it began."""
        yield clique
        for link in self.children.get(clique, ()):
            self.pass_message(link, upward=False)
            yield from self.tour(self.tree.links[link].child)
            self.pass_message(link, upward=True)

    def marginal(self, columns: ColumnSet) -> Table:
        """The marginal of columns that one clique holds, in the order asked for."""
        home = self.tree.home(columns)
        return marginalise(self.tables[home], self.tree.cliques[home], columns)

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        """Draws down the tree: each clique's new columns given those that are drawn."""
        # Exact: given what a clique shares with its parent, its other columns are independent of all drawn before.
        drawn: CodeColumns = {}
        for i in (0, *(link.child for link in self.tree.links)):
            clique = self.tree.cliques[i]
            given = tuple(c for c in clique if c in drawn)
            new = tuple(c for c in clique if c not in drawn)
            shape = tuple(self.sizes[c] for c in new)
            table = marginalise(self.tables[i], clique, given + new)
            parents = flat_cells(drawn, given, self.sizes, rows)
            cells = draw_given(parents, table.reshape(-1, int(np.prod(shape))), rng)
            drawn |= dict(zip(new, unflatten(cells, shape), strict=True))
        return drawn

    def log_density(self, codes: CodeColumns) -> NDArray[np.float64]:
        """The product of the cliques over what their links share: the density of a junction tree."""
        logs = np.full(len(next(iter(codes.values()))), -math.log(self.total))
        for clique, table in zip(self.tree.cliques, self.tables, strict=True):
            logs += log_or_never(table[tuple(codes[c] for c in clique)])
        for link in self.tree.links:
            shared = self.marginal(link.shared)[tuple(codes[c] for c in link.shared)]
            # Where nothing is shared the marginal is the total; a cell of no mass is in a clique of none already.
            logs -= np.log(np.where(shared > 0, shared, 1.0))
        return logs

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Draws from the exact conditional of each row's given codes."""
        from understudy.inference.conditional import complete

        return complete(self, given, rng)


def log_or_never(shares: Table) -> Table:
    """Logarithms, −∞ for nothing, and no warning."""
    return np.log(shares, out=np.full(np.shape(shares), -np.inf), where=shares > 0)


def flat_cells(codes: CodeColumns, columns: ColumnSet, sizes: Mapping[str, int], rows: int) -> NDArray[np.int32]:
    """The row-major cell number of each row; a table of more than 2^31 cells would not fit into memory."""
    cells = np.zeros(rows, dtype=CODE)
    for column in columns:
        cells *= sizes[column]
        cells += codes[column].astype(CODE, copy=False)
    return cells


def unflatten(cells: NDArray[np.integer], shape: Sequence[int]) -> list[NDArray[np.integer]]:
    """The code of each column out of row-major cell numbers: the inverse of `flat_cells`."""
    codes = []
    # Not `np.unravel_index`, which takes and gives 64 bits: this is the inner step of every draw.
    for size in reversed(shape[1:]):
        rest = cells // CODE(size)
        codes.append(cells - rest * CODE(size))
        cells = rest
    return [cells, *reversed(codes)][: len(shape)]


def margin(table: Table, columns: ColumnSet, onto: ColumnSet) -> Table:
    """Sums out what is not in `onto`; the axes keep their order."""
    return table.sum(axis=tuple(i for i, c in enumerate(columns) if c not in onto))


def marginalise(table: Table, columns: ColumnSet, onto: ColumnSet) -> Table:
    """The table of `onto`, in that order, out of the table of `columns`."""
    kept = [c for c in columns if c in onto]
    return margin(table, columns, onto).transpose([kept.index(c) for c in onto])


def _conditional(log: Table, columns: ColumnSet, given: ColumnSet) -> tuple[Table, Table]:
    """ln Σ exp(log) for each cell of `given`, and exp(log) over that sum; the largest term is 1: nothing overflows."""
    rest = tuple(i for i, c in enumerate(columns) if c not in given)
    top = log.max(axis=rest, keepdims=True)
    weights = np.exp(log - top)
    sums = weights.sum(axis=rest, keepdims=True)
    return np.asarray((top + np.log(sums)).squeeze(axis=rest)), weights / sums


def spread(table: Table, columns: ColumnSet, over: ColumnSet) -> Table:
    """A table of `columns`, shaped so that it broadcasts over a table of `over`."""
    ordered = table.transpose([columns.index(c) for c in over if c in columns])
    lengths = iter(ordered.shape)
    return ordered.reshape([next(lengths) if c in columns else 1 for c in over])
