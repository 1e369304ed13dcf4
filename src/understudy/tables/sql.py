"""Binning, clamping and capping as SQL, written once as sqlglot expressions and rendered for each engine.

Every value of a row ends up in exactly one code, whatever it is: what can't be read as the column's type counts
as missing, what lies outside the bounds is clamped, what is not on the list is `other`. Nothing raises on a value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.errors import InternalError
from understudy.schema.column import Boolean, Categorical, Datetime, Integer, Number
from understudy.schema.domain import Coding
from understudy.schema.schema import Unit

ROWS = "understudy_rows"
CASE_AT_MOST = 32
"""A longer list of labels is matched by a join with the list: as fast per row whatever its length."""

Expression = Any
"""A sqlglot expression; sqlglot itself is imported late, because it is slow to import."""


@dataclass(frozen=True)
class Source:
    """Where the rows are, for one engine: the relation, which of its columns hold text, and the place of a row in it.

    Without an `order` the engine numbers the rows as it scans them, which must be the same at every scan.
    """

    relation: Expression
    textual: Mapping[str, bool]
    order: Expression | None = None


def capped(source: Source, unit: Unit | None) -> Expression:
    """The rows that count: with a unit, the first `max_rows` of each person in the source's own order.

    Which rows of a person count depends on that person's rows alone, so a person moves at most `max_rows` of
    them; rows without a person's value count as one more person.
    """
    from sqlglot import exp

    everything = exp.select("*").from_(source.relation)
    if unit is None:
        return everything
    order = source.order if source.order is not None else exp.Window(this=exp.RowNumber())
    placed = exp.select("*", exp.alias_(order, "understudy_place")).from_(source.relation)
    turn = exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(unit.column, quoted=True)],
        order=exp.Order(expressions=[exp.column("understudy_place")]),
    )
    numbered = exp.select("*", exp.alias_(turn, "understudy_turn")).from_(placed.subquery("placed"))
    return exp.select("*").from_(numbered.subquery("numbered")).where(f"understudy_turn <= {unit.max_rows:d}")


def select_codes(
    source: Source, unit: Unit | None, codings: Sequence[Coding], missing_values: Sequence[str], types: Sequence[str]
) -> Expression:
    """One column of codes per coding, cast to the engine's type named in `types`, a row per row."""
    from sqlglot import exp

    query = exp.select().from_(capped(source, unit).subquery(ROWS))
    for i, (coding, kind) in enumerate(zip(codings, types, strict=True)):
        code, lookup = _code(coding, source.textual[coding.name], missing_values, f"labels_{i}")
        if lookup is not None:
            query = query.join(lookup[0], on=lookup[1], join_type="left")
        query = query.select(exp.alias_(exp.cast(code, exp.DataType.Type[kind]), f"code_{i}"))
    return query


def select_values(source: Source, unit: Unit | None, column: str, missing_values: Sequence[str]) -> Expression:
    """The distinct texts of a column with their counts."""
    from sqlglot import exp

    text = _text(column)
    return (
        exp.select(exp.alias_(text, "value"), exp.alias_(exp.Count(this=exp.Star()), "rows"))
        .from_(capped(source, unit).subquery(ROWS))
        .where(exp.not_(_is_missing(column, missing_values)))
        .group_by(text)
        .order_by("value")
    )


def _code(
    coding: Coding, textual: bool, missing_values: Sequence[str], alias: str
) -> tuple[Expression, tuple[Expression, Expression] | None]:
    """The code of a row's value; and, for a long list of labels, the list to join and on what."""
    column = coding.column
    match column:
        case Boolean():
            return _boolean_code(coding, textual, missing_values), None
        case Categorical():
            return _label_code(coding, textual, missing_values, alias)
        case Integer():
            missing = _is_missing(column.name, missing_values, textual)
            return _line_code(coding, _number(column.name, textual), _whole_bin, missing), None
        case Datetime():
            missing = _is_missing(column.name, missing_values, textual)
            return _line_code(coding, _units(column, textual), _whole_bin, missing), None
        case Number():
            missing = _is_missing(column.name, missing_values, textual)
            return _line_code(coding, _number(column.name, textual), _edge_bin, missing), None
    raise InternalError(f"column {column.name!r} of type {column.type!r} has no codes", column)


def _raw(column: str) -> Expression:
    from sqlglot import exp

    return exp.column(column, table=ROWS, quoted=True)


def _text(column: str) -> Expression:
    from sqlglot import exp

    # Without a list of characters DuckDB strips `column.SPACES`, several times faster than with one.
    return exp.Trim(this=exp.cast(_raw(column), "text"))


def _is_missing(column: str, missing_values: Sequence[str], textual: bool = True) -> Expression:
    """Null, empty or one of `missing_values`; only texts are empty, so a number or a date need not become one."""
    from sqlglot import exp

    absent = _raw(column).is_(exp.null())
    tokens = ("", *missing_values) if textual else tuple(missing_values)
    return exp.or_(absent, _text(column).isin(*tokens)) if tokens else absent


def _double(value: float) -> Expression:
    """A literal that means exactly this double, in every dialect."""
    from sqlglot import exp

    return exp.cast(exp.Literal.string(repr(float(value))), "double")


