"""Marginals of a graphical model, also of columns that share no clique: all pairs at once, or any few columns.

All pairs: what is known of a column a at one link of the tree is P(a, S), S being what the link shares. Beyond the next
clique it is P(a, S′) = Σ P(a, S)·P(S′ | S), a sum over those columns of S that S′ lacks. All columns on one side of a
link travel together, as the rows of one matrix: first up the tree, then down it, where each clique meets every column
that came before it. So a model costs a few matrix products per link, however many pairs it has.

Any few columns: each clique hands on P(wanted columns at and beyond it | what the link to it shares); the first one
multiplies what comes back with its own table. Only the branches that lead to a wanted column are visited.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.graphical.graphical_model import (
    TINY,
    GraphicalModel,
    JunctionTree,
    Link,
    Table,
    margin,
    marginalise,
    spread,
)


@dataclass(frozen=True)
class Carried:
    """P(a, S) for several columns a: their values one under the other, by the cells of S."""

    columns: ColumnSet
    shared: ColumnSet
    rows: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[Carried], shared: ColumnSet) -> Carried:
        columns = tuple(c for p in parts for c in p.columns)
        return cls(columns, shared, np.concatenate([p.rows for p in parts]))


def every_pair(model: GraphicalModel) -> dict[ColumnSet, Table]:
    """The table of every pair of columns, each in the order of the model's columns."""
    return _TwoPasses(model, set(itertools.combinations(model.sizes, 2))).pairs()


def every_triple_with(model: GraphicalModel, target: str, most_cells: float = math.inf) -> dict[ColumnSet, Table]:
    """The table (a, target, b) of every two other columns, where it has at most so many cells.

    Every column must share a clique with the target. Then every maximal clique holds the target (else it could be
    enlarged by it), and given its value the rest is a smaller model of the same shape.
    """
    others = [c for c in model.sizes if c != target]
    room = most_cells / model.sizes[target]
    wanted = {(a, b) for a, b in itertools.combinations(others, 2) if model.sizes[a] * model.sizes[b] <= room}
    slices = [_TwoPasses(_given(model, target, v), wanted).pairs() for v in range(model.sizes[target])]
    return {(a, target, b): np.stack([s[a, b] for s in slices], axis=1) for a, b in slices[0]}


def _given(model: GraphicalModel, column: str, value: int) -> GraphicalModel:
    """The counts of the rows that have this value, without the column itself; every clique must hold it."""

    def without(columns: ColumnSet) -> ColumnSet:
        return tuple(c for c in columns if c != column)

    def cut(table: Table, columns: ColumnSet) -> Table:
        return np.take(table, value, axis=columns.index(column))

    tree = JunctionTree(
        tuple(map(without, model.tree.cliques)),
        tuple(Link(x.child, x.parent, without(x.shared)) for x in model.tree.links),
    )
    return GraphicalModel(
        {c: n for c, n in model.sizes.items() if c != column},
        tree,
        [cut(t, c) for t, c in zip(model.tables, model.tree.cliques, strict=True)],
        [cut(t, x.shared) for t, x in zip(model.shared, model.tree.links, strict=True)],
    )


