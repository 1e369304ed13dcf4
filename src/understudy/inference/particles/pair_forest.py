"""Where particles come from: rows drawn exactly from a forest of pairs, so that linked columns agree from the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.grouping import Floats, Groups
from understudy.inference.model import CodeColumns
from understudy.inference.sampling import CODE, draw_given

LEAST_MASS = 1e-9


@dataclass(frozen=True)
class Edge:
    """Two columns by groups, and the factor by which each cell differs from independent columns."""

    columns: ColumnSet
    groups: tuple[Groups, ...]
    factor: Floats

    def turned(self) -> Edge:
        return Edge(self.columns[::-1], self.groups[::-1], self.factor.T)


def draw_forest(
    weights: Mapping[str, Floats], edges: Sequence[Edge], rows: int, rng: np.random.Generator
) -> CodeColumns:
    """Each tree from one of its columns outwards; a column given its neighbour is its own counts times the factor."""
    around: dict[str, list[Edge]] = {c: [] for c in weights}
    for edge in edges:
        for seen in (edge, edge.turned()):
            around[seen.columns[0]].append(seen)
    codes: CodeColumns = {}
    for root in weights:
        if root not in codes:
            codes[root] = draw_given(np.zeros(rows, dtype=np.intp), weights[root][None, :], rng)
            _grow(root, around, weights, codes, rng)
    return {c: codes[c].astype(CODE) for c in weights}


def _grow(
    root: str,
    around: Mapping[str, list[Edge]],
    weights: Mapping[str, Floats],
    codes: CodeColumns,
    rng: np.random.Generator,
) -> None:
    waiting = [root]
    while waiting:
        column = waiting.pop()
        for edge in around[column]:
            near, far = edge.groups
            name = edge.columns[1]
            if name not in codes:
                table = edge.factor[:, far] * (weights[name] + LEAST_MASS)
                codes[name] = draw_given(near[codes[column]], table, rng)
                waiting.append(name)
