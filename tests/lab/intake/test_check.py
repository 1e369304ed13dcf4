"""A schema beside its rows: what is counted is what a release would do, and what is said names it."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.lab.intake import check as checking
from understudy.lab.intake.verdict import spoken

PEOPLE = """
[columns.sex]
type = "categorical"
values = ["Female", "Male"]
[columns.pay]
type = "number"
min = 0
max = 100
decimals = 1
[columns.age]
type = "integer"
min = 18
max = 65
[columns.since]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
[columns.smoker]
type = "boolean"
"""


def table(schema: str, **columns: list[Any]) -> us.Table:
    return us.open(pa.table(columns), us.Schema.loads(schema), name="people")


def people(**changed: list[Any]) -> us.Table:
    columns: dict[str, list[Any]] = {
        "sex": ["Female", "Male"] * 50,
        "pay": [float(i) for i in range(100)],
        "age": [20 + i % 40 for i in range(100)],
        "since": [dt.date(2020, 1, 1) + dt.timedelta(days=3 * i) for i in range(100)],
        "smoker": [True, False] * 50,
    }
    return table(PEOPLE, **(columns | changed))


def test_a_schema_that_fits_has_nothing_to_mend() -> None:
    found = us.check(people())
    assert found.to_mend == () and found.rows == 100
    assert all(c.changed == 0 for c in found.columns)


def test_one_capital_letter_is_found_with_what_was_meant() -> None:
    found = us.check(people(sex=["Female", "male"] * 50))
    assert found["sex"].undeclared == 50
    assert spoken(found["sex"].strange[0]) == "'male', 50 rows: did you mean 'Male'?"
    assert "did you mean 'Male'?" in found.verdict and found.verdict.startswith("Mend the schema")


def test_a_slip_of_the_pen_is_to_be_mended_however_rare() -> None:
    (issue,) = us.check(people(sex=["Male "] * 999 + ["Mael"], pay=[1.0] * 1000, age=[30] * 1000,
                               since=[dt.date(2020, 3, 1)] * 1000, smoker=[True] * 1000)).to_mend  # fmt: skip
    assert issue.share == pytest.approx(0.001)


def test_values_outside_the_bounds_are_counted_on_both_sides() -> None:
    pay = [-1.0, 0.0, 100.0, 100.5, float("inf"), *[50.0] * 95]
    age = [17, 18, 65, 66, *[30] * 96]
    since = [dt.date(2019, 12, 31), dt.date(2020, 12, 31), dt.date(2021, 1, 1), *[dt.date(2020, 5, 5)] * 97]
    found = us.check(people(pay=pay, age=age, since=since))
    assert [(found[n].below, found[n].above) for n in ("pay", "age", "since")] == [(1, 2), (1, 1), (1, 1)]
    assert found["since"].least == "2019-12-31" and found["age"].most == "66"


def test_decimal_commas_and_words_can_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "pay.csv"
    path.write_text("pay\n" + '"1,5"\n' * 60 + "N\n" * 30 + "7.5\n" * 10)
    found = us.check(us.open(path, us.Schema.loads('[columns.pay]\ntype = "number"\nmin = 0\nmax = 9')))
    assert found["pay"].unreadable == 90
    assert [s.text for s in found["pay"].strange] == ["1,5", "N"]
    assert "decimal comma" in found.to_mend[0].words


def test_missing_values_that_nobody_declared() -> None:
    found = us.check(people(pay=[None] * 10 + [5.0] * 90))
    assert found["pay"].missing == 10 and found["pay"].missing_undeclared == 10
    declared = PEOPLE.replace('type = "number"', 'type = "number"\nmissing = true')
    columns = {n: ["Male"] * 4 if n == "sex" else v for n, v in {
        "sex": [], "pay": [None, 1.0, 2.0, 3.0], "age": [20] * 4, "since": [dt.date(2020, 2, 2)] * 4,
        "smoker": [True] * 4}.items()}  # fmt: skip
    assert us.check(table(declared, **columns))["pay"].missing_undeclared == 0


def test_what_becomes_other_was_meant_to() -> None:
    schema = '[columns.ward]\ntype = "categorical"\nvalues = ["surgery", "cardiology"]\nother = "elsewhere"'
    found = us.check(table(schema, ward=["surgery"] * 6 + ["radiology 7"] * 4))
    assert found["ward"].undeclared == 4 and found["ward"].changed == 0
    found = us.check(table(schema, ward=["surgery"] * 6 + ["Surgery"] * 4))
    assert found.to_mend


def test_rows_that_break_a_rule_are_counted_and_unknown_ones_are_not() -> None:
    # With a date that is moved, since conditions are written anew for the engine.
    rule = (
        PEOPLE
        + "[[constraints]]\nthen = \"since + 400 > DATE '2021-01-01' and pay * 2.5 < 1e6\"\n"
        + '[[constraints]]\nif = "age < 30"\nthen = "NOT smoker"\n'
    )
    young = [20, 20, 20, 40] * 25
    columns = {"sex": ["Male"] * 100, "pay": [1.0] * 100, "age": young, "since": [dt.date(2020, 2, 2)] * 100}
    found = us.check(table(rule, **columns, smoker=[True, False, None, True] * 25))
    assert [(r.text, r.broken) for r in found.rules] == [
        ("since + 400 > DATE '2021-01-01' and pay * 2.5 < 1e6", 0),
        ("if age < 30 then NOT smoker", 25),
    ]
    assert any(i.place == "constraints" for i in found.to_mend)


def test_each_cap_says_what_it_would_lose() -> None:
    schema = PEOPLE + '[unit]\ncolumn = "who"\nmax_rows = 2\n[columns.who]\ntype = "identifier"\n'
    ids = ["a"] * 5 + ["b"] * 3 + ["c", "", "d"]
    n = len(ids)
    found = us.check(table(schema, who=ids, sex=["Male"] * n, pay=[1.0] * n, age=[30] * n,
                           since=[dt.date(2020, 2, 2)] * n, smoker=[True] * n))  # fmt: skip
    person = found.person
    assert person is not None and (person.persons, person.without_id, person.most) == (4, 1, 5)
    assert [(c.max_rows, c.rows_lost, c.persons_cut) for c in person.caps] == [(1, 6, 2), (2, 4, 2), (3, 2, 1)]
    assert found.protects == "one who with at most 2 rows" and any(i.place == "[unit]" for i in found.issues)


def test_wide_bins_move_the_median_of_skewed_amounts() -> None:
    amounts = [round(float(x), 2) for x in np.exp(np.random.Generator(np.random.PCG64(3)).normal(3, 2, 4000))]
    schema = '[columns.amount]\ntype = "number"\nmin = 0\nmax = 60000\n'
    wide = us.check(table(schema, amount=amounts))["amount"]
    cut = us.check(table(schema + "cuts = [1, 5, 10, 20, 40, 80, 200, 1000]", amount=amounts))["amount"]
    assert wide.blur is not None and cut.blur is not None
    assert wide.blur.moved > 1 > 0.1 > cut.blur.moved


def test_private_parts_are_left_alone() -> None:
    schema = """
