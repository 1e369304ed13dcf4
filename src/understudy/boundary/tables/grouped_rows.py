"""Rows as groups of a public grid, for what needs more of them than counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import code_type
from understudy.boundary.schema.partition import Grid
from understudy.boundary.tables.counting import CodeBatch


def group_rows(grid: Grid, batches: Iterable[CodeBatch]) -> NDArray[np.integer[Any]]:
    """The group of every row in every column of the grid, in the narrowest type that holds them."""
    lookups = [np.array(g, dtype=code_type(max(g) + 1)) for g in grid.groups]
    kind = np.result_type(*lookups)
    parts = [
        np.stack([k[batch[c]] for c, k in zip(grid.columns, lookups, strict=True)], axis=1).astype(kind, copy=False)
        for batch in batches
    ]
    return np.concatenate([np.zeros((0, len(lookups)), dtype=kind), *parts])
