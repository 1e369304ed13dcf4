"""Binning, clamping and capping as SQL, written once as sqlglot expressions and rendered for each engine.

Every value of a row ends up in exactly one code, whatever it is: what can't be read as the column's type counts
as missing, what lies outside the bounds is clamped, what is not on the list is `other`. Nothing raises on a value.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from understudy.boundary.schema.column import SPACES, Boolean, Categorical, Column, Datetime, Integer, Line, Number
from understudy.boundary.schema.derived import EPOCH, LARGEST_TERM, Derived, DerivedPart, grid_power
from understudy.boundary.schema.domain import Coding, EvenCoding
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Unit
from understudy.boundary.schema.spelling import EXACT, WRITTEN_OUT, may_be_number, special_name
from understudy.errors import InternalError

ROWS = "understudy_rows"
READINGS = "readings"
"""The subquery in which each value of a row is read as its column's type, once."""
PERSON = "understudy_person"
"""Whose row it is, where the schema names a unit."""
PLACES = ("understudy_number", "understudy_text", "understudy_digest")
"""Where a row stands among those of its person, where the schema says by which column: `select_keys`."""
MOMENT = "UNDERSTUDY_MOMENT"
"""A function of a text: the ISO date or time that it is, in UTC, and null for any other text."""
DUCKDB_FUNCTIONS = f"""
CREATE OR REPLACE TEMP MACRO {MOMENT}(t) AS
    CASE WHEN NOT t[1] BETWEEN '0' AND '9' THEN NULL -- such as infinity and epoch, which are dates to this engine alone
         WHEN length(t) > 10 AND regexp_matches(t[11:], '[+-]')
         THEN CAST(TRY_CAST(regexp_replace(t, ' +([+-][0-9:]+)$', '\\1') AS TIMESTAMPTZ) AS TIMESTAMP)
         ELSE TRY_CAST(t AS TIMESTAMP) END
"""
"""What a connection of DuckDB must know; the time zone of the session must be UTC."""
# A hundred joins in one query took 1.3 s where a hundred CASEs of five labels took 0.37 s (docs/decisions/0002).
CASE_AT_MOST = 32
"""A longer list of labels is matched by a join with the list: as fast per row whatever its length."""

Expression = Any
"""A sqlglot expression; sqlglot itself is imported late, because it is slow to import."""


Storage = Literal["text", "truth", "whole", "real", "decimal", "moment", "other"]


@dataclass(frozen=True)
class Stored:
    """How the engine stores a column. It decides how a value is found, and never what is read."""

    name: str
    kind: Storage = "other"
    exact_below: int = EXACT
    """Of floating-point numbers: from there on several whole numbers are one."""
    compared_first: bool = False
    """Whether a text is compared with the labels as it is, before it is trimmed: where trimming costs the most."""


@dataclass(frozen=True)
class Source:
    """Where the rows are, for one engine: the relation, how its columns are stored, and the place of a row in it.

    Without an `order` the engine numbers the rows as it scans them, which must be the same at every scan.
    """

    relation: Expression
    columns: Mapping[str, Stored]
    order: Expression | None = None
    keyed: bool = False
    """Whether the rows have the columns of `select_keys` already."""


def capped(source: Source, unit: Unit | None, missing_values: Sequence[str]) -> Expression:
    """The rows that count: with a unit, the first `max_rows` of each person in the order of `_placed`.

    A row without an id belongs to nobody whose rows could be capped, so it does not count. That is a rule of the row
    alone, and which rows of a person count depends on that person's rows alone: one person more or less moves at most
    `max_rows` rows, and no row of anybody else.
    """
    # The proof, for both neighbouring relations: docs/concepts/tables.md, "One person, several rows".
    if unit is None:
        return exp.select("*").from_(source.relation)
    placed, places = _placed(source, unit, missing_values)
    turn = exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(PERSON)],
        order=exp.Order(expressions=[exp.Ordered(this=exp.column(p), nulls_first=False) for p in places]),
    )
    named = exp.not_(exp.column(PERSON).is_(exp.null()))
    numbered = exp.select("*", exp.alias_(turn, "understudy_turn")).from_(placed.subquery("placed")).where(named)
    return exp.select("*").from_(numbered.subquery("numbered")).where(f"understudy_turn <= {unit.max_rows:d}")


