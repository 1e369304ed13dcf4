"""The small SQL that people type: constraints, `release.count("age > 40")` and WHERE clauses.

    text → tokens (no comments, calls, casts) → sqlglot's tree (a whitelist of shapes) → a new tree, written by us

A `Predicate` holds the new tree alone: no piece of the typed text, except literals and column names, ever reaches a
database. `inference.values` evaluates the same tree on synthetic rows.

Truth has three values, as in SQL: a comparison with a missing value is unknown, AND, OR and NOT follow Kleene's tables,
and IS NULL is always known. Arithmetic is in double precision on every back end, so that no row can overflow an
integer type and raise: an error that depends on a row would leak around the noise.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import Any, Final, NamedTuple, NoReturn

from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.spelling import special_name, special_text
from understudy.errors import SchemaError
from understudy.parameters import close_names, printable

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


class Kinds(dict[str, Kind]):
    """The kind of each column that an expression may name; and what else it must know of some of them."""

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        *,
        special: Mapping[str, tuple[str, ...]] | None = None,
        rebuilt: Mapping[str, str] | None = None,
        identifiers: Iterable[str] = (),
    ) -> None:
        super().__init__(kinds)
        self.special = special or {}
        """The special values of columns on a line, as texts."""
        self.rebuilt = rebuilt or {}
        """From which derived column another one is rebuilt, which is not modelled itself."""
        self.identifiers = frozenset(identifiers)
        """Columns that no expression may name, though the schema has them."""


@dataclass(frozen=True)
class Predicate:
    """A checked expression; made by `parse`."""

    text: str
    kinds: frozenset[tuple[str, Kind]]
    """Of the columns that it names."""
    # The text and the kinds determine the tree, so that a comparison need not walk it.
    _tree: Any = field(repr=False, compare=False)
    special: frozenset[str] = frozenset()
    """The columns with special values among them: as texts, these stand under the name of `special_name`."""

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.kinds)

    def sql(self) -> Any:
        """A sqlglot expression with quoted identifiers, for push-down; a fresh one each time, as they can be edited."""
        return self._tree.copy()


@dataclass(frozen=True)
class Constraint:
    """A public rule that every synthetic row obeys: the consequence holds wherever the condition does."""

    condition: Predicate | None
    consequence: Predicate

    @classmethod
    def parse(cls, condition_text: str | None, consequence_text: str, kinds: Mapping[str, Kind]) -> Constraint:
        """Reads both halves; no condition means that the consequence always holds.

        >>> rule = Constraint.parse("age < 15", "NOT married", {"age": Kind.NUMBER, "married": Kind.BOOLEAN})
        >>> sorted(rule.columns)
        ['age', 'married']
        """
        condition = None if condition_text is None else parse(condition_text, kinds)
        return cls(condition, parse(consequence_text, kinds))

    @property
    def columns(self) -> frozenset[str]:
        """Every column that either half names."""
        return self.consequence.columns.union(self.condition.columns if self.condition else ())


def parse(text: str, kinds: Mapping[str, Kind]) -> Predicate:
    """Reads an expression and checks it against the kinds of the schema's columns.

    >>> predicate = parse("age > 40 and sex = 'Female'", {"age": Kind.NUMBER, "sex": Kind.TEXT})
    >>> sorted(predicate.columns), predicate.sql().sql()
    (['age', 'sex'], '("age" > 40) AND ("sex" = \\'Female\\')')
    """
    if len(text) > MAX_CHARACTERS:
        raise SchemaError(f"the expression has {len(text)} characters, the most is {MAX_CHARACTERS}: split it.", text)
    try:
        reader = _Reader(text, kinds)
        tree = reader.condition(_checked_tree(text))
    except RecursionError:  # only for a caller whose own stack is already deep; MAX_NESTING stops the rest
        _refuse_nesting(text)
    special = frozenset(name for name in reader.used if reader.kinds.special.get(name))
    return Predicate(text, frozenset((name, kinds[name]) for name in reader.used), tree, special)


# --- From text to a whitelisted sqlglot tree ------------------------------------------------------------------------


def _refuse(text: str, piece: str, why: str) -> NoReturn:
    where = "" if piece == text else f"{_short(piece)} in "
    raise SchemaError(f"{where}the expression {_short(text)} {why}.", text)


def _refuse_nesting(text: str) -> NoReturn:
    why = f"nests deeper than {MAX_NESTING} levels of parentheses, NOT and arithmetic: split it"
    raise SchemaError(f"the expression {_short(text)} {why}.", text)


def _short(piece: str, length: int = 60) -> str:
    """In guillemets, since an expression has quotes of both kinds inside."""
    flat = printable(" ".join(piece.split()))
    if len(flat) > length:
        flat = flat[: length - 1] + "…"
    return f"«{flat}»"


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
    # Node classes and their arguments are whitelisted, so that a construct we have never heard of is refused.
    for node in tree.walk():
        filled = {name for name, value in node.args.items() if value}
        if node.key not in _SHAPES or not filled <= _SHAPES[node.key]:
            _refuse(text, node.sql(), f"isn't part of the language: {_ALLOWED}")
    return tree


_COMPARING = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_SYMBOLS = _COMPARING | {"(", ")", ",", ".", "+", "-", "*"}
_BEFORE_PARENTHESIS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN"})
_REFUSED_WORDS = frozenset({"ISNULL", "NOTNULL", "IF"})  # sqlglot reads the first two as IS NULL, and logs about IF
_WORD = re.compile(r"[^\W\d]\w*")
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


def _symbol(token: Any) -> str:
    """A token's text if it is a word or a sign, else nothing: what stands inside quotes is no syntax."""
    if token.token_type.name in ("STRING", "IDENTIFIER", "NUMBER"):
        return ""
    return str(token.text.upper())


