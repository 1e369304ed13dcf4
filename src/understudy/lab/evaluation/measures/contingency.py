"""Total variation between the counts of single columns, of pairs and of triples.

A missing value is a value like any other. Numbers are counted in the cells of their column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable
from understudy.lab.evaluation.measure import HIGHER, LOWER, Measure, MeasurePart, MeasureResult

SECTION = "Counts"
# All pairs of 100 columns are 4,950, and all triples of 13 columns 286: wider tables are sampled.
MOST_PAIRS, MOST_TRIPLES = 5_000, 300
DENSE = 4
"""A table of counts is laid out in full while it has at most this many cells for each row."""
LARGEST_CODE = 2**62
"""Codes are 64-bit integers: before a product would exceed this, they are numbered anew."""
FULL_MARKS = 1000.0

Codes = NDArray[np.int64]


def total_variation(comparison: Comparison, variables: Sequence[Variable]) -> float:
    """The share of the rows that would have to change for the counts of these columns to agree: from 0 to 1."""
    real, synthetic = joint_counts(comparison.real, comparison.synthetic, variables)
    differences = np.abs(real / comparison.real.rows - synthetic / comparison.synthetic.rows)
    return min(float(differences.sum()) / 2, 1.0)  # rounding may pass 1 by a bit


def joint_counts(real: RowSample, synthetic: RowSample, variables: Sequence[Variable]) -> tuple[Codes, Codes]:
    """How often each combination of values occurs in either table, in the same order for both."""
    cells = math.prod(v.size for v in variables)
    if cells <= DENSE * (real.rows + synthetic.rows):
        return real.counts(variables).ravel(), synthetic.counts(variables).ravel()
    # Numbered together, so that a combination has the same place in the counts of either table.
    both = [np.concatenate([real.codes[v.name], synthetic.codes[v.name]]) for v in variables]
    codes, count = _dense_codes(both, [v.size for v in variables])
    return np.bincount(codes[: real.rows], minlength=count), np.bincount(codes[real.rows :], minlength=count)


def _dense_codes(columns: Sequence[Codes], sizes: Sequence[int]) -> tuple[Codes, int]:
    """One code for each combination that occurs, without gaps; and how many there are."""
    codes, size = columns[0], sizes[0]
    for column, width in zip(columns[1:], sizes[1:], strict=True):
        if size * width > LARGEST_CODE:
            codes, size = _without_gaps(codes)
        codes, size = codes * width + column, size * width
    return _without_gaps(codes)


def _without_gaps(codes: Codes) -> tuple[Codes, int]:
    found, places = np.unique(codes, return_inverse=True)
    return places.astype(np.int64).reshape(-1), len(found)


def combinations(count: int, of: int, most: int, seed: int) -> list[tuple[int, ...]]:
    """All ways to take `of` out of `count` columns, or `most` random ones where there are more."""
    if math.comb(count, of) <= most:
        return list(itertools.combinations(range(count), of))
    # Drawn and not listed: of 1,000 columns there are 166 million triples.
    rng = np.random.Generator(np.random.PCG64(seed))
    found: set[tuple[int, ...]] = set()
    while len(found) < most:
        found.add(tuple(sorted(int(i) for i in rng.choice(count, of, replace=False))))
    return sorted(found)


def _parts(comparison: Comparison, sets: Sequence[tuple[int, ...]]) -> Iterator[MeasurePart]:
    for chosen in sets:
        variables = [comparison.variables[i] for i in chosen]
        yield MeasurePart(" × ".join(v.name for v in variables), total_variation(comparison, variables))


def _figure(comparison: Comparison, of: int, most: int) -> MeasureResult:
    count = len(comparison.variables)
    if count < of:
        return MeasureResult.undefined(f"it needs {of} columns, and the tables share {count}")
    total = math.comb(count, of)
    sets = combinations(count, of, most, comparison.seed)
    what = {1: "columns", 2: "pairs", 3: "triples"}[of]
    note = f"over all {total:,} {what}"
    if len(sets) < total:
        note = f"over {len(sets):,} random ones of {total:,} {what}"
    return MeasureResult.mean(list(_parts(comparison, sets)), "there is nothing to count", note)


def _marks(comparison: Comparison) -> MeasureResult:
    """1000·(1 − mean L1/2): half of the L1 distance is the total variation."""
    # NIST's challenges draw sets of k columns and have bins of their own; here k is 3, in the cells of `comparison`.
    figure = _figure(comparison, 3, MOST_TRIPLES)
    if figure.value is None:
        return figure
    parts = tuple(MeasurePart(p.name, FULL_MARKS * (1 - p.value)) for p in figure.parts if p.value is not None)
    return MeasureResult(FULL_MARKS * (1 - figure.value), parts=parts, note=figure.note)


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0, high=1.0)

MEASURES: tuple[Measure, ...] = (
    _measure("tv1", "Total variation of single columns", unit="column",
             compute=partial(_figure, of=1, most=MOST_PAIRS),
             explanation="The share of the rows that would have to change for a column to be distributed as in the "
             "real table."),
    _measure("tv2", "Total variation of pairs", unit="pair", compute=partial(_figure, of=2, most=MOST_PAIRS),
             explanation="The same for two columns together: it grows where an association was lost or made up."),
    _measure("tv3", "Total variation of triples", unit="triple", compute=partial(_figure, of=3, most=MOST_TRIPLES),
             explanation="The same for three columns together; small tables have some of it by chance alone."),
    _measure("k-marginal", "k-marginal score", direction=HIGHER, high=FULL_MARKS, unit="triple", compute=_marks,
             explanation="Three columns at a time on the scale of NIST's challenges: 1000 where all triples have "
             "equal counts."),
)  # fmt: skip
