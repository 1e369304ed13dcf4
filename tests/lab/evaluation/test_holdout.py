"""The hold-out: a seeded fifth of the rows, or of the people; or what was given."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.lab.evaluation.holdout import RANDOM, HoldoutSplit, held_out, mark, people

ROWS = 200
KEY = bytes(range(32))
COLUMNS = (
    '[columns.id]\ntype = "integer"\nmin = 0\nmax = 999\n[columns.town]\ntype = "categorical"\nvalues = ["a", "b"]\n'
)
SCHEMA = us.Schema.loads(COLUMNS)
UNIT = us.Schema.loads(
    '[unit]\ncolumn = "id"\nmax_rows = 5\n' + COLUMNS.replace('"integer"\nmin = 0\nmax = 999', '"identifier"')
)


def numbered(rows: int = ROWS) -> pa.Table:
    return pa.table({"id": np.arange(rows), "town": np.where(np.arange(rows) % 3 == 0, "a", "b")})


def ids(table: pa.Table) -> list[int]:
    return [int(i) for i in table.column("id").to_pylist()]


def test_every_row_stands_on_one_side():
    split = HoldoutSplit.of(numbered(), SCHEMA)
    assert split.holdout.num_rows == ROWS // 5
    assert sorted(ids(split.train) + ids(split.holdout)) == list(range(ROWS))
    assert split.marks(KEY)[1] == RANDOM


def test_the_split_is_random_but_repeatable():
    first, second = HoldoutSplit.of(numbered(), SCHEMA), HoldoutSplit.of(numbered(), SCHEMA)
    assert ids(first.holdout) == ids(second.holdout)
    assert ids(first.holdout) != list(range(ROWS // 5))
    assert held_out(np.arange(ROWS), 0).tolist() != held_out(np.arange(ROWS), 1).tolist()


def test_no_person_stands_on_both_sides():
    people = pa.table({"id": np.arange(ROWS) // 4, "town": ["a"] * ROWS})
    split = HoldoutSplit.of(people, UNIT)
    assert not set(ids(split.train)) & set(ids(split.holdout))
    assert len(set(ids(split.holdout))) == ROWS // 4 // 5


def test_rows_of_one_id_stay_together_however_it_is_written_and_rows_without_one_do_not():
    ids = pa.array([" a", "a ", "a", None, "", "?"])
    schema = dataclasses.replace(UNIT, missing_values=("?",))
    assert people(pa.table({"id": ids}), schema).tolist() == [0, 0, 0, -4, -5, -6]


def test_a_hold_out_that_is_given_is_taken():
    held = numbered(7)
    split = HoldoutSplit.of(numbered(3), SCHEMA, held)
    assert split.train.num_rows == 3 and split.holdout.num_rows == 7
    assert split.marks(KEY) == (mark(KEY, numbered(3)), mark(KEY, held))


def test_the_same_rows_have_the_same_mark_from_any_place(tmp_path: Path):
    table = numbered().set_column(0, "id", pa.array([None if i % 7 == 0 else i for i in range(ROWS)]))
    pq.write_table(table, tmp_path / "whole.parquet")
    pq.write_table(table, tmp_path / "pieces.parquet", row_group_size=16)
    sources = (table, tmp_path / "whole.parquet", tmp_path / "pieces.parquet")
    marks = {HoldoutSplit.of(source, SCHEMA).marks(KEY) for source in sources}
    assert len(marks) == 1
    changed = table.set_column(1, "town", pa.array(["b"] * ROWS))
    assert HoldoutSplit.of(changed, SCHEMA).marks(KEY) not in marks


@pytest.mark.parametrize("place", [0, 1, ROWS - 1])
def test_one_row_on_either_side_changes_the_mark(place: int):
    towns = numbered().column("town").to_pylist()
    towns[place] = "b" if towns[place] == "a" else "a"
    changed = numbered().set_column(1, "town", pa.array(towns))
    assert HoldoutSplit.of(changed, SCHEMA).marks(KEY)[0] != HoldoutSplit.of(numbered(), SCHEMA).marks(KEY)[0]


def test_a_mark_says_nothing_without_its_key():
    assert mark(KEY, numbered()) != mark(bytes(32), numbered())


def test_a_csv_file_is_read_as_it_stands(tmp_path: Path):
    path = tmp_path / "towns.csv"
    path.write_text("id,town\n" + "".join(f"{i:03},a\n" for i in range(20)))
    split = HoldoutSplit.of(path, SCHEMA)
    assert split.name == "towns.csv"
    assert "007" in split.train.column("id").to_pylist() + split.holdout.column("id").to_pylist()


@pytest.mark.parametrize(
    ("data", "holdout", "said"),
    [
        (numbered(4), None, "the data has 4 rows, but a study needs at least 10; give a hold-out, or more rows"),
        (numbered(), numbered(0), "the hold-out has 0 rows, but a study needs at least 1"),
        (numbered(0), numbered(), "the data has 0 rows, but a study needs at least 1"),
        (numbered(), numbered().drop_columns(["town"]), "column 'town' of the schema is not in the table"),
        (numbered().rename_columns(["id", "city"]), None, "column 'town' of the schema is not in the table"),
        ("absent.csv", None, "'absent.csv' does not exist"),
        (3, None, "a int can't be read; give a frame or a path"),
    ],
)
def test_bad_input_is_refused(data: object, holdout: object, said: str):
    with pytest.raises(us.InputError, match=said.replace("(", r"\(")):
        HoldoutSplit.of(data, SCHEMA, holdout)