def _check_tokens(text: str, tokens: Sequence[Any]) -> None:
    """Refuses what the tree no longer shows: comments, semicolons, and CAST beside DATE '…'."""
    if not tokens:
        raise SchemaError(f"the expression {_short(text)} is empty: {_ALLOWED}.", text)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        symbol = _symbol(token)
        is_word = _WORD.fullmatch(symbol) is not None
        if token.comments:
            inside = token.comments[0]
            start = max(text.find(f"--{inside}"), text.find(f"/*{inside}"))
            comment = text[start : start + 2 + len(inside)]  # with the two characters that open it
            _refuse(text, comment, f"is a comment: leave it out, and {_ALLOWED}")
        if (symbol and symbol not in _SYMBOLS and not is_word) or symbol in _REFUSED_WORDS:
            _refuse(text, token.text, f"isn't part of the language: {_ALLOWED}")
        if is_word and symbol not in _BEFORE_PARENTHESIS and after is not None and _symbol(after) == "(":
            _refuse(text, f"{token.text}(", f"calls a function, and there are none: {_ALLOWED}")


def _check_nesting(text: str, tokens: Sequence[Any]) -> None:
    """Counts on tokens, before a parser that would run out of stack sees the text."""
    level, opened = 0, [-1]
    for symbol in map(_symbol, tokens):
        if symbol == "(":
            opened.append(level)
        elif symbol == ")" and len(opened) > 1:
            level = opened.pop()
        # These end an operand: what follows begins one level inside its parenthesis, however long the chain of them is.
        elif symbol in _COMPARING or symbol in (",", "AND", "OR"):
            level = opened[-1] + 1
        level += symbol in ("(", "NOT", "+", "-", "*")
        if level > MAX_NESTING:
            _refuse_nesting(text)


# --- From the tree that was read to the one that is written ---------------------------------------------------------

