"""k-anonymity, l-diversity and t-closeness: by hand, against a naive second way, and what they fail to promise."""

from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError, SchemaError
from understudy.lab.evaluation.measures.anonymity import SHORTCOMINGS, anonymity

SEED_TABLE = pa.table({"age": [50, 50], "zip": ["38xxx", "38xxx"], "disease": ["yellow fever", "dementia"]})
"""Table I of Hanisch: 2-anonymous and 2-diverse."""


def test_the_table_of_the_document() -> None:
    found = anonymity(SEED_TABLE, ["age", "zip"], ["disease"])
    (disease,) = found.sensitive
    assert (found.k, found.groups, found.unique_rows, disease.l) == (2, 1, 0, 2)
    assert disease.t == 0.0 and disease.disclosed == 0 and math.isclose(disease.entropy_l, 2.0)
    assert found.satisfies(k=2, l=2, t=0.0) and not found.satisfies(k=3)


def test_a_group_of_one_value_tells_it_whatever_k_is() -> None:
    rows = pa.table({"zip": ["38"] * 50 + ["40"] * 50, "disease": ["dementia"] * 50 + ["flu", "cold"] * 25})
    found = anonymity(rows, ["zip"], ["disease"])
    (disease,) = found.sensitive
    assert (found.k, disease.l, disease.disclosed) == (50, 1, 50)
    assert disease.t == 0.5  # half of all mass has to move
    assert not found.satisfies(k=2, l=2)


def test_the_distance_along_an_order_is_that_of_the_paper() -> None:
    """Li et al. 2007, table 3: incomes of 3,000 to 11,000 by steps of 1,000, in three groups: 0.375 and 0.167."""
    income = [3, 4, 5, 6, 11, 8, 7, 9, 10]
    group = ["a", "a", "a", "b", "b", "b", "c", "c", "c"]
    groups, numbers = 'type = "categorical"\nvalues = ["a", "b", "c"]', 'type = "integer"\nmin = 0\nmax = 20'
    schema = Schema.loads(f"[columns.g]\n{groups}\n[columns.x]\n{numbers}")
    first = anonymity(pa.table({"g": group, "x": income}), ["g"], ["x"], schema).sensitive[0]
    assert first.distance == "ordered" and math.isclose(first.t, 0.375)
    only = pa.table({"g": ["b", "b", "b", *"acacac"], "x": [6, 11, 8, 3, 4, 5, 7, 9, 10]})
    assert math.isclose(distance_of(only, "b"), 1 / 6, abs_tol=1e-12)


def distance_of(table: pa.Table, group: str) -> float:
    """The naive way, for one group."""
    rows = list(zip(table.column("g").to_pylist(), table.column("x").to_pylist(), strict=True))
    values = sorted({x for _, x in rows})
    inside = Counter(x for g, x in rows if g == group)
    whole = Counter(x for _, x in rows)
    apart = [inside[v] / inside.total() - whole[v] / whole.total() for v in values]
    return sum(map(abs, list(accumulate(apart))[:-1])) / (len(values) - 1)


def naive(rows: list[tuple[Any, ...]], quasi: int) -> tuple[int, int, int, float, int]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        groups.setdefault(row[:quasi], []).append(row[quasi])
    whole = Counter(row[quasi] for row in rows)
    far = max(sum(abs(Counter(g)[v] / len(g) - whole[v] / len(rows)) for v in whole) / 2 for g in groups.values())
    return (
        min(map(len, groups.values())),
        len(groups),
        min(len(set(g)) for g in groups.values()),
        far,
        sum(len(g) for g in groups.values() if len(set(g)) == 1),
    )


@pytest.mark.parametrize("seed", range(5))
def test_against_the_naive_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (str(rng.choice(["m", "f", None])), int(rng.integers(3)), str(rng.choice(["a", "b", "c"]))) for _ in range(120)
    ]
    table = pa.table({name: [r[i] for r in rows] for i, name in enumerate(("sex", "age", "ill"))})
    found = anonymity(table, ["sex", "age"], ["ill"])
    (ill,) = found.sensitive
    k, groups, diverse, far, disclosed = naive(rows, 2)
    assert (found.k, found.groups, ill.l, ill.disclosed) == (k, groups, diverse, disclosed)
    assert math.isclose(ill.t, far, abs_tol=1e-12) and 1.0 <= ill.entropy_l <= ill.l + 1e-9


def test_missing_values_are_a_value() -> None:
    rows = pa.table({"zip": ["38", None, None], "ill": ["a", "b", "a"]})
    found = anonymity(rows, ["zip"])
    assert (found.k, found.groups, found.unique_rows, found.sensitive) == (1, 2, 1, ())


def test_an_open_table_and_a_frame_give_the_same() -> None:
    schema = Schema.loads('[columns.zip]\ntype = "categorical"\nvalues = ["38", "40"]\n[columns.ill]\ntype = "boolean"')
    rows = pa.table({"zip": ["38", "38", "40", "40"], "ill": [True, False, True, True]})
    assert anonymity(us.open(rows, schema), ["zip"], ["ill"]) == anonymity(rows.to_pandas(), ["zip"], ["ill"], schema)


def test_what_it_fails_to_promise() -> None:
    """A table that is 4-anonymous, 2-diverse and close, and tells who is ill all the same."""
    ages, places = [50] * 4 + [31] * 4, ["38xxx"] * 4 + ["40xxx"] * 4
    diseases = ["yellow fever", "dementia", "dementia", "dementia", "yellow fever", "yellow fever", "dementia", "flu"]
    table = pa.table({"age": ages, "zip": places, "disease": diseases})
    found = anonymity(table, ["age", "zip"], ["disease"])
    (disease,) = found.sensitive
    assert (found.k, disease.l) == (4, 2) and disease.t < 0.5 and disease.disclosed == 0
    assert len(SHORTCOMINGS) == 4 and found.shortcomings == SHORTCOMINGS
    # Whoever knows all patients of the first group but one learns the disease of the last.
    group = [d for a, d in zip(table["age"].to_pylist(), table["disease"].to_pylist(), strict=True) if a == 50]
    assert [*(Counter(group) - Counter(group[1:])).elements()] == ["yellow fever"]
    # With "yellow fever" known to be the only disease of travellers, a traveller of 50 is told apart among four.
    assert [d for d in group if d != "dementia"] == ["yellow fever"]


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a text": ({"quasi_identifiers": "age"}, InputError, "must be a list"),
    "nothing": ({"quasi_identifiers": []}, InputError, "at least one column"),
    "both": ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, InputError, "name it once"),
    "unknown": ({"quasi_identifiers": ["height"]}, InputError, "not a column"),
    "unknown and sensitive": ({"quasi_identifiers": ["age"], "sensitive": ["height"]}, InputError, "not a column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    arguments, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        anonymity(SEED_TABLE, **arguments)


def test_an_identifier_or_a_column_without_a_schema_is_refused() -> None:
    schema = Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99\n[columns.zip]\ntype = "identifier"')
    rows = pa.table({"age": [50, 50], "zip": ["a", "b"]})
    with pytest.raises(InputError, match="is an identifier"):
        anonymity(rows, ["age"], ["zip"], schema)
    with pytest.raises(SchemaError):
        anonymity(SEED_TABLE, ["age"], ["disease"], schema)
    with pytest.raises(InputError, match="no rows"):
        anonymity(rows.slice(0, 0), ["age"], schema=schema)
