"""All two-way marginals of a graphical model at once, also of columns that share no clique.

From the clique of a column a, the joint of a with what each link shares is carried along the tree:
P(a, S′) = Σ P(a, S)·P(S′ | S), a sum over those columns of S that S′ lacks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from understudy.models.graphical import TINY, GraphicalModel, Table, margin, marginalise, spread
from understudy.schema.domain import ColumnSet


class Pairwise:
    """Joints of one set of columns (the *source*) with every other column, for many sources on one model."""

    def __init__(self, model: GraphicalModel) -> None:
        self._model = model
        self._neighbours: dict[int, list[tuple[int, int]]] = {}
        for i, link in enumerate(model.tree.links):
            self._neighbours.setdefault(link.parent, []).append((i, link.child))
            self._neighbours.setdefault(link.child, []).append((i, link.parent))
        self._conditionals: dict[tuple[int, int, ColumnSet], Table] = {}

    def table(self, columns: ColumnSet) -> Table:
        """The marginal of two columns, or of more of which all but the last share a clique."""
        *source, last = columns
        joint = self.joints(tuple(source), (last,))[last]
        return joint.reshape(tuple(self._model.sizes[c] for c in columns))

    def joints(self, source: ColumnSet, wanted: Iterable[str]) -> dict[str, Table]:
        """For each wanted column, the table of shape (cells of source, size of column)."""
        model, tree = self._model, self._model.tree
        home = tree.home(source)
        held = tree.cliques[home]
        left = set(wanted) - set(source)
        found = {c: self._start(home, source, (c,)) for c in left & set(held)}
        queue = [(*tie, self._start(home, source, tree.links[tie[0]].shared)) for tie in self._ties(home)]
        while queue:
            link, clique, carried = queue.pop()
            for column in (left - found.keys()) & set(tree.cliques[clique]):
                found[column] = self._carry(carried, clique, link, (column,))
            for onward, beyond in self._ties(clique):
                if onward != link:
                    queue.append((onward, beyond, self._carry(carried, clique, link, tree.links[onward].shared)))
        cells = int(np.prod([model.sizes[c] for c in source], dtype=np.int64))
        return {c: t.reshape(cells, -1) for c, t in found.items()}

    def _ties(self, clique: int) -> list[tuple[int, int]]:
        """The links of a clique, and the clique at the other end of each."""
        return self._neighbours.get(clique, [])

    def _start(self, clique: int, source: ColumnSet, onto: ColumnSet) -> Table:
        """P(source, onto) inside one clique, with one axis for the source and one for each column of `onto`.

        A column of `onto` that is also in the source is known from it: its axis is zero but for that value.
        """
        model, held = self._model, self._model.tree.cliques[clique]
        rest = tuple(c for c in onto if c not in source)
        joint = marginalise(model.tables[clique], held, source + rest)
        for column in (c for c in onto if c in source):
            axis, size = source.index(column), self._model.sizes[column]
            known = np.eye(size).reshape([size if i in (axis, joint.ndim) else 1 for i in range(joint.ndim + 1)])
            joint = joint[..., None] * known
        order = rest + tuple(c for c in onto if c in source)
        flat = joint.reshape(-1, *joint.shape[len(source) :])
        return flat.transpose([0, *(1 + order.index(c) for c in onto)])

    def _carry(self, carried: Table, clique: int, link: int, onto: ColumnSet) -> Table:
        """P(source, onto) on the far side of a clique, from P(source, shared columns of the link)."""
        shared = self._model.tree.links[link].shared
        both = tuple(c for c in self._model.tree.cliques[clique] if c in shared or c in onto)
        axis = {c: i + 1 for i, c in enumerate(both)}
        given = self._given(clique, link, both)
        given_axes, carried_axes = [axis[c] for c in both], [0, *(axis[c] for c in shared)]
        einsum: Any = np.einsum  # its stubs know no lists of axes
        return einsum(carried, carried_axes, given, given_axes, [0, *(axis[c] for c in onto)])

    def _given(self, clique: int, link: int, both: ColumnSet) -> Table:
        """P(both | shared columns of the link), inside one clique."""
        key = (clique, link, both)
        if key not in self._conditionals:
            shared, held = self._model.tree.links[link].shared, self._model.tree.cliques[clique]
            joint = margin(self._model.tables[clique], held, both)
            mass = spread(margin(joint, both, shared), tuple(c for c in both if c in shared), both)
            self._conditionals[key] = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > TINY)
        return self._conditionals[key]
