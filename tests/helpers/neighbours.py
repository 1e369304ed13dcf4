"""Neighbouring tables, generated, and how far their exact answers are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.tables import opened
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table

ADD_REMOVE, REPLACE_ONE, PERSON = "add-remove", "replace-one", "person"
CAP = 3
HEADS = {
    ADD_REMOVE: "",
    REPLACE_ONE: 'neighbours = "replace-one"\n',
    PERSON: f'[unit]\ncolumn = "person"\nmax_rows = {CAP}\n',
}
COLUMNS = """
[columns.person]
type = "identifier"
[columns.age]
type = "integer"
min = 0
max = 5
[columns.pay]
type = "number"
min = 0
max = 10
bins = 4
missing = true
[columns.city]
type = "categorical"
values = ["A", "B"]
[columns.shop]
type = "categorical"
values = ["A", "B"]
other = "B"
missing = true
[columns.born]
type = "datetime"
min = 2000-01-01
max = 2000-12-31
bins = 3
[columns.well]
type = "boolean"
[columns.job]
type = "categorical"
values = "private"
"""
MODELLED = ("age", "pay", "city", "shop", "born", "well")
# Declared, undeclared, out of range, unreadable and absent values; every column is read as text, so any may stand here.
ODD = (None, "", "nan", "NaN", "inf", "-inf", "1e400", "?", "Zürich")
VALUES = {
    "age": ("0", "1", "3", "5", "2.5", "-7", "1e9", *ODD),
    "pay": ("0", "2.5", "9.99", "10", "-3", "1e9", *ODD),
    "city": ("A", "B", " A", "a", *ODD),
    "shop": ("A", "B", "C", *ODD),
    "born": ("2000-01-01", "2000-06-30", "1850-01-01", "2000-02-30", "infinity", *ODD),
    "well": ("true", "no", "1", "maybe", *ODD),
    "job": ("nurse", "cook", "the only spy", *ODD),
}
PEOPLE = ("p", "q", "r", None)
Row = tuple[str | None, ...]
NAMES = ("person", *VALUES)


@cache
def schema_of(relation: str) -> Schema:
    return Schema.loads(HEADS[relation] + COLUMNS)


def open_rows(rows: Sequence[Row], relation: str, kind: str, folder: Path) -> Table:
    import pyarrow as pa

    if kind == "csv":
        return opened("csv", dict(zip(NAMES, zip(*rows, strict=True), strict=True)), schema_of(relation), folder)
    arrays = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(NAMES))]
    return opened("pyarrow", dict(zip(NAMES, arrays, strict=True)), schema_of(relation), folder)


def a_row(person: Any) -> st.SearchStrategy[Row]:
    return st.tuples(person, *(st.sampled_from(values) for values in VALUES.values()))


ANYONE = a_row(st.sampled_from(PEOPLE))
TABLES = st.lists(ANYONE, min_size=3, max_size=8)


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables."""

    relation: str
    first: tuple[Row, ...]
    second: tuple[Row, ...]


def inserted(rows: Sequence[Row], new: Sequence[Row], places: Sequence[int]) -> tuple[Row, ...]:
    table = list(rows)
    for row, place in zip(new, places, strict=True):
        table.insert(place % (len(table) + 1), row)
    return tuple(table)


@st.composite
def pairs(draw: Any, relation: str) -> Pair:
    rows = draw(TABLES)
    if relation == REPLACE_ONE:
        place = draw(st.integers(0, len(rows) - 1))
        return Pair(relation, tuple(rows), (*rows[:place], draw(ANYONE), *rows[place + 1 :]))
    most = 5 if relation == PERSON else 1  # more rows than the cap lets count
    new = draw(st.lists(a_row(st.just("newcomer")), min_size=1, max_size=most))
    places = draw(st.lists(st.integers(0, 20), min_size=len(new), max_size=len(new)))
    rows = spread_out(rows) if relation == PERSON else rows
    return Pair(relation, tuple(rows), inserted(rows, new, places))


def spread_out(rows: Sequence[Row]) -> list[Row]:
    """Two persons at least, so that both tables have two rows that count."""
    return [("p", *rows[0][1:]), ("q", *rows[1][1:]), *rows[2:]]


@dataclass(frozen=True)
class Statistic:
    """An exact answer with the spend that pays for its noise, and the norm in which that spend measures."""

    value: NDArray[np.float64]
    spend: Spend

    @property
    def order(self) -> float:
        return {"discrete-laplace": 1.0, "exponential": math.inf, "public": math.inf}.get(self.spend.mechanism, 2.0)


def excess(first: NDArray[np.float64], second: NDArray[np.float64], order: float, declared: float) -> float:
    """By how much a change is above what is declared; integers and grid points subtract exactly."""
    return float(np.linalg.norm((first - second).ravel(), order)) - declared * (1 + 1e-12)


def plain(person: str, city: str, pay: str) -> Row:
    return (person, "3", pay, city, "A", "2000-06-30", "true", "nurse")


def worst_pair(relation: str) -> Pair:
    """A pair that uses up what is declared: one cell gains all that it may, or a row moves from one cell to another."""
    rest = (plain("p", "A", "1"), plain("q", "A", "9"), plain("r", "B", "1"))
    if relation == REPLACE_ONE:
        strange = ("n", "0", "9", "B", "C", "2000-01-01", "no", "cook")
        return Pair(relation, (*rest, plain("n", "A", "1")), (*rest, strange))
    return Pair(relation, rest, rest + (plain("n", "A", "9"),) * (4 if relation == PERSON else 1))
