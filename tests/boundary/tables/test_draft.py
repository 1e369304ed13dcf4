"""Drafted schemas: the types a person would have chosen, marked as a draft, and readable again."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from understudy.boundary.schema.column import Boolean, Categorical, Datetime, Identifier, Integer, Number
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import DRAFT, DRAFT_LINE, Schema
from understudy.boundary.tables.draft import MOST_CATEGORIES, draft_schema
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import TableError


def drafted(values):
    """The column drafted for these values; a second column keeps the schema from being empty."""
    return draft_schema(pa.table({"x": values, "n": list(range(len(values)))}))["x"]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([3, 5, 4], Integer("x", minimum=3, maximum=5)),
        (["3", " 5", "4"], Integer("x", minimum=3, maximum=5)),
        ([7, 7, 7], Integer("x", minimum=7, maximum=7)),
        ([0, 1, 1], Integer("x", minimum=0, maximum=1)),
        ([1, 9, 9], Categorical("x", values=(1, 9))),
        ([0.5, 2.25, None], Number("x", minimum=0.5, maximum=2.25, decimals=2, missing=True)),
        (["0.5", "0.5", "nan"], Number("x", minimum=0.5, maximum=1.5, decimals=1, bins=5, missing=True)),
        ([1.5, 1.5], Number("x", minimum=1.5, maximum=2.5, decimals=1, bins=5)),
        ([2**60, 5], Number("x", minimum=5.0, maximum=float(2**60), decimals=0)),
        (["b", "a", "b"], Categorical("x", values=("a", "b"))),
        (["a", "a"], Categorical("x", values=("a",))),
        (["a", "?", "", None], Categorical("x", values=("a",), missing=True)),
        (["yes", "no"], Categorical("x", values=("no", "yes"))),
        (["true", "False"], Boolean("x")),
        ([True, None], Boolean("x", missing=True)),
        (["2024-01-31", "2023-05-01"], Datetime("x", minimum=datetime(2023, 5, 1), maximum=datetime(2024, 1, 31))),
        (
            [date(2024, 1, 31), None],
            Datetime("x", minimum=datetime(2024, 1, 31), maximum=datetime(2024, 1, 31), missing=True),
        ),
        ([None, None], Identifier("x")),
        (["", "?"], Identifier("x")),
    ],
)
def test_a_type_is_drafted_for_each_column(values, column):
    assert drafted(values) == column


def test_times_of_day_are_drafted_by_the_second():
    column = drafted([datetime(2024, 1, 1, 5, 6, 7, 89), datetime(2024, 1, 2)])
    assert column.resolution == "second" and column.start == datetime(2024, 1, 1, 5, 6, 7)


def test_texts_with_too_many_values_are_drafted_as_identifiers():
    names = [f"person {i}" for i in range(30)]
    assert isinstance(drafted(names), Identifier)
    assert isinstance(drafted(names * 3), Categorical)
    assert isinstance(drafted([f"t{i}" for i in range(MOST_CATEGORIES + 1)] * 3), Identifier)


def test_a_draft_says_so_in_its_first_line_and_is_read_back():
    schema = draft_schema(pa.table({"age": [1, 2], "job": ["?", "cook"], "we ird.\"k'ey": [1.5, 2.0]}))
    text = schema.dumps()
    assert schema.status == DRAFT and schema.missing_values == ("?",)
    assert text.splitlines()[0] == DRAFT_LINE and DRAFT_LINE.startswith("# DRAFT")
    assert Schema.loads(text) == schema
    confirmed = text.replace('status = "draft"', 'status = "confirmed"')
    assert Schema.loads(confirmed).status == "confirmed"


@pytest.mark.parametrize("token", ["?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"])
def test_usual_tokens_of_a_missing_value_are_found(token):
    schema = draft_schema(pa.table({"x": ["a", token, "b"], "y": ["1", "2", token]}))
    assert schema.missing_values == (token,)
    assert schema["x"] == Categorical("x", values=("a", "b"), missing=True)
    assert schema["y"] == Integer("y", minimum=1, maximum=2, missing=True)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_every_kind_of_frame_is_drafted_alike(frame):
    schema = draft_schema(frame({"a": [1, 2, 3], "b": ["x", "y", "x"]}))
    assert schema.columns == (Integer("a", minimum=1, maximum=3), Categorical("b", values=("x", "y")))


def test_nothing_to_model_is_refused():
    with pytest.raises(TableError, match="no schema can be drafted: every column is an identifier"):
        draft_schema(pa.table({"x": [None, None]}))
    with pytest.raises(TableError, match="a dict can't be read; give a frame or a path"):
        draft_schema({"x": [1]})
    with pytest.raises(TableError, match="does not exist, or is not a file"):
        draft_schema("nowhere.csv")


KINDS = {
    "adult.train.csv": {"age": Integer, "workclass": Categorical, "fnlwgt": Integer, "income": Categorical},
    "insurance.csv": {"age": Integer, "bmi": Number, "smoker": Categorical, "charges": Number, "children": Integer},
    "healthcare.csv": {
        "Name": Identifier,
        "Date of Admission": Datetime,
        "Gender": Categorical,
        "Hospital": Identifier,
    },
    "mushroom.csv": {"class": Categorical, "bruises": Boolean, "stalk-root": Categorical},
    "votes.csv": {"Class": Categorical, "immigration": Categorical},
    "nursery.csv": {"parents": Categorical, "classification": Categorical},
    "covertype.csv": {"elevation": Integer, "cover_type": Integer},
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", KINDS)
def test_real_tables_get_the_types_a_person_would_choose(shared_data, name):
    path = shared_data / name
    schema = draft_schema(path)
    assert {c: type(schema[c]) for c in KINDS[name]} == KINDS[name]
    assert Schema.loads(schema.dumps()) == schema
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(schema.names) == list(frame.columns)
    domain = Domain.of(schema)
    assert sum(c.missing for c in schema.modelled) == sum((frame[c.name] == "?").any() for c in schema.modelled)
    for coding, counts in zip(
        domain, open_table(path, schema).count_by(domain, [(n,) for n in domain.names]), strict=True
    ):
        assert counts.sum() == len(frame)
        if coding.labels is not None and isinstance(coding.labels[0], str):  # a draft lists exactly what is there
            assert np.all(counts > 0)
