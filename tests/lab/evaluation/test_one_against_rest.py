"""A target of several classes as two: one value, and any other."""

from __future__ import annotations

import pyarrow as pa
import pytest

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import chosen

SCHEMA = Schema.loads(
    '[columns.x]\ntype = "integer"\nmin = 0\nmax = 99\n'
    '[columns.y]\ntype = "categorical"\nvalues = ["a", "b", "c", "d"]\nmissing = true\n'
)


def table(*values: str | None) -> pa.Table:
    return pa.table({"x": range(len(values)), "y": pa.array(values, pa.string())})


def compared() -> Comparison:
    return Comparison.of(
        table("a", "b", "c", None), table("c", "c", "b", "a"), holdout=table("b", None), schema=SCHEMA, target="y"
    )


def test_every_other_value_is_one_class_and_missing_stays_missing():
    found = compared().one_against_rest("b")
    assert found["y"].labels == ("not b", "b")
    assert found.real.codes["y"].tolist() == [0, 1, 0, 2]
    assert found.synthetic.codes["y"].tolist() == [0, 0, 1, 0]
    assert found.test.codes["y"].tolist() == [1, 2]
    assert found.real.codes["x"].tolist() == compared().real.codes["x"].tolist()
    assert found.real.counts([found["y"]]).tolist() == [2, 1, 1]


def test_a_declared_value_that_no_row_has_is_a_class_without_rows():
    assert compared().one_against_rest("d").real.codes["y"].tolist() == [0, 0, 0, 2]


def test_classifiers_are_asked_for_it():
    rows = table(*"abcd" * 30)
    found = Comparison.of(rows, rows, holdout=rows, schema=SCHEMA, target="y").one_against_rest("c")
    (accuracy,) = (m.of(found) for m in chosen(["trts-accuracy"]))
    logistic = next(p.value for p in accuracy.parts if p.name == "logistic regression")
    assert logistic == 0.75  # x says nothing, so the commoner class is said: three of four values are not c


def test_what_is_not_declared_is_refused_without_a_look():
    with pytest.raises(InputError, match="'e' is no declared value of 'y'; they are a, b, c, d"):
        compared().one_against_rest("e")
    with pytest.raises(InputError, match="'x' has no declared values"):
        Comparison.of(table("a"), table("a"), schema=SCHEMA, target="x").one_against_rest("1")
