"""Columns that are rebuilt from derived ones: `discharged` is `admitted` plus a modelled `stay`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Column, Datetime, Integer, Number
from understudy.boundary.schema.derived import Formula, Term
from understudy.boundary.schema.domain import units_between
from understudy.boundary.schema.schema import Schema
from understudy.inference.values import Values


def with_rebuilt(values: Mapping[str, Values], schema: Schema) -> dict[str, Values]:
    """The values with every rebuilt column, as far as what it is rebuilt from is among them.

    A rebuilt value is missing where any of these is missing or special. It is rounded like every value of its column,
    and clamped to its bounds where they are declared: what no row can have, no synthetic row has either.
    """
    found = dict(values)
    for formula in schema.formulas:
        target = schema[formula.target]
        parts = _parts(formula)
        if all(part.column in found for part in parts):
            found[target.name] = _rebuilt(target, parts, found)
    return found


def _parts(formula: Formula) -> list[Term]:
    """What is added up to the rebuilt column, the derived one first."""
    if formula.in_table:
        return list(formula.terms)
    (own,) = (t.sign for t in formula.terms if t.column == formula.target)
    # From d = s·x + rest follows x = s·(d - rest), since s is 1 or -1.
    others = (Term(-own * t.sign, t.column) for t in formula.terms if t.column != formula.target)
    return [Term(own, formula.name), *others]


def _rebuilt(target: Column, parts: list[Term], values: Mapping[str, Values]) -> Values:
    absent = np.any([values[p.column].absent() for p in parts], axis=0)
    if isinstance(target, Datetime):
        unit = np.timedelta64(target.unit_seconds, "s")
        first, second = (values[p.column].data for p in parts)
        data: NDArray[Any] = second + parts[0].sign * first * unit
        if target.minimum is not None:
            data = np.maximum(data, np.datetime64(target.start, "s"))
        if target.minimum is not None and target.maximum is not None:
            last = target.start + units_between(target, target.maximum) * timedelta(seconds=target.unit_seconds)
            data = np.minimum(data, np.datetime64(last, "s"))
    else:
        total = np.sum([p.sign * values[p.column].data for p in parts], axis=0)
        data = _settled(target, np.where(absent, 0, total))
    return Values(data, absent if target.missing else None)


def _settled(target: Column, total: NDArray[Any]) -> NDArray[Any]:
    """Rounded to the column's decimals, and within its bounds."""
    assert isinstance(target, Integer | Number)
    if isinstance(target, Integer):
        total = np.rint(total).astype(np.int64)
    else:
        # Without declared decimals to 12: what is finer is rounding of doubles.
        total = np.round(total, 12 if target.decimals is None else target.decimals)
    if target.minimum is not None:
        total = np.maximum(total, target.minimum)
    if target.maximum is not None:
        total = np.minimum(total, target.maximum)
    return total
