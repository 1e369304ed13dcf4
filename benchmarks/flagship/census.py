"""The schema of NIST's census excerpt of Texas, from the two dictionaries that NIST publishes with it."""

from __future__ import annotations

import json

from marginals.coded import SHARED

import understudy as us
from understudy.boundary.schema.column import Categorical, Column, Integer, Number

NIST = SHARED / "nist"
TABLE = NIST / "texas" / "tx2019.csv"
MISSING = "N"
AMOUNTS = (
    *(0, 1, *range(2_500, 20_000, 2_500), *range(20_000, 80_000, 5_000)),
    *(*range(80_000, 200_000, 20_000), 200_000, 400_000),
)
WEIGHTS = (*range(5, 50, 5), *range(50, 200, 10), *range(200, 400, 25), 500, 700, 1_000)
LINES = {
    "AGEP": {"minimum": 0, "maximum": 99},
    "PINCP": {"minimum": -9_000, "maximum": 1_341_000, "cuts": AMOUNTS},
    "POVPIP": {"minimum": 0, "maximum": 501, "cuts": (*range(20, 501, 20), 501)},
    "PWGTP": {"minimum": 1, "maximum": 9_999, "cuts": WEIGHTS},
    "WGTP": {"minimum": 0, "maximum": 9_999, "cuts": (1, *WEIGHTS)},
}
"""Bounds as in the data dictionary; round cuts."""
DENSITIES = tuple(round(10 ** (i / 10)) for i in range(14, 47))
"""Residents per square mile, in steps of a quarter, within the bounds of the dictionary."""


def schema() -> us.Schema:
    facts = json.loads((NIST / "texas" / "tx2019.json").read_text())["schema"]
    return us.Schema(tuple(_column(name, fact) for name, fact in facts.items()), missing_values=(MISSING,))


def _column(name: str, fact: dict) -> Column:
    missing = bool(fact.get("has_null"))
    if name == "DENSITY":
        return Number(name, minimum=16, maximum=52_865, cuts=DENSITIES, decimals=1)
    if name in LINES:
        return Integer(name, missing=missing, **LINES[name])
    return Categorical(name, missing=missing, values=tuple(str(v) for v in fact["values"] if v != MISSING))