class _TwoPasses:
    """The two passes over one model. A column is *new* in the first clique that holds it, seen from the root."""

    def __init__(self, model: GraphicalModel, wanted: Collection[ColumnSet]) -> None:
        self._model, self._cliques, self._wanted = model, model.tree.cliques, wanted
        self._above = {link.child: link for link in model.tree.links}
        self._new: list[ColumnSet] = []
        for i, clique in enumerate(self._cliques):
            known = self._above[i].shared if i in self._above else ()
            self._new.append(tuple(c for c in clique if c not in known))
        self._place = {c: i for i, c in enumerate(model.sizes)}
        self._conditionals: dict[tuple[int, ColumnSet, ColumnSet], Table] = {}
        self._found: dict[ColumnSet, Table] = {}

    def pairs(self) -> dict[ColumnSet, Table]:
        rising = self._rise()
        arriving: dict[int, list[Carried]] = {0: []}
        for clique in (0, *(link.child for link in self._model.tree.links)):
            before = arriving.pop(clique)
            self._meet(clique, before)
            self._send_down(clique, before, rising, arriving)
        return {p: self._found[p] for p in itertools.combinations(self._model.sizes, 2) if p in self._wanted}

    def _rise(self) -> dict[int, Carried]:
        """At each link, every column that is new below it."""
        below: dict[int, list[Carried]] = {}
        rising: dict[int, Carried] = {}
        for link in reversed(self._model.tree.links):
            own = [self._start(link.child, c, link.shared) for c in self._new[link.child]]
            passed = [self._carry(r, link.child, link.shared) for r in below.pop(link.child, [])]
            rising[link.child] = Carried.joined([*own, *passed], link.shared)
            below.setdefault(link.parent, []).append(rising[link.child])
        return rising

    def _send_down(
        self, clique: int, before: list[Carried], rising: dict[int, Carried], arriving: dict[int, list[Carried]]
    ) -> None:
        """To each link below: the columns from above, this clique's own, and those of the links served before it."""
        links = [self._model.tree.links[i] for i in self._model.children.get(clique, ())]
        sent: dict[ColumnSet, list[Carried]] = {}
        for i, link in enumerate(links):
            # Siblings with the same shared columns get the same message but for their own: it is extended, not redone.
            if link.shared not in sent:
                own = [self._start(clique, c, link.shared) for c in self._new[clique]]
                known = [*before, *(rising[x.child] for x in links[:i])]
                sent[link.shared] = own + [self._carry(k, clique, link.shared) for k in known]
            arriving[link.child] = [Carried.joined(sent[link.shared], link.shared)]
            later = {x.shared for x in links[i + 1 :]}
            for shared in later & sent.keys():
                sent[shared].append(self._carry(rising[link.child], clique, shared))

    def _meet(self, clique: int, before: list[Carried]) -> None:
        """Tables of the columns that are new here, with each other and with all that came before."""
        new, held = self._new[clique], self._cliques[clique]
        for i, b in enumerate(new):
            for a in new[:i]:
                self._keep(a, b, marginalise(self._model.tables[clique], held, (a, b)))
            for known in before:
                rows, start = self._carry(known, clique, (b,)).rows, 0
                for a in known.columns:
                    end = start + self._model.sizes[a]
                    self._keep(a, b, rows[start:end])
                    start = end

    def _keep(self, a: str, b: str, table: Table) -> None:
        pair = (a, b)
        if self._place[a] > self._place[b]:
            pair, table = (b, a), table.T
        if pair in self._wanted:
            self._found[pair] = table

    def _start(self, clique: int, column: str, shared: ColumnSet) -> Carried:
        """P(column, shared) inside one clique; where the column is itself shared, only its own value is possible."""
        size, held = self._model.sizes[column], self._cliques[clique]
        if column not in shared:
            table = marginalise(self._model.tables[clique], held, (column, *shared))
        else:
            joint = marginalise(self._model.tables[clique], held, shared)
            known = np.eye(size).reshape(size, *(size if c == column else 1 for c in shared))
            table = known * joint
        return Carried((column,), shared, table.reshape(size, -1))

    def _carry(self, known: Carried, clique: int, onto: ColumnSet) -> Carried:
        """P(a, onto) from P(a, shared), through one clique: a matrix product for each cell of what both have."""
        if onto == known.shared:
            return known
        both = tuple(c for c in known.shared if c in onto)
        gone = tuple(c for c in known.shared if c not in onto)
        new = tuple(c for c in onto if c not in known.shared)
        given = self._conditional(clique, known.shared, both + gone + new)
        given = given.reshape(self._cells(both), self._cells(gone), -1)
        axes = [1 + known.shared.index(c) for c in both + gone]
        rows = known.rows.reshape(-1, *(self._model.sizes[c] for c in known.shared))
        stacked = rows.transpose(0, *axes).reshape(len(known.rows), self._cells(both), -1).transpose(1, 0, 2)
        # Given S, what lies beyond is independent of a: the running-intersection property makes this product exact.
        product = (stacked @ given).transpose(1, 0, 2)
        product = product.reshape(-1, *(self._model.sizes[c] for c in both + new))
        ordered = product.transpose(0, *(1 + (both + new).index(c) for c in onto))
        return Carried(known.columns, onto, ordered.reshape(len(known.rows), -1))

    def _conditional(self, clique: int, shared: ColumnSet, columns: ColumnSet) -> Table:
        """P(columns | shared), in the order of `columns`, inside one clique."""
        key = (clique, shared, columns)
        if key not in self._conditionals:
            joint = marginalise(self._model.tables[clique], self._cliques[clique], columns)
            ordered = tuple(c for c in columns if c in shared)
            mass = spread(margin(joint, columns, shared), ordered, columns)
            self._conditionals[key] = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > TINY)
        return self._conditionals[key]

    def _cells(self, columns: ColumnSet) -> int:
        return math.prod(self._model.sizes[c] for c in columns)


