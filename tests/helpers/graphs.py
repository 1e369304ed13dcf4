"""Graphs of named shapes over small columns, and the full joint table of a graphical model over them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 3}
SHAPES = {
    "chain": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")],
    "star": [("c", "a"), ("c", "b"), ("c", "d"), ("c", "e")],
    "tree": [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")],
    "cycle": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")],
    "clique": [("a", "b", "c"), ("c", "d", "e"), ("a", "d"), ("b", "e"), ("a", "e"), ("b", "d")],
    "disconnected": [("a", "b"), ("d", "e")],
    "duplicates": [("a", "b"), ("b", "a"), ("a", "b", "c"), ("c", "b", "a"), ("d", "e"), ("e",)],
    "single nodes": [("a",), ("b",), ("c",), ("d",), ("e",)],
    "empty": [],
}
shapes = pytest.mark.parametrize("shape", SHAPES)
COLUMNS = tuple(SIZES)
Potentials = Mapping[tuple[str, ...], np.ndarray]


def dense(sizes: Mapping[str, int], potentials: Potentials, total: float) -> np.ndarray:
    """The joint table of all columns, by summing every potential in every cell."""
    names = tuple(sizes)
    grid = np.indices(tuple(sizes.values()))
    logs = np.zeros(tuple(sizes.values()))
    for columns, potential in potentials.items():
        logs += potential[tuple(grid[names.index(c)] for c in columns)]
    joint = np.exp(logs - logs.max())
    return joint * total / joint.sum()


def random_potentials(shape: str, scale: float, seed: int) -> Potentials:
    """One per set, and one per column."""
    rng = np.random.default_rng(seed)
    sets = {*SHAPES[shape], *((c,) for c in SIZES)}
    return {s: scale * rng.uniform(-1, 1, [SIZES[c] for c in s]) for s in sorted(sets)}


def fitted(shape: str, potentials: Potentials, total: float = 1000.0) -> GraphicalModel:
    return GraphicalModel.from_potentials(SIZES, JunctionTree.over(SHAPES[shape], SIZES), potentials, total)