def _placed(source: Source, unit: Unit, missing_values: Sequence[str]) -> tuple[Expression, Sequence[str]]:
    """The rows with whose they are and where they stand among these, and the columns that say so.

    They stand in the order of the column that the schema names, and else in the source's own order.
    """
    everything = exp.select("*").from_(source.relation)
    if source.keyed:
        return everything, PLACES
    if unit.order is not None:
        keys = keys_of(source.columns, unit, missing_values)
        return exp.select("*", *keys).from_(everything.subquery(ROWS)), PLACES
    order = source.order
    if order is None:
        # The order of the scan: DuckDB preserves that of insertion by default, and `connect` locks all settings but the
        # number of threads.
        order = exp.Window(this=exp.RowNumber())
    person = person_of(source.columns[unit.column], missing_values)
    placed = exp.select("*", exp.alias_(order, "understudy_place"), exp.alias_(person, PERSON))
    return placed.from_(everything.subquery(ROWS)), ("understudy_place",)


def keys_of(columns: Mapping[str, Stored], unit: Unit, missing_values: Sequence[str]) -> list[Expression]:
    """Whose row it is, and its place among them: by the texts in the column `unit.order`, numbers by their size.

    Of equal ones a digest of the whole row decides, so that the order is the same on every engine, whichever way the
    rows come. Rows with one digest read the same, so that it does not matter which of them counts.
    """
    assert unit.order is not None
    stored = columns[unit.order]
    # By name: a file may have its columns in another order than a server.
    texts = [text_of(columns[name], exactly=True) for name in sorted(columns)]
    known = [exp.Coalesce(this=_marked(text), expressions=[exp.Literal.string("\x1e")]) for text in texts]
    row = exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string("\x1f"), *known])
    found = (_number(stored), text_of(stored, exactly=True), exp.Anonymous(this="MD5", expressions=[row]))
    person = person_of(columns[unit.column], missing_values)
    return [exp.alias_(person, PERSON), *(exp.alias_(f, p) for f, p in zip(found, PLACES, strict=True))]


def _marked(text: Expression) -> Expression:
    """A text that holds no separator, and is no null: else two rows that differ could have one digest by design."""
    for mark, instead in (("\x1e", "\x1e1"), ("\x1f", "\x1e2")):
        text = exp.Anonymous(this="REPLACE", expressions=[text, exp.Literal.string(mark), exp.Literal.string(instead)])
    return text


def select_keys(source: Source, unit: Unit, missing_values: Sequence[str]) -> Expression:
    """The keys of every row, in the order of the rows; whose it is as a text."""
    person, *places = keys_of(source.columns, unit, missing_values)
    text = exp.alias_(exp.cast(person.this, "text"), PERSON)
    return exp.select(text, *places).from_(exp.select("*").from_(source.relation).subquery(ROWS))


def person_of(stored: Stored, missing_values: Sequence[str]) -> Expression:
    """Whose row it is: the id as text, without spaces around it; null where it is missing, by the rules of any value.

    Whole numbers are their own texts and are compared faster, unless one of them is a missing value.
    """
    if stored.kind == "whole" and not any(map(may_be_number, missing_values)):
        return raw(stored.name)
    return case([(_is_missing(stored, missing_values), exp.null())], text_of(stored, exactly=True))


