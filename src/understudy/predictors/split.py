"""Splits: one column cut into branches. Which splits there are follows from the schema alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.schema.domain import Coding

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
