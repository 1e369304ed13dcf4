"""Rows to predict for must fall where they would have been counted: against the engine that counts private rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.errors import TableError
from understudy.predictors.input_data import codes_of

SCHEMA = Schema.loads("""
missing_values = ["?"]
[columns.place]
type = "integer"
min = 0
max = 99
[columns.whole]
type = "integer"
min = -5
max = 40
bins = 7
[columns.cut]
type = "integer"
min = 0
max = 100
cuts = [3, 10, 50]
missing = true
[columns.real]
type = "number"
min = -1
max = 1
bins = 6
missing = true
[columns.label]
type = "categorical"
values = ["a", "b", "1"]
missing = true
[columns.other]
type = "categorical"
values = ["a", "b"]
other = "else"
[columns.code]
type = "categorical"
values = [1, 2, 5]
[columns.truth]
type = "boolean"
missing = true
[columns.day]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 6
""")
DOMAIN = Domain.of(SCHEMA)
VALUES: dict[str, list[Any]] = {
    "whole": ["-5", "40", "41", "1e9", "-1e9", "3.4", "3.5", "2.5", "x", "", "?", None, "nan", "inf", " 7 "],
    "cut": ["0", "2", "3", "9.5", "10", "49", "50", "100", "101", "x", "?", None],
    "real": ["-1", "1", "0.333", "-0.3333333333333333", "2", "-7", "nan", "inf", "-inf", "", None, "y"],
    "label": ["a", " b ", "c", "1", "1.0", "?", "", None, "A"],
    "other": ["a", "c", "else", "?", None],
    "code": ["1", "2.0", "5", "3", "x", None, "?"],
    "truth": ["true", "YES", "0", "off", "maybe", "?", None, "1.0"],
    "day": ["2020-01-01", "2020-12-31", "2021-03-01", "1999-01-01", "2020-06-15 13:00:00", "no day", None, "?"],
}


def counted_codes(column: str, frame: pa.Table) -> list[int]:
    """As the engine has it: the joint counts with the place of a row tell its code."""
    (counts,) = us.open(frame, SCHEMA).count_by(DOMAIN, [("place", column)])
    return counts[: frame.num_rows].argmax(axis=1).tolist()


def filled(column: str, values: list[Any]) -> pa.Table:
    rest = {c.name: pa.array([None] * len(values), type=pa.string()) for c in DOMAIN}
    return pa.table(rest | {"place": list(range(len(values))), column: values})


@pytest.mark.parametrize("column", VALUES)
def test_texts_are_read_as_the_engine_reads_them(column: str) -> None:
    frame = filled(column, VALUES[column])
    assert codes_of(frame, DOMAIN, [column])[column].tolist() == counted_codes(column, frame)


@pytest.mark.parametrize("column", ["whole", "cut", "real"])
def test_numbers_are_read_as_the_engine_reads_them(column: str) -> None:
    rng = np.random.default_rng(1)
    values = [*np.round(rng.normal(5, 20, 60), 1).tolist(), -1.0, 1.0, 0.5, 39.5, 40.5, 2.5, float("nan"), None]
    frame = filled(column, values)
    assert codes_of(frame, DOMAIN, [column])[column].tolist() == counted_codes(column, frame)


def test_every_kind_of_frame_gives_the_same_codes() -> None:
    arrow = pa.table({"label": ["a", None, "1"], "whole": [1, 2, 39], "truth": [True, None, False]})
    wanted = {c: v.tolist() for c, v in codes_of(arrow, DOMAIN, arrow.column_names).items()}
    frames = [arrow.to_pandas(), pl.from_arrow(arrow), pd.DataFrame(arrow.to_pylist())]
    for frame in frames:
        assert {c: v.tolist() for c, v in codes_of(frame, DOMAIN, arrow.column_names).items()} == wanted


def test_refusals() -> None:
    with pytest.raises(TableError, match="lacks the column 'whole'"):
        codes_of(pa.table({"label": ["a"]}), DOMAIN, ["label", "whole"])
    with pytest.raises(TableError, match="can't be predicted for"):
        codes_of([[1]], DOMAIN, ["label"])