def select_rounded_ids(source: Source, unit: Unit) -> Expression | None:
    """Whether an id is a double that may stand for several; None where ids are not stored as doubles."""
    stored = source.columns[unit.column]
    if stored.kind != "real":
        return None
    number = exp.cast(raw(stored.name), "double")
    size = exp.Abs(this=number)
    rounded = exp.and_(
        exp.GTE(this=size, expression=double(stored.exact_below)), exp.LT(this=size.copy(), expression=double(math.inf))
    )
    counted = exp.Count(this=case([(rounded, whole(1))], exp.null()))
    return exp.select(counted).from_(exp.select("*").from_(source.relation).subquery(ROWS))


def select_codes(
    source: Source, unit: Unit | None, codings: Sequence[Coding], missing_values: Sequence[str], types: Sequence[str]
) -> Expression:
    """One column of codes per coding, cast to the engine's type named in `types`, a row per row.

    Two steps, so that a value is read once and compared often: the inner query reads each value as its column's type,
    null where it is missing or unreadable; the outer one finds its code.
    """
    inner = select_read(source, unit, [c.column for c in codings], missing_values)
    query = exp.select().from_(inner.subquery("readings", copy=False), copy=False)
    for i, (coding, kind) in enumerate(zip(codings, types, strict=True)):
        code, lookup = code_of(coding, i)
        if lookup is not None:
            query.join(lookup[0], on=lookup[1], join_type="left", copy=False)
        coded = exp.cast(code, exp.DataType.Type[kind], copy=False)
        query.select(exp.alias_(coded, f"code_{i}", copy=False), copy=False)
    return query


def select_read(
    source: Source, unit: Unit | None, columns: Sequence[Column], missing_values: Sequence[str]
) -> Expression:
    """The rows that count, with each column's value as its type: `value_0`, `value_1` and so on.

    A special value that is a text stands beside it, as its place among the special ones: `special_0` and so on.
    """
    readings = [
        exp.alias_(reading_of(c, source.columns, missing_values), f"value_{i}", copy=False)
        for i, c in enumerate(columns)
    ]
    for i, c in enumerate(columns):
        if has_special_texts(c):
            place = _special_text(c, source.columns[c.name], missing_values)
            readings.append(exp.alias_(place, f"special_{i}", copy=False))
    rows = capped(source, unit, missing_values)
    return exp.select(*readings, copy=False).from_(rows.subquery(ROWS), copy=False)


def select_values(source: Source, unit: Unit | None, column: str, missing_values: Sequence[str]) -> Expression:
    """The distinct texts of a column with their counts."""
    stored = source.columns[column]
    text = text_of(stored)
    return (
        exp.select(exp.alias_(text, "value"), exp.alias_(exp.Count(this=exp.Star()), "rows"))
        .from_(capped(source, unit, missing_values).subquery(ROWS))
        .where(exp.not_(_is_missing(stored, missing_values)))
        .group_by(text)
        .order_by("value")
    )


def select_readings(source: Source, columns: Sequence[Column], missing_values: Sequence[str]) -> Expression:
    """The values of all rows as the types of their columns, for whoever may see rows.

    Those of a column with special values are null there, and stand under `special_name` as texts.
    """
    inner = select_read(source, None, columns, missing_values)
    query = exp.select().from_(inner.subquery("readings"))
    for i, column in enumerate(columns):
        value, special = read_value(i), special_of(column, i)
        if special is not None and isinstance(column, Line):
            value = case([(exp.not_(special.is_(exp.null())), exp.null())], value)
            texts = [(special.copy().eq(whole(j)), exp.Literal.string(t)) for j, t in enumerate(column.special_texts)]
            query.select(exp.alias_(case(texts, exp.null()), special_name(column.name), quoted=True), copy=False)
        query.select(exp.alias_(value, column.name, quoted=True), copy=False)
    return query


