"""Pairs that differ by one odd row or one odd person: what stands in frames and registers, and not in textbooks.

One value decides how pandas stores a column, so that a neighbour may have another storage type. People have no id, one
that is written in several ways, or more rows than count. Tables are wide, so that one selection picks several sets. All
are looked at from inside alone: how far an exact answer moves needs no game.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from understudy.boundary.schema.schema import ADD_REMOVE, REPLACE_ONE, Schema
from understudy.lab.audits.pairs.pair import (
    ARROW,
    COLUMNS,
    EQUAL,
    FIRST,
    OTHER,
    PANDAS,
    Pair,
    Row,
    schema_of,
    spread,
)

ROWS = 20
PERSON = "person"
ODD, PADDED, LOST, WIDE = "odd values", "padded id", "lost id", "many columns"
"""Names of pairs that some mutant can't pass."""
CROWD = 60_000
"""So many rows that, at an epsilon of 1, `aim` picks two sets of eight columns at once."""
EVEN_COLUMNS = tuple(f"trait{i}" for i in range(4))

ODD_COLUMNS = """
[columns.colour]
type = "categorical"
values = ["red", "green", "blue", "violet"]
[columns.weight]
type = "number"
min = 0
max = 100
bins = 8
missing = true
[columns.size]
type = "integer"
min = 0
max = 3
missing = true
[columns.ripe]
type = "categorical"
values = ["True", "False"]
missing = true
[columns.price]
type = "number"
min = 0
max = 10
bins = 4
missing = true
[columns.rings]
type = "integer"
min = 0
max = 3
missing = true
[columns.picked]
type = "datetime"
min = 2020-03-01
max = 2020-03-31
bins = 31
missing = true
"""
DATED_COLUMNS = COLUMNS + '[columns.sown]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nmissing = true\n'
PEOPLE_COLUMNS = COLUMNS + f'[columns.{PERSON}]\ntype = "identifier"\n'
WIDE_COLUMNS = COLUMNS + "".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = 2\n' for c in EVEN_COLUMNS)


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
    crowd = rows * (CROWD // len(rows))
    return Pair.of(WIDE, words, schema_of(WIDE_COLUMNS, neighbours), rows=crowd, extra=extra, place=FIRST)


def people_pairs(canary: str = "p") -> list[Pair]:
    """Neighbours by person, under both relations whichever was asked for. Ids that are texts begin with the canary."""
    known, new = _registered(ROWS, canary), f"{canary}99"
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
            [*_numbered(ROWS), EQUAL | {PERSON: None}],
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


def _registered(rows: int, canary: str) -> list[Row]:
    """Half as many people as rows, and one of them once more, padded."""
    people = [row | {PERSON: f"{canary}{i // 2}"} for i, row in enumerate(_mixed(rows))]
    return [row | {PERSON: f"{canary}0 "} for row in people[-1:]] + people[:-1]


def _numbered(rows: int) -> list[Row]:
    return [row | {PERSON: i} for i, row in enumerate(_mixed(rows))]


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
