"""The SQL of tables, put into PostgreSQL's words, with every text as a bound parameter.

DuckDB has casts that give null where a value can't be read. PostgreSQL raises an error there, which would tell of the
row. So a text is looked at first, by a regular expression, and is cast only where the cast can't fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from understudy.boundary.schema.column import SPACES, Datetime
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.tables.sql import MOMENT, READINGS, Expression
from understudy.errors import TableError


@dataclass(frozen=True)
class BoundQuery:
    """SQL with numbered places for its parameters, and their values."""

    text: str
    values: tuple[Any, ...]

    def within(self, frame: str) -> BoundQuery:
        """The statement as a part of another, where `{}` stands."""
        before, _, after = frame.partition("{}")
        return BoundQuery(f"{before}{self.text}{after}", self.values)


def bound_query(query: Expression) -> BoundQuery:
    """A query of ours for PostgreSQL."""
    parameters = _Parameters()
    translated = query.transform(_translated, copy=False).transform(parameters.bound, copy=False)
    return BoundQuery(translated.sql(dialect="postgres"), tuple(parameters.values))


def check_format(column: Datetime) -> None:
    """Refuses a format of dates that has no regular expression here."""
    unknown = [d for d in re.findall(r"%.?", column.format or "") if d not in _PIECES]
    if unknown:
        raise TableError(
            f"column {column.name!r}: format ({column.format}) has {unknown[0]}, which can't be read on a PostgreSQL "
            f"server; use {' '.join(_PIECES)}, or store dates as DATE",
            column,
        )


# PostgreSQL's own words for what stands under these names in our SQL; `x` is the argument. Every cast is guarded:
# - A cast to a double raises beyond 1.8e308 and, of a numeric, also where it would underflow; hence the bounds, and the
#   patterns of numbers whose exponent alone decides. Up to 250 digits on each side no double overflows.
# - A numeric has at most 131,072 digits before its point, so that longer texts are not tried.
# - OFFSET 0 keeps the planner from merging a subquery into the query around it, where its casts could be evaluated
#   before their guard, and once for each mention of their result.
_DIGITS = r"([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)"
_ZEROS = r"(0+(_0+)*\.?(0+(_0+)*)?|\.0+(_0+)*)"
_LONG = r"[0-9](_?[0-9]){3,}"
"""An exponent by which a number is zero or endless, whatever its digits are."""
_NUMBER = rf"^\s*[+-]?{_DIGITS}(e[+-]?[0-9](_?[0-9]){{0,2}})?\s*$"
_VANISHING = rf"^\s*[+-]?({_ZEROS}e[+-]?|{_DIGITS}e-){_LONG}\s*$"
_HUGE = rf"^\s*[+]?({_DIGITS}e[+]?{_LONG}|inf(inity)?)\s*$"
_NEGATIVE_HUGE = rf"^\s*-({_DIGITS}e[+]?{_LONG}|inf(inity)?)\s*$"
_TEMPLATES = {
    "trimmed": "BTRIM(x, 'SPACES')",
    "not a number": "x = CAST('NaN' AS DOUBLE PRECISION)",
    "double of numeric": """
        CASE WHEN x = CAST('NaN' AS DECIMAL) THEN CAST('NaN' AS DOUBLE PRECISION)
             WHEN ABS(x) < 1e-307 THEN 0
             WHEN ABS(x) < 1.79e308 THEN CAST(x AS DOUBLE PRECISION)
             WHEN x > 0 THEN CAST('Infinity' AS DOUBLE PRECISION)
             WHEN x < 0 THEN CAST('-Infinity' AS DOUBLE PRECISION) END""",
    "double of text": r"""
        CASE WHEN x ~ '^\s*[+-]?[0-9]{1,250}(\.[0-9]{0,250})?\s*$' THEN CAST(x AS DOUBLE PRECISION)
             WHEN x ~* 'NUMBER' AND LENGTH(x) <= 100000 THEN
                 (SELECT UNDERSTUDY_DOUBLE(n) FROM (SELECT CAST(REPLACE(x, '_', '') AS DECIMAL) AS n OFFSET 0) AS s)
             WHEN x ~* 'VANISHING' THEN 0
             WHEN x ~* 'NEGATIVE HUGE' THEN CAST('-Infinity' AS DOUBLE PRECISION)
             WHEN x ~* 'HUGE' THEN CAST('Infinity' AS DOUBLE PRECISION)
             WHEN x ~* '^\s*[+-]?nan\s*$' THEN CAST('NaN' AS DOUBLE PRECISION) END""",
    "moment of text": """
        (SELECT CASE WHEN y >= 1 AND mo BETWEEN 1 AND 12 AND h < 24 AND mi < 60 AND s < 60
                      AND d BETWEEN 1 AND CASE WHEN mo IN (4, 6, 9, 11) THEN 30 WHEN mo <> 2 THEN 31
                          WHEN MOD(y, 4) = 0 AND (MOD(y, 100) <> 0 OR MOD(y, 400) = 0) THEN 29 ELSE 28 END
                THEN MAKE_TIMESTAMP(y, mo, d, h, mi, s) - o * INTERVAL '1 minute' END
         FROM (SELECT CAST(m[Y] AS INT) AS y, CAST(m[MO] AS INT) AS mo, CAST(m[D] AS INT) AS d,
                      COALESCE(CAST(m[H] AS INT), 0) AS h, COALESCE(CAST(m[MI] AS INT), 0) AS mi,
                      COALESCE(CAST(m[S] AS DOUBLE PRECISION), 0) AS s,
                      COALESCE(CASE WHEN m[SIGN] = '-' THEN -1 ELSE 1 END
                          * (60 * CAST(m[OH] AS INT) + COALESCE(CAST(m[OM] AS INT), 0)), 0) AS o
               FROM (SELECT REGEXP_MATCH(x, 'PATTERN') AS m OFFSET 0) AS matched OFFSET 0) AS parts)""",
}
_PATTERNS = {"NUMBER": _NUMBER, "VANISHING": _VANISHING, "HUGE": _HUGE, "NEGATIVE HUGE": _NEGATIVE_HUGE}
_PIECES = {"%Y": "Y", "%m": "MO", "%d": "D", "%H": "H", "%M": "MI", "%S": "S"}
_FORMS = {"Y": "[0-9]{4}", "S": r"[0-9]{1,2}(?:\.[0-9]+)?"}
ISO = (
    r"^\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2}(?:\.[0-9]+)?))?"
    r"\s*(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?\s*$"
)
ISO_PARTS = {part: i for i, part in enumerate(("Y", "MO", "D", "H", "MI", "S", "SIGN", "OH", "OM"), 1)}


def _translated(node: Any) -> Any:
    if isinstance(node, exp.Subquery) and node.alias == READINGS:
        # Not merged into the query around it, where each mention of a value would read it anew.
        node.this.set("offset", exp.Offset(expression=exp.Literal.number(0)))
        return node
    if isinstance(node, exp.Trim):
        return _written("trimmed", node.this)
    if isinstance(node, exp.IsNan):
        return exp.Paren(this=_written("not a number", node.this))
    if isinstance(node, exp.TryCast):
        return _read(node)
    if isinstance(node, exp.Anonymous) and node.name.upper() == "UNDERSTUDY_DOUBLE":
        return _written("double of numeric", node.expressions[0])
    if isinstance(node, exp.Anonymous) and node.name.upper() == MOMENT:
        return _moment(node.expressions[0], ISO, ISO_PARTS)
    if isinstance(node, exp.Anonymous) and node.name.upper() == "TRY_STRPTIME":
        return _moment(node.expressions[0], *of_format(node.expressions[1].name))
    if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.TEXT:
        # By code point: to a collation of the server's two different labels may be equal.
        return exp.Collate(this=exp.Paren(this=node), expression=exp.column("C", quoted=True))
    return node


def _read(node: Any) -> Any:
    """A cast that gives null where it can't be done; only a text may not be castable."""
    if not isinstance(node.this, exp.Trim):
        return exp.Cast(this=node.this, to=node.to)
    return _written("double of text", node.this)


