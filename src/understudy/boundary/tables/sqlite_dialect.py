"""The SQL of tables, put into SQLite's words: with our functions for whatever it lacks, and every value bound.

SQLite stores any value in any column, and its casts make a number of whatever begins with a digit. So a value comes to
SQL as the text that `schema.spelling` gives it, and what is read from a text is read by functions of ours. A point in
time is a whole number of microseconds since 1970 here.

No function raises, whatever it is given: an error would tell of the row.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

from understudy.boundary.schema.column import SPACES
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.spelling import spell
from understudy.boundary.tables.dialect import ISO, ISO_PARTS, BoundQuery, of_format
from understudy.boundary.tables.sql import MOMENT, READINGS, Expression

SECOND, DAY = 1_000_000, 86_400_000_000
"""In microseconds."""
TEXT = "understudy_text"


def bound_query(query: Expression) -> BoundQuery:
    """A query of ours for SQLite."""
    values: dict[tuple[type, str], Any] = {}

    def place(value: Any) -> Any:
        """Equal values share a number; SQLite counts from 1."""
        key = (type(value), repr(value))
        values.setdefault(key, (len(values) + 1, value))
        return exp.Var(this=f"?{values[key][0]}")

    def bound(node: Any) -> Any:
        if isinstance(node, exp.Literal) and node.is_string:
            return place(node.this)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and _is(node, "DOUBLE"):
            return place(float(node.this.this))
        return node

    for node in reversed(list(query.dfs())):  # what is inside of a node comes before it
        found = _translated(node)
        if found is not node:
            node.replace(found)
    translated = query.transform(bound, copy=False)
    return BoundQuery(translated.sql(dialect="sqlite"), tuple(value for _, value in values.values()))


def _is(cast: Any, *kinds: str) -> bool:
    return cast.to.this.name in kinds


def _translated(node: Any) -> Any:
    """One node, of which the inside is translated already."""
    match node:
        case exp.Select() if _reads(node):
            # SQLite would merge the subquery into the query around it, and read a value anew at each mention; two
            # queries that both have a limit are not merged.
            node.set("limit", exp.Limit(expression=exp.Neg(this=exp.Literal.number(1))))
            inner = node.args["from_"].this.this
            inner.set("limit", exp.Limit(expression=exp.Neg(this=exp.Literal.number(1))))
            return node
        case exp.Trim():
            return _call("TRIM", node.this, exp.Literal.string(SPACES))
        case exp.IsNan():
            return exp.false()  # SQLite makes null of it
        case exp.TryCast() if _is(node, "DOUBLE"):
            return _call("understudy_double", node.this)
        case exp.TryCast():
            return node.this
        case exp.Extract() if node.name.upper() != "EPOCH":
            return _call("understudy_part", exp.Literal.string(node.name.upper()), node.expression)
        case exp.Extract():
            return exp.Div(this=exp.cast(node.expression, "double"), expression=_number(SECOND), typed=False)
        case exp.Interval():
            unit = DAY if node.unit.name.upper() == "DAY" else SECOND
            return _number(int(node.this.this) * unit)
        case exp.Greatest() | exp.Least():
            name = "MAX" if isinstance(node, exp.Greatest) else "MIN"
            return _call(name, node.this, *node.expressions)
        case exp.Anonymous() if node.name.upper() == MOMENT:
            return _call("understudy_moment", *node.expressions)
        case exp.Anonymous() if node.name.upper() == "TRY_STRPTIME":
            return _call("understudy_moment_as", *node.expressions)
        case exp.Cast() if _is(node, "TIMESTAMP", "DATE", "DATETIME"):
            return _moment_literal(node.this)
        case exp.Values():
            return _listed(node)
    return node


def _reads(node: Any) -> bool:
    source = node.args.get("from_")
    return source is not None and isinstance(source.this, exp.Subquery) and source.this.alias == READINGS


def _call(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number(value: int) -> Any:
    return exp.Literal.number(value)


def _moment_literal(inner: Any) -> Any:
    """A declared point in time as its number; of anything else the moment that it is already."""
    if isinstance(inner, exp.Literal):
        return _number(_microseconds(datetime.fromisoformat(inner.this)))
    return inner


def _listed(node: Any) -> Any:
    """A list of labels and codes as one parameter, however long it is."""
    pairs = [[_label(row.expressions[0]), int(row.expressions[1].this)] for row in node.expressions]
    listed = exp.Literal.string(json.dumps(pairs))
    found = [_call("json_extract", exp.column("value"), exp.Literal.string(f"$[{i}]")) for i in (0, 1)]
    # A number of JSON is compared as a double, since what was read is one.
    labels = [exp.alias_(found[0], "label"), exp.alias_(found[1], "code")]
    table = exp.Table(this=_call("json_each", listed))
    return exp.select(*labels).from_(table).subquery(node.alias)


def _label(node: Any) -> str | float:
    return node.this if isinstance(node, exp.Literal) else float(node.this.this)


def _microseconds(moment: datetime) -> int:
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


# --- Functions of a connection


def prepare(connection: sqlite3.Connection) -> None:
    """Gives a connection the functions that our queries call."""
    encoding = {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(
        connection.execute("PRAGMA encoding").fetchone()[0], "utf-8"
    )

    def text(value: Any, is_text: int, exactly: int) -> str | None:
        # A text comes as its bytes, which need be no text: SQLite stores what it is given.
        if is_text:
            return value.decode(encoding, "replace")
        return spell(value, exactly=bool(exactly))

    functions = {
        TEXT: (3, text),
        "understudy_double": (1, _double),
        "understudy_moment": (1, lambda text: _moment(text, ISO, ISO_PARTS)),
        "understudy_moment_as": (2, lambda text, form: _moment(text, *of_format(form))),
        "understudy_part": (2, _part),
        "MD5": (1, lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
        "CONCAT_WS": (-1, lambda separator, *parts: separator.join(p for p in parts if p is not None)),
    }
    try:
        connection.execute("SELECT FLOOR(1.5)")
    except sqlite3.OperationalError:  # it may be built without mathematics
        functions["FLOOR"] = (1, _floor)
    for name, (arguments, function) in functions.items():
        connection.create_function(name, arguments, _silent(function), deterministic=True)


def _silent(function: Any) -> Any:
    def silent(*values: Any) -> Any:
        try:
            return function(*values)
        except Exception:  # whatever a row holds
            return None

    return silent


def _double(text: str | None) -> float | None:
    """By the digits of ASCII alone, as `schema.encoding`; SQLite makes null of NaN."""
    return float(text) if text is not None and text.isascii() else None


def _floor(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return value
    return float(math.floor(value))


def _part(name: str, moment: int | None) -> int | None:
    """A part of a point in time, such as its year."""
    if moment is None:
        return None
    found = datetime(1970, 1, 1) + timedelta(microseconds=moment)
    return {"YEAR": found.year, "MONTH": found.month, "ISODOW": found.isoweekday(), "HOUR": found.hour}[name]


def _moment(text: str | None, pattern: str, places: dict[str, int]) -> int | None:
    """The point in time that a text means, in UTC; null for any other text."""
    found = re.search(pattern, text or "", re.ASCII)
    if found is None:
        return None
    part = {name: found.group(place) for name, place in places.items()}
    whole = [int(part.get(name) or 0) for name in ("Y", "MO", "D", "H", "MI")]
    seconds, fraction = divmod(round(float(part.get("S") or 0) * SECOND), SECOND)
    offset = 60 * int(part.get("OH") or 0) + int(part.get("OM") or 0)
    if part.get("SIGN") == "-":
        offset = -offset
    if float(part.get("S") or 0) >= 60:
        return None
    moment = _microseconds(datetime(*whole)) + seconds * SECOND + fraction  # type: ignore[arg-type]
    return moment - offset * 60 * SECOND
