"""Codes merged into groups: which codes share one, by noisy counts alone, and sums over groups.

A table of fine columns has cells that hold fewer rows than noise. Merging codes makes cells that can carry their noise.
All ways to choose the groups read earlier answers and public facts only, so that they are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = NDArray[np.intp]
"""The group of each code, or of each cell."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of each code of a column. Groups are numbered from 0 on, and none is empty.

    >>> Grouping.keeping(np.array([True, False, True, False])).labels
    (0, 2, 1, 2)
    """

    of_code: Groups

    @classmethod
    def of(cls, groups: Sequence[int] | NDArray[np.integer[Any]]) -> Grouping:
        return cls(np.asarray(groups, dtype=np.intp))

    @classmethod
    def each(cls, codes: int) -> Grouping:
        """Every code by itself."""
        return cls(np.arange(codes))

    @classmethod
    def keeping(cls, own: NDArray[np.bool_]) -> Grouping:
        """The marked codes keep a group each, in their order; the others share the last one."""
        return cls.of(np.where(own, np.cumsum(own) - 1, np.count_nonzero(own)))

    @classmethod
    def merging(cls, own: NDArray[np.bool_]) -> Grouping:
        """As `keeping`, but every code stays where it is if there are no two others that could share a group."""
        return cls.each(own.size) if np.count_nonzero(~own) < 2 else cls.keeping(own)

    @classmethod
    def commonest(cls, weights: Floats, most: int, least: float) -> Grouping:
        """At most so many groups: one for each of the heaviest codes, but for those below `least`; one for the rest."""
        kept = most if most == weights.size else most - 1
        own = np.zeros(weights.size, dtype=np.bool_)
        # Stable: of equal counts the first code comes first, on every machine.
        own[np.argsort(-weights, kind="stable")[:kept]] = True
        return cls.merging(own & (weights >= least))

    @classmethod
    def equal_mass(cls, weights: Floats, most: int, least_sum: float = 1e-300) -> Grouping:
        """Neighbours share a group: a code goes where its middle lies on the line of cumulated weights."""
        middles = np.cumsum(weights) - weights / 2
        places = np.minimum((middles / max(float(weights.sum()), least_sum) * most).astype(np.int64), most - 1)
        return cls.of(np.unique(places, return_inverse=True)[1])

    @classmethod
    def balanced(cls, weights: Floats, most: int, least: float) -> Grouping:
        """Neighbours share a group, as equal in weight as whole codes allow, but none lighter than `least`.

        A heavy code leaves more groups to the rest, for what is aimed at is an equal share of what is left.
        """
        groups, group, held, left = [], 0, 0.0, float(weights.sum())
        for weight in weights:
            aim = max(left / (most - group), least)
            if group < most - 1 and held > least / 2 and held + weight - aim > aim - held:
                group, left, held = group + 1, left - held, 0.0
            held += float(weight)
            groups.append(group)
        return cls.of(groups)

    def followed_by_missing(self, apart: bool = True) -> Grouping:
        """With one code more, that of a missing value: in a group of its own, or in the last one."""
        return Grouping(np.append(self.of_code, self.count - 1 + apart))

    def followed_by(self, codes: int, most: int | None = None) -> Grouping:
        """With more codes, on no line, each in a group of its own; the last share one where there are to be fewer.

        >>> Grouping.each(2).followed_by(3).labels, Grouping.each(1).followed_by(3, most=2).labels
        ((0, 1, 2, 3, 4), (0, 1, 2, 2))
        """
        beside = np.minimum(np.arange(codes), (codes if most is None else most) - 1)
        return Grouping(np.concatenate([self.of_code, self.count + beside]))

    @cached_property
    def count(self) -> int:
        return int(self.of_code.max()) + 1

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The groups as plain numbers, as partitions and records have them."""
        return tuple(self.of_code.tolist())

    def sums(self, values: NDArray[Any]) -> Floats:
        return sum_by_group(self.of_code, values)


def by_rank(weights: Floats, counts: Sequence[int]) -> list[Grouping]:
    """For each number of groups: the heaviest codes by themselves, numbered by rank; the others share the last one."""
    rank = np.empty(weights.size, dtype=np.intp)
    rank[np.argsort(-weights, kind="stable")] = np.arange(weights.size)
    return [Grouping(np.minimum(rank, n - 1) if n < weights.size else np.arange(n)) for n in counts]


def by_halves(weights: Floats, counts: Sequence[int]) -> list[Grouping]:
    """For each number of groups, rising: the heaviest segment of neighbours is halved by weight, again and again.

    So every grouping merges groups of the next finer one.
    """
    # Halving and nothing else keeps groupings nested: equal masses for each number of groups would cut across.
    line = np.concatenate([[0.0], np.cumsum(weights)])
    segments, found = [(0, weights.size)], []
    for count in counts:
        while len(segments) < count:
            _halve_the_heaviest(segments, line)
        starts = np.sort([start for start, _ in segments])
        found.append(Grouping.of(np.searchsorted(starts, np.arange(weights.size), side="right") - 1))
    return found


def _halve_the_heaviest(segments: list[tuple[int, int]], line: Floats) -> None:
    _, place = max((line[b] - line[a], -i) for i, (a, b) in enumerate(segments) if b - a > 1)
    a, b = segments[-place]
    cut = a + 1 + int(np.abs(line[a + 1 : b] - (line[a] + line[b]) / 2).argmin())
    segments[-place : -place + 1] = [(a, cut), (cut, b)]


def refine(groupings: Sequence[Groups]) -> tuple[Groups, NDArray[np.intp]]:
    """The coarsest grouping that every given one merges; and for each of its groups, the group in each of them."""
    coarse, groups = np.unique(np.stack(groupings, axis=1), axis=0, return_inverse=True)
    return np.asarray(groups, dtype=np.intp).ravel(), coarse


def coarser(fine: Groups, groups: Groups) -> Groups:
    """For each fine group the coarser one that holds it."""
    _, both = refine([fine, groups])
    return both[:, 1]


def sum_by_group(groups: Groups, values: NDArray[Any]) -> Floats:
    return np.asarray(np.bincount(groups, values), dtype=np.float64)


def summing(groups: Groups) -> Floats | None:
    """The matrix that sums by group; none where every value is its own group."""
    size = int(groups.max()) + 1
    if size == len(groups) and np.array_equal(groups, np.arange(size)):
        return None
    matrix = np.zeros((len(groups), size))
    matrix[np.arange(len(groups)), groups] = 1.0
    return matrix


def summed(table: Floats, matrices: Sequence[Floats | None]) -> Floats:
    """A table summed by groups along every axis that has a matrix."""
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            before, after = table.shape[:axis], table.shape[axis + 1 :]
            # One plain matrix product, or one for each cell before the axis: tensordot takes ten times as long.
            flat = table.reshape(math.prod(before), table.shape[axis], -1)
            product = matrix.T @ flat if after else flat[:, :, 0] @ matrix
            table = product.reshape(*before, matrix.shape[1], *after)
    return table


def merged(table: Floats, groups: Sequence[Groups]) -> Floats:
    """A table summed by groups along every axis."""
    return summed(table, [summing(g) for g in groups])