_PLURALS = {Kind.NUMBER: "numbers", Kind.TEXT: "text", Kind.BOOLEAN: "booleans", Kind.DATETIME: "dates"}
_HOW_TO_WRITE = {
    Kind.NUMBER: "a number such as 40",
    Kind.TEXT: "text such as 'Female'",
    Kind.BOOLEAN: "TRUE or FALSE",
    Kind.DATETIME: "a date such as '2020-01-31'",
}
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?", re.ASCII)


class _Operand(NamedTuple):
    """What stands on either side of a comparison: its SQL, its kind and, of a literal, its value."""

    tree: Any
    kind: Kind
    value: int | float | str | bool | datetime | None = None


def _cast(tree: Any, to: str) -> Any:
    # Built directly: `exp.cast` leaves out a cast inside of another, and the texts of conditions stand in ledgers.
    return exp.Cast(this=tree, to=exp.DataType.build(to))


def _literal(value: int | float | str | bool | datetime) -> _Operand:
    match value:
        case bool():  # before int, which it is too
            return _Operand(exp.Boolean(this=value), Kind.BOOLEAN, value)
        case datetime():
            written = exp.Literal.string(value.isoformat(sep=" "))
            return _Operand(_cast(written, "TIMESTAMP"), Kind.DATETIME, value)
        case float():  # from a string: 0.1 would be an exact decimal, with another arithmetic
            return _Operand(_cast(exp.Literal.string(repr(value)), "DOUBLE"), Kind.NUMBER, value)
        case int():
            magnitude = exp.Literal.number(abs(value))
            return _Operand(exp.Neg(this=magnitude) if value < 0 else magnitude, Kind.NUMBER, value)
    return _Operand(exp.Literal.string(value), Kind.TEXT, value)