def select_steps(
    source: Source, unit: Unit | None, columns: Sequence[Column], missing_values: Sequence[str]
) -> Expression:
    """All rows with each step of their reading: of column i its `text_i`, whether it is `missing_i`, its `value_i`.

    A special value that is a text stands beside them, as `special_i`. A derived column has no text of its own.
    """
    steps = []
    for i, column in enumerate(columns):
        value = reading_of(column, source.columns, missing_values)
        text, missing = exp.cast(exp.null(), "text"), value.copy().is_(exp.null())
        if not isinstance(column, Derived) or column.in_table:
            stored = source.columns[column.name]
            text, missing = text_of(stored), _is_missing(stored, (*missing_values, *column.missing_texts))
        found = {"text": text, "missing": missing, "value": value}
        if has_special_texts(column):
            found["special"] = _special_text(column, source.columns[column.name], missing_values)
        steps += [exp.alias_(step, f"{name}_{i}", copy=False) for name, step in found.items()]
    if unit is not None:
        steps.append(exp.alias_(person_of(source.columns[unit.column], missing_values), PERSON, copy=False))
    rows = exp.select("*").from_(source.relation).subquery(ROWS)
    return exp.select(*steps, copy=False).from_(rows, copy=False)


def raw(column: str) -> Expression:
    """A column of the rows as it is stored."""
    return exp.column(column, table=ROWS, quoted=True)


def text_of(stored: Stored, *, exactly: bool = False) -> Expression:
    """The value as the text that `schema.spelling` gives it, whatever the engine stores it as.

    `exactly` keeps all digits of whole numbers, which are otherwise those of a double.
    """
    value = raw(stored.name)
    # Without a list of characters DuckDB strips `column.SPACES`, several times faster than with one.
    plain = exp.Trim(this=exp.cast(value, "text", copy=False))
    match stored.kind:
        case "truth":
            ones = [(value, exp.Literal.string("1")), (exp.not_(value.copy()), exp.Literal.string("0"))]
            return case(ones, exp.null())
        case "whole" if not exactly:
            outside = exp.not_(exp.Between(this=value.copy(), low=whole(1 - EXACT), high=whole(EXACT - 1)))
            return case([(outside, _text_of_double(exp.cast(value.copy(), "double")))], exp.cast(value, "text"))
        case "real":
            return _text_of_double(exp.cast(value, "double"))
        case "decimal" if exactly:
            zeros = exp.Anonymous(this="RTRIM", expressions=[plain.copy(), exp.Literal.string("0")])
            digits = exp.Anonymous(this="RTRIM", expressions=[zeros, exp.Literal.string(".")])
            return case([(exp.Like(this=plain, expression=exp.Literal.string("%.%")), digits)], plain.copy())
        case "decimal":
            return _text_of_double(_double_of_decimal(stored))
        case "moment":
            moment = _moment(value)
            day = exp.cast(moment.copy(), "date")
            midnight = exp.EQ(this=moment, expression=exp.cast(day, "timestamp"))
            written = exp.Coalesce(this=exp.cast(moment.copy(), "text"), expressions=[plain])
            return case([(midnight, exp.cast(day.copy(), "text"))], written)
        case _:
            return plain


def _moment(value: Expression) -> Expression:
    """A typed date or time; null where the engine's timestamps don't reach."""
    return exp.TryCast(this=value, to=exp.DataType.build("timestamp"))


def _text_of_double(number: Expression) -> Expression:
    """1, and not 1.0: one missing value turns a pandas column of whole numbers into doubles."""
    is_whole = exp.and_(
        exp.EQ(this=number, expression=exp.Floor(this=number.copy())),
        exp.LT(this=exp.Abs(this=number.copy()), expression=double(WRITTEN_OUT)),
    )
    # Tried, since DuckDB may cast before it looks at the condition, and NaN has no whole number.
    digits = exp.TryCast(this=number.copy(), to=exp.DataType.build("bigint"))
    return case([(is_whole, exp.cast(digits, "text"))], exp.cast(number.copy(), "text"))


