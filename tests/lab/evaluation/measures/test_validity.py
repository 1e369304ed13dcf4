"""Coverage, bounds, lists, rules and missing values: small tables whose shares a person can count."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import NEEDS, SCHEMA, MeasurePart
from understudy.lab.evaluation.measures.validity import MEASURES, expressed

BY_NAME = {m.name: m for m in MEASURES}
VISITS = """
[columns.ward]
type = "categorical"
values = ["A", "B", "C"]
other = "elsewhere"
missing = true
[columns.floor]
type = "categorical"
values = [1, 2, 3]
[columns.urgent]
type = "boolean"
missing = true
[columns.cost]
type = "number"
min = 0
max = 100
missing = true
[columns.day]
type = "datetime"
min = 2020-03-01T12:00:00
max = 2020-03-10T12:00:00
missing = true
"""
RULES = """
[[constraints]]
if = "day >= '2020-03-05'"
then = "cost > 10"
[[constraints]]
then = "not (urgent and ward = 'C')"
[[constraints]]
if = "floor = 3"
then = "ward is not null"
"""
DAYS = ["2020-03-01", "2020-03-04", "2020-03-05", "2020-03-10"]


def visits(**columns: list[object]) -> pa.Table:
    table = {
        "ward": ["A", "B", "C", None],
        "floor": [1, 2, 3, 1],
        "urgent": [True, False, False, None],
        "cost": [0.0, 20.0, 40.0, None],
        "day": DAYS,
    } | columns
    days = [None if d is None else datetime.fromisoformat(str(d)) for d in table["day"]]
    return pa.table(table | {"day": pa.array(days, pa.timestamp("us"))})


def parts_of(name: str, synthetic: pa.Table, rules: str = "", real: pa.Table | None = None) -> dict[str, MeasurePart]:
    comparison = Comparison.of(visits() if real is None else real, synthetic, schema=Schema.loads(VISITS + rules))
    return {p.name: p for p in BY_NAME[name].of(comparison).parts}


def test_a_table_covers_itself_and_breaks_nothing() -> None:
    comparison = Comparison.of(visits(), visits(), schema=Schema.loads(VISITS + RULES))
    assert {m.name: m.of(comparison).value for m in MEASURES} == {
        "category-coverage": 1.0,
        "range-coverage": 1.0,
        "out-of-range": 0.0,
        "undeclared": 0.0,
        "violations": 0.0,
        "missingness": 0.0,
    }


def test_category_coverage_weighs_all_categories_alike() -> None:
    parts = parts_of("category-coverage", visits(ward=["A", "A", "B", "Z"], floor=[1, 1, 1, 1]))
    assert parts["ward"].value == pytest.approx(2 / 3) and parts["ward"].note == "2 of 3"
    assert parts["floor"].value == pytest.approx(1 / 3)
    assert parts["urgent"].value == 1.0


def test_range_coverage_is_the_overlap_of_the_ranges() -> None:
    parts = parts_of("range-coverage", visits(cost=[30.0, 90.0, None, None], day=[DAYS[1]] * 4))
    assert parts["cost"].value == pytest.approx(0.25)  # 30 to 40 out of 0 to 40
    assert parts["day"].value == 0.0
    assert parts_of("range-coverage", visits(cost=[50.0, 60.0, 70.0, 80.0]))["cost"].value == 0.0


def test_values_out_of_declared_bounds_are_counted_among_those_present() -> None:
    days = ["2020-02-29 23:00", "2020-03-01 00:00", "2020-03-10 23:59", "2020-03-11 00:00"]
    parts = parts_of("out-of-range", visits(cost=[-1.0, 100.0, 100.5, None], day=days))
    assert parts["cost"].value == pytest.approx(2 / 3)
    assert parts["day"].value == 0.5  # bounds hold to the day, which is the resolution
    assert parts["day"].note == "2 of 4"


def test_private_bounds_and_lists_have_reasons() -> None:
    private = Schema.loads('[columns.cost]\ntype = "number"\nmin = "private"\nmax = "private"\n[columns.ward]\n'
                           'type = "categorical"\nvalues = "private"\n[columns.day]\ntype = "datetime"\n'
                           'min = "private"\nmax = "private"\n')  # fmt: skip
    comparison = Comparison.of(visits(), visits(), schema=private)
    for name, columns, said in (("out-of-range", 2, "bounds"), ("undeclared", 1, "values")):
        figure = BY_NAME[name].of(comparison)
        assert figure.value is None
        assert [p.reason for p in figure.parts] == [f"the schema declares no {said} of it"] * columns


def test_undeclared_categories() -> None:
    strange = visits(ward=["A", "Z", "elsewhere", None], floor=[1, 2, 3, 4], urgent=["yes", "0", "maybe", None])
    parts = parts_of("undeclared", strange)
    assert [parts[c].value for c in ("ward", "floor", "urgent")] == pytest.approx([1 / 3, 1 / 4, 1 / 3])


def test_violations_are_rows_that_break_any_rule() -> None:
    synthetic = visits(
        ward=["C", "C", None, None],
        floor=[1, 1, 3, 1],
        urgent=[True, None, True, False],
        cost=[5.0, 5.0, 5.0, None],
        day=["2020-03-04", None, "2020-03-05", "2020-03-09"],
    )
    comparison = Comparison.of(visits(), synthetic, schema=Schema.loads(VISITS + RULES))
    figure = BY_NAME["violations"].of(comparison)
    # The first row breaks the second rule, the third row the first and the third; what is unknown passes.
    assert figure.value == 0.5 and figure.note == "2 of 4 rows"
    assert [(p.name, p.value) for p in figure.parts] == [
        ("if day >= '2020-03-05' then cost > 10", 0.25),
        ("not (urgent and ward = 'C')", 0.25),
        ("if floor = 3 then ward is not null", 0.25),
    ]


def test_expressions_read_the_values_that_were_in_the_table() -> None:
    comparison = Comparison.of(visits(), visits(), schema=Schema.loads(VISITS))
    read = {v.name: expressed(v, comparison.synthetic) for v in comparison.variables}
    assert read["day"].data.tolist() == [datetime.fromisoformat(d) for d in DAYS]
    assert read["ward"].data.tolist() == ["A", "B", "C", None]
    assert read["floor"].data.tolist() == [1, 2, 3, 1]
    assert read["urgent"].data[:3].tolist() == [True, False, False]
    assert {n: v.absent().tolist().count(True) for n, v in read.items()} == {
        "ward": 1, "floor": 0, "urgent": 1, "cost": 1, "day": 0
    }  # fmt: skip


def test_moments_finer_than_the_resolution_are_kept() -> None:
    synthetic = visits(day=["2020-03-05 09:30:15.250000", None, "2019-12-31 23:59:59", "2020-03-01"])
    comparison = Comparison.of(visits(), synthetic, schema=Schema.loads(VISITS))
    found = expressed(comparison["day"], comparison.synthetic).data
    assert found.tolist() == [
        datetime(2020, 3, 5, 9, 30, 15, 250_000),
        None,
        datetime(2019, 12, 31, 23, 59, 59),
        datetime(2020, 3, 1),
    ]


def test_a_rule_about_a_column_that_is_not_there_has_a_reason() -> None:
    tables = visits().drop_columns(["urgent"]), visits()
    figure = BY_NAME["violations"].of(Comparison.of(*tables, schema=Schema.loads(VISITS + RULES)))
    assert [p.reason for p in figure.parts] == ["", "the tables do not share 'urgent'", ""]
    assert figure.value == 0.0
    none = Comparison.of(visits().select(["ward"]), visits(), schema=Schema.loads(VISITS + RULES))
    assert BY_NAME["violations"].of(none).reason == "no constraint can be checked; each says why"


def test_without_rules_or_without_a_schema_there_is_a_reason() -> None:
    assert BY_NAME["violations"].of(Comparison.of(visits(), visits(), schema=Schema.loads(VISITS))).reason == (
        "the schema has no constraints"
    )
    drafted = Comparison.of(visits(), visits())
    for name in ("out-of-range", "undeclared", "violations"):
        assert BY_NAME[name].of(drafted).reason == NEEDS[SCHEMA]


def test_missingness_compares_the_shares() -> None:
    parts = parts_of("missingness", visits(ward=["A", "B", "C", "C"], cost=[None, None, None, 1.0]))
    assert [parts[c].value for c in ("ward", "cost", "floor")] == [0.25, 0.5, 0.0]
    assert (parts["cost"].raw, parts["cost"].reference) == (0.75, 0.25)


def test_shuffled_columns_break_rules_and_nothing_else(people: pa.Table, shuffled: pa.Table, schema: Schema) -> None:
    comparison = Comparison.of(people, shuffled, schema=schema)
    values = {m.name: m.of(comparison).value for m in MEASURES}
    young = np.mean(np.array(people["age"]) < 30) * np.mean(np.array(people["job"].fill_null("")) == "judge")
    assert values.pop("violations") == pytest.approx(young, rel=0.5) and young > 0.01
    assert values == {n: float("coverage" in n) for n in values}


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)
def test_broken_tables_give_figures_or_reasons(measure, broken_comparison: Comparison, check_sound) -> None:
    check_sound(measure, measure.of(broken_comparison))
