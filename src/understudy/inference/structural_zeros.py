"""Structural zeros: cells of a domain that no row can fall into, because a public constraint forbids all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.values import decode, violated

Mask: TypeAlias = NDArray[np.bool_]
Zeros: TypeAlias = Mapping[ColumnSet, Mask]

TRIES = 16
"""How many values are tried inside each cell: bins of a line may be forbidden in part only."""
MOST_CELLS = 200_000


def structural_zeros(domain: Domain) -> dict[ColumnSet, Mask]:
    """For each set of columns that a constraint speaks of, which of its cells break it wherever one looks.

    A public function of the schema. A rule over more than MOST_CELLS cells is left to the drawing of rows, which
    refuses every row that breaks a rule; so a bin that is forbidden but for a sliver costs the sliver, never a rule.
    """
    found: dict[ColumnSet, Mask] = {}
    for constraint in domain.schema.constraints:
        columns = tuple(c for c in domain.names if c in constraint.columns)
        cells = domain.cells(columns)
        if len(columns) < len(constraint.columns) or cells > MOST_CELLS:
            continue
        codes = dict(zip(columns, np.unravel_index(np.arange(cells), domain.shape(columns)), strict=True))
        rng = np.random.Generator(np.random.PCG64(0))  # public: the same cells whatever the release's seed
        forbidden = np.ones(cells, dtype=bool)
        # Forbidden only if every try breaks the rule: a mistake leaves a cell open, and never closes one that can occur
        # in more than a sliver of it.
        for _ in range(TRIES):
            forbidden &= violated(constraint, decode(codes, domain, rng, uniform=True), cells)
        if forbidden.any():
            found[columns] = found.get(columns, False) | forbidden.reshape(domain.shape(columns))
    return found