def of_format(form: str) -> tuple[str, dict[str, int]]:
    """A format of dates as a regular expression, and the place of each part among its groups."""
    pieces = re.split(r"(%.)", form)
    places = {_PIECES[p]: i for i, p in enumerate([p for p in pieces if p in _PIECES], 1)}
    pattern = "".join(f"({_FORMS.get(_PIECES[p], '[0-9]{1,2}')})" if p in _PIECES else re.escape(p) for p in pieces)
    return rf"^\s*{pattern}\s*$", places


def _moment(text: Any, pattern: str, places: dict[str, int]) -> Any:
    tree = _written("moment of text", text, pattern)
    for bracket in list(tree.find_all(exp.Bracket)):
        name = bracket.expressions[0].name
        if name in places:  # sqlglot counts from 0, and adds PostgreSQL's 1 when it writes
            place = exp.Literal.number(places[name] - 1)
            bracket.replace(exp.Bracket(this=bracket.this, expressions=[place]))
        else:
            bracket.replace(exp.null())
    return tree


def _written(template: str, argument: Any, pattern: str = "") -> Any:
    """A template with its argument, and with the texts that are named in capitals."""
    texts = {"SPACES": SPACES, "PATTERN": pattern, **_PATTERNS}
    inner = argument.copy().transform(_translated)

    def filled(node: Any) -> Any:
        if isinstance(node, exp.Column) and node.name == "x" and not node.table:
            return inner.copy()
        if isinstance(node, exp.Literal) and node.is_string and node.this in texts:
            return exp.Literal.string(texts[node.this])
        if isinstance(node, exp.Anonymous) and node.name.upper() == "UNDERSTUDY_DOUBLE":
            return _written("double of numeric", node.expressions[0])
        return node

    return _parsed(template).transform(filled)


