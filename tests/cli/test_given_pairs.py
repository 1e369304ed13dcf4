"""`synth --given`: the pairs reach the certificate and the table, and a bad one costs nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

SYNTH = ("synth", "people.csv", "--epsilon", "1", "--rows", "200", "--quiet")


def test_pairs_are_kept_recorded_and_replayed(understudy: Callable[..., object], desk: Path):
    outcome = understudy(*SYNTH, "--given", "job=", "--given", "age=41", "--given", "smoker=yes", "--out", "out")
    assert outcome.code == 0, outcome
    with (desk / "out" / "synthetic.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200 and {(r["job"], r["age"], r["smoker"]) for r in rows} == {("?", "41", "true")}
    recorded = json.loads((desk / "out" / "certificate.json").read_text())["method"]["parameters"]["given"]
    assert recorded == {"job": None, "age": 41, "smoker": True}
    assert understudy("verify", "out").code == understudy("replay", "out").code == 0


BAD = {
    "no equals sign": (("age",), "given ('age') must be a column and its value"),
    "no column": (("=41",), "must be a column and its value"),
    "column twice": (("age=41", "age=42"), "given names column 'age' twice"),
    "unknown column": (("salary=1",), "column 'salary' is not in the schema; it has name, job, age, pay, smoker"),
    "identifier": (("name=Ann",), "'name' is an identifier"),
    "above the bound": (("age=81",), "column 'age': given value ('81') must be a whole number from 18 to 80"),
    "no number": (("pay=much",), "must be a number from 0 to 100"),
    "unknown label": (("job=baker",), "given value ('baker') must be one of clerk, cook, nurse"),
    "missing where nothing is": (("age=",), "given value ('') must not be missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_pair_is_refused_and_costs_nothing(refused: Callable[..., str], case: str):
    pairs, words = BAD[case]
    assert words in refused(*SYNTH, *(a for pair in pairs for a in ("--given", pair)))


def test_pairs_that_contradict_the_rules_are_refused(refused: Callable[..., str], desk: Path):
    with (desk / "people.toml").open("a") as schema:
        schema.write('[[constraints]]\nif = "age < 40"\nthen = "smoker = false"\n')
    assert "with the given age and smoker" in refused(*SYNTH, "--given", "age=39", "--given", "smoker=true")
