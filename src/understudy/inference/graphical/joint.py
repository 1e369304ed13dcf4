"""The marginal of any few columns of a graphical model, whether or not any of them share a clique.

Each clique hands on P(wanted columns at and beyond it | what the link to it shares); the first one multiplies what
comes back with its own table. Only the branches that lead to a wanted column are visited.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.graphical.graphical_model import TINY, GraphicalModel, Table, margin, marginalise, spread


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
        here = margin(self._model.tables[clique], held, both) if link is None else self._conditional(clique, link, both)
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
    einsum: Any = np.einsum  # its stubs know no lists of axes
    return kept, einsum(*operands, [axis[c] for c in kept], optimize=len(parts) > 2)