@cache
def _parsed(template: str) -> Any:
    import sqlglot

    return sqlglot.parse_one(_TEMPLATES[template], dialect="postgres")


class _Parameters:
    """Takes texts out of a query, and remembers them in the order of their numbers."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def bound(self, node: Any) -> Any:
        if isinstance(node, exp.In) and _all_texts(node.expressions):
            return exp.EQ(
                this=node.this, expression=exp.Any(this=self._place([e.this for e in node.expressions], "TEXT[]"))
            )
        if isinstance(node, exp.Values):
            return self._unnested(node)
        if isinstance(node, exp.Literal) and node.is_string and not _fixed(node):
            return self._place(node.this, "TEXT")
        return node

    def _place(self, value: Any, kind: str) -> Any:
        # Equal texts share a number: to the server two expressions are the same only if their parameters are.
        if value not in self.values:
            self.values.append(value)
        place = exp.Literal.number(self.values.index(value) + 1)
        return exp.Paren(this=exp.cast(exp.Parameter(this=place), kind, dialect="postgres"))

    def _unnested(self, node: Any) -> Any:
        """A list of labels and codes as two arrays: one parameter each, however long the list is."""
        pairs = [row.expressions for row in node.expressions]
        if _all_texts([label for label, _ in pairs]):
            labels = self._place([label.this for label, _ in pairs], "TEXT[]")
        else:
            labels = self._place([float(label.this.this) for label, _ in pairs], "DOUBLE PRECISION[]")
        arrays = [labels, self._place([int(code.this) for _, code in pairs], "INT[]")]
        return exp.Table(this=exp.Anonymous(this="UNNEST", expressions=arrays), alias=node.args["alias"])


def _all_texts(nodes: list[Any]) -> bool:
    return all(isinstance(n, exp.Literal) and n.is_string for n in nodes)


def _fixed(node: Any) -> bool:
    """Literals of ours that are part of a type or of a number, and hold no text of anybody's."""
    if isinstance(node.parent, exp.Interval):
        return True
    return isinstance(node.parent, exp.Cast) and node.parent.to.this != exp.DataType.Type.TEXT
