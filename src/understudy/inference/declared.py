"""Conditions that somebody types: a value that the schema doesn't list is a slip, and is told before anything is spent.

The rules of a schema are not held to it: old releases have theirs, and a rule about a value that nobody has is true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from understudy.boundary.schema.column import Categorical, Label
from understudy.boundary.schema.expression import Predicate
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.parameters import suggestion

MOST_LISTED = 12
"""Values that a refusal lists where none is like the one that was typed."""


def check_declared(predicate: Predicate, schema: Schema) -> None:
    """Refuses a condition that compares a column of listed values with one that is not on its list."""
    for name, literal in _compared(predicate.sql()):
        # A special value stands under a name of its own, which no schema has.
        if name not in schema:
            continue
        column = schema[name]
        if not isinstance(column, Categorical) or column.values is None or literal in column.labels:
            continue
        labels = [str(label) for label in column.labels]
        hint = suggestion(str(literal), labels, "it has")
        if hint.startswith("it has") and len(labels) > MOST_LISTED:
            hint = f"it has {len(labels):,} others"
        raise InputError(f"value {literal!r} of column {name!r} is not declared in the schema; {hint}", literal)


def _compared(tree: Any) -> Iterator[tuple[str, Label | float]]:
    """Every column with each literal that it is held to be equal, or not equal, to."""
    from sqlglot import exp

    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In):
        sides = [node.this, *(node.expressions or [node.expression])]
        columns = [s.name for s in sides if isinstance(s, exp.Column)]
        literals = [value for s in sides if (value := _literal(s)) is not None]
        yield from ((column, value) for column in columns for value in literals)


def _literal(node: Any) -> Label | float | None:
    from sqlglot import exp

    match node:
        case exp.Literal(is_string=True):
            return str(node.this)
        case exp.Literal():
            return float(node.this)
        case exp.Neg():
            value = _literal(node.this)
            return None if value is None or isinstance(value, str) else -value
        case exp.Cast() if isinstance(node.this, exp.Literal) and node.to.this == exp.DataType.Type.DOUBLE:
            return float(node.this.this)
    return None
