"""What a measure is: a name, a direction, a range, what it needs, one line that explains it, and how it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.lab.evaluation.comparison import Comparison

LOWER, HIGHER = "lower", "higher"
HOLDOUT, TARGET, SCHEMA, GROUPS = "hold-out", "target", "schema", "groups"
NEEDS = {
    HOLDOUT: "it needs real rows that the method never saw; give them as the hold-out (--holdout)",
    TARGET: "it needs a column to predict; name it as the target (--target)",
    SCHEMA: "it needs a schema that a person wrote; give one",
    GROUPS: "it needs columns that divide people into groups; name them as the groups (--group)",
}
INFINITY = math.inf


@dataclass(frozen=True)
class MeasurePart:
    """A figure of one column, of one pair, of one classifier …; `reason` says why there is none."""

    name: str
    value: float | None
    reason: str = ""
    note: str = ""
    """What stands beside it, such as a p-value."""
    raw: float | None = None
    """The same in the units of the column, or as a source document defines it."""
    reference: float | None = None
    """What the real table has in place of `raw`."""


@dataclass(frozen=True)
class MeasureResult:
    """What a measure gives: one number, or the reason why there is none; and the parts that it is made of."""

    value: float | None
    reason: str = ""
    parts: tuple[MeasurePart, ...] = ()
    note: str = ""

    @classmethod
    def undefined(cls, reason: str, parts: Sequence[MeasurePart] = ()) -> MeasureResult:
        return cls(None, reason, tuple(parts))

    @classmethod
    def mean(cls, parts: Sequence[MeasurePart], nothing: str, note: str = "") -> MeasureResult:
        """The mean of the parts that have a value; `nothing` is said where no part has one."""
        known = [p.value for p in parts if p.value is not None]
        if not known:
            return cls(None, nothing, tuple(parts))
        # Summed exactly: the figure must not depend on the order of the columns.
        return cls(math.fsum(known) / len(known), parts=tuple(parts), note=note)


Compute = Callable[["Comparison"], MeasureResult]


@dataclass(frozen=True)
class Measure:
    """One way of comparing. All read real rows: what they give is internal."""

    name: str
    title: str
    section: str
    direction: str
    low: float
    high: float
    explanation: str
    compute: Compute
    needs: tuple[str, ...] = ()
    unit: str = ""
    """What one part is about: "column", "pair", "classifier" …"""

    def of(self, comparison: Comparison) -> MeasureResult:
        """The figure, or why it can't be had from what was given."""
        lacking = next((n for n in self.needs if not comparison.has(n)), None)
        if lacking:
            return MeasureResult.undefined(NEEDS[lacking])
        return self.compute(comparison)
