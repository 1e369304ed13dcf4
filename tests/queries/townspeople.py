"""A small table with one column of each kind, its schema, and a naive answer to every question about it."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

import understudy as us

ROWS = 400
SCHEMA = us.Schema.loads(
    """
missing_values = ["?"]
[unit]
column = "person"
max_rows = 2
[columns.person]
type = "identifier"
[columns.sex]
type = "categorical"
values = ["F", "M"]
missing = true
[columns.job]
type = "categorical"
values = ["cook", "it's", "x; --"]
other = "else"
[columns.ill]
type = "categorical"
values = "private"
[columns.age]
type = "integer"
min = 18
max = 80
[columns.pay]
type = "number"
min = -50
max = 1000
decimals = 2
missing = true
[columns.weight]
type = "number"
min = 30
max = 150
[columns.smoker]
type = "boolean"
missing = true
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2023-12-31
missing = true
"""
)


def people(rows: int = ROWS, seed: int = 11) -> pa.Table:
    rng = np.random.default_rng(seed)
    days = np.datetime64("2019-11-01") + rng.integers(0, 1700, rows)
    return pa.table(
        {
            "person": [f"p{i}" for i in rng.integers(0, rows // 2, rows)],
            "sex": rng.choice(["F", "M", "?", " F ", "X"], rows).tolist(),
            "job": rng.choice(["cook", "it's", "x; --", "clerk", ""], rows).tolist(),
            "ill": rng.choice(["flu", "cold", "rare"], rows, p=[0.6, 0.39, 0.01]).tolist(),
            "age": rng.integers(10, 95, rows),
            "pay": [None if x < 60 else round(float(x), 3) for x in rng.exponential(400, rows)],
            "weight": rng.normal(75, 30, rows),
            "smoker": rng.choice(["yes", "no", "perhaps"], rows).tolist(),
            "hired": pa.array([None if i % 9 == 0 else d for i, d in enumerate(days.astype(object))], pa.date32()),
        }
    )


PEOPLE = people()


def counted(rows: list[dict], most: int = 2) -> list[dict]:
    """The rows that count: the first of each person."""
    seen: dict[object, int] = {}
    kept = []
    for row in rows:
        seen[row["person"]] = seen.get(row["person"], 0) + 1
        if seen[row["person"]] <= most:
            kept.append(row)
    return kept


def cleaned(row: dict) -> dict:
    """What the schema says that a row holds, one value at a time."""
    sex = row["sex"].strip()
    smoker = {"yes": True, "no": False}.get(row["smoker"])
    day = row["hired"]
    hired = None if day is None else min(max(datetime(day.year, day.month, day.day), START), END)
    pay = row["pay"]
    return {
        "person": row["person"],
        "sex": sex if sex in ("F", "M") else None,
        "job": row["job"] if row["job"] in ("cook", "it's", "x; --") else "else",
        "ill": row["ill"],
        "age": min(max(row["age"], 18), 80),
        "pay": None if pay is None else min(max(np.floor(pay * 100 + 0.5) / 100, -50.0), 1000.0),
        "weight": min(max(row["weight"], 30.0), 150.0),
        "smoker": smoker,
        "hired": hired,
    }


START, END = datetime(2020, 1, 1), datetime(2023, 12, 31)
CLEAN = [cleaned(r) for r in counted(PEOPLE.to_pylist())]
