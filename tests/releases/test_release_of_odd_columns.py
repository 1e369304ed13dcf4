"""Releases of tables with special values, derived columns and heaped numbers: what is written, asked and replayed."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import understudy as us
from helpers.randomness import SilentRandomness
from helpers.tables import opened
from helpers.taint import differences
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.lab.audits.checks.taint import PinnedGate
from understudy.lab.evaluation.comparison import Comparison
from understudy.methods.method import Options
from understudy.releases.release import Release
from understudy.releases.synthesis import Plan, synthesize_with

SCHEMA = us.Schema.loads("""
missing_values = ["?"]
[columns.age]
type = "integer"
min = 0
max = 99
[columns.income]
type = "integer"
min = 0
max = 1000
bins = 8
step = 25
missing = true
special = ["N", -99]
[columns.rate]
type = "number"
min = -100
max = 100
bins = 10
decimals = 1
special = [-99]
[columns.admitted]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
format = "%d.%m.%Y"
[columns.discharged]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
missing = true
format = "%d.%m.%Y"
special = []
[columns.stay]
type = "derived"
of = "discharged - admitted"
min = 0
max = 20
missing = true
[columns.reviewed]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 6
special = ["open"]
[columns.net]
type = "number"
min = 0
max = 500
decimals = 2
[columns.tax]
type = "number"
min = 0
max = 100
decimals = 2
[columns.total]
type = "derived"
of = "net + tax"
rebuilds = "total"
decimals = 2
[[constraints]]
if = "age < 15"
then = "income = 'N'"
[[constraints]]
then = "discharged >= admitted"
""")
METHODS = ("independent", "privbayes", "polya-tree", "mst", "rake")
ROWS = 1200


def people() -> dict[str, list]:
    """Nobody below 15 has an income; a fifth of the rest refuses; stays have 0 to 9 days."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 100, ROWS)
    income = [str(25 * rng.integers(0, 41)) for _ in age]
    drawn = rng.random(ROWS)
    income = [("-99" if u < 0.2 else "?" if u < 0.25 else i) for i, u in zip(income, drawn, strict=True)]
    income = ["N" if a < 15 else i for a, i in zip(age, income, strict=True)]
    admitted = [pd.Timestamp("2020-01-01") + pd.Timedelta(days=int(d)) for d in rng.integers(0, 350, ROWS)]
    stay = rng.integers(0, 10, ROWS)
    discharged = [a + pd.Timedelta(days=int(s)) for a, s in zip(admitted, stay, strict=True)]
    net = rng.integers(0, 40_000, ROWS) / 100
    tax = np.round(net * 0.19, 2)
    return {
        "age": age.tolist(),
        "income": income,
        "rate": np.where(drawn < 0.3, -99.0, np.round(100 * rng.random(ROWS) - 50, 1)).tolist(),
        "admitted": [f"{a:%d.%m.%Y}" for a in admitted],
        "discharged": ["?" if u > 0.9 else f"{d:%d.%m.%Y}" for d, u in zip(discharged, drawn, strict=True)],
        "reviewed": ["open" if u < 0.4 else f"{d:%Y-%m-%d}" for d, u in zip(discharged, drawn, strict=True)],
        "net": net.tolist(),
        "tax": tax.tolist(),
        "total": np.round(net + tax, 2).tolist(),
    }


PEOPLE = people()


def made(columns: dict[str, list], method: str, folder: Path, rows: int | None = None) -> Release:
    table = opened("csv", columns, SCHEMA, folder)
    plan = Plan.of(SCHEMA, Budget(5.0, 1e-6), method, Options(), rows, seed=3)
    return synthesize_with(table, plan, randomness=SilentRandomness())


