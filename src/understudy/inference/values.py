"""Typed values of synthetic rows: drawn from codes, and judged by the expressions of `schema.expression`.

Nothing here sees a private row: codes come from a model, and rules and bounds from the schema. The truth of a condition
has three values as in SQL; tests hold it to what DuckDB says of the same condition.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Boolean, Datetime, Identifier, Integer, Line, Number
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.expression import Constraint, Kind, Predicate
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import special_name
from understudy.errors import InternalError, SchemaError
from understudy.inference.bin_density import draw_steps
from understudy.inference.date_parts import part_of, parts_among, with_parts

Codes: TypeAlias = Mapping[str, NDArray[np.integer]]


@dataclass(frozen=True, eq=False)
class Values:
    """One column's values; an entry is missing where the mask says so, and also where it is NaN, NaT or None."""

    data: NDArray[Any]
    missing: NDArray[np.bool_] | None = None

    def absent(self) -> NDArray[np.bool_]:
        """Which entries are missing, by the mask or by themselves."""
        own = _absent_by_itself(self.data)
        return own if self.missing is None else own | self.missing

    def replaced(self, rows: NDArray[np.integer], others: Values) -> Values:
        """The same with the values of others in some rows."""
        data, missing = self.data.copy(), self.missing
        data[rows] = others.data
        if missing is not None and others.missing is not None:
            missing = missing.copy()
            missing[rows] = others.missing
        return Values(data, missing)


def _absent_by_itself(data: NDArray[Any]) -> NDArray[np.bool_]:
    if data.dtype.kind == "f":
        return np.asarray(np.isnan(data))
    if data.dtype.kind == "M":
        return np.asarray(np.isnat(data))
    if data.dtype.kind == "O":  # in a column of text, a float can only be pandas' NaN
        absent = np.frompyfunc(lambda value: value is None or isinstance(value, float), 1, 1)
        return np.asarray(absent(data), dtype=bool)
    return np.zeros(data.shape, dtype=bool)


# --- From codes to values -------------------------------------------------------------------------------------------


def decode(codes: Codes, domain: Domain, rng: np.random.Generator, *, uniform: bool = False) -> dict[str, Values]:
    """Typed values of the coded columns: inside a bin by the density that its neighbours suggest (`bin_density`).

    Or `uniform`: for codes that stand for the domain, and not for rows. Special values stand beside the numbers, which
    they are none of, as texts under `special_name`.
    """
    found: dict[str, Values] = {}
    for coding in domain:
        if coding.name in codes:
            found[coding.name] = _decode(coding, codes[coding.name], rng, uniform)
            if coding.special:
                found[special_name(coding.name)] = special_values(coding, codes[coding.name])
    for date, parts in parts_among(domain, codes).items():
        coding, mask = domain[date], found[date].missing
        data = with_parts(found[date].data, coding, parts, codes, partial(_values, coding, rng=rng, uniform=uniform))
        found[date] = Values(data, mask)
        # Of the date that it came to, so that no rule is judged by another one.
        found |= {p.name: Values(part_of(data, p).astype(np.int64), mask) for p in parts}
    return found


def special_values(coding: Coding, codes: NDArray[np.integer]) -> Values:
    """The special values as texts, an empty one for a number."""
    assert isinstance(coding.column, Line)
    texts = np.array([*coding.column.special_texts, ""], dtype=object)
    places = codes.astype(np.int64) - coding.levels
    own = (places >= 0) & (places < len(coding.special))
    missing = codes == coding.size - 1 if coding.column.missing else None
    return Values(texts[np.where(own, places, -1)], missing)


def made_up(column: Identifier, size: int) -> Values:
    """Numbered values after the column's public template; they say nothing about any row."""
    assert column.made_up is not None
    return Values(np.array([column.made_up.format(i + 1) for i in range(size)], dtype=object), None)


def decimals_of(coding: Coding) -> int:
    """Declared decimals of a number, or enough of them for a hundred steps in the narrowest bin.

    Never more than double precision has at the column's bounds (fewer than none, where those are huge).
    """
    column, edges = coding.column, coding.edges
    assert isinstance(column, Number) and edges is not None
    # A double has 15 decimal digits that it keeps; what is beyond them would be noise of the rounding.
    most = 15 - math.ceil(math.log10(max(abs(edges[0]), abs(edges[-1]))))
    if column.decimals is not None:
        return min(column.decimals, most)
    narrowest = min(b - a for a, b in itertools.pairwise(edges) if b > a)
    return min(max(0, min(12, 2 - math.floor(math.log10(narrowest)))), most)


def check_decodable(domain: Domain) -> None:
    """Refuses a number whose decimals are too coarse for its bins: a bin without any value can't be decoded."""
    for coding in domain:
        if isinstance(coding.column, Number):
            empty = np.flatnonzero(np.diff(_steps(coding)) < 1)
            if len(empty):
                edges = coding.edges or ()
                raise SchemaError(
                    f"column {coding.name!r}: no value of {decimals_of(coding)} decimals lies in the bin "
                    f"from {edges[empty[0]]:g} to {edges[empty[0] + 1]:g}; use fewer bins or more decimals",
                    coding.column,
                )


