"""Bins of numeric columns that are bought: cuts of about equal mass, from noisy counts of halves, quarters, and so on.

For columns whose bins a schema leaves to the method. The cuts are a function of the curator's answers (they are
post-processing), and from then on a public fact like declared cuts: no method that comes next knows the difference.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.column import SINGLE_VALUE_BINS, Integer, Number
from understudy.boundary.schema.domain import Coding, Domain, EvenCoding
from understudy.boundary.schema.schema import Schema
from understudy.methods.polya_tree import CalibratedNoise, at_least, group_by_mass, noisy_rows

SHARE = 0.15
"""Of the budget, for the bins of all such columns together."""
FINEST, FEWEST, MOST = 4096, 8, 64
CLEAR = 3.0
"""A bin holds at least so many standard deviations of the noise that the whole budget would put on one count."""


def unsettled(schema: Schema) -> tuple[Integer | Number, ...]:
    """Numeric columns with known bounds and too many values for one bin each, for which no bins are declared."""
    numeric = (c for c in schema.modelled if isinstance(c, Integer | Number) and not c.private)
    return tuple(c for c in numeric if c.bins is None and c.cuts is None and _many(c))


def _many(column: Integer | Number) -> bool:
    if isinstance(column, Number):
        return True
    assert column.minimum is not None and column.maximum is not None
    return (column.maximum - column.minimum) // (column.step or 1) >= SINGLE_VALUE_BINS


def with_bought_bins(schema: Schema, curator: Queryable) -> Schema:
    """The schema with cuts for every such column; as it is, and nothing spent, where there is none."""
    columns = unsettled(schema)
    if not columns:
        return schema
    whole = curator.remaining()
    fine = Domain.of(schema.with_columns([dataclasses.replace(c, bins=FINEST) for c in columns]))
    lines = Domain(fine.schema, tuple(_even(fine[c.name]) for c in columns))
    rows, rest = noisy_rows(curator, whole.part(SHARE))
    measured = CalibratedNoise(lines, rest).measure(curator, rest, at_least(rows))
    total, noise = at_least(rows), whole.noise_scale(curator.count_sensitivity(whole))
    # As many bins as leave each enough rows to be seen through the noise of the counts that come next.
    bins = int(np.clip(total / (CLEAR * noise), FEWEST, MOST))
    weights = {c: m.estimate(lines[c], total).counts for c, m in measured.items()}
    return schema.with_columns([_cut(c, lines[c.name], weights[c.name], bins) for c in columns])


def _even(coding: Coding) -> Coding:
    """Thousands of bins of one width are found by a division; of whole numbers they are so already."""
    if isinstance(coding.column, Number):
        return EvenCoding(coding.column, edges=coding.edges)
    return coding


def _cut(column: Integer | Number, coding: Coding, weights: np.ndarray, bins: int) -> Integer | Number:
    groups = group_by_mass(weights, bins, coding).of_code[: coding.levels]
    edges = np.array(coding.edges)[1:-1][np.flatnonzero(np.diff(groups))]
    if not len(edges):
        return column
    kind = int if isinstance(column, Integer) else float
    return dataclasses.replace(column, cuts=tuple(kind(e) for e in edges))
