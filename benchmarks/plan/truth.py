"""What public facts can't say of a table: how closely its columns are related, and how unequal their values are.

The benchmark stands inside the boundary: it reads the real tables, so that a forecast can be judged with and without.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from rake.score import _counts

from understudy.boundary.schema.domain import ColumnSet, Domain

from .cells import source_of

Floats = NDArray[np.float64]
SEED = 0
LEAST = 0.01


@dataclass(frozen=True)
class Truth:
    related: float
    """The mean total variation of a pair from the product of its columns, net of what sampling alone would give."""
    sizes: Floats
    effective: Floats
    """Of every column (Σ√p)²: so many equally frequent values would be as noisy."""


@lru_cache
def truth_of(table: str) -> Truth:
    source, schema = source_of(table)
    domain = Domain.of(schema)
    single: list[ColumnSet] = [(name,) for name in domain.names]
    pairs: list[ColumnSet] = list(itertools.combinations(domain.names, 2))
    found = [np.asarray(c, dtype=np.float64) for c in _counts(source, schema, [*single, *pairs])]
    columns = found[: len(single)]
    effective = np.array([np.sqrt(c / c.sum()).sum() ** 2 for c in columns])
    shapes = [domain.shape(p) for p in pairs]
    tables = [c.reshape(s) for c, s in zip(found[len(single) :], shapes, strict=True)]
    return Truth(_related(tables), np.array([float(c.size) for c in columns]), effective)


def _related(tables: list[Floats]) -> float:
    rng, seen, chance = np.random.default_rng(SEED), [], []
    for table in tables:
        rows = table.sum()
        alone = np.outer(table.sum(axis=1), table.sum(axis=0)) / rows
        seen.append(np.abs(table - alone).sum() / (2 * rows))
        chance.append(np.abs(rng.poisson(alone) - alone).sum() / (2 * rows))
    return math.sqrt(max(LEAST**2, float(np.mean(seen)) ** 2 - float(np.mean(chance)) ** 2))
