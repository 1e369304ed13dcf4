"""One row must not change how the others are read, whatever it does to the type in which a frame stores a column."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

import understudy as us

LABELS = '[columns.x]\ntype = "categorical"\nvalues = ["1", "2"]\nother = "none of these"\nmissing = true\n'
CODED = '[columns.x]\ntype = "categorical"\nvalues = [1, 2]\nmissing = true\n'
FLAG = '[columns.x]\ntype = "boolean"\nmissing = true\n'
TOKEN = 'missing_values = ["-9"]\n[columns.x]\ntype = "integer"\nmin = -20\nmax = 9\nmissing = true\n'
DAY = '[columns.x]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nformat = "%d/%m/%Y"\nmissing = true\n'
NUMBER = '[columns.x]\ntype = "number"\nmin = 0\nmax = 9\nmissing = true\n'

DAYS = [datetime(2020, 3, 1), datetime(2020, 3, 2)]
CASES = {
    "whole numbers as labels": (LABELS, [1, 2, 1, 7]),
    "whole numbers as codes": (CODED, [1, 2, 1, 7]),
    "whole numbers as flags": (FLAG, [1, 0, 1, 1]),
    "truth values": (FLAG, [True, False, True]),
    "a token of missing values": (TOKEN, [1, -9, 3]),
    "dates with a format": (DAY, DAYS),
    "days with a format": (DAY, [date(2020, 3, 1), date(2020, 3, 2)]),
    "numbers": (NUMBER, [0.5, 2.0, 7.25]),
}
ODD_ROWS = {"none": None, "not a number": float("nan"), "text": "n/a", "a float": 2.5, "an empty text": ""}


def counts(values: list[object], schema: us.Schema) -> np.ndarray:
    table = us.open(pd.DataFrame({"x": pd.Series(values)}), schema)
    return table.count_by(us.Domain.of(schema), [("x",)])[0]


@pytest.mark.parametrize("odd", ODD_ROWS.values(), ids=ODD_ROWS)
@pytest.mark.parametrize(("toml", "values"), CASES.values(), ids=CASES)
def test_one_row_more_moves_one_count(toml: str, values: list[object], odd: object):
    schema = us.Schema.loads(toml)
    change = counts([*values, odd], schema) - counts(values, schema)
    assert np.abs(change).sum() == 1 and change.sum() == 1


def test_whole_floats_are_the_labels_that_integers_are():
    schema = us.Schema.loads(LABELS)
    assert counts([1.0, 2.0, float("nan")], schema).tolist() == [1, 1, 0, 1]
