"""`understudy query` and the analysts of `understudy budget`, as a person or a program would use them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import Outcome, contents, sentence

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.cli import budget_commands as budget_command
from understudy.cli.data_commands import show_query
from understudy.cli.failures import report

LEDGER = "people.csv.ledger.sqlite"
Call = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], desk: Path) -> Call:
    """Calls a command's function as the command line would, with its errors told and its exit code."""

    def call(function: Callable[..., None], *arguments: object, **named: object) -> Outcome:
        capsys.readouterr()
        try:
            function(*arguments, **named)
            code = 0
        except Exception as error:
            code = report(error)
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call


def query(
    run: Call, sql: str, *, epsilon: float = 1.0, analyst: str = "", as_json: bool = False, seed: int | None = None
) -> Outcome:
    asked = {"epsilon": epsilon, "delta": 1e-6, "analyst": analyst, "confidence": 0.95, "test_only_noise_seed": seed}
    return run(show_query, "people.csv", sql, schema=None, ledger=None, as_json=as_json, **asked)


def test_one_figure_for_people(run: Call, desk: Path):
    shown = query(run, "SELECT count(*) FROM people WHERE age > 40 AND job = 'nurse'")
    assert shown.code == 0 and shown.err == ""
    lines = shown.out.splitlines()
    assert [line[:15].strip() for line in lines] == ["count(*)", "95 % interval", "cost"]
    assert lines[2].endswith("epsilon 1 at delta 1e-06")
    again = query(run, "select count(*) from people where age > 40 and job = 'nurse'", analyst="bob")
    assert again.out.splitlines()[:2] == lines[:2]
    assert again.out.splitlines()[2].endswith("nothing: asked before, at epsilon 1 and delta 1e-06")
    assert len(Ledger.open(desk / LEDGER).entries()) == 1


def test_groups_for_people(run: Call):
    shown = query(run, "SELECT job, count(*), avg(age) AS mean FROM data GROUP BY job", epsilon=5.0)
    assert shown.code == 0
    for text in ("job", "count(*)", "mean", "95 % interval", "nurse", "(missing)", "cost"):
        assert text in shown.out


def test_figures_for_programs(run: Call):
    answer = json.loads(query(run, "SELECT smoker, median(pay) FROM people GROUP BY smoker", as_json=True).out)
    assert answer["guarantee"] == {"epsilon": 1.0, "delta": 1e-6} and not answer["recorded"]
    assert [row["smoker"] for row in answer["rows"]] == [False, True]
    figure = answer["rows"][0]["median(pay)"]
    assert figure["low"] <= figure["value"] <= figure["high"]


def test_a_seeded_answer_is_stamped(run: Call):
    assert "TEST-ONLY" in query(run, "SELECT count(*) FROM people", seed=1).out
    assert json.loads(query(run, "SELECT count(*) FROM people", seed=1, as_json=True).out)["guarantee"] is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM people", "stands where a column or an aggregate must"),
        ("SELECT count(*) FROM people; DROP TABLE people", "isn't part of the language"),
        ("SELECT count(*) FROM people WHERE wage > 3", "is not a column of the schema"),
        ("SELECT count(DISTINCT name) FROM people", "needs a unit in the schema"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(sql: str, said: str, run: Call, desk: Path):
    before = contents(desk)
    refused = query(run, sql)
    assert refused.code == 2 and refused.out == "" and said in sentence(refused.err)
    assert contents(desk) == before


def test_a_share_that_is_used_up_exits_with_3(run: Call, desk: Path):
    assert run(budget_command.set_limit, "people.csv", Budget(1.0, 1e-6), "add-remove").code == 0
    said = run(budget_command.set_share, "people.csv", "ada", 0.25, None)
    assert said.out == f"{LEDGER}: ada may use up 25 % of the limit; all shares together are 25 %\n"
    assert query(run, "SELECT count(*) FROM people", epsilon=0.4, analyst="ada").code == 0
    before = contents(desk)
    refusals = (("ada", 0.4, "left of the share (25 %"), ("eve", 0.01, "must be one of"), ("", 0.01, "nobody is named"))
    for analyst, epsilon, part in refusals:
        refused = query(run, "SELECT sum(age) FROM people", epsilon=epsilon, analyst=analyst)
        assert refused.code == 3 and refused.out == "" and part in sentence(refused.err)
    assert contents(desk) == before
    # What was answered before is free for everybody.
    assert query(run, "SELECT count(*) FROM people", epsilon=0.4, analyst="eve").code == 0


def test_the_budget_shows_analysts_as_a_table_and_a_bar(run: Call, desk: Path):
    with Ledger.open(desk / LEDGER) as ledger:
        ledger.set_limit(Budget(1.0, 1e-6), "add-remove")
        ledger.set_share("ada [x]", 0.5)
    assert query(run, "SELECT count(*) FROM people", epsilon=0.5, analyst="ada [x]").code == 0
    shown = run(budget_command.show_budget, "people.csv", None, False).out
    (row,) = [line for line in shown.splitlines() if "ada [x]" in line]
    assert "50 %" in row and "█" in row and "░" in row
    (account,) = json.loads(run(budget_command.show_budget, "people.csv", None, True).out)["analysts"]
    assert account["analyst"] == "ada [x]" and account["share"] == 0.5 and 0 < account["used"] < 1
    assert "50 % of it" in run(budget_command.show_history, "people.csv", None, False).out


def test_nobody_is_named_and_no_table_is_shown(run: Call, desk: Path):
    assert query(run, "SELECT count(*) FROM people").code == 0
    assert "Analysts" not in run(budget_command.show_budget, "people.csv", None, False).out


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_the_history_is_exported(ending: str, run: Call, desk: Path):
    with Ledger.open(desk / LEDGER) as ledger:
        ledger.set_limit(Budget(1.0, 1e-6), "add-remove")
        ledger.set_share("ada", 0.5)
    assert query(run, "SELECT count(*) FROM people", epsilon=0.1, analyst="ada").code == 0
    out = desk / f"history.{ending}"
    assert run(budget_command.export, "people.csv", None, out).code == 0
    rows = json.loads(out.read_text()) if ending == "json" else list(csv.DictReader(out.read_text().splitlines()))
    assert [row["kind"] for row in rows] == ["limit", "share", "debit"]
    assert float(rows[1]["share"]) == 0.5 and rows[2]["purpose"] == "query of people.csv: SELECT count(*) FROM data"
    cost = rows[2]["cost"]["gdp"] if ending == "json" else rows[2]["cost_gdp"]
    assert cost.startswith("g") and cost.endswith("/2^80")


def test_an_export_needs_an_ending_and_a_ledger(run: Call, desk: Path):
    assert run(budget_command.export, "people.csv", None, desk / "x.csv").code == 2
    Ledger.open(desk / LEDGER)
    refused = run(budget_command.export, "people.csv", None, desk / "x.txt")
    assert refused.code == 2 and "must end with .csv or .json" in sentence(refused.err)


def test_a_quantile_of_too_small_a_budget_is_refused_before_it_is_paid(run: Call, desk: Path):
    """Its interval reaches so many rows that scores are not exact; it was an overflow, after the debit."""
    asked = {"epsilon": 1e-12, "delta": 0.0, "analyst": "", "confidence": 0.95, "test_only_noise_seed": None}
    sql = "SELECT median(age) FROM people"
    refused = run(show_query, "people.csv", sql, schema=None, ledger=None, as_json=False, **asked)
    assert refused.code == 2 and "ask with a larger epsilon" in sentence(refused.err)
    assert not (desk / LEDGER).exists()
