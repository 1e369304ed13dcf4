"""Who is a person: one person more, less or put in place of another moves no count by more than what is declared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.asks import Total
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import ADD_REMOVE, REPLACE_ONE, Schema
from understudy.boundary.tables.sql import Stored

IDS = ("a", "b", " a ", "?", "", None)
VALUES = (0, 1)
PEOPLE = [[(i, v)] for i, v in itertools.product(IDS, VALUES)]
SEVERAL = [[(i, 0), (i, 0), (i, 1)] for i in ("a", "b", None)] + [[("a", 1), (" a", 1), ("a ", 1)]]


def schema(neighbours: str, most: int) -> Schema:
    return Schema.loads(
        f'neighbours = "{neighbours}"\nmissing_values = ["?"]\n[unit]\ncolumn = "p"\nmax_rows = {most}\n'
        '[columns.p]\ntype = "identifier"\n[columns.x]\ntype = "integer"\nmin = 0\nmax = 1\n'
    )


def counts(rows: list[tuple[str | None, int]], declared: Schema) -> np.ndarray:
    ids, values = pa.array([i for i, _ in rows], pa.string()), pa.array([v for _, v in rows], pa.int64())
    return us.open(pa.table({"p": ids, "x": values}), declared).count_by(Domain.of(declared), [("x",)])[0]


def clean(person: list[tuple[str | None, int]]) -> str | None:
    """Whose rows they are, by the printed rule."""
    text = (person[0][0] or "").strip()
    return None if text in ("", "?") else text


def different(people: tuple[Any, ...]) -> bool:
    """Two people don't have one id; nobody without an id is told from another."""
    known = [who for person in people if (who := clean(person)) is not None]
    return len(set(known)) == len(known)


def changes(neighbours: str, most: int) -> Iterator[np.ndarray]:
    """How far the counts move, over all small tables and everybody who may come, in front and at the end."""
    declared = schema(neighbours, most)
    others = PEOPLE + (SEVERAL if most > 1 else [])
    for base in itertools.combinations(([("a", 0)], [(" ?", 0)], [(None, 0)]), 2):
        if not different(base):
            continue
        before = [row for person in base for row in person]
        tables = {}
        for person in others:
            if different((*base, person)):
                tables[tuple(person)] = [counts(person + before, declared), counts(before + person, declared)]
        if neighbours == ADD_REMOVE:
            without = counts(before, declared)
            yield from (with_one - without for pair in tables.values() for with_one in pair)
        else:
            for first, second in itertools.combinations(tables.values(), 2):
                yield from (a - b for a, b in zip(first, second, strict=True))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("neighbours", "most"), [(ADD_REMOVE, 1), (ADD_REMOVE, 2), (REPLACE_ONE, 1)])
def test_one_person_moves_no_count_by_more_than_is_declared(neighbours: str, most: int) -> None:
    moved = np.array(list(changes(neighbours, most)))
    one, two = np.abs(moved).sum(axis=1).max(), np.sqrt((moved**2).sum(axis=1)).max()
    declared = (2, math.sqrt(2)) if neighbours == REPLACE_ONE else (most, most)
    assert (one, two) == pytest.approx(declared)  # reached, so a smaller sensitivity would be refuted
    assert np.abs(moved.sum(axis=1)).max() == most


def test_one_person_for_all_rows_without_an_id_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule that once held: rows without an id are one more person together, and ids are compared as stored."""
    from understudy.boundary.tables import sql

    def raw_id(stored: Stored, missing_values: Any) -> Any:
        from sqlglot import exp

        return exp.Coalesce(this=sql.raw(stored.name), expressions=[exp.Literal.string("nobody")])

    monkeypatch.setattr(sql, "person_of", raw_id)
    moved = np.array(list(changes(ADD_REMOVE, 1)))
    assert np.abs(moved).sum(axis=1).max() > 1


def test_the_number_of_rows_is_bought_under_replace_one_where_people_have_ids() -> None:
    rows = us.open(pa.table({"p": ["a", "b", None], "x": [0, 1, 1]}), schema(REPLACE_ONE, 1))
    curator = Curator.on(rows, Budget(1.0, 0.0))
    with pytest.raises(us.UnderstudyError, match="number of rows is private"):
        curator.ask(Total())
    assert curator.ask(Total(curator.remaining())).mechanism == "discrete-laplace"
    assert [s.sensitivity for s in curator.spends] == [1.0]


def test_a_count_of_all_rows_is_no_free_question_where_people_have_ids() -> None:
    frame = pa.table({"p": ["a", "b", None], "x": [0, 1, 1]})
    asked = us.query(us.open(frame, schema(REPLACE_ONE, 1)), "SELECT count(*) FROM data", epsilon=1.0, delta=0)
    assert asked.epsilon > 0


def test_ids_of_pandas_keep_their_digits_or_are_refused() -> None:
    declared = schema(ADD_REMOVE, 1)
    large = [10**18 + i for i in range(100)]

    def rows(ids: Any) -> int:
        return us.open(pd.DataFrame({"p": ids, "x": [0] * len(ids)}), declared).count_rows()

    assert rows(large) == rows(pd.array([*large, None], dtype="Int64")) == rows(pd.Series([*large, None], dtype=object))
    assert rows([*map(str, large), None]) == 100
    assert rows([1.0, 1.0, 2.0, None]) == rows(["1", 1, 2.0, None]) == 2
    with pytest.raises(us.UnderstudyError, match=r"'p' .* reach 2\^53"):
        rows([*large, None])


@pytest.mark.parametrize("kind", [pa.decimal128(18, 0), pa.decimal128(24, 3), pa.decimal256(40, 0), pa.int64()])
def test_decimal_ids_keep_their_digits(kind: pa.DataType) -> None:
    ids = pa.array([Decimal(2**53 + i) for i in range(50)]).cast(pa.decimal128(24, 3)).cast(kind)
    rows = pa.table({"p": ids, "x": [0] * 50})
    assert us.open(rows, schema(ADD_REMOVE, 1)).count_rows() == 50


@pytest.mark.parametrize(
    "ids", [pa.array([2.0**24 + 2], pa.float32()), pd.Series([2.0**60, "a"]), pd.Series([2.0**60], dtype="category")]
)
def test_ids_that_any_floating_point_type_has_rounded_are_refused(ids: Any) -> None:
    column = ids.to_pandas() if isinstance(ids, pa.Array) else ids
    with pytest.raises(us.UnderstudyError, match=r"reach 2\^53 \(2\^24 in single precision\)"):
        us.open(pd.DataFrame({"p": column, "x": 0}), schema(ADD_REMOVE, 1))


def test_an_infinite_id_is_one_id() -> None:
    rows = pa.table({"p": [math.inf, math.inf, 1.0], "x": [0, 0, 0]})
    assert us.open(rows, schema(ADD_REMOVE, 1)).count_rows() == 2
