"""Stated values: read as their column's type, coded as the encoder of rows codes them, or refused with a sentence."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import understudy as us
from understudy.releases.evidence import Evidence, check_stated

SCHEMA = us.Schema.loads(
    """
    missing_values = ["?"]
    [columns.name]
    type = "identifier"
    [columns.job]
    type = "categorical"
    values = ["clerk", "cook", "nurse"]
    missing = true
    [columns.town]
    type = "categorical"
    values = ["Aachen", "Basel", "Berlin", "Bern", "Bonn", "Genf", "Kiel", "Köln", "Wien"]
    [columns.grade]
    type = "ordinal"
    values = [1, 2, 3]
    [columns.age]
    type = "integer"
    min = 0
    max = 999
    missing = true
    [columns.pay]
    type = "number"
    min = -10
    max = 100
    bins = 7
    [columns.smoker]
    type = "boolean"
    [columns.hired]
    type = "datetime"
    min = 2020-01-01
    max = 2021-12-31
    [columns.seen]
    type = "datetime"
    min = 2020-01-01T00:00:00
    max = 2020-01-01T23:59:59
    resolution = "minute"
    format = "%d.%m.%Y %H:%M"
    """
)
DOMAIN = us.Domain.of(SCHEMA)

READ: dict[str, tuple[str, object, object]] = {
    "text": ("job", "cook", "cook"),
    "text with spaces": ("job", " cook ", "cook"),
    "missing": ("job", None, None),
    "missing, as typed": ("job", "", None),
    "missing, as the schema writes it": ("job", "?", None),
    "missing, as pandas has it": ("age", float("nan"), None),
    "missing, as pandas has moments": ("job", pd.NaT, None),
    "missing, as pandas has the rest": ("age", pd.NA, None),
    "missing, as numpy has moments": ("job", np.datetime64("NaT"), None),
    "text of numpy": ("job", np.str_("cook"), "cook"),
    "moment of numpy": ("hired", np.datetime64("2020-05-17", "ns"), "2020-05-17"),
    "label that is a number": ("grade", 2.0, 2),
    "label that is a number, as typed": ("grade", "2", 2),
    "whole number": ("age", 41, 41),
    "whole number, as typed": ("age", "41", 41),
    "whole number in a float": ("age", np.float64(41), 41),
    "number": ("pay", 12.345678, 12.345678),
    "upper bound": ("pay", 100, 100.0),
    "lower bound": ("pay", "-10", -10.0),
    "boolean": ("smoker", True, True),
    "boolean, as typed": ("smoker", "No", False),
    "date": ("hired", date(2020, 5, 17), "2020-05-17"),
    "date, as typed": ("hired", "2020-05-17", "2020-05-17"),
    "finer than the resolution": ("hired", datetime(2020, 5, 17, 13, 30), "2020-05-17"),
    "moment in the column's format": ("seen", "01.01.2020 13:05", "2020-01-01T13:05:00"),
    "moment of pandas": ("seen", pd.Timestamp("2020-01-01T13:05:59"), "2020-01-01T13:05:00"),
}


@pytest.mark.parametrize("case", READ)
def test_values_are_read_as_their_column(case: str):
    column, value, recorded = READ[case]
    found = check_stated({column: value}, SCHEMA)[column]
    assert found == recorded and type(found) is type(recorded)
    assert check_stated({column: found}, SCHEMA)[column] == found  # what is recorded reads the same again


def test_codes_are_those_of_the_encoder_of_rows():
    """Every kind of column, at the ends of its domain and inside: one row each, counted by the table."""
    rows = pa.table(
        {
            "name": ["x"] * 4,
            "job": ["clerk", "nurse", None, "cook"],
            "town": ["Aachen", "Wien", "Köln", "Bern"],
            "grade": [1, 3, 2, 2],
            "age": [0, 999, None, 417],
            "pay": [-10.0, 100.0, 99.9999, 5.714285714285714],
            "smoker": [True, False, False, True],
            "hired": pa.array([date(2020, 1, 1), date(2021, 12, 31), date(2020, 7, 9), date(2021, 1, 1)]),
            "seen": ["01.01.2020 00:00", "01.01.2020 23:59", "01.01.2020 12:00", "01.01.2020 07:30"],
        }
    )
    for i in range(rows.num_rows):
        row = us.open(rows.slice(i, 1), SCHEMA)
        evidence = Evidence.stated({n: rows[n][i].as_py() for n in DOMAIN.names}, DOMAIN)
        for name, counts in zip(DOMAIN.names, row.count_by(DOMAIN, [(n,) for n in DOMAIN.names]), strict=True):
            assert evidence.codes[name].tolist() == np.flatnonzero(counts).tolist(), (name, i)


REFUSED: dict[str, tuple[str, object, str]] = {
    "above the bound": ("age", 1000, "column 'age': given value (1000) must be a whole number from 0 to 999"),
    "below the bound": ("pay", -10.01, "given value (-10.01) must be a number from -10 to 100"),
    "fraction": ("age", "41.5", "must be a whole number"),
    "no number": ("age", "old", "given value ('old') must be a whole number from 0 to 999"),
    "truth as a number": ("age", True, "must be a whole number"),
    "infinite": ("pay", float("inf"), "must be a number"),
    "unknown label": ("job", "Cook", "given value ('Cook') must be one of clerk, cook, nurse"),
    "unknown label of many": ("town", "berlin", "must be one of the 9 values of the schema, such as Berlin"),
    "unknown numeric label": ("grade", 4, "must be one of 1, 2, 3"),
    "neither true nor false": ("smoker", "maybe", "must be true or false"),
    "missing where nothing is": ("grade", "", "must not be missing"),
    "date after the last": ("hired", "2022-01-01", "must be a date from 2020-01-01"),
    "no date": ("hired", "spring", "must be a date"),
    "a list": ("age", [1], "must be a whole number"),
    "unknown column": ("salary", 1, "column 'salary' is not in the schema"),
    "identifier": ("name", "x", "is an identifier"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_outside_of_the_domain_are_refused(case: str):
    column, value, words = REFUSED[case]
    with pytest.raises(us.InputError) as caught:
        check_stated({column: value}, SCHEMA)
    assert words in str(caught.value)


def test_a_private_column_is_refused():
    schema = us.Schema.loads('[columns.a]\ntype = "categorical"\nvalues = "private"\n[columns.b]\ntype = "boolean"')
    with pytest.raises(us.InputError, match="'a' is private until it is bought"):
        check_stated({"a": "x"}, schema)


def test_given_must_be_a_mapping():
    with pytest.raises(us.InputError, match="given must map columns to values"):
        check_stated(["sex=Female"], SCHEMA)  # type: ignore[arg-type]
