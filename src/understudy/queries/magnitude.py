"""Whether the arithmetic of a condition could overflow or underflow, from the schema's bounds alone.

Some engines raise an error when a product of doubles leaves their range. An error that depends on a row would tell of
that row, so a condition that could raise one on any row of the declared domain is refused before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from understudy.boundary.schema.column import Categorical, Column, Integer, Number
from understudy.boundary.schema.expression import Predicate
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.tally_sql import NEGLIGIBLE
from understudy.errors import InputError

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


def check_magnitudes(condition: Predicate, schema: Schema) -> None:
    """Refuses a condition whose arithmetic may leave the range of doubles."""
    for node in condition.sql().walk():
        # Dates are moved by whole days, which can't leave any range.
        computes = node.key in ("add", "sub", "mul") and node.expression.key != "interval"
        if computes and not _magnitude(node, schema).safe:
            raise InputError(
                f"the arithmetic of «{condition.text[:60]}» may leave the range from 1e-300 to 1e300 within the bounds "
                "of its columns; declare decimals for them, or multiply fewer of them",
                condition,
            )


def _magnitude(node: Any, schema: Schema) -> Magnitude:
    node = node.unnest()
    if node.key in ("cast", "neg"):
        return _magnitude(node.this, schema)
    if node.key == "column":
        return _of_column(schema[node.name])
    if node.key == "literal":
        size = abs(float(node.this))
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
            least = NEGLIGIBLE if column.decimals is None else 10.0**-column.decimals
            return Magnitude(max(abs(low), abs(high)), least)
        case Categorical(values=tuple() as labels):
            return Magnitude(max(abs(float(v)) for v in labels), 1.0)
    raise InputError(
        f"column {column.name!r} can't be computed with, since its bounds are private; declare them", column
    )
