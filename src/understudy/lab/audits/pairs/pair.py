"""Pairs of neighbouring tables, each made to betray one kind of mistake. They are made up: no private row is read.

These have one row more or another one, in Arrow tables. `hostile` has those whose rows and people are odd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.schema import ADD_REMOVE, REPLACE_ONE, Schema
from understudy.errors import InputError
from understudy.lab.audits.result import PairFacts

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
COLUMNS = """
[columns.colour]
type = "categorical"
values = ["red", "green", "blue", "violet"]
[columns.weight]
type = "number"
min = 0
max = 100
bins = 8
[columns.size]
type = "integer"
min = 0
max = 3
[columns.ripe]
type = "boolean"
"""
PRIVATE_COLUMNS = COLUMNS.replace('values = ["red", "green", "blue", "violet"]', 'values = "private"')
SWITCH_NAMES = tuple(f"s{i}" for i in range(16))
SWITCHES = "".join(f'[columns.{name}]\ntype = "integer"\nmin = 0\nmax = 1\n' for name in SWITCH_NAMES)
TARGET = "ripe"
EQUAL: Row = {"colour": "red", "weight": 12.5, "size": 1, "ripe": True}
OTHER: Row = {"colour": "violet", "weight": 99.0, "size": 3, "ripe": False}
ROWS, CROWD = 20, 4_000
EQUALS = (EQUAL,) * ROWS
FIRST, LAST = 0, -1
ARROW, PANDAS = "pyarrow", "pandas"


@dataclass(frozen=True)
class Pair:
    """Two tables that one unit tells apart, with the public schema of both."""

    name: str
    difference: str
    schema: Schema
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    extra: Row
    """The row that only the second table has; the first of several."""
    frame: str = ARROW
    """The kind of frame in which the rows come."""

    @classmethod
    def of(
        cls,
        name: str,
        difference: str,
        schema: Schema,
        *,
        rows: Sequence[Row],
        extra: Row,
        place: int = LAST,
        frame: str = ARROW,
    ) -> Pair:
        """The rows with one more at that place, or under replace-one with another one there."""
        kept = list(rows)
        if schema.neighbours == REPLACE_ONE:
            kept.pop(place)
        at = len(kept) if place < 0 else place
        return cls(name, difference, schema, tuple(rows), (*kept[:at], extra, *kept[at:]), extra, frame=frame)

    @property
    def facts(self) -> PairFacts:
        return PairFacts(self.name, self.difference)

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        made = _FRAMES[self.frame]
        return made(self.first), made(self.second)


def schema_of(columns: str, neighbours: str) -> Schema:
    return Schema.loads(f'neighbours = "{neighbours}"\n{columns}')


def pairs(neighbours: str = ADD_REMOVE, keys: bool = True) -> list[Pair]:
    """All pairs, the worst one first; `keys` adds one whose categories are private, which needs a δ."""
    varied, constant = spread(ROWS), [row | {"ripe": True} for row in spread(ROWS)]
    schema, private = schema_of(COLUMNS, neighbours), schema_of(PRIVATE_COLUMNS, neighbours)

    def pair(name: str, difference: str, rows: Sequence[Row], extra: Row, place: int = LAST) -> Pair:
        return Pair.of(name, difference, schema, rows=rows, extra=extra, place=place)

    made = [
        pair("equal rows", "among rows that are all alike, one that differs in everything", EQUALS, OTHER),
        pair("first in line", "a row before all others, which moves them on by one", varied, OTHER, place=FIRST),
        pair("crowd", "one more in a crowd, in which columns follow one another", _linked(CROWD), OTHER),
        pair("unique category", "a category that nobody else has", varied, EQUAL | {"colour": "violet"}),
        pair("numeric outlier", "a number far above all others", varied, EQUAL | {"weight": 100.0}),
        pair("constant column", "a column that was constant", constant, EQUAL | {"ripe": False}),
        pair("lonely leaf", "common values in a combination that is new", _linked(ROWS), EQUAL | {"size": 3}),
    ]
    if keys:
        two = [EQUAL | {"colour": "red" if i % 2 else "green"} for i in range(2 * ROWS)]
        words = "a new category, where none is public"
        made.append(Pair.of("private category", words, private, rows=two, extra=OTHER))
    return made


def switch_pair(neighbours: str = ADD_REMOVE) -> Pair:
    """Columns that are constant in a crowd, and one row that moves six of them: it alone decides which depend.

    Scores that are divided by an entropy leap from nothing to the most there is, however many rows there are.
    """
    off, on = dict.fromkeys(SWITCH_NAMES, 0), dict.fromkeys(SWITCH_NAMES[::3], 1)
    words = "six of sixteen columns, constant in a crowd, move together in one row"
    return Pair.of("switches", words, schema_of(SWITCHES, neighbours), rows=[off] * (2 * CROWD), extra=off | on)


def named(name: str, neighbours: str, keys: bool = True) -> Pair:
    for pair in (*pairs(neighbours, keys), switch_pair(neighbours)):
        if pair.name == name:
            return pair
    raise InputError(f"pair {name!r} is not known", name)


def spread(rows: int) -> list[Row]:
    colours = ("red", "green", "blue")
    return [
        {"colour": colours[i * 3 // rows], "weight": 10.0 + i, "size": i % 3, "ripe": i % 2 == 1} for i in range(rows)
    ]


def _linked(rows: int) -> list[Row]:
    """Columns that follow one another; the combination of the extra row is in none of them."""
    return [
        {"colour": "red" if i % 2 else "green", "weight": 12.5, "size": 1 if i % 2 else 3, "ripe": True}
        for i in range(rows)
    ]


def _arrow(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: pa.array([row[name] for row in rows]) for name in rows[0]})


def _pandas(rows: Sequence[Mapping[str, Any]]) -> Any:
    """As pandas stores these values when nobody says how."""
    import pandas as pd

    return pd.DataFrame({name: pd.Series([row[name] for row in rows]) for name in rows[0]})


_FRAMES: dict[str, Callable[[Sequence[Mapping[str, Any]]], Any]] = {ARROW: _arrow, PANDAS: _pandas}