def _double_of_decimal(stored: Stored) -> Expression:
    """By its digits: the engine's own cast may be one double off, and a frame's decimals are read by their digits."""
    return exp.TryCast(this=exp.Trim(this=exp.cast(raw(stored.name), "text")), to=exp.DataType.build("double"))


def _is_missing(stored: Stored, missing_values: Sequence[str]) -> Expression:
    """Null, empty or one of `missing_values`; only texts are empty, so a number or a date need not become one."""
    absent = raw(stored.name).is_(exp.null())
    if stored.kind == "real":
        absent = exp.or_(absent, exp.IsNan(this=exp.cast(raw(stored.name), "double")))
    tokens = tuple(missing_values)
    if stored.kind == "text":
        tokens = ("", *tokens)
    if stored.kind in ("whole", "real", "decimal", "truth"):
        tokens = tuple(t for t in tokens if may_be_number(t))  # others are the text of no number
    if tokens:
        return exp.or_(absent, text_of(stored).isin(*tokens, copy=False), copy=False)
    return absent


def reading_of(column: Column, columns: Mapping[str, Stored], missing_values: Sequence[str]) -> Expression:
    """A row's value as its column's type; null where it is missing, and where it can't be read."""
    if isinstance(column, Derived) and not column.in_table:
        return _derived(column, columns, missing_values)
    stored = columns[column.name]
    match column:
        case Boolean():
            value = exp.Lower(this=text_of(stored))
        case Categorical(numeric=False):
            value = text_of(stored)
            if stored.compared_first and not column.private:
                return _label_or(column, stored, missing_values, value)
        case Categorical() | Integer() | Number():
            value = _number(stored)
        case Datetime():
            value = _units(column, stored)
        case _:
            raise InternalError(f"column {column.name!r} of type {column.type!r} has no codes", column)
    # Missing first, as in `schema.encoding.read_value`: "-9" may be a missing value of a column of numbers.
    return case([(_is_missing(stored, (*missing_values, *column.missing_texts)), exp.null())], value)


def _label_or(column: Categorical, stored: Stored, missing_values: Sequence[str], value: Expression) -> Expression:
    """The same, where a text that is written as a label is has been found without trimming it.

    Such a text has no spaces to strip, and none of these is a missing value: it is read as itself either way.
    """
    missing = (*missing_values, *column.missing_texts)
    labels = [t for t in column.spellings if t and t == t.strip(SPACES) and t not in missing]
    branches = [(_is_missing(stored, missing), exp.null())]
    if labels:
        branches.insert(0, (raw(stored.name).isin(*labels, copy=False), raw(stored.name)))
    return case(branches, value)


def _derived(column: Derived, columns: Mapping[str, Stored], missing_values: Sequence[str]) -> Expression:
    """What is computed from a row's values; null where one of them is missing, special or unreadable.

    A difference or a sum is taken by the operations of `schema.encoding.read_derived` in their order. Terms are
    clamped: no engine may raise an error for a row whose sum overflows.
    """
    if isinstance(column, DerivedPart):
        return _part(column, columns, missing_values)
    absent, total = list[Expression](), double(0.0)
    for (sign, _), source in zip(column.terms, column.sources, strict=True):
        assert isinstance(source, Line)
        if isinstance(source, Datetime):
            # By the same origin for both dates, whatever their bounds are; a unit of time begins at its start.
            source = dataclasses.replace(source, minimum=EPOCH, maximum=None)
        value = reading_of(source, columns, missing_values)
        if isinstance(source, Datetime):
            value = exp.Floor(this=value)
        absent += [value.is_(exp.null()), exp.IsNan(this=value.copy())]
        absent += [exp.EQ(this=value.copy(), expression=double(v)) for v in source.special if not isinstance(v, str)]
        if has_special_texts(source):
            absent.append(exp.not_(_special_text(source, columns[source.name], missing_values).is_(exp.null())))
        least = exp.Greatest(this=value.copy(), expressions=[double(-LARGEST_TERM)])
        term = exp.Least(this=least, expressions=[double(LARGEST_TERM)])
        total = exp.Paren(this=(exp.Add if sign > 0 else exp.Sub)(this=total, expression=term))
    power = grid_power(column)
    if power is not None:
        inside = exp.Least(
            this=exp.Greatest(this=total, expressions=[double(column.minimum)]), expressions=[double(column.maximum)]
        )
        nearest = exp.Add(this=exp.Mul(this=inside, expression=double(power)), expression=double(0.5))
        floored = exp.Floor(this=exp.Paren(this=nearest))
        total = exp.Div(this=floored, expression=double(power), typed=False, safe=False)
    return case([(exp.or_(*absent), exp.null())], total)


