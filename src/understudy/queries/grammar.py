"""The SQL of a metered query, read token by token:

    SELECT [columns,] aggregates FROM table [WHERE condition] [GROUP BY columns]
    aggregate   count(*) | count(DISTINCT unit) | sum(x) | avg(x) | median(x) | quantile(x, 0.9)   [AS name]

sqlglot cuts the text into tokens. Everything but the condition is read here, by this grammar and nothing else; the
condition is an expression of `schema.expression`. What comes out is names and numbers: no piece of the typed text is
ever handed on as SQL.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from understudy.errors import InputError
from understudy.parameters import printable

MAX_CHARACTERS = 10_000
"""Longer texts are refused before they are tokenized: no real query comes near it."""
ALLOWED = (
    "write SELECT columns, aggregates FROM table WHERE condition GROUP BY columns, with the aggregates count(*), "
    "count(DISTINCT unit), sum(x), avg(x), median(x) and quantile(x, 0.9)"
)

_WORD = re.compile(r"[^\W\d]\w*")
_SHARE = re.compile(r"\d+\.?\d*", re.ASCII)
_RESERVED = frozenset(
    ("SELECT", "FROM", "WHERE", "GROUP", "BY", "DISTINCT", "AS", "AND", "OR", "NOT", "IN", "IS", "NULL")
)
"""Words that are no names unless they stand in double quotes; a name of any other word is looked up, and not found."""


@dataclass(frozen=True)
class SelectItem:
    """One aggregate as it was written; `function` is in lower case."""

    function: str
    column: str | None = None
    distinct: bool = False
    share: float | None = None
    name: str | None = None


@dataclass(frozen=True)
class SelectStatement:
    """A query as it was written: names that nobody has looked up yet."""

    text: str
    columns: tuple[str, ...]
    items: tuple[SelectItem, ...]
    table: str
    where: str | None
    group: tuple[str, ...]


def read(text: str) -> SelectStatement:
    """Reads a query, or refuses it in one sentence.

    >>> read("SELECT sex, count(*) FROM people WHERE age > 40 GROUP BY sex").where
    'age > 40'
    """
    if not isinstance(text, str):
        raise InputError(f"a query must be a text, not a {type(text).__name__}; {ALLOWED}", text)
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the query has {len(text)} characters, the most is {MAX_CHARACTERS}; split it", text)
    return _Reader(text).statement()


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


class _Reader:
    """One pass over the tokens; each method takes what it reads and leaves the rest."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenized()
        self._next = 0

    def statement(self) -> SelectStatement:
        self._take("SELECT")
        columns, items = self._selected()
        self._take("FROM")
        table = self._name("the table")
        where = self._condition() if self._accept("WHERE") else None
        group = self._names() if self._accept("GROUP BY") else ()
        if self._token is not None:
            self._refuse(self._here, "isn't part of the language")
        return SelectStatement(self._text, columns, items, table, where, group)

    def _tokenized(self) -> list[Any]:
        import sqlglot
        from sqlglot.errors import SqlglotError

        try:
            tokens = list(sqlglot.tokenize(self._text))
        except SqlglotError:
            raise InputError(
                f"the query {_short(self._text)} has a quote or a comment that isn't closed", self._text
            ) from None
        if not tokens:
            raise InputError(f"the query {_short(self._text)} is empty; {ALLOWED}", self._text)
        # sqlglot hangs a comment on the token before it, where the grammar below would never see it.
        if any(token.comments for token in tokens):
            raise InputError(f"the query {_short(self._text)} has a comment in it; leave it out", self._text)
        return tokens

    @property
    def _token(self) -> Any:
        """The next token; None at the end."""
        if self._next == len(self._tokens):
            return None
        return self._tokens[self._next]

    @property
    def _here(self) -> str:
        """The next token as it was written."""
        token = self._token
        if token is None:
            return ""
        return self._text[token.start : token.end + 1]

    @property
    def _symbol(self) -> str:
        """The next token in upper case if it is a word or a sign; what stands inside quotes is no syntax."""
        token = self._token
        if token is None or token.token_type.name in ("STRING", "IDENTIFIER", "NUMBER"):
            return ""
        return " ".join(token.text.upper().split())

    def _accept(self, symbol: str) -> bool:
        found = self._symbol == symbol
        self._next += found
        return found

    def _take(self, symbol: str) -> None:
        if not self._accept(symbol):
            self._refuse(self._here, f"stands where {symbol} must")

    def _refuse(self, piece: str, why: str) -> NoReturn:
        where = "the end of the query"
        if piece:
            where = f"{_short(piece)} in the query"
        raise InputError(f"{where} {_short(self._text)} {why}; {ALLOWED}", self._text)

    def _name(self, what: str) -> str:
        token = self._token
        # A reserved word in double quotes is a name like any other, as in SQL.
        quoted_name = token is not None and token.token_type.name == "IDENTIFIER" and token.text
        plain = _WORD.fullmatch(self._symbol) is not None and self._symbol not in _RESERVED
        if token is None or not (quoted_name or plain):
            self._refuse(self._here, f"stands where {what} must")
        self._next += 1
        return str(token.text)

    def _names(self) -> tuple[str, ...]:
        names = [self._name("a column")]
        while self._accept(","):
            names.append(self._name("a column"))
        return tuple(names)

    def _selected(self) -> tuple[tuple[str, ...], tuple[SelectItem, ...]]:
        columns: list[str] = []
        items: list[SelectItem] = []
        while True:
            name, called = self._name("a column or an aggregate"), self._accept("(")
            if called:
                items.append(self._aggregate(name.lower()))
            elif items:
                self._refuse(name, "is a column behind an aggregate: name columns first")
            else:
                columns.append(name)
            if not self._accept(","):
                return tuple(columns), tuple(items)

    def _aggregate(self, function: str) -> SelectItem:
        readers: dict[str, Callable[[], SelectItem]] = {
            "count": self._count,
            "sum": lambda: SelectItem("sum", self._name("a column")),
            "avg": lambda: SelectItem("avg", self._name("a column")),
            "median": lambda: SelectItem("quantile", self._name("a column"), share=0.5),
            "quantile": self._quantile,
        }
        if function not in readers:
            self._refuse(function, "is a function that there isn't")
        item = readers[function]()
        self._take(")")
        name = self._name("a name") if self._accept("AS") else None
        return dataclasses.replace(item, name=name)

    def _count(self) -> SelectItem:
        if self._accept("*"):
            return SelectItem("count")
        self._take("DISTINCT")
        return SelectItem("count", self._name("the unit's column"), distinct=True)

    def _quantile(self) -> SelectItem:
        column = self._name("a column")
        self._take(",")
        written = self._here
        if not (_SHARE.fullmatch(written) and 0 <= float(written) <= 1):
            self._refuse(written, "stands where a share from 0 to 1 must")
        self._next += 1
        return SelectItem("quantile", column, share=float(written))

    def _condition(self) -> str:
        """The text up to GROUP BY outside of parentheses, or to the end."""
        # Only its extent is found here. `schema.expression` reads it, and refuses what is no condition.
        first, depth = self._next, 0
        while self._token is not None and not (depth == 0 and self._symbol == "GROUP BY"):
            depth += (self._symbol == "(") - (self._symbol == ")")
            self._next += 1
        if first == self._next:
            self._refuse(self._here, "stands where a condition must")
        return self._text[self._tokens[first].start : self._tokens[self._next - 1].end + 1]


def _short(piece: str, length: int = 60) -> str:
    flat = printable(" ".join(piece.split()))
    if len(flat) > length:
        flat = flat[: length - 1] + "…"
    return f"«{flat}»"