def _number(column: str, textual: bool) -> Expression:
    from sqlglot import exp

    return exp.TryCast(this=_text(column) if textual else _raw(column), to=exp.DataType.build("double"))


def _units(column: Datetime, textual: bool) -> Expression:
    """Units of the column's resolution since its `start`; a fraction of a unit remains, and is floored when binned."""
    from sqlglot import exp

    moment: Expression
    if textual and column.format:
        moment = exp.func("TRY_STRPTIME", _text(column.name), exp.Literal.string(column.format))
    else:
        moment = exp.TryCast(
            this=_text(column.name) if textual else _raw(column.name), to=exp.DataType.build("timestamp")
        )
    start = exp.cast(exp.Literal.string(column.start.isoformat(sep=" ")), "timestamp")
    elapsed = exp.Paren(this=exp.Sub(this=_epoch(moment), expression=_epoch(start)))
    return exp.Div(this=elapsed, expression=_double(column.unit_seconds), typed=False, safe=False)


def _epoch(moment: Expression) -> Expression:
    from sqlglot import exp

    return exp.cast(exp.Extract(this=exp.var("EPOCH"), expression=moment), "double")


def _line_code(
    coding: Coding,
    position: Expression,
    bin_of: Callable[[Coding, Expression], Expression],
    missing: Expression,
) -> Expression:
    """Missing, unreadable and not-a-number values first; every other one has a bin."""
    from sqlglot import exp

    nothing = exp.or_(missing, position.is_(exp.null()), exp.IsNan(this=position))
    return exp.case().when(nothing, exp.Literal.number(coding.null_code)).else_(bin_of(coding, position))


def _whole_bin(coding: Coding, position: Expression) -> Expression:
    """Bins of whole numbers. With one common width the bin is a division, exact for doubles up to 2^53."""
    from sqlglot import exp

    edges = [int(e) for e in coding.edges or ()]
    low, high = edges[0], edges[-1] - 1
    if isinstance(coding.column, Integer):
        position = exp.Add(this=position, expression=_double(0.5))  # to the nearest whole number
    inside = exp.Least(
        this=exp.Greatest(this=exp.Floor(this=exp.Paren(this=position)), expressions=[_double(low)]),
        expressions=[_double(high)],
    )
    width = edges[1] - low
    if any(b - a != width for a, b in itertools.pairwise(edges[:-1])) or edges[-1] - edges[-2] > width:
        return _bisect(inside, [float(e) for e in edges[1:-1]], 0)
    offset = exp.Paren(this=exp.Sub(this=inside, expression=_double(low)))
    return exp.Floor(this=exp.Div(this=offset, expression=_double(width), typed=False, safe=False))


def _edge_bin(coding: Coding, position: Expression) -> Expression:
    return _bisect(position, list((coding.edges or ())[1:-1]), 0)


def _bisect(position: Expression, cuts: list[float], first: int) -> Expression:
    """The bin of a position among rising cuts, by a balanced tree of comparisons."""
    from sqlglot import exp

    if not cuts:
        return exp.Literal.number(first)
    middle = len(cuts) // 2
    below = exp.LT(this=position.copy(), expression=_double(cuts[middle]))
    return (
        exp.case()
        .when(below, _bisect(position, cuts[:middle], first))
        .else_(_bisect(position, cuts[middle + 1 :], first + middle + 1))
    )


def _boolean_code(coding: Coding, textual: bool, missing_values: Sequence[str]) -> Expression:
    from sqlglot import exp

    lower = exp.Lower(this=_text(coding.name))
    return (
        exp.case()
        .when(_is_missing(coding.name, missing_values, textual), exp.Literal.number(coding.null_code))
        .when(lower.isin(*Boolean.FALSE), exp.Literal.number(0))
        .when(lower.isin(*Boolean.TRUE), exp.Literal.number(1))
        .else_(exp.Literal.number(coding.stray_code))
    )


def _label_code(
    coding: Coding, textual: bool, missing_values: Sequence[str], alias: str
) -> tuple[Expression, tuple[Expression, Expression] | None]:
    from sqlglot import exp

    assert isinstance(coding.column, Categorical) and coding.labels is not None
    numeric = coding.column.numeric
    value = _number(coding.name, textual) if numeric else _text(coding.name)
    literals = [_double(float(v)) if numeric else exp.Literal.string(str(v)) for v in coding.labels]
    pairs = [(literal, exp.Literal.number(i)) for i, literal in enumerate(literals)]
    missing = (_is_missing(coding.name, missing_values, textual), exp.Literal.number(coding.null_code))
    stray = exp.Literal.number(coding.stray_code)
    if len(pairs) <= CASE_AT_MOST:
        code = exp.case().when(*missing)
        for label, number in pairs:
            code = code.when(exp.EQ(this=value.copy(), expression=label), number)
        return code.else_(stray), None
    lookup = exp.values([tuple(p) for p in pairs], alias=alias, columns=["label", "code"])
    found = exp.Coalesce(this=exp.column("code", table=alias), expressions=[stray])
    on = exp.EQ(this=value, expression=exp.column("label", table=alias))
    return exp.case().when(*missing).else_(found), (lookup, on)
