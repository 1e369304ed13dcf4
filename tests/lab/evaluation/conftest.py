"""Tables that the tests of evaluation share: people whose columns hang together, the same shuffled, and broken ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import Measure, MeasureResult

ROWS = 2000
PEOPLE = """
[columns.age]
type = "integer"
min = 18
max = 90
[columns.income]
type = "number"
min = 0
max = 200_000
missing = true
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse", "judge"]
missing = true
[columns.smoker]
type = "boolean"
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2021-12-31
missing = true
[[constraints]]
if = "job = 'judge'"
then = "age >= 30"
"""
BROKEN_SCHEMA = """
[columns.x]
type = "number"
min = 0
max = 10
missing = true
[columns.y]
type = "integer"
min = 0
max = 10
missing = true
[columns.c]
type = "categorical"
values = ["a", "b", "c"]
missing = true
[columns.d]
type = "categorical"
values = ["u", "v"]
[[constraints]]
if = "c = 'a'"
then = "x < 5"
"""
MIXED = {"x": [1.0, 2.5, 2.5, 4.0, 8.0, 9.5], "y": [3, 1, 2, 6, 5, 4], "c": list("aabbcc"), "d": list("uvuvvu")}


def make_people(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """Age, income, job, smoker and the date of hiring: income depends on age and job, smoking on the job."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "cook", "nurse", "judge"], rows, p=[0.4, 0.3, 0.2, 0.1])
    age = np.where(job == "judge", rng.integers(30, 80, rows), rng.integers(18, 80, rows))
    income = 1_000 * age + np.where(job == "judge", 60_000, 0) + rng.gamma(2.0, 5_000, rows)
    hired = np.datetime64("2020-01-01") + rng.integers(0, 731, rows).astype("timedelta64[D]")
    return pa.table(
        {
            "age": age,
            "income": pa.array(income.round(2), mask=rng.random(rows) < 0.05),
            "job": pa.array(job.astype(object), mask=rng.random(rows) < 0.1),
            "smoker": rng.random(rows) < np.where(job == "cook", 0.8, 0.2),
            "hired": pa.array(hired.astype("datetime64[s]"), mask=rng.random(rows) < 0.2),
        }
    )


def shuffle(table: pa.Table, seed: int = 2) -> pa.Table:
    """Every column in an order of its own: single columns stay, what holds them together goes."""
    rng = np.random.default_rng(seed)
    return pa.table({name: table.column(name).take(rng.permutation(table.num_rows)) for name in table.column_names})


def _broken() -> dict[str, tuple[pa.Table, pa.Table]]:
    good = pa.table(MIXED)
    n = good.num_rows
    missing = {"x": pa.nulls(n, pa.float64()), "y": pa.nulls(n, pa.int64()), "c": pa.nulls(n, pa.string())}
    void, constant = {**MIXED, **missing}, {"x": [2.0] * n, "y": [7] * n, "c": ["a"] * n, "d": ["u"] * n}
    infinite = {**MIXED, "x": [1.0, float("inf"), 2.5, float("-inf"), 8.0, 9.5]}
    huge = {**MIXED, "x": [1e308, -1e308, 1e308, 1e-308, 0.0, 1e307]}
    new = {"x": [90.5, 91.5], "y": [70, 80], "c": ["z", "z"], "d": ["w", None]}
    other = {
        "x": ["1.5", "many", "", "2", "3", "4"],
        "y": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
        "c": [1, 2, 3, 4, 5, 6],
        "d": MIXED["d"],
    }
    many = {name: list(values) * 30 for name, values in MIXED.items()} | {"x": np.linspace(-5, 15, 30 * n)}
    return {
        "two rows": (good.slice(0, 2), good.slice(2, 2)),
        "one row": (good.slice(0, 1), good.slice(3, 1)),
        "all missing": (good, pa.table(void)),
        "all missing in the real table": (pa.table(void), good),
        "constant": (good, pa.table(constant)),
        "constant in the real table": (pa.table(constant), good),
        "constant beside many values": (pa.table(constant), pa.table(many)),
        "constant in both": (pa.table(constant), pa.table(constant)),
        "infinite": (good, pa.table(infinite)),
        "infinite in the real table": (pa.table(infinite), good),
        "huge": (pa.table(huge), pa.table(huge).slice(1)),
        "nothing in common": (good, pa.table(new)),
        "other types": (good, pa.table(other)),
        "one column": (good.select(["x"]), good.select(["x", "c"])),
        "one category": (good.select(["d"]), good.select(["d", "x"])),
    }


BROKEN = _broken()


@pytest.fixture(scope="session")
def people() -> pa.Table:
    return make_people()


@pytest.fixture(scope="session")
def others() -> pa.Table:
    """As many other people from the same population."""
    return make_people(seed=5)


@pytest.fixture(scope="session")
def shuffled(people: pa.Table) -> pa.Table:
    return shuffle(people)


@pytest.fixture(scope="session")
def schema() -> Schema:
    """Of the people, as a person would write it."""
    return Schema.loads(PEOPLE)


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest) -> tuple[pa.Table, pa.Table]:
    """A real and a synthetic table of which something is badly wrong: columns x, y (numbers), c, d (texts)."""
    return BROKEN[request.param]


@cache
def _compared(kind: str, declared: bool) -> Comparison:
    return Comparison.of(*BROKEN[kind], schema=Schema.loads(BROKEN_SCHEMA) if declared else None)


@pytest.fixture(
    params=itertools.product(BROKEN, (False, True)), ids=lambda p: f"{p[0]}, {'declared' if p[1] else 'drafted'}"
)
def broken_comparison(request: pytest.FixtureRequest) -> Comparison:
    """Such tables with a schema that a person wrote, and without one."""
    return _compared(*request.param)


@pytest.fixture(scope="session")
def check_sound() -> Callable[[Measure, MeasureResult], None]:
    """Of a figure and of its parts: a finite number inside the range, or a reason; never both, never neither."""

    def check(measure: Measure, figure: MeasureResult) -> None:
        for found in (figure, *figure.parts):
            assert (found.value is None) == bool(found.reason), (measure.name, found)
            if found.value is not None:
                assert type(found.value) is float and math.isfinite(found.value), (measure.name, found)
                assert measure.low <= found.value <= measure.high, (measure.name, found)
        for part in figure.parts:
            assert all(x is None or math.isfinite(x) for x in (part.raw, part.reference)), (measure.name, part)

    return check
