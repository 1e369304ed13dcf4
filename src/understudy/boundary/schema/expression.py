"""The small SQL that people type: constraints, `release.count("age > 40")` and WHERE clauses.

    text → tokens (no comments, calls, casts) → sqlglot's tree (a whitelist of shapes) → our own typed nodes

A `Predicate` is made of our nodes alone, and its SQL is written again from them: no piece of the typed text, except
literals and column names, ever reaches a database.

Truth has three values, as in SQL: a comparison with a missing value is unknown, AND, OR and NOT follow Kleene's tables,
and IS NULL is always known. Arithmetic is in double precision on every back end, so that no row can overflow an
integer type and raise: an error that depends on a row would leak around the noise.
"""

from __future__ import annotations

import enum
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.late_imports import exp
from understudy.errors import InternalError, SchemaError
from understudy.parameters import close_names

MAX_CHARACTERS: Final = 10_000
MAX_NESTING: Final = 30
"""Levels of parentheses, NOT and arithmetic: sqlglot's parser takes some twenty Python frames for each."""
MAX_DAYS: Final = 1_000_000
"""By which a date may be moved: some 2,700 years."""

_ALLOWED = "use only columns, literals, = <> < <= > >=, IN, BETWEEN, IS NULL, AND, OR, NOT, + - * and parentheses"


class Kind(enum.Enum):
    """What a column's values are, as far as an expression cares."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATETIME = "datetime"


# --- What an expression reads and answers ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Values:
    """One column's values; an entry is missing where the mask says so, and also where it is NaN, NaT or None."""

    data: NDArray[Any]
    missing: NDArray[np.bool_] | None = None

    def absent(self) -> NDArray[np.bool_]:
        """Which entries are missing, by the mask or by themselves."""
        own = _absent_by_itself(self.data)
        return own if self.missing is None else own | self.missing


def _absent_by_itself(data: NDArray[Any]) -> NDArray[np.bool_]:
    if data.dtype.kind == "f":
        return np.asarray(np.isnan(data))
    if data.dtype.kind == "M":
        return np.asarray(np.isnat(data))
    if data.dtype.kind == "O":  # in a column of text, a float can only be pandas' NaN
        absent = np.frompyfunc(lambda value: value is None or isinstance(value, float), 1, 1)
        return np.asarray(absent(data), dtype=bool)
    return np.zeros(data.shape, dtype=bool)


@dataclass(frozen=True, eq=False)
class Truth:
    """Where a predicate is definitely true and where definitely false; it is unknown where it is neither."""

    true: NDArray[np.bool_]
    false: NDArray[np.bool_]

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Where a missing value decides."""
        return ~(self.true | self.false)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The columns under evaluation; `size` is needed by predicates that name no column."""

    values: Mapping[str, Values]
    size: int


class _Read(NamedTuple):
    """An operand's values, of one row or of all, with a mask that is complete."""

    data: NDArray[Any]
    missing: NDArray[np.bool_]


_NONE_MISSING = np.asarray(False)


# --- Operands: what stands on either side of a comparison -----------------------------------------------------------


class _Operand(Protocol):
    @property
    def kind(self) -> Kind: ...
    def read(self, rows: _Rows) -> _Read: ...
    def sql(self) -> Any: ...


_DTYPES = {Kind.NUMBER: "iuf", Kind.TEXT: "OUT", Kind.BOOLEAN: "b", Kind.DATETIME: "M"}


@dataclass(frozen=True)
class _Column:
    name: str
    kind: Kind

    def read(self, rows: _Rows) -> _Read:
        values = rows.values.get(self.name)
        if values is None:
            raise InternalError(f"column {self.name!r} was not supplied to an expression that reads it.", self)
        if values.data.shape != (rows.size,) or values.data.dtype.kind not in _DTYPES[self.kind]:
            found = f"{values.data.dtype} of shape {values.data.shape}"
            raise InternalError(f"column {self.name!r} must hold {rows.size} {self.kind.value} values, not {found}.")
        missing = values.absent()
        if values.data.dtype.kind == "O":  # a filler such as pandas.NA has no truth value, so it may not be compared
            return _Read(np.where(missing, "", values.data), missing)
        return _Read(values.data, missing)

    def sql(self) -> Any:
        return exp.Column(this=exp.Identifier(this=self.name, quoted=True))


