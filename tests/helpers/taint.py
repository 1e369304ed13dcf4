"""One row replaced by a hostile one while every answer is pinned: what else changes?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.tables import opened
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table
from understudy.lab.audits.subjects import outside as plain_outside
from understudy.releases.release import Release
from understudy.releases.synthetic_table import to_native

PUBLIC = """
missing_values = ["?"]
[columns.name]
type = "identifier"
[columns.number]
type = "identifier"
made_up = "P{:04d}"
[columns.age]
type = "integer"
min = 17
max = 90
[columns.pay]
type = "number"
min = 0
max = 1000
bins = 8
decimals = 2
missing = true
[columns.city]
type = "categorical"
values = ["A", "B", "C"]
[columns.seen]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 4
[columns.well]
type = "boolean"
missing = true
[[constraints]]
if = "age < 18"
then = "city = 'A'"
"""
PRIVATE = PUBLIC.replace('values = ["A", "B", "C"]', 'values = "private"').replace(
    "min = 0\nmax = 1000\nbins = 8", 'min = "private"\nmax = "private"\nbins = 8'
)
ROWS = 160
HONEST: dict[str, list[Any]] = {
    "name": [f"person {i}" for i in range(ROWS)],
    "number": [str(i) for i in range(ROWS)],
    "age": [20 + i % 60 for i in range(ROWS)],
    "pay": [None if i % 9 == 0 else float(64 + 5 * (i % 150)) for i in range(ROWS)],
    "city": ["AB"[i % 2] for i in range(ROWS)],
    "seen": [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(ROWS)],
    "well": [i % 3 == 0 for i in range(ROWS)],
}
ORDINARY = {
    "name": "x",
    "number": "7",
    "age": 40,
    "pay": 100.0,
    "city": "A",
    "seen": "2020-06-30",
    "well": True,
}
HOSTILE: dict[str, dict[str, Any]] = {
    "a category never seen": {"city": "Atlantis"},
    "numbers out of range": {"age": 10**6, "pay": -1e12},
    "a missing value where none is declared": {"age": None, "city": None, "seen": None},
    "not a number": {"age": float("nan"), "pay": float("nan")},
    "infinity": {"age": float("inf"), "pay": float("-inf")},
    "a bad date": {"seen": "2020-02-30"},
    "a date out of range": {"seen": "1066-10-14"},
    "missing markers and blanks": {"city": "?", "seen": "?", "name": ""},
    "a very long text": {"city": "x" * 5000, "name": "y" * 5000},
    "everything missing": dict.fromkeys(ORDINARY),
}
Columns = Mapping[str, Sequence[Any]]


def neighbour(change: Mapping[str, Any]) -> Columns:
    return {name: [*values, (ORDINARY | change)[name]] for name, values in HONEST.items()}


def as_csv(columns: Columns, schema: Schema, folder: Path) -> Table:
    return opened("csv", columns, schema, folder)


def outside(release: Release) -> dict[str, Any]:
    """As the auditor has it, and the frames that people use."""
    return plain_outside(release) | {
        "pandas": list(to_native(release.arrow, "pandas").dtypes.astype(str).items()),
        "polars": [(k, str(v)) for k, v in to_native(release.arrow, "polars").schema.items()],
        "kind of frame": type(release.table).__module__,
    }


def differences(first: Release, second: Release) -> list[str]:
    """The parts outside the measurements in which two releases differ."""
    a, b = outside(first), outside(second)
    return [name for name in a if a[name] != b[name]]


FIRST = list(HOSTILE)


def replaced(change: Mapping[str, Any]) -> Columns:
    return {name: [*values[:-1], (ORDINARY | change)[name]] for name, values in HONEST.items()}