_FIELDS = {"year": "YEAR", "month": "MONTH", "weekday": "ISODOW", "hour": "HOUR"}


def _part(column: DerivedPart, columns: Mapping[str, Stored], missing_values: Sequence[str]) -> Expression:
    """A part of a row's date, by the engine's calendar, which is Python's: the Gregorian one, also before 1582."""
    (source,) = column.sources
    assert isinstance(source, Datetime)
    stored = columns[source.name]
    value = reading_of(dataclasses.replace(source, minimum=EPOCH, maximum=None), columns, missing_values)
    # "infinity" is a date to engines; it has no weekday.
    endless = exp.GTE(this=exp.Abs(this=value.copy()), expression=double(LARGEST_TERM))
    absent = [value.is_(exp.null()), endless]
    if has_special_texts(source):
        absent.append(exp.not_(_special_text(source, stored, missing_values).is_(exp.null())))
    part = exp.Extract(this=exp.var(_FIELDS[column.part]), expression=_moment_of(source, stored))
    return case([(exp.or_(*absent), exp.null())], exp.cast(part, "double"))


def has_special_texts(column: Column) -> bool:
    return isinstance(column, Line) and any(isinstance(v, str) for v in column.special)


def _special_text(column: Column, stored: Stored, missing_values: Sequence[str]) -> Expression:
    """The place of a row's text among the special values of its column; null where it is none of them."""
    assert isinstance(column, Line)
    places = [(text_of(stored).eq(v), whole(i)) for i, v in enumerate(column.special) if isinstance(v, str)]
    return case([(_is_missing(stored, (*missing_values, *column.missing_texts)), exp.null()), *places], exp.null())


def read_value(i: int) -> Expression:
    """What was read of column i."""
    return exp.column(f"value_{i}", table="readings")


def special_of(column: Column, i: int) -> Expression | None:
    """The place of what was read of column i among its special values; None where the column has none."""
    if not isinstance(column, Line) or not column.special:
        return None
    numbers = [(read_value(i).eq(double(v)), whole(j)) for j, v in enumerate(column.special) if not isinstance(v, str)]
    if not has_special_texts(column):
        return case(numbers, exp.null())
    text = exp.column(f"special_{i}", table="readings")
    return exp.Coalesce(this=text, expressions=[case(numbers, exp.null())]) if numbers else text


def code_of(coding: Coding, i: int) -> tuple[Expression, tuple[Expression, Expression] | None]:
    """The code of what was read of column i; and, for a long list of labels, the list to join and on what."""
    code, lookup = _plain_code(coding, read_value(i), f"labels_{i}")
    special = special_of(coding.column, i)
    if special is None:
        return code, lookup
    beside = exp.Add(this=exp.Paren(this=special), expression=whole(coding.levels))
    return case([(exp.not_(special.copy().is_(exp.null())), beside)], code), lookup