@dataclass(frozen=True)
class _Literal:
    value: int | float | str | bool | datetime
    kind: Kind

    def read(self, rows: _Rows) -> _Read:
        if isinstance(self.value, datetime):
            return _Read(np.asarray(np.datetime64(self.value, "s")), _NONE_MISSING)
        return _Read(np.asarray(self.value), _NONE_MISSING)

    def sql(self) -> Any:
        if isinstance(self.value, bool):
            return exp.Boolean(this=self.value)
        if isinstance(self.value, datetime):
            return _cast(exp.Literal.string(self.value.isoformat(sep=" ")), "TIMESTAMP")
        if isinstance(self.value, float):  # from a string: 0.1 would be an exact decimal, with another arithmetic
            return _cast(exp.Literal.string(repr(self.value)), "DOUBLE")
        if isinstance(self.value, int):
            magnitude = exp.Literal.number(abs(self.value))
            if self.value >= 0:
                return magnitude
            return exp.Neg(this=magnitude)
        return exp.Literal.string(self.value)


def _cast(expression: Any, to: str) -> Any:
    return exp.Cast(this=expression, to=exp.DataType.build(to))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}


@dataclass(frozen=True)
class _Arithmetic:
    """Two numbers added, subtracted or multiplied, in double precision."""

    operation: str
    left: _Operand
    right: _Operand
    kind: Kind = Kind.NUMBER

    def read(self, rows: _Rows) -> _Read:
        left, right = self.left.read(rows), self.right.read(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            data = _ARITHMETIC[self.operation](left.data.astype(np.float64), right.data.astype(np.float64))
        return _Read(np.asarray(data), left.missing | right.missing | np.isnan(data))

    def sql(self) -> Any:
        left, right = _cast(self.left.sql(), "DOUBLE"), _cast(self.right.sql(), "DOUBLE")
        return exp.Paren(this=getattr(exp, self.operation)(this=left, expression=right))


@dataclass(frozen=True)
class _Shift:
    """A date moved by whole days."""

    date: _Operand
    days: int
    kind: Kind = Kind.DATETIME

    def read(self, rows: _Rows) -> _Read:
        date = self.date.read(rows)
        return _Read(np.asarray(date.data + np.timedelta64(self.days, "D")), date.missing)

    def sql(self) -> Any:
        days = exp.Interval(this=exp.Literal.string(str(self.days)), unit=exp.Var(this="DAY"))
        return exp.Paren(this=exp.Add(this=_cast(self.date.sql(), "TIMESTAMP"), expression=days))


# --- Conditions: what is true, false or unknown ---------------------------------------------------------------------


class _Condition(Protocol):
    def judge(self, rows: _Rows) -> Truth: ...
    def sql(self) -> Any: ...


def _known(holds: NDArray[np.bool_], missing: NDArray[np.bool_], size: int) -> Truth:
    """The two-valued answer where nothing is missing, stretched over all rows."""
    known = np.broadcast_to(~missing, (size,))
    return Truth(holds & known, ~holds & known)


def _compared(operation: str, left: _Read, right: _Read, size: int) -> Truth:
    holds = np.asarray(_COMPARISONS[operation](left.data, right.data), dtype=bool)
    return _known(holds, left.missing | right.missing, size)


def _both(left: Truth, right: Truth) -> Truth:
    """Kleene's AND: true if all are, false if one is."""
    return Truth(left.true & right.true, left.false | right.false)


def _either(left: Truth, right: Truth) -> Truth:
    """Kleene's OR: true if one is, false if all are."""
    return Truth(left.true | right.true, left.false & right.false)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}


@dataclass(frozen=True)
class _Comparison:
    operation: str
    left: _Operand
    right: _Operand

    def judge(self, rows: _Rows) -> Truth:
        return _compared(self.operation, self.left.read(rows), self.right.read(rows), rows.size)

    def sql(self) -> Any:
        return getattr(exp, self.operation)(this=self.left.sql(), expression=self.right.sql())


@dataclass(frozen=True)
class _Member:
    """An OR of equalities, as SQL defines IN."""

    value: _Operand
    options: tuple[_Operand, ...]

    def judge(self, rows: _Rows) -> Truth:
        value = self.value.read(rows)
        return reduce(_either, (_compared("EQ", value, option.read(rows), rows.size) for option in self.options))

    def sql(self) -> Any:
        return exp.In(this=self.value.sql(), expressions=[option.sql() for option in self.options])


@dataclass(frozen=True)
class _Flag:
    """A boolean column, or TRUE or FALSE, standing as a condition of its own."""

    operand: _Operand

    def judge(self, rows: _Rows) -> Truth:
        data, missing = self.operand.read(rows)
        return _known(data, missing, rows.size)

    def sql(self) -> Any:
        return self.operand.sql()


