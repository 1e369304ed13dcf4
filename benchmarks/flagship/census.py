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
    *(0, 1, *range(1_000, 100_000, 1_000), *range(100_000, 200_000, 10_000)),
    *(200_000, 300_000, 400_000, 700_000),
)
WEIGHTS = (*range(2, 200, 2), *range(200, 500, 20), 500, 700, 1_000)
LINES = {
    "AGEP": {"minimum": 0, "maximum": 99},
    "PINCP": {"minimum": -9_000, "maximum": 1_341_000, "cuts": AMOUNTS},
    "POVPIP": {"minimum": 0, "maximum": 501, "cuts": (*range(5, 501, 5), 501)},
    "PWGTP": {"minimum": 1, "maximum": 9_999, "cuts": WEIGHTS},
    "WGTP": {"minimum": 0, "maximum": 9_999, "cuts": (1, *WEIGHTS)},
}
"""Bounds as in the data dictionary; round cuts."""
DENSITIES = tuple(round(10 ** (i / 40), 1) for i in range(52, 189))
"""Residents per square mile, in steps of six percent, within the bounds of the dictionary."""


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
