"""Answers without noise are the true ones; with a ledger each question is paid for once."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from townspeople import CLEAN, PEOPLE, SCHEMA

import understudy as us
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.tables.table import Table
from understudy.errors import BudgetExhausted, InputError, MethodError
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.answer import MOST_LISTED, Answer, Group, IntervalEstimate
from understudy.queries.query import names_of, query, query_with
from understudy.queries.query_plan import QueryPlan

BUDGET = us.Budget(5.0, 1e-6)


def silently(table: Table, sql: str, budget: us.Budget = BUDGET) -> Answer:
    plan = QueryPlan(AggregateQuery.of(sql, table.schema, names_of(table)), table.schema, 0.95)
    return query_with(table, plan, budget, randomness=BestRandomness())


def present(column: str, rows: list[dict]) -> list:
    return [r[column] for r in rows if r[column] is not None]


WHERE: dict[str, Callable[[dict], bool | None]] = {
    "age > 40": lambda r: r["age"] > 40,
    "age = 80": lambda r: r["age"] == 80,
    "sex = 'F'": lambda r: r["sex"] == "F",
    "sex <> 'F'": lambda r: r["sex"] == "M",
    "sex IS NULL": lambda r: r["sex"] is None,
    "NOT smoker": lambda r: r["smoker"] is False,
    "job IN ('it''s', 'x; --') AND NOT (age < 30)": lambda r: r["job"] in ("it's", "x; --") and r["age"] >= 30,
    "job = 'else'": lambda r: r["job"] == "else",
    "ill = 'rare' OR ill = 'cold'": lambda r: r["ill"] in ("rare", "cold"),
    "hired >= '2021-06-01' AND hired + 30 < '2023-01-01'": lambda r: (
        r["hired"] is not None and np.datetime64("2021-06-01") <= np.datetime64(r["hired"], "D")
        and np.datetime64(r["hired"], "D") + 30 < np.datetime64("2023-01-01")
    ),
    "pay BETWEEN 100 AND 500.25": lambda r: r["pay"] is not None and 100 <= r["pay"] <= 500.25,
    "pay > 10 * age - weight": lambda r: r["pay"] is not None and r["pay"] > 10.0 * r["age"] - r["weight"],
}  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
def test_counts_and_sums_are_those_of_the_rows_that_count(where: str, table: Table):
    rows = [r for r in CLEAN if WHERE[where](r)]
    asked = "count(*), count(distinct person), sum(age), sum(pay), avg(pay), avg(age)"
    answer = silently(table, f"select {asked} from people where {where}")
    n, persons, ages, pays, mean_pay, mean_age = (f.value for f in answer.groups[0].figures)
    assert (n, persons) == (len(rows), len({r["person"] for r in rows}))
    assert ages == sum(r["age"] for r in rows)
    assert pays == pytest.approx(sum(present("pay", rows)), abs=1e-6)
    assert mean_pay == pytest.approx(np.mean(present("pay", rows)), abs=1e-6)
    assert mean_age == pytest.approx(np.mean([r["age"] for r in rows]), abs=1e-9)


def test_every_group_has_a_row_and_its_own_figures(table: Table):
    answer = silently(table, "select sex, smoker, count(*), sum(age) from people group by sex, smoker")
    assert [g.keys for g in answer] == list(itertools.product(["F", "M", None], [False, True, None]))
    for group in answer:
        rows = [r for r in CLEAN if (r["sex"], r["smoker"]) == group.keys]
        assert [f.value for f in group.figures] == [len(rows), sum(r["age"] for r in rows)]


def test_groups_of_numbers_and_days_are_their_bins(table: Table):
    ages = silently(table, "select age, count(*) from people group by age")
    assert [g.keys[0] for g in ages] == list(range(18, 81))
    assert [g.figures[0].value for g in ages] == [sum(r["age"] == a for r in CLEAN) for a in range(18, 81)]
    days = silently(table, "select hired, count(*) from people group by hired")
    assert days.groups[0].keys == ("2020-01-01 00:00:00 to 2020-01-23 00:00:00",) and days.groups[-1].keys == (None,)
    assert days.groups[-1].figures[0].value == sum(r["hired"] is None for r in CLEAN)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("column", ["age", "pay", "hired"])
def test_quantiles_have_the_right_rank(column: str, share: float, table: Table):
    answer = silently(table, f"select quantile({column}, {share}) from people where age > 30")
    values = sorted(present(column, [r for r in CLEAN if r["age"] > 30]))
    step = {"age": 0, "pay": 1050 / 4096, "hired": 0}[column]
    true = values[max(0, math.ceil(share * len(values)) - 1)]
    if share > 0:  # below every row there is nothing to hold on to
        assert answer.value == true if step == 0 else abs(answer.value - true) <= step
    assert answer.figure.low <= true <= answer.figure.high


def test_quantiles_by_group(table: Table):
    answer = silently(table, "select sex, median(age), count(*) from people group by sex")
    for group in answer:
        ages = sorted(r["age"] for r in CLEAN if (r["sex"],) == group.keys)
        assert group.figures[0].value == ages[math.ceil(len(ages) / 2) - 1]
        assert group.figures[1].value == len(ages)


def test_private_groups_are_bought(table: Table):
    answer = silently(table, "select ill, count(*) from people where age > 0 group by ill")
    found = {g.keys[0]: g.figures[0].value for g in answer}
    true = {i: sum(r["ill"] == i for r in CLEAN) for i in ("flu", "cold", "rare")}
    assert found == {"cold": true["cold"], "flu": true["flu"], "other": true["rare"]}
    with pytest.raises(MethodError, match="learning them needs a delta above 0"):
        query(table, "select ill, count(*) from people group by ill", epsilon=1.0, delta=0)


REPLACED = us.Schema.loads('neighbours = "replace-one"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')


def test_a_public_number_of_rows_is_exact_and_free(tmp_path: Path):
    table = us.open(pa.table({"age": list(range(50))}), REPLACED)
    answer = query(table, "select count(*) from data", epsilon=0.1, ledger=tmp_path / "ledger")
    assert (answer.value, answer.figure.low, answer.figure.high) == (50, 50, 50)
    assert answer.guarantee == (0.0, 0.0) and not (tmp_path / "ledger").exists()
    noisy = query(table, "select count(*) from data where age < 200", epsilon=0.1, ledger=tmp_path / "ledger")
    assert noisy.figure.low < noisy.figure.high and len(Ledger.open(tmp_path / "ledger").entries()) == 1


# --- The ledger -----------------------------------------------------------------------------------------------------


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


ASKED = "select sex, count(*), avg(pay), median(age) from people where age > 30 group by sex"


def test_the_same_question_is_answered_from_the_record(table: Table, tmp_path: Path):
    path = tmp_path / "ledger"
    first = query(table, ASKED, epsilon=0.5, ledger=path, analyst="ada")
    before = digest(path)
    written = ASKED.replace("select", "SELECT\n").replace("people", "data").replace("group by", "Group By")
    again = query(table, written, epsilon=0.5, ledger=str(path), analyst="bob")
    assert again.groups == first.groups and again.recorded and not first.recorded
    assert digest(path) == before
    (entry,) = Ledger.open(path).entries()
    assert entry.purpose.startswith("query of people: SELECT") and entry.asked == us.Budget(0.5, 1e-6)


def test_another_budget_question_or_schema_is_another_question(table: Table, tmp_path: Path):
    path = tmp_path / "ledger"
    query(table, "select count(*) from people", epsilon=0.5, ledger=path)
    query(table, "select count(*) from people", epsilon=0.6, ledger=path)
    query(table, "select count(*) from people where age > 20", epsilon=0.5, ledger=path)
    other = us.open(PEOPLE, us.Schema.loads(SCHEMA.dumps().replace("max = 80", "max = 81")), name="people")
    query(other, "select count(*) from people", epsilon=0.5, ledger=path)
    assert len(Ledger.open(path).entries()) == 4
    # An interval of another confidence follows from the same noise.
    wider = query(table, "select count(*) from people", epsilon=0.5, ledger=path, confidence=0.99)
    assert wider.recorded and len(Ledger.open(path).entries()) == 4


AGES = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')
COUNT = "SELECT count(*) FROM data"
SURE = {"epsilon": 100.0, "delta": 0}
"""Noise that is not 0 with a probability of 2·exp(-100), which is below 1e-42."""


def rows_of(number: int) -> pa.Table:
    return pa.table({"age": [i % 90 for i in range(number)]})


def test_frames_that_nobody_named_are_asked_each_time(tmp_path: Path):
    """One of 5,000 rows once got the recorded answer of one of 100."""
    path = tmp_path / "ledger"
    few, many = us.open(rows_of(100), AGES), us.open(rows_of(5000), AGES)
    answers = [query(t, COUNT, **SURE, ledger=path) for t in (few, many, many)]
    assert [a.value for a in answers] == [100, 5000, 5000] and not any(a.recorded for a in answers)
    ledger = Ledger.open(path)
    assert len(ledger.entries()) == 3, "each is paid for"
    with ledger._database.reading() as database:
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (0,), "and nothing is remembered"


def test_frames_are_known_by_the_name_that_they_were_given(tmp_path: Path):
    path = tmp_path / "ledger"
    first = query(us.open(rows_of(100), AGES, name="2023"), COUNT, **SURE, ledger=path)
    other = query(us.open(rows_of(5000), AGES, name="2024"), COUNT, **SURE, ledger=path)
    again = query(us.open(rows_of(100), AGES, name="2023"), COUNT, **SURE, ledger=path)
    assert (first.value, other.value, again.value) == (100, 5000, 100)
    assert (first.recorded, other.recorded, again.recorded) == (False, False, True)


@pytest.mark.parametrize("kind", ["csv", "duckdb"])
def test_files_of_one_name_are_told_apart_by_their_folders(kind: str, tmp_path: Path):
    sources = []
    for folder, rows in (("a", rows_of(100)), ("b", rows_of(5000))):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / f"people.{kind}"
        if kind == "csv":
            pacsv.write_csv(rows, path)
        else:
            with duckdb.connect(str(path)) as database:
                database.register("rows", rows)
                database.execute("CREATE TABLE people AS SELECT * FROM rows")
        sources.append(f"{path}{'::people' if kind == 'duckdb' else ''}")
    asked = dict(**SURE, ledger=tmp_path / "ledger")
    answers = [query(us.open(source, AGES), COUNT, **asked) for source in (*sources, sources[0])]
    assert [a.value for a in answers] == [100, 5000, 100]
    assert [a.recorded for a in answers] == [False, False, True]


def test_a_path_is_the_same_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pacsv.write_csv(rows_of(100), tmp_path / "people.csv")
    (tmp_path / "link.csv").symlink_to("people.csv")
    monkeypatch.chdir(tmp_path)
    asked = {"epsilon": 1.0, "delta": 0, "ledger": tmp_path / "ledger"}
    names = ("people.csv", tmp_path / "people.csv", "../" + tmp_path.name + "/people.csv", "link.csv")
    answers = [query(us.open(name, AGES), COUNT, **asked) for name in names]
    assert len({a.value for a in answers}) == 1 and [a.recorded for a in answers] == [False, True, True, True]


PRIVATE = us.Schema.loads("""
[columns.sex]
type = "categorical"
values = "private"
[columns.age]
type = "integer"
min = 0
max = 99
""")


def test_delta_is_charged_for_keys_only_where_keys_are_asked(tmp_path: Path):
    """A private column that a question doesn't touch once took half of its δ, and soon all of the limit's."""
    path = tmp_path / "ledger"
    rows = pa.table({"sex": ["f", "m"] * 100, "age": [30, 40] * 100})
    table = us.open(rows, PRIVATE, name="people")
    Ledger.open(path).set_limit(us.Budget(10.0, 1e-6), "add-remove")
    for column in ("avg(age)", "sum(age)", "count(*)", "median(age)"):
        query(table, f"select {column} from people where sex = 'f'", epsilon=0.1, ledger=path)
    ledger = Ledger.open(path)
    assert ledger.spent().delta == 0 and ledger.standing().epsilon < 0.3
    grouped = query(table, "select sex, count(*) from people group by sex", epsilon=0.1, ledger=path)
    assert grouped.keys == ("sex",) and ledger.spent().delta == pytest.approx(5e-7)
    at_most = r"^delta \(1e-06\) is too large: .* \(5e-07\) must be at most the 0 left"
    with pytest.raises(BudgetExhausted, match=at_most):
        query(table, "select sex, sum(age) from people group by sex", epsilon=0.1, ledger=path)
    again = query(table, "select sex, count(*) from people group by sex", epsilon=0.1, ledger=path)
    assert again.recorded and again.groups == grouped.groups


def test_refusals_leave_the_ledger_alone(table: Table, tmp_path: Path):
    path = tmp_path / "ledger"
    for sql in ("select count(*) from x", "select age from people", "select count(*) from data where wage > 3"):
        with pytest.raises(InputError):
            query(table, sql, epsilon=1.0, ledger=path)
    assert not path.exists()
    with Ledger.open(path) as ledger:
        ledger.set_limit(us.Budget(1.0, 1e-6), "add-remove")
    before = digest(path)
    with pytest.raises(BudgetExhausted, match="left of the limit"):
        query(table, "select count(*) from people", epsilon=1.5, ledger=path)
    with pytest.raises(InputError, match="confidence"):
        query(table, "select count(*) from people", epsilon=0.1, ledger=path, confidence=1.0)
    with pytest.raises(MethodError, match="noise scale"):  # found in the dry run, behind a purchase of keys
        query(table, "select ill, sum(pay) from people group by ill", epsilon=1e-7, delta=1e-12, ledger=path)
    assert digest(path) == before


def test_shares_hold_for_queries(table: Table, tmp_path: Path):
    path = tmp_path / "ledger"
    with Ledger.open(path) as ledger:
        ledger.set_limit(us.Budget(1.0, 0.0), "add-remove")
        ledger.set_share("ada", 0.25)
    query(table, "select count(*) from people", epsilon=0.2, delta=0, ledger=path, analyst="ada")
    with pytest.raises(BudgetExhausted, match=r"epsilon 0\.05 at delta 0 left of the share \(25 %"):
        query(table, "select sum(age) from people", epsilon=0.2, delta=0, ledger=path, analyst="ada")
    with pytest.raises(BudgetExhausted, match=r"analyst \(eve\) must be one of"):
        query(table, "select sum(age) from people", epsilon=0.01, delta=0, ledger=path, analyst="eve")


def test_seeded_answers_are_not_remembered(table: Table, tmp_path: Path):
    path = tmp_path / "ledger"
    seeded = [
        query(table, "select count(*) from people", epsilon=0.5, ledger=path, test_only_noise_seed=3) for _ in "ab"
    ]
    assert seeded[0] == seeded[1] and seeded[0].guarantee is None
    assert query(table, "select count(*) from people", epsilon=0.5, ledger=path).guarantee == (0.5, 1e-6)
    assert len(Ledger.open(path).entries()) == 3


def test_a_draft_is_refused():
    draft = us.Schema.loads('status = "draft"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')
    table = us.open(pa.table({"age": [1, 2, 3]}), draft)
    with pytest.raises(InputError, match="draft"):
        query(table, "select count(*) from data", epsilon=1.0)
    assert query(table, "select count(*) from data", epsilon=1.0, accept_draft_as_public=True).groups


def test_private_bounds_are_not_guessed():
    schema = us.Schema.loads('[columns.pay]\ntype = "number"\nmin = 0\nmax = "private"\n[columns.b]\ntype = "boolean"')
    for asked in ("sum(pay)", "avg(pay)", "median(pay)"):
        with pytest.raises(InputError, match="needs public bounds to clamp by"):
            AggregateQuery.of(f"select {asked} from data", schema)
    with pytest.raises(InputError, match="can't stand in WHERE, since its bounds are private"):
        AggregateQuery.of("select count(*) from data where pay > 3", schema)
    with pytest.raises(InputError, match="can't be grouped by, since its bounds are private"):
        AggregateQuery.of("select pay, count(*) from data group by pay", schema)


def test_answers_are_plain_json(table: Table):
    answer = query(table, "select sex, count(*), median(hired) from people group by sex", epsilon=2.0)
    plain = json.loads(json.dumps(answer.to_dict()))
    assert plain["guarantee"] == {"epsilon": 2.0, "delta": 1e-6} and plain["confidence"] == 0.95
    assert [r["sex"] for r in plain["rows"]] == ["F", "M", None]
    assert set(plain["rows"][0]["median(hired)"]) == {"value", "low", "high"}


def test_an_answer_shows_its_figures_and_not_its_fields():
    groups = tuple(Group((i,), (IntervalEstimate(1000 + i, 990, 1010.5),)) for i in range(MOST_LISTED + 5))
    answer = Answer(
        "SELECT", ("age",), ("count(*)",), groups, 0.95, epsilon=0.5, delta=0.0, recorded=False, secure=True
    )
    assert "count(*) of 3 1,003 (990 to 1,010.5)" in repr(answer) and "and 5 more groups" in repr(answer)
    assert "cost epsilon 0.5 at delta 0" in repr(answer) and "none" not in repr(answer)
    seeded = replace(answer, groups=groups[:1], recorded=True, secure=False)
    assert "cost nothing: asked before" in repr(seeded) and "guarantee none: " in repr(seeded)
