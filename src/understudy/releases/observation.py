"""The noisy tables of a release, as they are seen from the cells that an expression can tell apart.

Where no table holds some columns together, how strongly they are associated is guessed from those that were measured.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Marginals, Partitions, Total, kind_of
from understudy.boundary.privacy.measurement import Measurement, RecordedAnswer
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.graphical.graphical_model import marginalise
from understudy.inference.grouping import Groups
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import NoisyTable
from understudy.releases.condition import Classes, Condition

MOST_CELLS = 256
"""That a condition may have; where it has more, neighbours are put together."""
NEARLY_PUBLIC = 1e-10
"""The variance of what is known exactly, beside the smallest that isn't: nothing, and still a number to divide by."""
AS_GOOD_AS_PUBLIC = 1e-6
"""A variance so small that no count is off by one."""
SEEN_PART, UNSEEN_PART = 0.25, 0.5
"""How large an association that a selection passed over is held to be: a part of those that it chose, and a part of
what the noise would hide. Simulated in `benchmarks/intervals.py`."""
TYPICAL_ASSOCIATION, MOST_ASSOCIATION = 0.25, 0.5
"""What is assumed where no two columns were measured together, and at most (docs/concepts/intervals.md)."""
TRIED_SETS, FEW_VALUES = 64, 8

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class RecordedTable(NoisyTable):
    """A noisy table of the record, by groups of codes, with the one variance of all its cells."""

    fourth: float = 0.0
    """The fourth cumulant of the noise of one cell: 0 for a Gaussian. The intervals need it for Laplace noise."""


def tables_of(
    record: Sequence[RecordedAnswer], domain: Domain, bought: frozenset[str], mechanism: str, noises: float = 1.0
) -> list[RecordedTable]:
    """Every noisy histogram over the codes of the domain that the record holds.

    `noises` says how many times the noise of its scale each count has. The first histogram of a column whose bounds
    were bought is over the buckets of that purchase, and no part of it.
    """
    found, left = [], set(bought)
    for answer in record:
        columns = tuple(answer.question.get("columns") or ())
        if kind_of(answer.question) is Marginals and len(columns) == 1 and columns[0] in left:
            left.remove(columns[0])
        elif (grid := _grid(answer, columns, domain)) is not None:
            found.append(_table(answer, grid, mechanism, noises))
    # Estimates weigh by 1 / variance, so what is public, or as good as that, gets one above 0.
    least = min((t.variance for t in found if t.variance > AS_GOOD_AS_PUBLIC), default=1.0)
    return [replace(t, variance=max(t.variance, NEARLY_PUBLIC * least)) for t in found]


def _grid(answer: RecordedAnswer, columns: ColumnSet, domain: Domain) -> Grid | None:
    question = answer.question
    kind = kind_of(question)
    if kind in (Marginals, Total):
        return Grid(columns, tuple(tuple(range(size)) for size in domain.shape(columns)))
    if kind is Partitions and question["kind"] == "grid":
        return Grid(columns, tuple(map(tuple, question["groups"])))
    return None


def _table(answer: RecordedAnswer, grid: Grid, mechanism: str, noises: float) -> RecordedTable:
    scale = float(answer.question["scale"])
    if scale == 0:
        mechanism = "public"
    variance, fourth = Measurement(grid.columns, answer.value, mechanism, scale, noises=noises).variance, 0.0
    if mechanism == "discrete-laplace":
        # It is the difference of two geometric variables, whose cumulants are known; those of a sum add up.
        fourth = variance * (1 + 3 * variance / noises)
    groups = tuple(np.array(g, dtype=np.intp) for g in grid.groups)
    return RecordedTable(grid.columns, answer.value.reshape(grid.shape).astype(np.float64), variance, groups, fourth)


