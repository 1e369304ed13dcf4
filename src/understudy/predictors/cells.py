"""What a tree is counted by: its leaves by class, or its leaves by class and by the values of a column.

Each is a partition: every row is in exactly one cell, by that row's codes alone. So all nodes of a level are counted
for the price of one (parallel composition), whereas the histograms of two columns are two partitions of the same rows,
and both are paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.predictors.decision_tree import DecisionTree

Codes = Mapping[str, NDArray[np.integer]]


@dataclass(frozen=True)
class LeafClasses:
    """Leaf × class."""

    tree: DecisionTree
    target: str
    classes: int

    @property
    def columns(self) -> ColumnSet:
        return (*self.tree.columns, self.target)

    @property
    def cells(self) -> int:
        return self.tree.leaves * self.classes

    @property
    def shape(self) -> tuple[int, int]:
        return (self.tree.leaves, self.classes)

    def assign(self, codes: Codes) -> NDArray[np.intp]:
        return self.tree.leaf_of(codes) * self.classes + codes[self.target]

    def describe(self) -> dict[str, Any]:
        return {"kind": "tree", "columns": list(self.columns), "classes": self.classes, **self._tree}

    @cached_property
    def _tree(self) -> dict[str, Any]:
        return self.tree.describe()