def _plain_code(
    coding: Coding, value: Expression, alias: str
) -> tuple[Expression, tuple[Expression, Expression] | None]:
    column, lookup = coding.column, None
    nothing = value.is_(exp.null())
    match column:
        case Boolean():
            truths = [(value.isin(*Boolean.FALSE), whole(0)), (value.isin(*Boolean.TRUE), whole(1))]
            code = case(truths, whole(coding.stray_code))
        case Categorical():
            code, lookup = _label_code(coding, value, alias)
        case Integer() | Datetime():
            code, nothing = _whole_bin(coding, value), exp.or_(nothing, exp.IsNan(this=value), copy=False)
        case _ if isinstance(coding, EvenCoding):
            code, nothing = _even_bin(coding, value), exp.or_(nothing, exp.IsNan(this=value), copy=False)
        case _:
            code, nothing = (
                _bisect(value, list((coding.edges or ())[1:-1]), 0),
                exp.or_(nothing, exp.IsNan(this=value), copy=False),
            )
    return case([(nothing, whole(coding.null_code))], code), lookup


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    """CASE … END, built directly: sqlglot's chained builder copies the whole tree at every branch."""
    return exp.Case(ifs=[exp.If(this=condition, true=then) for condition, then in branches], default=otherwise)


def whole(value: int) -> Expression:
    """A literal whole number."""
    return exp.Literal.number(value)


def double(value: float) -> Expression:
    """A literal that means exactly this double, in every dialect."""
    # Built directly: `exp.cast` would parse the type each time, and a wide table has tens of thousands of these.
    return exp.Cast(this=exp.Literal.string(repr(float(value))), to=exp.DataType(this=exp.DataType.Type.DOUBLE))


def clamped(value: Expression, low: float, high: float) -> Expression:
    """The value within bounds; a caller looks for null first, which LEAST and GREATEST of both engines pass over."""
    # Without `ignore_nulls` sqlglot writes each argument three times, and in nested calls nine times.
    least = exp.Greatest(this=value, expressions=[double(low)], ignore_nulls=True)
    return exp.Least(this=least, expressions=[double(high)], ignore_nulls=True)


def _number(stored: Stored) -> Expression:
    """The value as a double, null where it is none. A truth value is 1 or 0, also where a frame stores it as text."""
    value = raw(stored.name)
    match stored.kind:
        case "truth":
            return case([(value, double(1.0)), (exp.not_(value.copy()), double(0.0))], exp.null())
        case "whole" | "real":
            return exp.cast(value, "double")
        case "decimal":
            return _double_of_decimal(stored)
        case "moment":
            return exp.cast(exp.null(), "double")
    text = text_of(stored)
    said = exp.Lower(this=text.copy())
    flags = [(said.eq("true"), double(1.0)), (said.copy().eq("false"), double(0.0))]
    read = exp.TryCast(this=text, to=exp.DataType.build("double"))
    # "+-1" is no number, though DuckDB makes -1 of it.
    two_signs = exp.Like(this=text.copy(), expression=exp.Literal.string("%+-%"))
    return exp.Coalesce(this=case([(two_signs, exp.null())], read), expressions=[case(flags, exp.null())])


def _units(column: Datetime, stored: Stored) -> Expression:
    """Units of the column's resolution since its `start`; a fraction of a unit remains, and is floored when binned.

    A text that does not follow the column's `format` may still be an ISO date: so a date reads the same whether a frame
    stores it as a date or, because another row holds none, as text.
    """
    moment = _moment_of(column, stored)
    start = exp.cast(exp.Literal.string(column.start.isoformat(sep=" ")), "timestamp")
    elapsed = exp.Paren(this=exp.Sub(this=_epoch(moment), expression=_epoch(start)))
    # To sqlglot `typed=False` means that 3 / 2 is 1.5 in every dialect, and `safe=False` that no zero needs a guard.
    return exp.Div(this=elapsed, expression=double(column.unit_seconds), typed=False, safe=False)


