"""What the tests of the predictors share: small tables with classes, silent noise, and neighbours compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from helpers.randomness import BestRandomness
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.asks.ask import Ask, Price
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Payer, RowGate
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table

COLUMNS = """
missing_values = ["?"]
[columns.name]
type = "identifier"
[columns.age]
type = "integer"
min = 18
max = 90
bins = 12
[columns.pay]
type = "number"
min = 0
max = 100
bins = 8
missing = true
[columns.grade]
type = "ordinal"
values = ["low", "middle", "high"]
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse", "smith"]
missing = true
[columns.well]
type = "boolean"
[columns.kind]
type = "categorical"
values = ["a", "b", "c"]
"""
ADD_REMOVE = Schema.loads(COLUMNS)
REPLACE_ONE = Schema.loads('neighbours = "replace-one"\n' + COLUMNS)
PERSON = Schema.loads(COLUMNS + '[unit]\ncolumn = "name"\nmax_rows = 3\n')
SCHEMAS = {"add-remove": ADD_REMOVE, "replace-one": REPLACE_ONE, "person": PERSON}
TARGET = "kind"

Row = Mapping[str, Any]


def people(count: int = 400, seed: int = 1) -> list[Row]:
    """Rows whose class follows from grade and job, but for one in ten."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        grade, job = rng.choice(["low", "middle", "high"]), rng.choice(["clerk", "cook", "nurse", "smith", "?"])
        kind = {"low": "a", "middle": "b", "high": "c" if job == "cook" else "a"}[grade]
        rows.append(
            {
                "name": f"p{i}",
                "age": int(rng.integers(18, 91)),
                "pay": None if rng.random() < 0.1 else round(float(rng.random() * 100), 2),
                "grade": grade,
                "job": job,
                "well": bool(rng.random() < 0.5),
                "kind": rng.choice(["a", "b", "c"]) if rng.random() < 0.1 else kind,
            }
        )
    return rows


def frame(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in ADD_REMOVE.names})


def opened(rows: Sequence[Row], schema: Schema = ADD_REMOVE) -> Table:
    return open_table(frame(rows), schema, name="people")


@dataclass(frozen=True)
class Compared:
    """One exact answer for both of two neighbours, as a plain vector."""

    question: dict[str, Any]
    first: NDArray[np.float64]
    second: NDArray[np.float64]

    @property
    def moved(self) -> NDArray[np.float64]:
        return self.second - self.first


class TwinGate(RowGate):
    """Answers from the first table, and finds the exact answers to the same questions in the second."""

    def __init__(self, first: Table, second: Table, budget: Budget, randomness: Randomness) -> None:
        super().__init__(CachedTable(first), Payer(budget), randomness)
        self._second = CachedTable(second)
        self.compared: list[Compared] = []

    def answer(self, ask: Ask[Any], price: Price, questions: Any, debit: Callable[[], None]) -> list[Any]:
        both = ask.exact(self._table), ask.exact(self._second)
        if isinstance(ask, Select):
            both = [both[0]], [both[1]]
        for question, a, b in zip(questions, *both, strict=True):
            self.compared.append(Compared(question, np.ravel(a).astype(float), np.ravel(b).astype(float)))
        return super().answer(ask, price, questions, debit)


def twins(
    first: Sequence[Row], second: Sequence[Row], schema: Schema, budget: Budget, randomness: Randomness | None = None
) -> tuple[Curator, list[Compared]]:
    gate = TwinGate(opened(first, schema), opened(second, schema), budget, randomness or BestRandomness())
    return Curator(schema, budget, gate), gate.compared
