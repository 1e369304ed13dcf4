"""People of one population, whom the tests of attacks share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

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
[columns.children]
type = "integer"
min = 0
max = 12
"""


def make_people(rows: int, seed: int) -> pa.Table:
    """Income goes with age, smoking with the job."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "cook", "nurse", "judge"], rows, p=[0.4, 0.3, 0.2, 0.1])
    age = rng.integers(18, 80, rows)
    income = 1_000 * age + rng.gamma(2.0, 5_000, rows)
    return pa.table(
        {
            "age": age,
            "income": pa.array(income.round(2), mask=rng.random(rows) < 0.05),
            "job": pa.array(job.astype(object), mask=rng.random(rows) < 0.1),
            "smoker": rng.random(rows) < np.where(job == "cook", 0.8, 0.2),
            "children": np.minimum(rng.poisson(1.2, rows), 12),
        }
    )
