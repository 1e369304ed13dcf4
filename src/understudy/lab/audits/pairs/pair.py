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

    @property
    def facts(self) -> PairFacts:
        return PairFacts(self.name, self.difference)

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        made = _FRAMES[self.frame]
        return made(self.first), made(self.second)


def pairs(neighbours: str = ADD_REMOVE, keys: bool = True) -> list[Pair]:
    """All pairs, the worst one first; `keys` adds one whose categories are private, which needs a δ."""
    varied, lonely = spread(ROWS), EQUAL | {"size": 3}
    made: list[tuple[str, str, str, Sequence[Row], Row, int]] = [
        ("equal rows", "among rows that are all alike, one that differs in everything", COLUMNS, EQUALS, OTHER, LAST),
        ("first in line", "a row before all others, which moves them on by one", COLUMNS, varied, OTHER, FIRST),
        ("crowd", "one more in a crowd, in which columns follow one another", COLUMNS, _linked(CROWD), OTHER, LAST),
        ("unique category", "a category that nobody else has", COLUMNS, varied, EQUAL | {"colour": "violet"}, LAST),
        ("numeric outlier", "a number far above all others", COLUMNS, varied, EQUAL | {"weight": 100.0}, LAST),
        ("constant column", "a column that was constant", COLUMNS, _constant(ROWS), EQUAL | {"ripe": False}, LAST),
        ("lonely leaf", "common values in a combination that is new", COLUMNS, _linked(ROWS), lonely, LAST),
    ]
    if keys:
        made.append(("private category", "a new category, where none is public", PRIVATE_COLUMNS, _many(), OTHER, LAST))
    return [_pair(neighbours, *of) for of in made]


def switch_pair(neighbours: str = ADD_REMOVE) -> Pair:
    """Columns that are constant in a crowd, and one row that moves six of them: it alone decides which depend.

    Scores that are divided by an entropy leap from nothing to the most there is, however many rows there are.
    """
    off, on = dict.fromkeys(SWITCH_NAMES, 0), dict.fromkeys(SWITCH_NAMES[::3], 1)
    words = "six of sixteen columns, constant in a crowd, move together in one row"
    return _pair(neighbours, "switches", words, SWITCHES, [off] * (2 * CROWD), off | on, LAST)


def named(name: str, neighbours: str, keys: bool = True) -> Pair:
    for pair in (*pairs(neighbours, keys), switch_pair(neighbours)):
        if pair.name == name:
            return pair
    raise InputError(f"pair {name!r} is not known", name)


def _pair(
    neighbours: str, name: str, difference: str, columns: str, rows: Sequence[Row], extra: Row, place: int
) -> Pair:
    """One row added, or one put in another's place."""
    schema = Schema.loads(f'neighbours = "{neighbours}"\n{columns}')
    second = neighbours_by(rows, extra, place, replaced=neighbours == REPLACE_ONE)
    return Pair(name, difference, schema, tuple(rows), second, extra)


def neighbours_by(rows: Sequence[Row], extra: Row, place: int, *, replaced: bool) -> tuple[Row, ...]:
    """The rows with one more at that place, or with another one there."""
    kept = list(rows)
    if replaced:
        kept.pop(place)
    at = len(kept) if place < 0 else place
    return (*kept[:at], extra, *kept[at:])


def spread(rows: int) -> list[Row]:
    colours = ("red", "green", "blue")
    return [
        {"colour": colours[i * 3 // rows], "weight": 10.0 + i, "size": i % 3, "ripe": i % 2 == 1} for i in range(rows)
    ]


def _constant(rows: int) -> list[Row]:
    return [row | {"ripe": True} for row in spread(rows)]


def _linked(rows: int) -> list[Row]:
    """Columns that follow one another; the combination of the extra row is in none of them."""
    return [
        {"colour": "red" if i % 2 else "green", "weight": 12.5, "size": 1 if i % 2 else 3, "ripe": True}
        for i in range(rows)
    ]


def _many() -> list[Row]:
    return [EQUAL | {"colour": "red" if i % 2 else "green"} for i in range(2 * ROWS)]


def _arrow(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: pa.array([row[name] for row in rows]) for name in rows[0]})


def _pandas(rows: Sequence[Mapping[str, Any]]) -> Any:
    """As pandas stores these values when nobody says how."""
    import pandas as pd

    return pd.DataFrame({name: pd.Series([row[name] for row in rows]) for name in rows[0]})


_FRAMES: dict[str, Callable[[Sequence[Mapping[str, Any]]], Any]] = {ARROW: _arrow, PANDAS: _pandas}
