"""Tallies as SQL: rows are capped, read, cleaned by the schema's rules, filtered, and added up by group.

A cleaned value is what the schema says that a row holds: clamped to the bounds, a declared label, a date at its
column's resolution; null only where the column may be missing. Conditions and sums see cleaned values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from understudy.boundary.schema.column import Boolean, Categorical, Column, Datetime, Integer, Line, Number
from understudy.boundary.schema.domain import Coding, Domain, units_between
from understudy.boundary.schema.grouped_sums import NEGLIGIBLE, GroupedSums, PersonCount, RowCount, Summand, ValueSum
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import special_name
from understudy.boundary.tables.sql import (
    PERSON,
    ROWS,
    Expression,
    Source,
    case,
    clamped,
    code_of,
    double,
    read_value,
    select_read,
    select_steps,
    special_of,
    whole,
)
from understudy.errors import InternalError

CLEANED = "understudy_cleaned"
CODE = "understudy_code"


def select_sums(source: Source, schema: Schema, domain: Domain, tally: GroupedSums, code_type: str) -> Expression:
    """One row per group that has rows: its codes, then each summand."""
    codes = [exp.column(f"{CODE}_{i}", table=CLEANED) for i in range(len(tally.by))]
    sums = [exp.alias_(_added(s), f"sum_{i}") for i, s in enumerate(tally.summands)]
    rows = _cleaned_rows(source, schema, domain, tally, code_type)
    # `copy=False` here and below: sqlglot would copy the tree so far at every step.
    query = exp.select(*codes, *sums, copy=False).from_(rows.subquery(CLEANED, copy=False), copy=False)
    if tally.where is not None:
        query = query.where(tally.where.sql(), copy=False)
    if codes:
        return query.group_by(*[c.copy() for c in codes], copy=False)
    return query


def _cleaned_rows(source: Source, schema: Schema, domain: Domain, tally: GroupedSums, code_type: str) -> Expression:
    codings = [domain[c] for c in tally.by]
    columns = [*(c.column for c in codings), *(schema[c] for c in tally.values)]
    inner = select_read(source, schema.unit, columns, schema.missing_texts)
    if tally.persons:
        if schema.unit is None:
            raise InternalError("persons can't be counted without a unit in the schema", schema)
        inner.select(exp.column(PERSON, table=ROWS), copy=False)
    if not inner.expressions:
        return inner.select(exp.alias_(whole(1), "understudy_row"))
    query = exp.select().from_(inner.subquery("readings", copy=False), copy=False)
    for i, coding in enumerate(codings):
        code, lookup = code_of(coding, i)
        if lookup is not None:
            query.join(lookup[0], on=lookup[1], join_type="left", copy=False)
        query.select(exp.alias_(exp.cast(code, exp.DataType.Type[code_type]), f"{CODE}_{i}", copy=False), copy=False)
    for i, column in enumerate(columns[len(codings) :], len(codings)):
        value, special = cleaned(column, read_value(i)), special_of(column, i)
        if special is not None:
            is_special = exp.not_(special.is_(exp.null()))
            texts = _special_texts(column, value, special)
            query.select(exp.alias_(texts, special_name(column.name), quoted=True, copy=False), copy=False)
            value = case([(is_special, exp.null())], value)
        query.select(exp.alias_(value, column.name, quoted=True, copy=False), copy=False)
    if tally.persons:
        query.select(exp.column(PERSON, table="readings"), copy=False)
    return query


def select_looks(source: Source, schema: Schema, codings: Sequence[Coding]) -> Expression:
    """Every row as a release reads it, for whoever may see rows: uncapped, and with each step of the reading.

    To the steps of `select_steps` come `code_i`, and `clean NAME`, the value of column NAME that conditions see; that
    of a rebuilt column as well, which has no code. `value_i` is null where it is a special value.
    """
    coded = [c.column for c in codings]
    rebuilt = [c for c in schema.in_table if isinstance(c, Line) and c.rebuilt_from]
    inner = select_steps(source, schema.unit, [*coded, *rebuilt], schema.missing_texts)
    query = exp.select().from_(inner.subquery("readings"), copy=False)
    if schema.unit is not None:
        query.select(exp.column(PERSON, table="readings"), copy=False)
    for i, coding in enumerate(codings):
        code, lookup = code_of(coding, i)
        if lookup is not None:
            query.join(lookup[0], on=lookup[1], join_type="left", copy=False)
        steps = [exp.column(f"{step}_{i}", table="readings") for step in ("text", "missing")]
        query.select(*steps, exp.alias_(exp.cast(code, "int"), f"code_{i}", copy=False), copy=False)
    for i, column in enumerate([*coded, *rebuilt]):
        value, special = read_value(i), special_of(column, i)
        clean = cleaned(column, value.copy())
        if special is not None:
            is_special = exp.not_(special.copy().is_(exp.null()))
            texts = _special_texts(column, clean.copy(), special)
            query.select(exp.alias_(texts, f"clean {special_name(column.name)}", quoted=True), copy=False)
            value, clean = case([(is_special, exp.null())], value), case([(is_special.copy(), exp.null())], clean)
        query.select(exp.alias_(value, f"value_{i}", copy=False), copy=False)
        query.select(exp.alias_(clean, f"clean {column.name}", quoted=True), copy=False)
    return query


def _added(summand: Summand) -> Expression:
    match summand:
        case RowCount(present=None):
            return exp.Count(this=exp.Star())
        case RowCount(present=name):
            return exp.Count(this=_named(str(name)))
        case PersonCount():
            return exp.Count(this=exp.Distinct(expressions=[exp.column(PERSON, table=CLEANED)]))
        case ValueSum():
            # Of whole numbers: a sum of doubles would depend on the order in which the engine adds them.
            added = exp.cast(exp.Sum(this=_steps(summand)), "bigint")
            return exp.Coalesce(this=added, expressions=[whole(0)])


def _named(column: str) -> Expression:
    return exp.column(column, table=CLEANED, quoted=True)


def _steps(summand: ValueSum) -> Expression:
    """Whole steps from the centre. They are clamped as integers, so that no rounding can move them out of bounds."""
    away = exp.Paren(this=exp.Sub(this=_named(summand.column), expression=double(summand.centre)))
    nearest = exp.Add(this=exp.Mul(this=away, expression=double(summand.steps)), expression=double(0.5))
    within = clamped(exp.Floor(this=exp.Paren(this=nearest)), summand.low, summand.high)
    # Some engines' LEAST and GREATEST pass over nulls, and would make a bound of what is missing.
    nothing = _named(summand.column).is_(exp.null())
    return case([(nothing, exp.null())], exp.cast(within, "bigint"))


def cleaned(column: Column, value: Expression) -> Expression:
    """What the schema says that a row holds, given the value that was read (null where there is none)."""
    match column:
        case Boolean():
            truths = [(value.isin(*Boolean.FALSE), exp.false()), (value.isin(*Boolean.TRUE), exp.true())]
            return case(truths, exp.null() if column.missing else exp.false())
        case Categorical(values=None):
            return value
        case Categorical():
            return _label(column, value)
        case Integer(minimum=int(low), maximum=int(high)):
            nearest = exp.Paren(this=exp.Add(this=value.copy(), expression=double(0.5)))
            return _present(column, value, clamped(exp.Floor(this=nearest), low, high), double(low))
        case Number(minimum=float() | int() as low, maximum=float() | int() as high):
            return _present(column, value, _settled(column, clamped(value.copy(), low, high)), double(low))
        case Datetime(minimum=minimum, maximum=maximum) if minimum is not None and maximum is not None:
            return _moment(column, value)
    raise InternalError(f"column {column.name!r} of type {column.type!r} has no bounds to clean its values by", column)


def _special_texts(column: Column, value: Expression, special: Expression) -> Expression:
    """The special value as a text, an empty text for a number or a date, and null for what is missing."""
    assert isinstance(column, Line)
    texts = [(special.copy().eq(whole(i)), exp.Literal.string(t)) for i, t in enumerate(column.special_texts)]
    return case([*texts, (value.copy().is_(exp.null()), exp.null())], exp.Literal.string(""))


def _label(column: Categorical, value: Expression) -> Expression:
    """The label; what is not declared is `other`, else missing, else the first."""
    # The rules of `Coding.null_code` and `Coding.stray_code`, in SQL: a condition must see what a marginal counts.
    labels = [_literal(v) for v in column.labels]
    default = exp.null() if column.missing else labels[0].copy()
    stray = default if column.other is None else _literal(column.other)
    absent = default if column.missing else stray.copy()
    known = exp.In(this=value.copy(), expressions=labels)
    meant = []
    if not column.numeric:
        spelled = [(text, label) for text, label in column.spellings.items() if text != label]
        meant = [(value.copy().eq(text), _literal(label)) for text, label in spelled]
    return case([(value.is_(exp.null()), absent), (known, value.copy()), *meant], stray.copy())


def _literal(label: Any) -> Expression:
    if isinstance(label, int):
        return double(float(label))
    return exp.Literal.string(label)


def _present(column: Column, value: Expression, then: Expression, least: Expression) -> Expression:
    """`then`, or for a value that is missing null or, where the column has no missing values, its least value."""
    nothing = exp.or_(value.is_(exp.null()), exp.IsNan(this=value.copy()))
    return case([(nothing, exp.null() if column.missing else least)], then)


def _settled(column: Number, value: Expression) -> Expression:
    """A number on the grid of its declared decimals; without decimals as it is, or zero where it is next to nothing."""
    # Beyond 2^52 steps a double has no halves left to round by, so such numbers stay as they are.
    power = 10.0 ** (column.decimals or 0)
    low, high = float(column.minimum or 0), float(column.maximum or 0)
    if column.decimals is None or max(abs(low), abs(high)) * power > 2.0**52:
        return case([(exp.LT(this=exp.Abs(this=value), expression=double(NEGLIGIBLE)), double(0.0))], value.copy())
    steps = exp.Mul(this=value, expression=double(power))
    nearest = exp.Floor(this=exp.Paren(this=exp.Add(this=steps, expression=double(0.5))))
    return clamped(exp.Div(this=nearest, expression=double(power), typed=False, safe=False), low, high)


def _moment(column: Datetime, value: Expression) -> Expression:
    """The start of the unit of time that the value lies in, as a timestamp."""
    units = clamped(exp.Floor(this=value.copy()), 0, units_between(column, column.maximum))
    seconds = exp.cast(exp.Paren(this=exp.Mul(this=units, expression=double(column.unit_seconds))), "bigint")
    start = exp.cast(exp.Literal.string(column.start.isoformat(sep=" ")), "timestamp")
    second = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="SECOND"))
    moved = exp.Add(this=start, expression=exp.Paren(this=exp.Mul(this=second, expression=seconds)))
    return _present(column, value, moved, start.copy())


def dense(rows: Sequence[tuple[Any, ...]], shape: tuple[int, ...], summands: int) -> list[Any]:
    """Arrays of all cells from the rows of the groups that there are; each sum is a whole number."""
    import numpy as np

    totals = [np.zeros(shape, dtype=np.int64) for _ in range(summands)]
    for row in rows:
        for total, added in zip(totals, row[len(shape) :], strict=True):
            total[tuple(map(int, row[: len(shape)]))] = int(added)
    return totals