def as_written(release: Release) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(release.synthetic_bytes("csv")), dtype=str, keep_default_na=False)


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, Release]:
    return {m: made(PEOPLE, m, tmp_path_factory.mktemp(m)) for m in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_written_as_they_came_and_obey_what_the_schema_says(releases, method):
    rows = as_written(releases[method])
    assert list(rows.columns) == list(PEOPLE)
    special = rows.income.isin(["N", "-99", "?"])
    numbers = rows.income[~special].astype(int)
    assert (numbers % 25 == 0).all() and numbers.between(0, 1000).all()
    real = pd.Series(PEOPLE["income"]).value_counts() / ROWS
    for value in ("N", "-99", "?"):
        assert abs((rows.income == value).mean() - real[value]) < 0.05, value
    # A missing income breaks no rule about incomes.
    assert rows.income[rows.age.astype(int) < 15].isin(["N", "?"]).all()
    rate = rows.rate.astype(float)
    assert abs((rate == -99).mean() - 0.3) < 0.05 and rate[rate != -99].between(-100, 100).all()
    assert abs((rows.reviewed == "open").mean() - 0.4) < 0.05
    assert pd.to_datetime(rows.reviewed[rows.reviewed != "open"], format="%Y-%m-%d").dt.year.eq(2020).all()
    known = rows.discharged != "?"
    assert abs(known.mean() - 0.9) < 0.05
    first, last = (pd.to_datetime(rows[c][known], format="%d.%m.%Y") for c in ("admitted", "discharged"))
    stay = (last - first).dt.days
    assert stay.min() >= 0 and stay.max() <= 20 and (stay <= 9).mean() > 0.95
    total = rows.net.astype(float) + rows.tax.astype(float)
    assert np.allclose(total, rows.total.astype(float), atol=0.005)


def test_a_table_that_is_read_again_has_the_codes_that_were_drawn(releases):
    release = releases["independent"]
    again = us.open(release.arrow, SCHEMA)
    expected = release.arrow.column("income").to_pylist()
    counts = again.count_by(release.domain, [("income",), ("stay",)])
    coding = release.domain["income"]
    assert counts[0][coding.levels :].tolist() == [expected.count("N"), expected.count("-99"), expected.count(None)]
    assert counts[1].sum() == len(expected)


def test_questions_about_special_and_rebuilt_values(releases):
    release = releases["mst"]
    real = PEOPLE["income"]
    for question, wanted in {
        "income = 'N'": real.count("N"),
        "income = -99": real.count("-99"),
        "income IN ('N', -99)": real.count("N") + real.count("-99"),
        "income IS NULL": real.count("?"),
        "income < 0": 0,
        "income >= 0": sum(i.isdecimal() for i in real),
        "income <> 'N'": ROWS - real.count("N") - real.count("?"),
        "rate < -50": 0,
        "rate = -99": PEOPLE["rate"].count(-99.0),
        "reviewed = 'open'": PEOPLE["reviewed"].count("open"),
    }.items():
        assert abs(release.count(question).value - wanted) < 60, question
    assert abs(release.count("stay <= 9").value - PEOPLE["discharged"].count("?") * -1 - ROWS) < 60
    with pytest.raises(us.SchemaError, match=r"«discharged» in .* is rebuilt from stay and not modelled itself"):
        release.count("discharged > '2020-05-01'")
    with pytest.raises(us.SchemaError, match=r"«total» in .* is rebuilt from net \+ tax"):
        release.count("total > 5")


def test_rows_that_are_given_some_values(releases):
    release = releases["privbayes"]
    frame = pd.DataFrame({"income": ["N", "-99", None, "100"], "stay": [3, 0, 7, 1]})
    whole = us.complete(release, frame, seed=1) if hasattr(us, "complete") else release.complete(frame, seed=1)
    assert whole.income.isna().tolist() == [False, False, True, False]
    assert whole.income.dropna().tolist() == ["N", "-99", "100"]
    first, last = (pd.to_datetime(whole[c], format="%d.%m.%Y") for c in ("admitted", "discharged"))
    cut = last == pd.Timestamp("2020-12-31")  # where the declared end of the column comes first
    assert ((last - first).dt.days.eq([3, 0, 7, 1]) | cut).all()
    with pytest.raises(us.UnderstudyError, match="column 'discharged' is rebuilt from 'stay'"):
        release.complete(pd.DataFrame({"discharged": ["01.02.2020"]}), seed=1)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_release_is_replayed_byte_for_byte(releases, method, tmp_path):
    releases[method].save(tmp_path / "out")
    us.verify(tmp_path / "out")
    us.replay(tmp_path / "out")
    again = us.Schema.loads((tmp_path / "out" / "schema.toml").read_text())
    assert again == releases[method].schema and again.dumps() == SCHEMA.dumps()


HOSTILE = {
    "special values": {"income": "N", "rate": -99.0, "reviewed": "open"},
    "special values of other columns": {"income": "open", "rate": "N", "reviewed": "-99"},
    "dates that can't be subtracted": {"admitted": "soon", "discharged": "30.02.2020"},
    "dates that are far apart": {"admitted": "01.01.1066", "discharged": "31.12.9999"},
    "numbers that overflow": {"net": 1e308, "tax": "1e400", "income": "1e308"},
    "nothing": dict.fromkeys(PEOPLE),
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_row_changes_nothing_where_the_answers_are_the_same(hostile, tmp_path):
    ordinary = {name: values[0] for name, values in PEOPLE.items()}
    small = {name: values[:150] for name, values in PEOPLE.items()}
    first = made(small, "privbayes", tmp_path, 40)
    (tmp_path / "second").mkdir()
    table = opened(
        "csv", {n: [*v, (ordinary | HOSTILE[hostile])[n]] for n, v in small.items()}, SCHEMA, tmp_path / "second"
    )
    plan = Plan.of(SCHEMA, Budget(5.0, 1e-6), "privbayes", Options(), 40, seed=3)
    gate = PinnedGate(table, first.record, SilentRandomness())
    second = plan.release(Curator(SCHEMA, Budget(5.0, 1e-6), gate), table.kind, lambda step: None)
    assert differences(first, second) == [] and gate.exhausted
    assert first.arrow.equals(second.arrow)


def test_an_evaluation_compares_special_values_beside_the_numbers(releases):
    comparison = Comparison.of(pa.table({n: list(map(str, v)) for n, v in PEOPLE.items()}), releases["mst"].arrow,
                               schema=SCHEMA)  # fmt: skip
    names = [v.name for v in comparison.variables]
    assert {"special:income", "special:rate", "special:reviewed", "stay", "discharged", "total"} <= set(names)
    for sample in comparison.both:
        numbers = sample.present("income")
        assert numbers.min() >= 0 and not (sample.present("rate") == -99).any()
    labels = comparison["special:income"].labels
    assert labels == ("N", "-99", "a value") and comparison["special:income"].missing
    results = us.evaluate(
        pa.table({n: list(map(str, v)) for n, v in PEOPLE.items()}), releases["mst"].arrow, schema=SCHEMA
    )
    assert results is not None


def test_specimens_refuse_what_they_do_not_know():
    frame = pd.DataFrame(PEOPLE)
    with pytest.raises(us.InputError, match="column 'income' is derived or has special values, which specimens"):
        us.specimen(frame, SCHEMA, method="published-dp-arf")
    made = us.specimen(frame, SCHEMA, method="published-dp-select", rows=40, seed=1, options={"candidates": 20})
    assert made.table.column_names == list(PEOPLE)