@dataclass(frozen=True)
class _Missing:
    column: _Column

    def judge(self, rows: _Rows) -> Truth:
        missing = self.column.read(rows).missing
        return Truth(missing, ~missing)

    def sql(self) -> Any:
        return exp.Is(this=self.column.sql(), expression=exp.Null())


@dataclass(frozen=True)
class _Not:
    inner: _Condition

    def judge(self, rows: _Rows) -> Truth:
        truth = self.inner.judge(rows)
        return Truth(truth.false, truth.true)

    def sql(self) -> Any:
        return exp.Not(this=exp.Paren(this=self.inner.sql()))


@dataclass(frozen=True)
class _All:
    parts: tuple[_Condition, ...]

    def judge(self, rows: _Rows) -> Truth:
        return reduce(_both, (part.judge(rows) for part in self.parts))

    def sql(self) -> Any:
        return _chained("And", self.parts)


@dataclass(frozen=True)
class _Any:
    parts: tuple[_Condition, ...]

    def judge(self, rows: _Rows) -> Truth:
        return reduce(_either, (part.judge(rows) for part in self.parts))

    def sql(self) -> Any:
        return _chained("Or", self.parts)


def _chained(connector: str, parts: Sequence[_Condition]) -> Any:
    join = getattr(exp, connector)
    wrapped = [exp.Paren(this=part.sql()) for part in parts]
    return reduce(lambda left, right: join(this=left, expression=right), wrapped)


# --- The public nouns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicate:
    """A checked expression; made by `parse`.

    >>> age = Values(np.array([30, 50]), np.array([False, True]))
    >>> truth = parse("age > 40", {"age": Kind.NUMBER}).evaluate({"age": age}, 2)
    >>> truth.true.tolist(), truth.unknown.tolist()
    ([False, False], [False, True])
    """

    text: str
    columns: frozenset[str]
    _tree: _Condition = field(repr=False)

    def evaluate(self, values: Mapping[str, Values], size: int) -> Truth:
        """The truth of each of `size` rows, by SQL's three-valued logic."""
        return self._tree.judge(_Rows(values, size))

    def sql(self) -> Any:
        """A sqlglot expression with quoted identifiers, for push-down; a fresh one each time, as they can be edited."""
        return self._tree.sql()


@dataclass(frozen=True)
class Constraint:
    """A public rule that every synthetic row obeys: the consequence holds wherever the condition does.

    >>> rule = Constraint.parse("age < 15", "NOT married", {"age": Kind.NUMBER, "married": Kind.BOOLEAN})
    >>> row = {"age": Values(np.array([9])), "married": Values(np.array([True]))}
    >>> rule.violated(row, 1).tolist()
    [True]
    """

    condition: Predicate | None
    consequence: Predicate

    @classmethod
    def parse(cls, condition_text: str | None, consequence_text: str, kinds: Mapping[str, Kind]) -> Constraint:
        """Reads both halves; no condition means that the consequence always holds."""
        condition = None if condition_text is None else parse(condition_text, kinds)
        return cls(condition, parse(consequence_text, kinds))

    @property
    def columns(self) -> frozenset[str]:
        """Every column that either half names."""
        return self.consequence.columns | (self.condition.columns if self.condition else frozenset())

    def violated(self, values: Mapping[str, Values], size: int) -> NDArray[np.bool_]:
        """Which rows break the rule for certain; as in an SQL CHECK, what is unknown passes."""
        broken = self.consequence.evaluate(values, size).false
        if self.condition is None:
            return broken
        return broken & self.condition.evaluate(values, size).true


def parse(text: str, kinds: Mapping[str, Kind]) -> Predicate:
    """Reads an expression and checks it against the kinds of the schema's columns.

    >>> sorted(parse("age > 40 and sex = 'Female'", {"age": Kind.NUMBER, "sex": Kind.TEXT}).columns)
    ['age', 'sex']
    """
    if len(text) > MAX_CHARACTERS:
        raise SchemaError(f"the expression has {len(text)} characters, the most is {MAX_CHARACTERS}: split it.", text)
    try:
        reader = _Reader(text, kinds)
        tree = reader.condition(_checked_tree(text))
    except RecursionError:  # only for a caller whose own stack is already deep; MAX_NESTING stops the rest
        _refuse_nesting(text)
    return Predicate(text, frozenset(reader.used), tree)