@dataclass(frozen=True)
class LinearObservation:
    """What a table says of the cells x of a condition: counts = design @ x + noise, a part of a linear model.

    It has no grid: its sums may overlap, and which cells each of them adds up is what `design` says.
    """

    columns: ColumnSet
    design: Array
    counts: Array
    variances: Array
    fourths: Array


def observe(table: RecordedTable, condition: Condition) -> LinearObservation:
    """The table summed over all columns but those of the condition, and over groups that belong to the same classes."""
    shared = tuple(c for c in condition.columns if c in table.columns)
    counts, cells = margin_of(table, shared)
    design: Array = np.ones((1, 1))
    number: Array = np.ones(1)
    for axis, column in enumerate(condition.columns):
        if column not in shared:
            design = np.kron(design, np.ones((1, condition.share.shape[axis])))
            continue
        place = shared.index(column)
        by_group, by_class = _blocks(table.groups[table.columns.index(column)], condition.classes[axis])
        counts = np.moveaxis(np.tensordot(by_group, counts, axes=(1, place)), 0, place)
        design, number = np.kron(design, by_class), np.kron(number, by_group.sum(axis=1))
    cells_summed = number * cells
    return LinearObservation(shared, design, counts.ravel(), cells_summed * table.variance, cells_summed * table.fourth)


def margin_of(table: RecordedTable, shared: ColumnSet) -> tuple[Array, int]:
    """The table's margin, and how many of its cells one cell of the margin is the sum of."""
    counts = marginalise(table.counts, table.columns, shared)
    return counts, table.counts.size // max(counts.size, 1)


def _blocks(groups: Groups, classes: Classes) -> tuple[Array, Array]:
    """Which groups, and which classes, each block is made of: a class, or the classes that one group has codes of."""
    links = np.zeros((int(groups.max()) + 1, int(classes.max()) + 1))
    links[groups, classes] = 1.0
    straddling = links.sum(axis=1) > 1
    # A group with codes of several classes can't be divided among them: only their sum was measured.
    by_class = np.unique(np.concatenate([links[~straddling], links[straddling]]), axis=0)
    by_group = ((links @ by_class.T) > 0).T.astype(np.float64)
    return by_group, by_class


def pooled(seen: Sequence[LinearObservation]) -> list[LinearObservation]:
    """Tables that show the same sums as one, by inverse variance: it loses nothing, and saves most of the work."""
    alike: dict[tuple[ColumnSet, bytes], list[LinearObservation]] = {}
    for observed in seen:
        alike.setdefault((observed.columns, observed.design.tobytes()), []).append(observed)
    return [_pool(same) for same in alike.values()]


def _pool(same: Sequence[LinearObservation]) -> LinearObservation:
    counts, fourths = np.stack([o.counts for o in same]), np.stack([o.fourths for o in same])
    precisions = 1 / np.stack([o.variances for o in same])
    weights = precisions / precisions.sum(axis=0)
    summed = (weights * counts).sum(axis=0), 1 / precisions.sum(axis=0), (weights**4 * fourths).sum(axis=0)
    return LinearObservation(same[0].columns, same[0].design, *summed)


def refine(condition: Condition, tables: Sequence[RecordedTable]) -> tuple[Condition, list[RecordedTable]]:
    """Classes cut so finely that each lies in a group or holds whole groups; and the tables for which that worked."""
    unfit: set[tuple[str, tuple[int, ...]]] = set()
    for axis, column in enumerate(condition.columns):
        kept: list[Classes] = []
        groupings = [_labels(t)[t.columns.index(column)] for t in tables if column in t.columns]
        # The finest first: where all codes are told apart, no coarser grouping can be unfit.
        for groups in dict.fromkeys(sorted(groupings, key=lambda groups: -max(groups))):
            finer = _closed(condition, axis, [*kept, np.array(groups)])
            if finer.share.size <= MOST_CELLS:
                condition, kept = finer, [*kept, np.array(groups)]
            else:
                unfit.add((column, groups))
    return condition, [t for t in tables if not unfit & set(zip(t.columns, _labels(t), strict=True))]