def _moment_of(column: Datetime, stored: Stored) -> Expression:
    if stored.kind == "moment":
        return _moment(raw(stored.name))
    moment = exp.Anonymous(this=MOMENT, expressions=[text_of(stored)])
    if column.format is None:
        return moment
    formatted = exp.func("TRY_STRPTIME", text_of(stored), exp.Literal.string(column.format))
    # DuckDB makes of these the first day of 1900, whatever the format.
    words = exp.Lower(this=text_of(stored)).isin("infinity", "-infinity", "epoch")
    return exp.Coalesce(this=case([(words, exp.null())], formatted), expressions=[moment])


def _epoch(moment: Expression) -> Expression:
    return exp.cast(exp.Extract(this=exp.var("EPOCH"), expression=moment), "double")


def _whole_bin(coding: Coding, position: Expression) -> Expression:
    """Bins of whole numbers. With one common width the bin is a division, exact for doubles up to 2^53."""
    edges = [int(e) for e in coding.edges or ()]
    low, high = edges[0], edges[-1] - 1
    rounds = isinstance(coding.column, Integer)  # to the nearest whole number; a unit of time begins at its start
    width = edges[1] - low
    if any(b - a != width for a, b in itertools.pairwise(edges[:-1])) or edges[-1] - edges[-2] > width:
        return _bisect(position, [e - 0.5 * rounds for e in edges[1:-1]], 0)
    nearest = exp.Add(this=position, expression=double(0.5)) if rounds else position
    inside = clamped(exp.Floor(this=exp.Paren(this=nearest)), low, high)
    offset = exp.Paren(this=exp.Sub(this=inside, expression=double(low)))
    return exp.Floor(this=exp.Div(this=offset, expression=double(width), typed=False, safe=False))


def _even_bin(coding: Coding, position: Expression) -> Expression:
    """Bins of a number, all of one width."""
    edges = coding.edges or ()
    inside = clamped(position, edges[0], edges[-1])
    offset = exp.Paren(this=exp.Sub(this=inside, expression=double(edges[0])))
    scale = coding.levels / (edges[-1] - edges[0])
    # Near the lower end it is the first bin in any case: some engines raise an error where such a product underflows.
    counted = case([(exp.LT(this=offset, expression=double(0.5 / scale)), double(0.0))], offset.copy())
    place = exp.Floor(this=exp.Mul(this=counted, expression=double(scale)))
    return exp.Least(this=place, expressions=[double(coding.levels - 1)], ignore_nulls=True)


def _bisect(position: Expression, cuts: list[float], first: int) -> Expression:
    """The bin of a position among rising cuts, by a balanced tree of comparisons; it also clamps."""
    if not cuts:
        return whole(first)
    # log2(bins) comparisons for each row, where a chain of WHENs would take as many as there are bins.
    middle = len(cuts) // 2
    below = exp.LT(this=position.copy(), expression=double(cuts[middle]))
    left = _bisect(position, cuts[:middle], first)
    return case([(below, left)], _bisect(position, cuts[middle + 1 :], first + middle + 1))


def _label_code(
    coding: Coding, value: Expression, alias: str
) -> tuple[Expression, tuple[Expression, Expression] | None]:
    assert isinstance(coding.column, Categorical) and coding.labels is not None
    if coding.column.numeric:
        literals = [(double(float(v)), i) for i, v in enumerate(coding.labels)]
    else:
        literals = [(exp.Literal.string(text), i) for text, i in coding.spellings.items()]
    pairs = [(literal, whole(i)) for literal, i in literals]
    stray = whole(coding.stray_code)
    if len(pairs) <= CASE_AT_MOST:
        return case([(exp.EQ(this=value.copy(), expression=label), code) for label, code in pairs], stray), None
    # Labels are distinct, so that the join gives each row one code and never doubles a row.
    lookup = exp.values([tuple(p) for p in pairs], alias=alias, columns=["label", "code"])
    found = exp.Coalesce(this=exp.column("code", table=alias), expressions=[stray])
    on = exp.EQ(this=value.copy(), expression=exp.column("label", table=alias))
    return found, (lookup, on)
