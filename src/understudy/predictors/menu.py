"""All splits that a greedy tree may choose among, as arrays: what their branches hold is found for many at once.

A branch takes the codes from `start` to below `end` of its column: what it holds is a difference of running sums. Of a
split in two the second branch holds what the first one leaves, so that only the first is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.errors import InternalError
from understudy.predictors.split import Split, options

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """Codes from `start` to below `end`, counted on from column to column, and the split that each belongs to."""

    split: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, found: Sequence[tuple[int, int, int]]) -> Stretches:
        return cls(*np.array(found, dtype=np.int64).reshape(-1, 3).T)

    def where(self, kept: NDArray[np.bool_], place: Ints) -> Stretches:
        """Those of the splits that are kept, each of which has a new place."""
        here = kept[self.split]
        return Stretches(place[self.split[here]], self.start[here], self.end[here])

    def between(self, low: int, high: int) -> Stretches:
        """Those of the codes from `low` to below `high`, which count from there on; each keeps its split."""
        here = (self.start >= low) & (self.start < high)
        return Stretches(self.split[here], self.start[here] - low, self.end[here] - low)


@dataclass(frozen=True)
class Menu:
    """Splits, the first of which is None: to stay as it is.

    `halves` has the first branch of each split in two; `branches` every branch of the others, the one of None included.
    """

    splits: tuple[Split | None, ...]
    arity: Ints
    halves: Stretches
    branches: Stretches

    @classmethod
    def of(cls, domain: Domain, columns: ColumnSet, few: bool) -> Menu:
        """To stay as it is, and every split of each column that the schema has."""
        offered = [_options(domain[c], few) for c in columns]
        return cls.among([domain.size(c) for c in columns], offered)

    @classmethod
    def among(cls, sizes: Sequence[int], offered: Sequence[Sequence[Split]]) -> Menu:
        """To stay as it is, and these splits, column by column."""
        splits: list[Split | None] = [None]
        halves: list[tuple[int, int, int]] = []
        branches, offset = [(0, 0, sizes[0])], 0
        for size, of_column in zip(sizes, offered, strict=True):
            for split in of_column:
                found = halves if split.branches == 2 else branches
                found += [(len(splits), offset + start, offset + end) for start, end in _stretches(split)]
                splits.append(split)
            offset += size
        arity = np.array([1 if s is None else s.branches for s in splits])
        return cls(tuple(splits), arity, Stretches.of(halves), Stretches.of(branches))

    def place(self, split: Split) -> int:
        """Of a split of this menu."""
        return self._places[id(split)]

    @cached_property
    def _places(self) -> dict[int, int]:
        """By identity: comparing splits of many codes takes long."""
        return {id(split): place for place, split in enumerate(self.splits)}

    def kept(self, splits: NDArray[np.bool_]) -> Menu:
        """Only these splits, of which the first must be one."""
        place = np.cumsum(splits) - 1
        chosen = tuple(self.splits[i] for i in np.flatnonzero(splits))
        halves, branches = (s.where(splits, place) for s in (self.halves, self.branches))
        return Menu(chosen, self.arity[splits], halves, branches)


@lru_cache(maxsize=4096)
def _options(coding: Coding, few: bool) -> tuple[Split, ...]:
    """Public facts, which many trees share."""
    return tuple(options(coding, few))


def _stretches(split: Split) -> Sequence[tuple[int, int]]:
    """The codes of each branch; of two, only those of one that is a stretch."""
    if split.stretches is None:
        raise InternalError(f"the branches of a split of {split.column!r} must each be a stretch of codes", split)
    return split.stretches