# --- From text to a whitelisted sqlglot tree ------------------------------------------------------------------------


def _refuse(text: str, piece: str, why: str) -> NoReturn:
    where = "" if piece == text else f"{_short(piece)} in "
    raise SchemaError(f"{where}the expression {_short(text)} {why}.", text)


def _refuse_nesting(text: str) -> NoReturn:
    why = f"nests deeper than {MAX_NESTING} levels of parentheses, NOT and arithmetic: split it"
    raise SchemaError(f"the expression {_short(text)} {why}.", text)


def _short(piece: str, length: int = 60) -> str:
    """In guillemets, since an expression has quotes of both kinds inside."""
    flat = " ".join(piece.split())
    return f"«{flat if len(flat) <= length else flat[: length - 1] + '…'}»"


def _checked_tree(text: str) -> Any:
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    try:
        tokens = sqlglot.tokenize(text)
    except TokenError:
        raise SchemaError(f"the expression {_short(text)} has a quote or a comment that isn't closed.", text) from None
    _check_tokens(text, tokens)
    _check_nesting(text, tokens)
    try:
        tree = sqlglot.parse_one(text, into=exp.Condition)
    except ParseError as error:
        piece = next((e["highlight"] for e in error.errors if e.get("highlight")), text)
        hint = "put a column name that is also an SQL word, or has spaces or hyphens, in double quotes"
        _refuse(text, piece, f"can't be read: {_ALLOWED} ({hint})")
    _check_shapes(text, tree)
    return tree


_COMPARING = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_SYMBOLS = _COMPARING | {"(", ")", ",", ".", "+", "-", "*"}
_BEFORE_PARENTHESIS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN"})
_REFUSED_WORDS = frozenset({"ISNULL", "NOTNULL", "IF"})  # sqlglot reads the first two as IS NULL, and logs about IF
_WORD = re.compile(r"[^\W\d]\w*")


def _symbol(token: Any) -> str:
    """A token's text if it is a word or a sign, else nothing: what stands inside quotes is no syntax."""
    quoted = token.token_type.name in ("STRING", "IDENTIFIER", "NUMBER")
    return "" if quoted else token.text.upper()


def _check_tokens(text: str, tokens: Sequence[Any]) -> None:
    """Refuses what the tree no longer shows: comments, semicolons, and CAST beside DATE '…'."""
    if not tokens:
        raise SchemaError(f"the expression {_short(text)} is empty: {_ALLOWED}.", text)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        symbol = _symbol(token)
        is_word = _WORD.fullmatch(symbol) is not None
        if token.comments:
            _refuse(text, _comment(text, token.comments[0]), f"is a comment: leave it out, and {_ALLOWED}")
        if (symbol and symbol not in _SYMBOLS and not is_word) or symbol in _REFUSED_WORDS:
            _refuse(text, token.text, f"isn't part of the language: {_ALLOWED}")
        if is_word and symbol not in _BEFORE_PARENTHESIS and after is not None and _symbol(after) == "(":
            _refuse(text, f"{token.text}(", f"calls a function, and there are none: {_ALLOWED}")


def _comment(text: str, inside: str) -> str:
    """The comment with the two characters that open it."""
    start = max(text.find(f"--{inside}"), text.find(f"/*{inside}"))
    return text[start : start + 2 + len(inside)]


def _check_nesting(text: str, tokens: Sequence[Any]) -> None:
    level, opened = 0, [-1]
    for symbol in map(_symbol, tokens):
        if symbol == "(":
            opened.append(level)
        elif symbol == ")" and len(opened) > 1:
            level = opened.pop()
        elif symbol in _COMPARING or symbol in (",", "AND", "OR"):
            level = opened[-1] + 1
        level += symbol in ("(", "NOT", "+", "-", "*")
        if level > MAX_NESTING:
            _refuse_nesting(text)


_SHAPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("and", "or", "eq", "neq", "lt", "lte", "gt", "gte", "is", "add", "sub", "mul"),
        frozenset({"this", "expression"}),
    ),
    **dict.fromkeys(("not", "neg", "paren", "column", "boolean", "datatype"), frozenset({"this"})),
    "null": frozenset(),
    "identifier": frozenset({"this", "quoted"}),
    "literal": frozenset({"this", "is_string"}),
    "cast": frozenset({"this", "to"}),
    "in": frozenset({"this", "expressions"}),
    "between": frozenset({"this", "low", "high"}),
}


