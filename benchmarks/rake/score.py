"""How far a synthetic table is from the real one: mean total variation of pairs, of triples with the target, and of
single columns and all triples of tables that are not wide."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import understudy as us
from understudy.boundary.schema.column import Categorical, Column, Integer, Number
from understudy.boundary.schema.domain import ColumnSet, Domain

from .case import Result
from .table import Sample, load

MOST_PAIRS, MOST_TRIPLES = 400, 100
MOST_COLUMNS, MOST_ALL_TRIPLES = 40, 300
"""Of wider tables nothing but pairs and triples with a target are counted: that takes long enough."""
Counts = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Score:
    """The real counts, kept for all releases of a table."""

    schema: us.Schema
    """Of the columns that a release has."""
    sets: dict[str, tuple[list[ColumnSet], Counts]]

    @classmethod
    @lru_cache
    def against(cls, name: str) -> Score:
        table = load(name)
        sets = _sets(table) if table.scored else {}
        # A release has no identifiers, and the rules of a schema play no part in counting.
        seen = us.Schema(tuple(table.schema.modelled), missing_values=table.schema.missing_values)
        return cls(seen, {k: (s, _counts(table.source, table.schema, s)) for k, s in sets.items()})

    def of(self, synthetic: pa.Table) -> Result:
        scores = {
            name: round(_distance(real, _counts(synthetic, self.schema, sets)), 6)
            for name, (sets, real) in self.sets.items()
        }
        wrong = [c.name for c in self.schema.modelled if _is_wrong(synthetic[c.name], c)]
        return scores | ({"invalid": wrong} if wrong else {})


def _sets(table: Sample) -> dict[str, list[ColumnSet]]:
    names = Domain.of(table.schema).names
    pairs: list[ColumnSet] = list(itertools.combinations(names, 2))
    triples: list[ColumnSet] = [t for t in itertools.combinations(names, 3) if table.target in t]
    found = {"tv2": _some(pairs, MOST_PAIRS)} | ({"tv3": _some(triples, MOST_TRIPLES)} if triples else {})
    if len(names) <= MOST_COLUMNS:
        every: list[ColumnSet] = list(itertools.combinations(names, 3))
        found |= {"tv1": [(name,) for name in names], "tv3_all": _some(every, MOST_ALL_TRIPLES)}
    return found


def _some(sets: list[ColumnSet], most: int) -> list[ColumnSet]:
    """All of them, or the same random choice each time."""
    order = np.random.default_rng(0).permutation(len(sets))[:most]
    return [sets[i] for i in np.sort(order)]


def _counts(source: object, schema: us.Schema, sets: Sequence[ColumnSet]) -> Counts:
    # The benchmark stands inside the boundary: it reads the real table as the curator would.
    return us.open(source, schema).count_by(Domain.of(schema), sets)


def _distance(real: Counts, synthetic: Counts) -> float:
    pairs = zip(real, synthetic, strict=True)
    return float(np.mean([0.5 * np.abs(x / x.sum() - y / max(1, y.sum())).sum() for x, y in pairs]))


def _is_wrong(values: pa.ChunkedArray, column: Column) -> bool:
    """Whether a column holds what its schema rules out: nothing where something must be, or a value beyond it."""
    if values.null_count and not column.missing:
        return True
    present = values.drop_null()
    if isinstance(column, Categorical):
        allowed = pa.array(column.labels, present.type)
        return not pc.all(pc.is_in(present, allowed), min_count=0).as_py()
    if isinstance(column, Integer | Number):
        # A NaN is in no interval.
        inside = pc.and_(pc.greater_equal(present, column.minimum), pc.less_equal(present, column.maximum))
        return not pc.all(inside, min_count=0).as_py()
    return False
