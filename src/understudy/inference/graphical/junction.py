"""Junction trees: cliques that cover given sets of columns, joined so that shared columns agree along a tree.

Eliminating the columns one by one, each together with its neighbours, triangulates the graph; the maximal
neighbourhoods are the cliques, and a spanning tree of largest overlap has the running-intersection property
(Koller & Friedman 2009, chapter 10).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from understudy.boundary.schema.domain import ColumnSet


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