class _Reader:
    """Writes a whitelisted tree anew, checks the kinds of its operands, and remembers the columns it met."""

    def __init__(self, text: str, kinds: Mapping[str, Kind]) -> None:
        self.text = text
        self.kinds = kinds if isinstance(kinds, Kinds) else Kinds(kinds)
        self.used: set[str] = set()

    def condition(self, node: Any) -> Any:
        node = node.unnest()
        match node.key:
            case "and" | "or":
                # Flat, and not by recursion: a chain of a thousand ORs is a tree a thousand levels deep.
                return _chained(type(node), [self.condition(part) for part in node.flatten(unnest=False)])
            case "not":
                return exp.Not(this=exp.Paren(this=self.condition(node.this)))
            case "is":
                column = self.operand(node.this)
                if node.expression.key != "null" or column.tree.key != "column":
                    self._refuse(node, "can't be asked: IS stands only between a column and NULL or NOT NULL")
                # A special value is no number, and not missing either.
                return exp.Is(this=self._special(column.tree) or column.tree, expression=exp.Null())
            case "in":
                return self._membership(node)
            case "between":
                value = self.operand(node.this)
                low = self._comparison(node, exp.GTE, value, self.operand(node.args["low"]))
                return _chained(exp.And, [low, self._comparison(node, exp.LTE, value, self.operand(node.args["high"]))])
            case "eq" | "neq" | "lt" | "lte" | "gt" | "gte":
                return self._comparison(node, type(node), self.operand(node.this), self.operand(node.expression))
        flag = self.operand(node)
        if flag.kind is not Kind.BOOLEAN:
            self._refuse(node, f"holds {_PLURALS[flag.kind]} and is no condition: compare it with something")
        return flag.tree

    def operand(self, node: Any) -> _Operand:
        node = node.unnest()
        match node.key:
            case "column":
                return self._column(node.this.this)
            case "literal":
                return _literal(node.this if node.is_string else self._number(node))
            case "boolean":
                return _literal(bool(node.this))
            case "neg":
                value = self.operand(node.this).value
                if type(value) not in (int, float):
                    self._refuse(node, "has a sign, which only a number may have: multiply by -1 instead")
                return _literal(-value)  # type: ignore[operator]
            case "cast":  # DATE '…' and TIMESTAMP '…', which sqlglot reads as casts; real casts fell at the tokens
                typed = node.args["to"].this.name
                if typed not in ("DATE", "TIMESTAMP") or node.this.key != "literal" or not node.this.is_string:
                    allowed = "the only typed literals are DATE '…' and TIMESTAMP '…'"
                    self._refuse(node, f"isn't part of the language: {allowed}")
                return self._date(node.this.this)
            case "add" | "sub" | "mul":
                return self._arithmetic(node)
            case "null":
                why = "can't be compared: use IS NULL or IS NOT NULL"
            case _:
                why = "can't be compared or computed with: join conditions by AND, OR and NOT"
        return self._refuse(node, why)

    def _refuse(self, node: Any, why: str) -> NoReturn:
        _refuse(self.text, node.sql(), why)

    def _membership(self, node: Any) -> Any:
        if not node.expressions:
            self._refuse(node, "has an empty list: IN needs at least one value")
        value = self.operand(node.this)
        tests = [self._comparison(node, exp.EQ, value, self.operand(item)) for item in node.expressions]
        if len({test.this.key for test in tests}) > 1:
            self._refuse(node, "reads one string both as text and as a date: write DATE '…'")
        # Special values are asked of other texts than numbers are: then there are two lists.
        sides: dict[str, list[Any]] = {}
        for test in tests:
            sides.setdefault(test.this.sql(), []).append(test)
        lists = [exp.In(this=side[0].this, expressions=[t.expression for t in side]) for side in sides.values()]
        return lists[0] if len(lists) == 1 else _chained(exp.Or, lists)

    def _comparison(self, node: Any, operation: type[Any], left: _Operand, right: _Operand) -> Any:
        left, right = self._as_special(node, operation, left, right)
        left, right = self._as_date(left, right), self._as_date(right, left)
        if left.kind is not right.kind:
            kind = left.kind if left.value is None else right.kind
            both = f"{_PLURALS[left.kind]} with {_PLURALS[right.kind]}"
            self._refuse(node, f"compares {both}: write {_HOW_TO_WRITE[kind]}")
        if operation not in (exp.EQ, exp.NEQ) and left.kind in (Kind.TEXT, Kind.BOOLEAN):
            # Alphabetical order would be wrong for an ordinal column, and it differs between databases' collations.
            self._refuse(node, f"puts {_PLURALS[left.kind]} in order, and there is none: use =, <> or IN")
        # Copies, since a node has one parent and the value of BETWEEN and IN is compared more than once.
        return operation(this=left.tree.copy(), expression=right.tree.copy())

    def _special(self, tree: Any) -> Any:
        """Where the special values of a column stand as texts; None for a column that has none."""
        if tree.key != "column" or not self.kinds.special.get(tree.name):
            return None
        return exp.Column(this=exp.Identifier(this=special_name(tree.name), quoted=True))

    def _as_special(
        self, node: Any, operation: type[Any], left: _Operand, right: _Operand
    ) -> tuple[_Operand, _Operand]:
        """`income = 'N'` and `income <> -99` ask for special values; all else asks for numbers, and no special value
        is one: a comparison with it is unknown."""
        for column, other, turned in ((left, right, False), (right, left, True)):
            place = self._special(column.tree)
            if place is None or other.value is None or isinstance(other.value, bool | datetime):
                continue
            known = self.kinds.special[column.tree.name]
            if operation in (exp.EQ, exp.NEQ) and special_text(other.value) in known:
                sides = _Operand(place, Kind.TEXT), _literal(special_text(other.value))
                return (sides[1], sides[0]) if turned else sides
            if isinstance(other.value, str) and not (column.kind is Kind.DATETIME and _DATE.fullmatch(other.value)):
                listed = ", ".join(known)
                self._refuse(node, f"asks for no special value of {column.tree.name}, which are {listed}: use = or <>")
        return left, right

    def _as_date(self, operand: _Operand, other: _Operand) -> _Operand:
        """A string beside a date is read as a date."""
        if other.kind is Kind.DATETIME and isinstance(operand.value, str):
            return self._date(operand.value)
        return operand

    def _date(self, written: str) -> _Operand:
        try:
            if _DATE.fullmatch(written):
                return _literal(datetime.fromisoformat(written))
        except ValueError:
            pass
        _refuse(self.text, written, "isn't a date: write '2020-01-31' or '2020-01-31 18:30:00'")

    def _column(self, name: str) -> _Operand:
        if name not in self.kinds and name in self.kinds.rebuilt:
            source = self.kinds.rebuilt[name]
            _refuse(self.text, name, f"is rebuilt from {source} and not modelled itself: ask about {source}")
        if name in self.kinds.identifiers:
            _refuse(self.text, name, "is an identifier, which nobody may ask about: leave it out")
        if name not in self.kinds:
            _refuse(self.text, name, f"is not a column of the schema: {_advice(name, list(self.kinds))}")
        self.used.add(name)
        return _Operand(exp.Column(this=exp.Identifier(this=name, quoted=True)), self.kinds[name])

    def _number(self, node: Any) -> int | float:
        if not _NUMBER.fullmatch(node.this):
            self._refuse(node, "isn't a number: write 40, -0.5 or 1e6")
        number = float(node.this)
        if not math.isfinite(number):
            self._refuse(node, "is too large: a number must be below 1.8e308")
        # Beyond 64 bits an integer would have a type of its own in every database.
        if node.this.isdecimal() and int(node.this) < 2**63:
            return int(node.this)
        return number

    def _arithmetic(self, node: Any) -> _Operand:
        left, right = self.operand(node.this), self.operand(node.expression)
        if left.kind is Kind.DATETIME and node.key in ("add", "sub"):
            return self._shift(node, left, right.value)
        if left.kind is not Kind.NUMBER or right.kind is not Kind.NUMBER:
            both = f"{_PLURALS[left.kind]} with {_PLURALS[right.kind]}"
            self._refuse(node, f"computes {both}: use numbers, or a date and whole days as in date + 3")
        # As doubles: an integer type of the engine could overflow on a row, and its decimals would round otherwise.
        computed = type(node)(this=_cast(left.tree, "DOUBLE"), expression=_cast(right.tree, "DOUBLE"))
        return _Operand(exp.Paren(this=computed), Kind.NUMBER)

    def _shift(self, node: Any, date: _Operand, days: object) -> _Operand:
        if type(days) is not int or abs(days) > MAX_DAYS:
            self._refuse(node, f"must move a date by a whole number of days up to {MAX_DAYS:,}, as in date + 3")
        if node.key == "sub":
            days = -days
        interval = exp.Interval(this=exp.Literal.string(str(days)), unit=exp.Var(this="DAY"))
        moved = exp.Add(this=_cast(date.tree, "TIMESTAMP"), expression=interval)
        return _Operand(exp.Paren(this=moved), Kind.DATETIME)


def _chained(connector: type[Any], conditions: Sequence[Any]) -> Any:
    wrapped = [exp.Paren(this=condition) for condition in conditions]
    return reduce(lambda left, right: connector(this=left, expression=right), wrapped)


def _advice(name: str, columns: Sequence[str]) -> str:
    """Likely meanings, among them a hyphenated name that was typed without its quotes."""
    begun = [column for column in columns if re.match(re.escape(name.lower()) + r"\W", column.lower())]
    close = list(dict.fromkeys([*begun, *close_names(name, columns)]))[:3]
    if close:
        return f"perhaps you mean {' or '.join(map(_written, close))}"
    listed = [*map(_written, columns[:8]), *["…"][: len(columns) > 8]]
    return f"it has {', '.join(listed)} (and text goes in single quotes)"


def _written(name: str) -> str:
    if _WORD.fullmatch(name):
        return name
    return '"' + printable(name).replace('"', '""') + '"'