def _decode(coding: Coding, codes: NDArray[np.integer], rng: np.random.Generator, uniform: bool) -> Values:
    if not coding.apart:
        return Values(_values(coding, codes, rng, uniform))
    missing = codes >= coding.levels
    # Drawn without the missing ones, which are in no bin; what stands behind the mask is any value of the column.
    present = _values(coding, codes[~missing], rng, uniform)
    data = np.repeat(_values(coding, np.zeros(1, dtype=np.intp), rng, uniform), len(codes))
    data[~missing] = present
    return Values(data, missing)


def _values(coding: Coding, codes: NDArray[np.integer], rng: np.random.Generator, uniform: bool) -> NDArray[np.generic]:
    column = coding.column
    if isinstance(column, Boolean):
        return codes == 1
    if coding.labels is not None:
        return np.array(coding.labels, dtype=np.int64 if isinstance(coding.labels[0], int) else object)[codes]
    edges = _steps(coding) if isinstance(column, Number) else np.array(coding.edges, dtype=np.int64)
    if isinstance(column, Integer) and column.step is not None:
        return _multiples(column.step, codes, edges, rng, uniform)
    steps = rng.integers(edges[codes], edges[codes + 1]) if uniform else draw_steps(codes, edges, rng)
    if isinstance(column, Number):
        numbers = steps / 10.0 ** decimals_of(coding)
        return _beside_special(coding, codes, numbers, 10.0 ** -decimals_of(coding))
    if isinstance(column, Datetime):
        return np.datetime64(column.start, "s") + steps * np.timedelta64(column.unit_seconds, "s")
    return _beside_special(coding, codes, steps, 1)


def _multiples(
    step: int, codes: NDArray[np.integer], edges: NDArray[np.int64], rng: np.random.Generator, uniform: bool
) -> NDArray[np.generic]:
    """Multiples of the step inside the bins; any value of a bin that holds none."""
    places = -(-edges // step)
    held = np.diff(places) > 0
    if held.all():
        return step * (rng.integers(places[codes], places[codes + 1]) if uniform else draw_steps(codes, places, rng))
    multiples = step * rng.integers(places[codes], places[codes] + np.maximum(np.diff(places), 1)[codes])
    others = rng.integers(edges[codes], edges[codes + 1]) if uniform else draw_steps(codes, edges, rng)
    return np.where(held[codes], multiples, others)


def _beside_special(
    coding: Coding, codes: NDArray[np.integer], numbers: NDArray[Any], step: float
) -> NDArray[np.generic]:
    """Numbers that are none of the special ones: each of these is moved to the next place of its bin that is free."""
    special = np.array([v for v in coding.special if not isinstance(v, str)], dtype=np.float64)
    edges = np.array(coding.edges)
    for way in (step, -step):
        for _ in range(special.size):
            hit = np.isin(numbers, special)
            moved = numbers + way
            inside = (moved >= edges[codes]) & (moved < edges[codes + 1])
            numbers = np.where(hit & inside, moved, numbers)
    return numbers


def _steps(coding: Coding) -> NDArray[np.int64]:
    """The first multiple of 10^−decimals inside each bin of a number, and at the end the first behind the last bin."""
    edges, power = np.array(coding.edges), 10.0 ** decimals_of(coding)
    first = np.ceil(edges * power)
    # Rounding in edges × power may put a step on the wrong side of its edge: compare as the encoder will.
    first = np.where((first - 1) / power >= edges, first - 1, np.where(first / power < edges, first + 1, first))
    if first[-1] / power == edges[-1]:  # the last bin includes its upper edge
        first[-1] += 1
    return first.astype(np.int64)


# --- The truth of a condition ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """Where a predicate is definitely true and where definitely false; it is unknown where it is neither."""

    true: NDArray[np.bool_]
    false: NDArray[np.bool_]

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Where a missing value decides."""
        return ~(self.true | self.false)


def evaluate(predicate: Predicate, values: Mapping[str, Values], size: int) -> Truth:
    """The truth of each of `size` rows, by SQL's three-valued logic.

    >>> from understudy.boundary.schema.expression import parse
    >>> age = Values(np.array([30, 50]), np.array([False, True]))
    >>> truth = evaluate(parse("age > 40", {"age": Kind.NUMBER}), {"age": age}, 2)
    >>> truth.true.tolist(), truth.unknown.tolist()
    ([False, False], [False, True])
    """
    texts = {special_name(c): Kind.TEXT for c in predicate.special}
    return _judge(predicate.sql(), _Rows(values, dict(predicate.kinds) | texts, size))


def violated(constraint: Constraint, values: Mapping[str, Values], size: int) -> NDArray[np.bool_]:
    """Which rows break the rule for certain; as in an SQL CHECK, what is unknown passes.

    >>> rule = Constraint.parse("age < 15", "NOT married", {"age": Kind.NUMBER, "married": Kind.BOOLEAN})
    >>> violated(rule, {"age": Values(np.array([9])), "married": Values(np.array([True]))}, 1).tolist()
    [True]
    """
    broken = evaluate(constraint.consequence, values, size).false
    if constraint.condition is None:
        return broken
    return broken & evaluate(constraint.condition, values, size).true


def violations(schema: Schema, values: Mapping[str, Values], size: int) -> NDArray[np.bool_]:
    """A mask of the rows that break one of the schema's constraints."""
    broken = np.zeros(size, dtype=bool)
    for constraint in schema.constraints:
        broken |= violated(constraint, values, size)
    return broken


@dataclass(frozen=True, eq=False)
class _Rows:
    """The columns under evaluation; `size` is needed by predicates that name no column."""

    values: Mapping[str, Values]
    kinds: Mapping[str, Kind]
    size: int


class _Read(NamedTuple):
    """An operand's values, of one row or of all, with a mask that is complete."""

    data: NDArray[Any]
    missing: NDArray[np.bool_] = np.asarray(False)


_DTYPES = {Kind.NUMBER: "iuf", Kind.TEXT: "OUT", Kind.BOOLEAN: "b", Kind.DATETIME: "M"}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _judge(node: Any, rows: _Rows) -> Truth:
    """The truth of a condition, by the tree that `schema.expression` wrote."""
    match node.key:
        case "paren":
            return _judge(node.this, rows)
        case "and":
            return reduce(_both, (_judge(part, rows) for part in node.flatten(unnest=False)))
        case "or":
            return reduce(_either, (_judge(part, rows) for part in node.flatten(unnest=False)))
        case "not":
            return _negated(_judge(node.this, rows))
        case "is":
            missing = _read(node.this, rows).missing
            return Truth(missing, ~missing)
        case "in":  # an OR of equalities, as SQL defines it
            value = _read(node.this, rows)
            return reduce(_either, (_compared("eq", value, _read(o, rows), rows.size) for o in node.expressions))
        case key if key in _COMPARISONS:
            return _compared(key, _read(node.this, rows), _read(node.expression, rows), rows.size)
    # A boolean column, or TRUE or FALSE, standing as a condition of its own.
    data, missing = _read(node, rows)
    return _known(data, missing, rows.size)


def _both(left: Truth, right: Truth) -> Truth:
    """Kleene's AND: true if all are, false if one is."""
    return Truth(left.true & right.true, left.false | right.false)


def _either(left: Truth, right: Truth) -> Truth:
    """Kleene's OR: true if one is, false if all are."""
    return Truth(left.true | right.true, left.false & right.false)


def _negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true)