class Joints:
    """Marginals of one model, by what was asked for; what they share is computed once."""

    def __init__(self, model: GraphicalModel) -> None:
        self._model = model
        self._ties: dict[int, list[tuple[int, int]]] = {}
        for i, link in enumerate(model.tree.links):
            self._ties.setdefault(link.parent, []).append((i, link.child))
            self._ties.setdefault(link.child, []).append((i, link.parent))
        self._conditionals: dict[tuple[int, int, ColumnSet], Table] = {}
        self._sides: dict[tuple[int, int], frozenset[str]] = {}

    def table(self, columns: ColumnSet) -> Table:
        """The marginal of these columns, in the order asked for."""
        held, joint = self._gather(self._model.tree.home(columns[:1]), None, frozenset(columns))
        return marginalise(joint, held, columns)

    def _gather(self, clique: int, link: int | None, wanted: frozenset[str]) -> tuple[ColumnSet, Table]:
        """P(wanted columns at and beyond a clique | shared columns of the link that leads there), and its columns."""
        tree, held = self._model.tree, self._model.tree.cliques[clique]
        onward = [
            (i, c) for i, c in self._ties.get(clique, ()) if i != link and self._side(i, c) & (wanted - set(held))
        ]
        parts = [self._gather(beyond, i, wanted) for i, beyond in onward]
        given = () if link is None else tree.links[link].shared
        needed = wanted.union(given, *(tree.links[i].shared for i, _ in onward))
        both = tuple(c for c in held if c in needed)
        if link is None:
            here = margin(self._model.tables[clique], held, both)
        else:
            here = self._conditional(clique, link, both)
        return _multiplied([(both, here), *parts], keep=wanted.union(given))

    def _side(self, link: int, clique: int) -> frozenset[str]:
        """All columns at and beyond a clique, seen from a link to it."""
        if (link, clique) not in self._sides:
            onward = (self._side(i, c) for i, c in self._ties[clique] if i != link)
            self._sides[link, clique] = frozenset(self._model.tree.cliques[clique]).union(*onward)
        return self._sides[link, clique]

    def _conditional(self, clique: int, link: int, both: ColumnSet) -> Table:
        """P(both | shared columns of the link), inside one clique."""
        key = (clique, link, both)
        if key not in self._conditionals:
            shared, held = self._model.tree.links[link].shared, self._model.tree.cliques[clique]
            joint = margin(self._model.tables[clique], held, both)
            mass = spread(margin(joint, both, shared), tuple(c for c in both if c in shared), both)
            self._conditionals[key] = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > TINY)
        return self._conditionals[key]


def _multiplied(parts: list[tuple[ColumnSet, Table]], keep: frozenset[str]) -> tuple[ColumnSet, Table]:
    """The product of tables, summed over every column that is not kept."""
    axis = {c: i for i, c in enumerate(dict.fromkeys(c for columns, _ in parts for c in columns))}
    kept = tuple(c for c in axis if c in keep)
    operands = [x for columns, table in parts for x in (table, [axis[c] for c in columns])]
    # Variable elimination: a column is summed out as soon as no further table has it.
    einsum: Any = np.einsum  # its stubs know no lists of axes
    return kept, einsum(*operands, [axis[c] for c in kept], optimize=len(parts) > 2)