[columns.when]
type = "datetime"
min = "private"
max = "private"
[columns.what]
type = "categorical"
values = "private"
[columns.pay]
type = "number"
min = 0
max = 9
[[constraints]]
then = "pay > 1"
[[constraints]]
then = "what <> 'x'"
"""
    found = us.check(table(schema, when=[dt.date(2020, 1, 1), dt.date(2021, 1, 1)], what=["x", "y"], pay=[1.0, 2.0]))
    assert [(c.undeclared, c.clamped, c.cells) for c in found.columns[:2]] == [(0, 0, None)] * 2
    assert [r.broken for r in found.rules] == [1, None]


def test_long_lists_of_values_are_told_apart() -> None:
    labels = [f"place {i}" for i in range(60)]
    schema = f'[columns.place]\ntype = "categorical"\nvalues = {json.dumps(labels)}\n[columns.b]\ntype = "boolean"'
    found = us.check(table(schema, place=[*labels, "nowhere", None], b=[True] * 62))
    assert (found["place"].undeclared, found["place"].missing) == (1, 1)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_files_are_checked_like_frames(tmp_path: Path, ending: str) -> None:
    opened = people(sex=["Female", "male"] * 50, pay=[-3.0, *[5.0] * 99])
    columns = {"sex": ["Female", "male"] * 50, "pay": [-3.0, *[5.0] * 99]}
    columns |= {"age": [20 + i % 40 for i in range(100)], "smoker": [True, False] * 50}  # type: ignore[dict-item]
    columns |= {"since": [dt.date(2020, 1, 1) + dt.timedelta(days=3 * i) for i in range(100)]}  # type: ignore[dict-item]
    path = tmp_path / f"people{ending}"
    if ending == ".csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.table(columns), path)
    of_file, of_frame = us.check(us.open(path, us.Schema.loads(PEOPLE))), us.check(opened)
    assert of_file.columns == of_frame.columns


def test_counts_agree_with_those_of_a_release() -> None:
    """What is clamped or strange is in the very cell in which a release counts it."""
    pay, age = [-1.0, 200.0, None, 5.0] * 25, [5, 70, 30, 40] * 25
    opened = people(sex=["Female", "male", None, "Male"] * 25, pay=pay, age=age)
    domain = Domain.of(opened.schema)
    sexes, pays, ages = opened.count_by(domain, [("sex",), ("pay",), ("age",)])
    found = us.check(opened)
    assert sexes[0] == 25 + found["sex"].undeclared + found["sex"].missing
    assert (pays[0], pays[-1]) == (found["pay"].below + found["pay"].missing, found["pay"].above)
    assert (ages[0], ages[-1]) == (found["age"].below, found["age"].above)


def test_estimated_quantiles_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = us.check(people())["pay"].blur
    monkeypatch.setattr(checking, "EXACTLY", 1)
    estimated = us.check(people())["pay"].blur
    assert exact is not None and estimated is not None
    assert estimated.median[0] == pytest.approx(exact.median[0], abs=3)


def test_parts_are_told_as_they_begin() -> None:
    told: list[str] = []
    us.check(people(), progress=told.append)
    assert told == [s for s in checking.STEPS if "person" not in s]


def test_only_open_tables_with_rows_are_checked() -> None:
    with pytest.raises(us.TableError, match=r"us\.open"):
        us.check(pa.table({"a": [1]}))  # type: ignore[arg-type]
    with pytest.raises(us.TableError, match="no rows"):
        us.check(us.open(people_frame().slice(0, 0), us.Schema.loads(PEOPLE)))


def people_frame() -> pa.Table:
    return pa.table({"sex": ["Male"], "pay": [1.0], "age": [20], "since": [dt.date(2020, 1, 1)], "smoker": [True]})


def test_nothing_shows_values_but_the_report_itself() -> None:
    found = us.check(people(sex=["canary-of-a-person"] * 100))
    assert "canary" not in repr(found) and "internal" in repr(found)
    assert "canary" in found.to_html() and "INTERNAL" in found.to_html()
    assert "<script>alert" not in us.check(people(sex=["<script>alert(1)</script>"] * 100)).to_html()
    assert json.loads(found.to_json())["to_mend"] == 1 and "Internal" in found._repr_html_()
