"""Splits: one column cut into branches. Which splits there are follows from the schema alone.

A greedy tree scores all of them at every level. So a catalogue of them is kept as arrays: a branch takes the codes from
`start` to below `end` of its column, and the rows that it holds are a difference of running sums. Of a split in two the
second branch holds what the first one leaves, so only the first is summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import frozen
from understudy.boundary.privacy.mechanisms.score import MOST_EXPECTED
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.errors import InternalError, MethodError

Ints = NDArray[np.int64]

MOST_CUTS, FEW_CUTS = 15, 5
"""Cut points of an ordered column that a greedy tree chooses among, evenly spaced over its bins."""
MOST_ORDERED_BRANCHES = 16
"""An ordered column of more values is only ever cut in two."""
MOST_SINGLED_OUT = 64
"""A category of more values has no splits of one value against the rest: each would be one candidate more."""


@dataclass(frozen=True)
class ColumnSplit:
    """`groups[code]` is the branch that a row with this code of the column takes.

    >>> ColumnSplit("sex", (0, 1, 1)).branches
    2
    """

    column: str
    groups: tuple[int, ...]

    @cached_property
    def branches(self) -> int:
        return max(self.groups) + 1

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...] | None:
        """The codes, from … to below …, of every branch; of two branches one is enough.

        None where the codes of a branch aren't next to each other.
        """
        groups = self.groups
        if self._single_code is not None:
            return ((self._single_code, self._single_code + 1),)
        if list(groups) != sorted(groups):
            return None
        starts = [groups.index(branch) for branch in range(self.branches)]
        found = tuple(zip(starts, [*starts[1:], len(groups)], strict=True))
        if self.branches == 2:
            return found[:1]
        return found

    @cached_property
    def _single_code(self) -> int | None:
        """The only code of the second of two branches."""
        if self.branches == 2 and self.groups.count(1) == 1:
            return self.groups.index(1)
        return None

    def branch_of(self, codes: NDArray[np.integer]) -> NDArray[Any]:
        """The branch that each row takes: one comparison where a cut or a single code decides, else a look-up."""
        groups = self.groups
        if self._single_code is not None:
            return codes == self._single_code
        if self.branches == 2 and list(groups) == sorted(groups):
            return codes >= groups.index(1)
        narrow = np.uint16 if len(groups) <= 1 << 16 else np.int64
        # Codes are within the domain; "clip" spares numpy the check of every one of them.
        return np.array(groups, dtype=narrow).take(codes, mode="clip")


def is_ordered(coding: Coding) -> bool:
    return coding.edges is not None or coding.column.ordered


def every_value(coding: Coding) -> ColumnSplit:
    """A branch for each code."""
    return ColumnSplit(coding.name, tuple(range(coding.size)))


def below_and_above(coding: Coding, cut: int) -> ColumnSplit:
    """Codes below the cut, those from it on, and each special value and missing ones by themselves."""
    groups = tuple(int(code >= cut) for code in range(coding.levels))
    groups = (*groups, *range(2, 2 + coding.apart))
    return ColumnSplit(coding.name, groups)


def cuts(coding: Coding, most: int = MOST_CUTS) -> list[int]:
    """Where an ordered column may be cut: between any two codes, or at evenly spaced places where they are many."""
    last = coding.levels - 1
    if not last:
        return []
    return sorted({round(c) for c in np.linspace(1, last, min(most, last))})


def options(coding: Coding, few: bool = False) -> Iterator[ColumnSplit]:
    """The splits of a column that a greedy tree chooses among; none of a column with a single code.

    With `few`, no value is split from the rest and only some cuts are offered. The exponential mechanism errs with the
    logarithm of the number of candidates, so a weak signal is better served by few of them.
    """
    if coding.size < 2:
        return
    ordered = is_ordered(coding)
    if ordered:
        yield from (below_and_above(coding, cut) for cut in cuts(coding, FEW_CUTS if few else MOST_CUTS))
    if not ordered or 2 < coding.size <= MOST_ORDERED_BRANCHES:
        yield every_value(coding)
    if not (few or ordered) and 2 < coding.size <= MOST_SINGLED_OUT:
        for code in range(coding.size):
            yield ColumnSplit(coding.name, tuple(int(c == code) for c in range(coding.size)))


@dataclass(frozen=True)
class CodeRanges:
    """Codes from `start` to below `end`, counted on from column to column, and the split that each belongs to."""

    split: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, found: Sequence[tuple[int, int, int]]) -> CodeRanges:
        return cls(*np.array(found, dtype=np.int64).reshape(-1, 3).T)

    def where(self, kept: NDArray[np.bool_], place: Ints) -> CodeRanges:
        """Those of the splits that are kept, each of which has a new place."""
        here = kept[self.split]
        return CodeRanges(place[self.split[here]], self.start[here], self.end[here])

    def between(self, low: int, high: int) -> CodeRanges:
        """Those of the codes from `low` to below `high`, renumbered to start at 0; each keeps its split."""
        here = (self.start >= low) & (self.start < high)
        return CodeRanges(self.split[here], self.start[here] - low, self.end[here] - low)


@dataclass(frozen=True)
class SplitCatalogue:
    """The splits that a level of a greedy tree may have. The first is None, which leaves the tree as it is.

    `halves` has the first branch of each split in two; `branches` has all branches of the others, with that of None.
    """

    splits: tuple[ColumnSplit | None, ...]
    arity: Ints
    halves: CodeRanges
    branches: CodeRanges

    @classmethod
    def of(cls, domain: Domain, columns: ColumnSet, few: bool) -> SplitCatalogue:
        """No split, and every split of each column that the schema has."""
        return cls.among([domain.size(c) for c in columns], [_options(domain[c], few) for c in columns])

    @classmethod
    def among(cls, sizes: Sequence[int], offered: Sequence[Sequence[ColumnSplit]]) -> SplitCatalogue:
        """No split, and these splits, column by column."""
        splits: list[ColumnSplit | None] = [None]
        halves: list[tuple[int, int, int]] = []
        branches, offset = [(0, 0, sizes[0])], 0
        for size, of_column in zip(sizes, offered, strict=True):
            for split in of_column:
                if split.ranges is None:
                    raise InternalError(f"each branch of a split of {split.column!r} must be a range of codes", split)
                found = halves if split.branches == 2 else branches
                found += [(len(splits), offset + start, offset + end) for start, end in split.ranges]
                splits.append(split)
            offset += size
        arity = np.array([1, *(s.branches for s in splits if s is not None)])
        return cls(tuple(splits), arity, CodeRanges.of(halves), CodeRanges.of(branches))

    def place(self, split: ColumnSplit) -> int:
        """The position of a split of this catalogue."""
        return self._places[id(split)]

    @cached_property
    def _places(self) -> dict[int, int]:
        """By identity: comparing splits of many codes takes long."""
        return {id(split): place for place, split in enumerate(self.splits)}

    def kept(self, splits: NDArray[np.bool_]) -> SplitCatalogue:
        """Only these splits, of which the first must be one."""
        place = np.cumsum(splits) - 1
        chosen = tuple(self.splits[i] for i in np.flatnonzero(splits))
        halves, branches = (s.where(splits, place) for s in (self.halves, self.branches))
        return SplitCatalogue(chosen, self.arity[splits], halves, branches)


@lru_cache(maxsize=4096)
def _options(coding: Coding, few: bool) -> tuple[ColumnSplit, ...]:
    """Public facts, which many trees share."""
    return tuple(options(coding, few))


def checked_offsets(offsets: NDArray[np.float64], choices: int) -> NDArray[np.float64]:
    """A copy of the public offsets of a score that nobody can change, refused unless scores stay exact with them.

    One for each split: a table of offsets would be one of scores.
    """
    held = frozen(np.array(offsets, dtype=np.float64))
    if held.shape != (choices,) or not np.abs(held).max() <= MOST_EXPECTED:
        raise MethodError(
            f"offsets of {choices} splits must be at most {MOST_EXPECTED:.4g} rows for exact scores; there is too much "
            "noise to choose by, so ask with a larger epsilon",
            choices,
        )
    return held
