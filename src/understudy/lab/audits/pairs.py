"""Pairs of neighbouring tables, each made to betray one kind of mistake. They are made up: no private row is read.

The first ones have one row more, or another one, in Arrow tables; games are played on them. The others differ by one
odd row or one odd person, as frames and registers have them and textbooks don't. They are looked at from inside alone:
how far an exact answer moves needs no game.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from understudy.boundary.schema.schema import ADD_REMOVE, REPLACE_ONE, Schema
from understudy.errors import InputError
from understudy.lab.audits.result import PairFacts

Row = dict[str, Any]
COLUMNS = """
[columns]
colour = {type = "categorical", values = ["red", "green", "blue", "violet"]}
weight = {type = "number", min = 0, max = 100, bins = 8}
size = {type = "integer", min = 0, max = 3}
ripe = {type = "boolean"}
"""
PRIVATE_COLUMNS = COLUMNS.replace('values = ["red", "green", "blue", "violet"]', 'values = "private"')
SWITCH_NAMES = tuple(f"s{i}" for i in range(16))
SWITCHES = "[columns]\n" + "".join(f'{name} = {{type = "integer", min = 0, max = 1}}\n' for name in SWITCH_NAMES)
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
        second = list(rows)
        if schema.neighbours == REPLACE_ONE:
            second.pop(place)
        # `insert(-1, …)` would put it before the last row; of n + 1 places the last is n.
        second.insert(place % (len(second) + 1), extra)
        return cls(name, difference, schema, tuple(rows), tuple(second), extra, frame=frame)

    @property
    def facts(self) -> PairFacts:
        return PairFacts(self.name, self.difference)

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        return _framed(self.first, self.frame), _framed(self.second, self.frame)


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
        two = [EQUAL | {"colour": "green"}, EQUAL] * ROWS
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
    # A worker is told names, and makes the tables itself.
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
    return [EQUAL | {"colour": "green", "size": 3}, EQUAL] * (rows // 2)


def _framed(rows: Sequence[Row], frame: str) -> Any:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if frame == ARROW:
        import pyarrow as pa

        return pa.table(columns)
    import pandas as pd

    # As pandas stores these values when nobody says how: one odd value changes the storage type of its column.
    return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})


# --- odd rows and odd people

PERSON = "person"
# Names of pairs that some mutant can't pass (`Mutant.revealed_by`).
ODD, PADDED, LOST, WIDE = "odd values", "padded id", "lost id", "many columns"
# So many rows that, at an epsilon of 1, `aim` picks two sets of eight columns at once.
WIDE_CROWD = 60_000
EVEN_COLUMNS = tuple(f"trait{i}" for i in range(4))

ODD_COLUMNS = """
[columns]
colour = {type = "categorical", values = ["red", "green", "blue", "violet"]}
weight = {type = "number", min = 0, max = 100, bins = 8, missing = true}
size = {type = "integer", min = 0, max = 3, missing = true}
ripe = {type = "categorical", values = ["True", "False"], missing = true}
price = {type = "number", min = 0, max = 10, bins = 4, missing = true}
rings = {type = "integer", min = 0, max = 3, missing = true}
picked = {type = "datetime", min = 2020-03-01, max = 2020-03-31, bins = 31, missing = true}
"""
DATED_COLUMNS = COLUMNS + 'sown = {type = "datetime", min = 2020-01-01, max = 2020-12-31, missing = true}\n'
PEOPLE_COLUMNS = COLUMNS + f'{PERSON} = {{type = "identifier"}}\n'
WIDE_COLUMNS = COLUMNS + "".join(f'{c} = {{type = "integer", min = 0, max = 2}}\n' for c in EVEN_COLUMNS)


def odd_pair(neighbours: str) -> Pair:
    """One row has, in every column, a value that makes pandas store that column otherwise.

    None among truth values, a text among floats, None among whole numbers, another UTC offset: whoever reads a column
    by how it is stored reads all other rows anew.
    """
    extra = OTHER | {"weight": None, "size": None, "ripe": None, "price": "unknown", "rings": None}
    extra |= {"picked": datetime.datetime(2020, 3, 20, 12, tzinfo=_zone(2))}
    words = "in a pandas frame, a row whose values change how columns are stored"
    rows = [_typed(i) for i in range(ROWS)]
    return Pair.of(ODD, words, schema_of(ODD_COLUMNS, neighbours), rows=rows, extra=extra, frame=PANDAS)


def undated_pair(neighbours: str) -> Pair:
    """A column of dates in which nobody has one (pandas holds floats) until one person has."""
    rows = [row | {"sown": float("nan")} for row in _mixed(ROWS)]
    extra = OTHER | {"sown": datetime.datetime(2020, 6, 1)}
    words = "in a pandas frame, the only date of a column"
    return Pair.of("only date", words, schema_of(DATED_COLUMNS, neighbours), rows=rows, extra=extra, frame=PANDAS)


def wide_pair(neighbours: str) -> Pair:
    """Eight columns and a crowd: one selection picks several sets."""
    rows = [row | {c: (i >> j) % 3 for j, c in enumerate(EVEN_COLUMNS)} for i, row in enumerate(_mixed(120))]
    extra = OTHER | dict.fromkeys(EVEN_COLUMNS, 2)
    words = "one more in a crowd of eight columns, where several sets are picked at once"
    crowd = rows * (WIDE_CROWD // len(rows))
    return Pair.of(WIDE, words, schema_of(WIDE_COLUMNS, neighbours), rows=crowd, extra=extra, place=FIRST)


def people_pairs(canary: str = "p") -> list[Pair]:
    """Neighbours by person, under both relations whichever was asked for. Ids that are texts begin with the canary."""
    people = [row | {PERSON: f"{canary}{i // 2}"} for i, row in enumerate(_mixed(ROWS))]
    # Half as many people as rows, and one of them once more, padded.
    known, new = [people[-1] | {PERSON: f"{canary}0 "}, *people[:-1]], f"{canary}99"
    return [
        _person_pair(
            PADDED,
            "a person of five rows, two of which count, with an id that is written in five ways",
            known,
            [OTHER | {PERSON: text} for text in (new, f"{new} ", f" {new}", f"  {new}", f" {new} ")],
            max_rows=2,
        ),
        _person_pair(
            "marked id",
            "a person whose id is a mark for a missing one, as another's is",
            [*known, EQUAL | {PERSON: "?"}],
            [OTHER | {PERSON: "?"}],
        ),
        _person_pair(
            "no id",
            "in a pandas frame, a person without an id, as another is",
            [*(row | {PERSON: i} for i, row in enumerate(_mixed(ROWS))), EQUAL | {PERSON: None}],
            [OTHER | {PERSON: None}],
            frame=PANDAS,
        ),
        _replaced_person_pair(canary),
    ]


def _person_pair(
    name: str, difference: str, rows: Sequence[Row], person: Sequence[Row], max_rows: int = 1, frame: str = ARROW
) -> Pair:
    """One person more, who comes first: what they push out can be seen."""
    schema = _people_schema(ADD_REMOVE, max_rows)
    return Pair(name, difference, schema, tuple(rows), (*person, *rows), person[0], frame=frame)


def _replaced_person_pair(canary: str) -> Pair:
    """Somebody with an id becomes somebody without one: no row count is the same in both worlds for nothing."""
    rows = [row | {PERSON: f"{canary}{i}"} for i, row in enumerate(_mixed(ROWS))] + [EQUAL | {PERSON: None}]
    extra = OTHER | {PERSON: None}
    words = "a person with an id becomes one without"
    return Pair(LOST, words, _people_schema(REPLACE_ONE, 1), tuple(rows), (extra, *rows[1:]), extra)


def _people_schema(neighbours: str, max_rows: int) -> Schema:
    unit = f'[unit]\ncolumn = "{PERSON}"\nmax_rows = {max_rows}\n'
    return Schema.loads(f'neighbours = "{neighbours}"\nmissing_values = ["?"]\n{unit}{PEOPLE_COLUMNS}')


def _mixed(rows: int) -> list[Row]:
    return [row | {"size": (i // 2) % 4} for i, row in enumerate(spread(rows))]


def _typed(place: int) -> Row:
    """Truth values where numbers and labels are declared, floats, whole numbers, and dates soon after midnight."""
    odd = place % 2 == 1
    moment = datetime.datetime(2020, 3, 10, 0, 30, tzinfo=_zone(1))
    colour = ("red", "green", "blue")[place % 3]
    traits = {"price": place % 10 + 0.5, "rings": place % 4, "picked": moment}
    return {"colour": colour, "weight": odd, "size": odd, "ripe": odd} | traits


def _zone(hours: int) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(hours=hours))
