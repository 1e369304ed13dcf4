"""How large and how small a number that is computed from a row may be, from the schema's bounds alone.

Some engines raise an error where a sum or a product of doubles leaves their range, and an error that depends on a row
tells of that row. So what could raise one on any row of the declared domain is refused before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from understudy.boundary.schema.column import Categorical, Column, Integer, Number
from understudy.boundary.schema.expression import Predicate
from understudy.boundary.schema.grouped_sums import NEGLIGIBLE, GroupedSums, ValueSum
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError

# Doubles reach from 2.2e-308 to 1.8e308; these bounds keep clear of both ends.
LARGEST, SMALLEST = 1e300, 1e-300
ROUNDING = 2.0**-54
"""A difference of two doubles is a multiple of the last place of the smaller one."""


@dataclass(frozen=True)
class Magnitude:
    """Bounds of |x|: at most `most`, and at least `least` unless x is zero."""

    most: float
    least: float

    @property
    def safe(self) -> bool:
        return self.most <= LARGEST and self.least >= SMALLEST


def check_tally(tally: GroupedSums, schema: Schema) -> None:
    """Refuses a condition, and a sum, that may leave the range of doubles on some row."""
    if tally.where is not None:
        check_range(tally.where, schema)
    for summand in tally.summands:
        if isinstance(summand, ValueSum) and not _of_sum(summand, schema).safe:
            raise InputError(
                f"the sum of {summand.column!r} may leave the range from 1e-300 to 1e300 within the bounds of the "
                "column; declare closer ones",
                summand,
            )


def check_range(condition: Predicate, schema: Schema) -> None:
    """Refuses arithmetic that may leave the range of doubles on some row."""
    for node in condition.sql().walk():
        # Dates are moved by whole days, which can't leave any range.
        computes = node.key in ("add", "sub", "mul") and node.expression.key != "interval"
        if computes and not _magnitude(node, schema).safe:
            raise InputError(
                f"the arithmetic of «{condition.text[:60]}» may leave the range from 1e-300 to 1e300 within the bounds "
                "of its columns; declare decimals for them, or multiply fewer of them",
                condition,
            )


def _of_sum(summand: ValueSum, schema: Schema) -> Magnitude:
    """Of (x − centre) × steps."""
    column = schema[summand.column]
    if not isinstance(column, Integer | Number):  # engines make numbers of texts, or raise on those that are none
        raise InputError(f"column {column.name!r} is {column.type}, which can't be added up", column)
    x, steps = _of_column(column), abs(summand.steps)
    least = x.least * ROUNDING if summand.centre else x.least
    return Magnitude((x.most + abs(summand.centre)) * steps, least * steps)


def _magnitude(node: Any, schema: Schema) -> Magnitude:
    node = node.unnest()
    if node.key in ("cast", "neg"):
        return _magnitude(node.this, schema)
    if node.key == "column":
        return _of_column(schema[node.name])
    if node.key == "literal":
        size = abs(float(node.this))
        # Zero can't underflow, so its bound from below may be anything that is safe.
        return Magnitude(size, size or 1.0)
    left, right = _magnitude(node.this, schema), _magnitude(node.expression, schema)
    if node.key == "mul":
        return Magnitude(left.most * right.most, left.least * right.least)
    return Magnitude(left.most + right.most, min(left.least, right.least) * ROUNDING)


def _of_column(column: Column) -> Magnitude:
    match column:
        case Integer(minimum=int(low), maximum=int(high)):
            return Magnitude(max(abs(low), abs(high)), 1.0)
        case Number(minimum=float() | int() as low, maximum=float() | int() as high):
            most, least = max(abs(low), abs(high)), NEGLIGIBLE
            # As `tables.sums_sql` settles them: on a grid of their decimals, unless that is too fine for doubles.
            if column.decimals is not None and most * 10.0**column.decimals <= 2.0**52:
                least = 10.0**-column.decimals
            return Magnitude(most, least)
        case Categorical(values=tuple() as labels):
            return Magnitude(max(abs(float(v)) for v in labels), 1.0)
    raise InputError(
        f"column {column.name!r} can't be computed with, since its bounds are private; declare them", column
    )
