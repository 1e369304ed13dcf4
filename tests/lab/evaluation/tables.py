"""Tables for the tests of the measures of use: people with a class to predict, the same shuffled, and bad input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison

SCHEMA = Schema.loads("""
[columns.age]
type = "integer"
min = 18
max = 90
[columns.hours]
type = "number"
min = 0
max = 100
missing = true
[columns.grade]
type = "ordinal"
values = ["low", "middle", "high"]
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true
[columns.sex]
type = "categorical"
values = ["f", "m"]
[columns.rich]
type = "boolean"
""")
NAMES = SCHEMA.names


def people(rows: int = 600, seed: int = 1) -> pa.Table:
    """Hours go with age, being rich with both, with the grade and with the sex."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    hours = np.clip(age * 0.6 + rng.normal(0, 8, rows), 0, 100).round(1)
    grade = np.digitize(age + rng.normal(0, 12, rows), [40, 65])
    male = rng.random(rows) < 0.5
    chance = 1 / (1 + np.exp(-(0.12 * (age - 60) + 1.0 * (grade - 1) + 0.8 * male)))
    return pa.table(
        {
            "age": age,
            "hours": pa.array(hours, mask=rng.random(rows) < 0.1),
            "grade": np.array(["low", "middle", "high"])[grade],
            "job": pa.array(rng.choice(["clerk", "cook", "nurse"], rows).astype(object), mask=rng.random(rows) < 0.1),
            "sex": np.where(male, "m", "f"),
            "rich": rng.random(rows) < chance,
        }
    )


def shuffled(table: pa.Table, seed: int = 2) -> pa.Table:
    """Every column in an order of its own."""
    rng = np.random.default_rng(seed)
    return pa.table({name: table.column(name).take(rng.permutation(table.num_rows)) for name in table.column_names})


def compared(real: pa.Table, synthetic: pa.Table, **given: Any) -> Comparison:
    """With a hold-out, a target and groups, unless others are given."""
    usual = {"holdout": people(400, 9), "target": "rich", "groups": ("sex", "job"), "schema": SCHEMA}
    return Comparison.of(real, synthetic, **(usual | given))


def changed(table: pa.Table, **columns: Any) -> pa.Table:
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


@dataclass(frozen=True)
class Bad:
    """Tables of which something is wrong."""

    real: pa.Table
    synthetic: pa.Table
    given: dict[str, Any]

    def compared(self) -> Comparison:
        return compared(self.real, self.synthetic, **self.given)


def _bad() -> dict[str, Bad]:
    good, other, n = people(60), people(50, 3), 50
    void = changed(other, age=pa.nulls(n, pa.int64()), hours=pa.nulls(n, pa.float64()), job=pa.nulls(n, pa.string()))
    same = changed(other, age=[30] * n, hours=[40.0] * n, grade=["low"] * n, job=["cook"] * n, sex=["f"] * n)
    endless = changed(other, hours=[float("inf"), float("-inf"), float("nan")] + [40.0] * (n - 3))
    huge = changed(other, hours=[1e308, -1e308, 1e-308] + [1e307] * (n - 3))
    typed = changed(other, age=[str(a) for a in range(n)], hours=["many"] * n, job=list(range(n)), sex=[True] * n)
    poor, unknown = changed(other, rich=[False] * n), changed(other, rich=pa.nulls(n, pa.bool_()))
    strange = changed(other, rich=["perhaps", "no"] * (n // 2))
    women = changed(other, sex=["f"] * n, job=pa.nulls(n, pa.string()))
    drafted = {"schema": None}
    number = {"target": "hours"}
    return {
        "different columns": Bad(good, other.drop_columns(["age", "grade"]).append_column("new", pa.nulls(n)), {}),
        "different types": Bad(good, typed, {}),
        "different types without a schema": Bad(good, typed, drafted),
        "one class": Bad(good, poor, {}),
        "one class in the real table": Bad(changed(good, rich=[True] * 60), other, {}),
        "one class everywhere": Bad(poor, poor, {"holdout": poor}),
        "one class in the hold-out": Bad(good, other, {"holdout": poor}),
        "a class that only the synthetic table has": Bad(good, strange, {}),
        "a class that only the real table has": Bad(strange, other, {}),
        "missing target": Bad(good, unknown, {}),
        "missing target in the real table": Bad(unknown, other, {}),
        "missing target in the hold-out": Bad(good, other, {"holdout": unknown}),
        "empty groups": Bad(good, women, {}),
        "empty groups in the real table": Bad(women, good, {}),
        "groups that are the target": Bad(good, other, {"groups": ("rich",)}),
        "constant columns": Bad(good, same, {}),
        "constant columns in the real table": Bad(same, good, {}),
        "constant columns everywhere": Bad(same, same, {"holdout": same, "target": "sex"}),
        "all-missing columns": Bad(good, void, {}),
        "all-missing columns in the real table": Bad(void, good, {}),
        "all-missing columns everywhere": Bad(void.select(["age", "hours", "job"]), void, {"holdout": void,
                                              "target": "job", "groups": ("job",)}),
        "infinities": Bad(good, endless, {}),
        "infinities in the real table": Bad(endless, good, {}),
        "infinities in a target": Bad(endless, endless, number),
        "huge numbers": Bad(huge, good, {}),
        "huge numbers in the synthetic table": Bad(good, huge, {}),
        "huge numbers in a target": Bad(huge, huge, number),
        "constant target on a line": Bad(same, same, number),
        "missing target on a line": Bad(good, void, number),
        "two rows": Bad(good.slice(0, 2), other.slice(0, 2), {"holdout": good.slice(5, 2)}),
        "two rows and a number to predict": Bad(good.slice(0, 2), other.slice(0, 2), number),
        "one row": Bad(good.slice(0, 1), other.slice(0, 1), {"holdout": good.slice(5, 1)}),
        "the target alone": Bad(good.select(["rich"]), other, {"groups": ()}),
        "nothing but the tables": Bad(good, other, {"holdout": None, "target": None, "groups": ()}),
    }  # fmt: skip


BAD = _bad()