def _compared(operation: str, left: _Read, right: _Read, size: int) -> Truth:
    holds = np.asarray(_COMPARISONS[operation](left.data, right.data), dtype=bool)
    return _known(holds, left.missing | right.missing, size)


def _known(holds: NDArray[np.bool_], missing: NDArray[np.bool_], size: int) -> Truth:
    """The two-valued answer where nothing is missing, stretched over all rows."""
    known = np.broadcast_to(~missing, (size,))
    return Truth(holds & known, ~holds & known)


def _read(node: Any, rows: _Rows) -> _Read:
    """The values of what stands on either side of a comparison."""
    match node.key:
        case "paren":
            return _read(node.this, rows)
        case "column":
            return _read_column(node.this.this, rows)
        case "literal":
            return _Read(np.asarray(node.this if node.is_string else int(node.this)))
        case "boolean":
            return _Read(np.asarray(node.this))
        case "neg":
            return _Read(np.asarray(-int(node.this.this)))
        case "cast":
            return _read_cast(node, rows)
        case "add" if node.expression.key == "interval":  # a date moved by whole days
            date, days = _read(node.this, rows), int(node.expression.this.this)
            return _Read(np.asarray(date.data + np.timedelta64(days, "D")), date.missing)
    left, right = _read(node.this, rows), _read(node.expression, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        data = _ARITHMETIC[node.key](left.data, right.data)
    return _Read(np.asarray(data), left.missing | right.missing | np.isnan(data))


def _read_column(name: str, rows: _Rows) -> _Read:
    values, kind = rows.values.get(name), rows.kinds[name]
    if values is None:
        raise InternalError(f"column {name!r} was not supplied to an expression that reads it.", name)
    if values.data.shape != (rows.size,) or values.data.dtype.kind not in _DTYPES[kind]:
        found = f"{values.data.dtype} of shape {values.data.shape}"
        raise InternalError(f"column {name!r} must hold {rows.size} {kind.value} values, not {found}.")
    missing = values.absent()
    if values.data.dtype.kind == "O":  # a filler such as pandas.NA has no truth value, so it may not be compared
        return _Read(np.where(missing, "", values.data), missing)
    return _Read(values.data, missing)


def _read_cast(node: Any, rows: _Rows) -> _Read:
    """A literal date or double, which is written as a cast of a string; or an operand of double arithmetic."""
    doubled = node.to.this.name == "DOUBLE"
    if node.this.key == "literal" and node.this.is_string:
        written = node.this.this
        return _Read(np.asarray(float(written) if doubled else np.datetime64(written, "s")))
    inner = _read(node.this, rows)
    return _Read(inner.data.astype(np.float64), inner.missing) if doubled else inner
