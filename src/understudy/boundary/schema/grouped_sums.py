"""A tally: integers added up over the rows that satisfy a condition, by group. The question behind a metered query.

A condition and a group are functions of one row alone, and every row adds a bounded integer to one cell. So how far one
person can move a tally follows from public facts, and each summand below says how far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.expression import Predicate
from understudy.errors import InternalError

NEGLIGIBLE = 1e-100
"""Numbers nearer to zero than that are zero: some engines raise an error where a product of such numbers underflows."""


@dataclass(frozen=True)
class SumNeighbours:
    """How two neighbouring tables may differ: the public facts on which sensitivities rest."""

    rows: int
    """At most so many rows of one person count."""
    replaced: bool
    """Whether neighbours differ by one row put in place of another; then `rows` is 1 (`Schema._check_unit`)."""
    cells: int
    filtered: bool
    """Whether a row may count in one neighbour and its replacement not in the other: there is a condition, or a unit,
    where one without an id has no row that counts."""


@dataclass(frozen=True)
class RowCount:
    """The number of rows, or of those in which the column `present` is not missing."""

    present: str | None = None

    @property
    def looked_at(self) -> str | None:
        return self.present

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        return ValueSum.bounded(1, 1, neighbours, self.present is not None)

    def describe(self) -> dict[str, Any]:
        return {"add": "rows", "present": self.present}


@dataclass(frozen=True)
class PersonCount:
    """The number of persons who have such a row, each once in a cell; rows without an id don't count."""

    looked_at: ClassVar[str | None] = None

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        """One person is in as many cells as they have rows, at most, and moves each by 1."""
        # k cells move by 1 each, and never one cell by k as in a count of rows: so L2 is √k.
        touched = min(neighbours.rows, neighbours.cells)
        if not neighbours.replaced:
            return float(touched), _root(touched)
        return ValueSum.bounded(1, 1, neighbours, True)  # a replacement may have no id

    def describe(self) -> dict[str, Any]:
        return {"add": "persons"}


@dataclass(frozen=True)
class ValueSum:
    """The sum of a column in whole `steps` away from a public `centre`: round((x − centre) × steps), clamped."""

    column: str
    centre: float
    steps: float
    low: int
    high: int

    def __post_init__(self) -> None:
        if not (int(self.low) == self.low <= self.high == int(self.high) and math.isfinite(self.centre * self.steps)):
            raise InternalError(f"the sum of {self.column!r} must have whole bounds, the lower first.", self)

    @property
    def looked_at(self) -> str | None:
        return self.column

    def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
        return self.bounded(self.low, self.high, neighbours, True)  # where the column is missing, a row adds nothing

    @staticmethod
    def bounded(low: int, high: int, neighbours: SumNeighbours, may_add_nothing: bool) -> tuple[float, float]:
        """L1 and L2 when each row adds an integer from `low` to `high` to one cell.

        Added or removed: all rows of a person in one cell are the worst case of both norms, rows × max(|low|, |high|).
        Replaced: within one cell the difference of two values, or of a value and nothing; in two cells one of each.
        """
        most = max(abs(low), abs(high))
        if not neighbours.replaced:
            return float(neighbours.rows * most), float(neighbours.rows * most)
        nothing = neighbours.filtered or may_add_nothing
        # A row that adds nothing adds 0, so that the range of what a row may add is widened to hold 0.
        span = max(high, 0) - min(low, 0) if nothing else high - low
        if neighbours.cells == 1:
            return float(span), float(span)
        # A row leaves one cell and another enters a second one: |a| + |b| in L1, √(a² + b²) in L2.
        return float(max(2 * most, span)), max(_root(2) * most, float(span))

    def describe(self) -> dict[str, Any]:
        return {
            "add": "values",
            "column": self.column,
            "centre": self.centre,
            "steps": self.steps,
            "bounds": [self.low, self.high],
        }


Summand = RowCount | PersonCount | ValueSum


@dataclass(frozen=True)
class GroupedSums:
    """Summands over the rows that satisfy `where`, by the codes of the columns `by`; in one pass."""

    by: ColumnSet
    where: Predicate | None
    summands: tuple[Summand, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The columns whose values, and not only codes, are looked at."""
        asked = sorted(self.where.columns) if self.where else []
        added = [s.looked_at for s in self.summands if s.looked_at is not None]
        return tuple(dict.fromkeys([*asked, *added]))

    @property
    def persons(self) -> bool:
        return any(isinstance(s, PersonCount) for s in self.summands)

    @property
    def condition(self) -> str | None:
        """The condition as it is understood, whatever the spaces and the case of its words were."""
        return self.where.sql().sql() if self.where else None

    def describe(self) -> dict[str, Any]:
        """Plain values that determine the question, for the record."""
        return {"by": list(self.by), "where": self.condition}


def _root(number: int) -> float:
    """√n, rounded up: a sensitivity may be overstated, never understated."""
    root = math.isqrt(number)
    if root * root == number:
        return float(root)
    return math.nextafter(math.sqrt(number), math.inf)