def _check_shapes(text: str, tree: Any) -> None:
    """Whitelists node classes and their arguments, so that a construct we have never heard of is refused."""
    for node in tree.walk():
        filled = {name for name, value in node.args.items() if value}
        if node.key not in _SHAPES or not filled <= _SHAPES[node.key]:
            _refuse(text, node.sql(), f"isn't part of the language: {_ALLOWED}")


# --- From the tree to typed nodes -----------------------------------------------------------------------------------

_PLURALS = {Kind.NUMBER: "numbers", Kind.TEXT: "text", Kind.BOOLEAN: "booleans", Kind.DATETIME: "dates"}
_HOW_TO_WRITE = {
    Kind.NUMBER: "a number such as 40",
    Kind.TEXT: "text such as 'Female'",
    Kind.BOOLEAN: "TRUE or FALSE",
    Kind.DATETIME: "a date such as '2020-01-31'",
}
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?", re.ASCII)
_CONDITIONS = frozenset({"and", "or", "not", "is", "in", "between", "eq", "neq", "lt", "lte", "gt", "gte"})
_NAMES = {name.lower(): name for name in (*_COMPARISONS, *_ARITHMETIC)}


class _Reader:
    """Turns a whitelisted tree into typed nodes, and remembers the columns it met."""

    def __init__(self, text: str, kinds: Mapping[str, Kind]) -> None:
        self.text = text
        self.kinds = kinds
        self.used: set[str] = set()

    def condition(self, node: Any) -> _Condition:
        node = node.unnest()
        if node.key in ("and", "or"):
            parts = tuple(self.condition(part) for part in node.flatten(unnest=False))
            return _All(parts) if node.key == "and" else _Any(parts)
        if node.key == "not":
            return _Not(self.condition(node.this))
        if node.key == "is":
            return self._missing(node)
        if node.key == "in":
            return self._membership(node)
        if node.key == "between":
            value = self.operand(node.this)
            low = self._comparison(node, "GTE", value, self.operand(node.args["low"]))
            return _All((low, self._comparison(node, "LTE", value, self.operand(node.args["high"]))))
        if node.key in _CONDITIONS:
            return self._comparison(node, _NAMES[node.key], self.operand(node.this), self.operand(node.expression))
        return self._flag(node)

    def operand(self, node: Any) -> _Operand:
        node = node.unnest()
        readers: dict[str, Callable[[Any], _Operand]] = {
            "column": self._column,
            "literal": self._literal,
            "boolean": lambda node: _Literal(bool(node.this), Kind.BOOLEAN),
            "neg": self._negative,
            "cast": self._dated,
            **dict.fromkeys(("add", "sub", "mul"), self._arithmetic),
        }
        return readers.get(node.key, self._no_operand)(node)

    def _no_operand(self, node: Any) -> NoReturn:
        if node.key == "null":
            self._refuse(node, "can't be compared: use IS NULL or IS NOT NULL")
        self._refuse(node, "can't be compared or computed with: join conditions by AND, OR and NOT")

    def _refuse(self, node: Any, why: str) -> NoReturn:
        _refuse(self.text, node.sql(), why)

    def _missing(self, node: Any) -> _Condition:
        column = self.operand(node.this)
        if node.expression.key != "null" or not isinstance(column, _Column):
            self._refuse(node, "can't be asked: IS stands only between a column and NULL or NOT NULL")
        return _Missing(column)

    def _membership(self, node: Any) -> _Condition:
        if not node.expressions:
            self._refuse(node, "has an empty list: IN needs at least one value")
        value = self.operand(node.this)
        tests = [self._comparison(node, "EQ", value, self.operand(item)) for item in node.expressions]
        if len({test.left for test in tests}) > 1:
            self._refuse(node, "reads one string both as text and as a date: write DATE '…'")
        return _Member(tests[0].left, tuple(test.right for test in tests))

    def _flag(self, node: Any) -> _Condition:
        operand = self.operand(node)
        if operand.kind is not Kind.BOOLEAN:
            self._refuse(node, f"holds {_PLURALS[operand.kind]} and is no condition: compare it with something")
        return _Flag(operand)

    def _comparison(self, node: Any, operation: str, left: _Operand, right: _Operand) -> _Comparison:
        left, right = self._as_date(left, right), self._as_date(right, left)
        if left.kind is not right.kind:
            kind = right.kind if isinstance(left, _Literal) else left.kind
            both = f"{_PLURALS[left.kind]} with {_PLURALS[right.kind]}"
            self._refuse(node, f"compares {both}: write {_HOW_TO_WRITE[kind]}")
        if operation not in ("EQ", "NEQ") and left.kind in (Kind.TEXT, Kind.BOOLEAN):
            # Alphabetical order would be wrong for an ordinal column, and it differs between databases' collations.
            self._refuse(node, f"puts {_PLURALS[left.kind]} in order, and there is none: use =, <> or IN")
        return _Comparison(operation, left, right)

    def _as_date(self, operand: _Operand, other: _Operand) -> _Operand:
        """A string beside a date is read as a date."""
        if other.kind is Kind.DATETIME and isinstance(operand, _Literal) and isinstance(operand.value, str):
            return self._date(operand.value)
        return operand

    def _date(self, written: str) -> _Literal:
        try:
            if _DATE.fullmatch(written):
                return _Literal(datetime.fromisoformat(written), Kind.DATETIME)
        except ValueError:
            pass
        _refuse(self.text, written, "isn't a date: write '2020-01-31' or '2020-01-31 18:30:00'")

    def _dated(self, node: Any) -> _Operand:
        """DATE '…' and TIMESTAMP '…', which sqlglot reads as casts; real casts fell at the tokens."""
        typed = node.args["to"].this.name
        if typed not in ("DATE", "TIMESTAMP") or node.this.key != "literal" or not node.this.is_string:
            self._refuse(node, "isn't part of the language: the only typed literals are DATE '…' and TIMESTAMP '…'")
        return self._date(node.this.this)

    def _column(self, node: Any) -> _Operand:
        name = node.this.this
        if name not in self.kinds:
            _refuse(self.text, name, f"is not a column of the schema: {_advice(name, list(self.kinds))}")
        self.used.add(name)
        return _Column(name, self.kinds[name])

    def _literal(self, node: Any) -> _Literal:
        if node.is_string:
            return _Literal(node.this, Kind.TEXT)
        if not _NUMBER.fullmatch(node.this):
            self._refuse(node, "isn't a number: write 40, -0.5 or 1e6")
        number = float(node.this)
        if not math.isfinite(number):
            self._refuse(node, "is too large: a number must be below 1.8e308")
        # Beyond 64 bits an integer would have a type of its own in every database.
        whole = node.this.isdecimal() and int(node.this) < 2**63
        return _Literal(int(node.this) if whole else number, Kind.NUMBER)

    def _negative(self, node: Any) -> _Operand:
        operand = self.operand(node.this)
        if not isinstance(operand, _Literal) or isinstance(operand.value, bool | str | datetime):
            self._refuse(node, "has a sign, which only a number may have: multiply by -1 instead")
        return _Literal(-operand.value, Kind.NUMBER)

    def _arithmetic(self, node: Any) -> _Operand:
        left, right = self.operand(node.this), self.operand(node.expression)
        if left.kind is Kind.DATETIME and node.key in ("add", "sub"):
            return self._shift(node, left, right)
        if left.kind is not Kind.NUMBER or right.kind is not Kind.NUMBER:
            both = f"{_PLURALS[left.kind]} with {_PLURALS[right.kind]}"
            self._refuse(node, f"computes {both}: use numbers, or a date and whole days as in date + 3")
        return _Arithmetic(_NAMES[node.key], left, right)

    def _shift(self, node: Any, date: _Operand, days: _Operand) -> _Operand:
        if not isinstance(days, _Literal) or type(days.value) is not int or abs(days.value) > MAX_DAYS:
            self._refuse(node, f"must move a date by a whole number of days up to {MAX_DAYS:,}, as in date + 3")
        return _Shift(date, days.value if node.key == "add" else -days.value)


def _advice(name: str, columns: Sequence[str]) -> str:
    close = _close(name, columns)
    if close:
        return f"perhaps you mean {' or '.join(map(_written, close))}"
    listed = [*map(_written, columns[:8]), *(["…"] if len(columns) > 8 else [])]
    return f"it has {', '.join(listed)} (and text goes in single quotes)"


def _close(name: str, columns: Sequence[str]) -> list[str]:
    """Likely meanings, among them a hyphenated name that was typed without its quotes."""
    lowered = {column.lower(): column for column in columns}
    begun = [full for low, full in lowered.items() if re.match(re.escape(name.lower()) + r"\W", low)]
    return list(dict.fromkeys([*begun, *close_names(name, columns)]))[:3]


def _written(name: str) -> str:
    if _WORD.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'