def _labels(table: RecordedTable) -> list[tuple[int, ...]]:
    """Its groups as plain numbers, by which two of them can be told to be the same."""
    return [tuple(g.tolist()) for g in table.groups]


def _closed(condition: Condition, axis: int, groupings: Sequence[Classes]) -> Condition:
    """Cut by each grouping, and again, until none cuts any more: a cut may make a group straddle two new classes."""
    size = 0
    while size < condition.share.size <= MOST_CELLS:
        size = condition.share.size
        condition = reduce(lambda c, groups: _cut(c, axis, groups), groupings, condition)
    return condition


def _cut(condition: Condition, axis: int, groups: Classes) -> Condition:
    classes = condition.classes[axis]
    links = np.zeros((groups.max() + 1, classes.max() + 1), dtype=bool)
    links[groups, classes] = True
    straddles = links.sum(axis=1) > 1
    label = classes * (groups.max() + 2) + np.where(straddles[groups], groups + 1, 0)
    return condition.refined(axis, label)


# --- columns that were not measured together


def association(tables: Sequence[RecordedTable], drawn: CodeColumns, total: float, selected: bool) -> float:
    """The standard deviation of an association that was not measured, as a correlation of two conditions.

    Measured pairs are compared with independence on random sets of their values, net of noise. Where the pairs were
    selected for being far from what the model expected, those that were passed over are closer.
    """
    rng = np.random.Generator(np.random.PCG64(0))  # fixed: the same release gives the same interval each time
    found = [_association(t, pair, drawn, total, rng) for t in tables for pair in itertools.combinations(t.columns, 2)]
    if not found:
        return TYPICAL_ASSOCIATION
    # Net of noise, so where there is hardly any association the mean may fall below 0.
    seen = max(float(np.mean([strength for strength, _ in found])), 0.0)
    hidden = float(np.median([noise for _, noise in found]))
    part = SEEN_PART if selected else 1.0
    return min(math.sqrt(part**2 * seen + UNSEEN_PART**2 * hidden), MOST_ASSOCIATION)


def _association(
    table: RecordedTable, pair: ColumnSet, drawn: CodeColumns, total: float, rng: np.random.Generator
) -> tuple[float, float]:
    """The mean square correlation of random conditions on two columns net of noise, and what noise adds to it."""
    counts, cells = margin_of(table, pair)
    groups = [table.groups[table.columns.index(c)] for c in pair]
    masses = [mass(weights_of(g[drawn[c]], int(g.max()) + 1)) for c, g in zip(pair, groups, strict=True)]
    first, second = (_random_sets(len(m), rng) for m in masses)
    error = ((first @ (counts - total * np.outer(*masses))) * second).sum(axis=1)
    noise = table.variance * cells * first.sum(axis=1) * second.sum(axis=1)
    shares = [s @ m for s, m in zip((first, second), masses, strict=True)]
    scale = total**2 * np.prod([p * (1 - p) for p in shares], axis=0).sum() + 1e-9
    return float((error**2 - noise).sum() / scale), float(noise.sum() / scale)


def _random_sets(size: int, rng: np.random.Generator) -> Array:
    """Sets of values as people ask for them: ranges of many values, any of a few; of any length."""
    if size > FEW_VALUES:
        start, length = rng.integers(0, size, (TRIED_SETS, 1)), rng.integers(1, size, (TRIED_SETS, 1))
        return np.asarray((np.arange(size) - start) % size < length, dtype=np.float64)
    return np.asarray(rng.random((TRIED_SETS, 1)) > rng.random((TRIED_SETS, size)), dtype=np.float64)


def weights_of(codes: NDArray[np.integer], size: int) -> Array:
    return np.bincount(codes, minlength=size).astype(np.float64)


def mass(weights: Array) -> Array:
    """A distribution in which nothing is quite impossible."""
    return np.asarray((weights + 0.5) / (weights + 0.5).sum())
