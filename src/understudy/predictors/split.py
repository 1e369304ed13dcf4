"""Splits: one column cut into branches. Which splits there are follows from the schema alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Coding

MOST_CUTS, FEW_CUTS = 15, 5
"""Cut points of a column on a line that a greedy tree chooses among, evenly spaced over its bins."""
MOST_ORDERED_BRANCHES = 16
"""An ordered column of more values is only ever cut in two."""
MOST_SINGLED_OUT = 64


@dataclass(frozen=True)
class Split:
    """`groups[code]` is the branch that a row with this code of the column takes.

    >>> Split("sex", (0, 1, 1)).branches
    2
    """

    column: str
    groups: tuple[int, ...]

    @cached_property
    def branches(self) -> int:
        return max(self.groups) + 1

    @cached_property
    def stretches(self) -> tuple[tuple[int, int], ...] | None:
        """The codes, from … to below …, of every branch; of two branches one is enough.

        None where the codes of a branch don't lie side by side.
        """
        groups = self.groups
        if self.branches == 2 and groups.count(1) == 1:
            return ((groups.index(1), groups.index(1) + 1),)
        if list(groups) != sorted(groups):
            return None
        starts = [groups.index(branch) for branch in range(self.branches)]
        found = tuple(zip(starts, [*starts[1:], len(groups)], strict=True))
        return found[:1] if self.branches == 2 else found

    def branch_of(self, codes: NDArray[np.integer]) -> NDArray[Any]:
        """The branch that each row takes: one comparison where a cut or a single code decides, else a look-up."""
        groups = self.groups
        if self.branches == 2 and groups.count(1) == 1:
            return codes == groups.index(1)
        if self.branches == 2 and list(groups) == sorted(groups):
            return codes >= groups.index(1)
        return np.array(groups, dtype=np.uint16 if len(groups) <= 1 << 16 else np.int64).take(codes, mode="clip")


def is_ordered(coding: Coding) -> bool:
    return coding.edges is not None or coding.column.ordered


def every_value(coding: Coding) -> Split:
    """A branch for each code."""
    return Split(coding.name, tuple(range(coding.size)))


def below_and_above(coding: Coding, cut: int) -> Split:
    """Codes below the cut, those from it on, and missing values by themselves."""
    groups = [int(code >= cut) for code in range(coding.levels)]
    return Split(coding.name, (*groups, 2) if coding.column.missing else tuple(groups))


def cuts(coding: Coding, most: int = MOST_CUTS) -> list[int]:
    """Where an ordered column may be cut: between any two codes, or at evenly spaced places where they are many."""
    last = coding.levels - 1
    return sorted({round(c) for c in np.linspace(1, last, min(most, last))}) if last else []


def options(coding: Coding, few: bool = False) -> Iterator[Split]:
    """The splits of a column that a greedy tree chooses among; none of a column with a single code.

    Of `few` there are no values singled out, and only some cuts: the fewer are offered, the surer is a private choice.
    """
    if coding.size < 2:
        return
    if is_ordered(coding):
        yield from (below_and_above(coding, cut) for cut in cuts(coding, FEW_CUTS if few else MOST_CUTS))
    if (coding.size <= MOST_ORDERED_BRANCHES and coding.size > 2) or not is_ordered(coding):
        yield every_value(coding)
    if not (few or is_ordered(coding)) and 2 < coding.size <= MOST_SINGLED_OUT:
        yield from (
            Split(coding.name, tuple(int(c == code) for c in range(coding.size))) for code in range(coding.size)
        )
