"""`understudy count`, as a person or a program would use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import understudy as us

QUESTION = "age > 40 and job = 'nurse'"


@pytest.fixture
def made(desk: Path, understudy) -> Path:
    options = ("--epsilon", 2, "--method", "mst", "--test-only-noise-seed", 3, "--seed", 5, "--out", "out")
    assert understudy("synth", "people.csv", *options).code == 0
    return desk / "out"


def test_a_count_for_people(made: Path, understudy):
    shown = understudy("count", made, QUESTION, "--confidence", 0.9)
    counted = us.Release.load(made).count(QUESTION, confidence=0.9)
    assert shown.code == 0 and shown.err == ""
    assert shown.out.splitlines() == [
        f"rows           about {counted.value:,.0f}",
        f"90 % interval  {counted.low:,} to {counted.high:,}",
        f"basis          {counted.basis}",
    ]


def test_a_count_for_programs(made: Path, understudy):
    shown = understudy("count", made, "smoker", "--json")
    counted = us.Release.load(made).count("smoker")
    assert json.loads(shown.out) == {
        "expression": "smoker",
        "value": counted.value,
        "low": counted.low,
        "high": counted.high,
        "confidence": 0.95,
        "exact_noise": True,
        "basis": counted.basis,
    }


def test_a_count_spends_nothing_and_needs_no_rows(made: Path, understudy):
    ledger = (made.parent / "people.csv.ledger.sqlite").read_bytes()
    (made.parent / "people.csv").unlink()
    assert understudy("count", made, QUESTION).code == 0
    assert (made.parent / "people.csv.ledger.sqlite").read_bytes() == ledger


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("wage > 3",), "is not a column of the schema"),
        (("name = 'x'",), "is an identifier, which nobody may ask about"),
        (("age > ",), "can't be read"),
        (("age > 40; drop table x",), "isn't part of the language"),
        (("age > 40", "--confidence", 1), "confidence (1.0) must be from 0.5 to 0.9999"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], said: str, made: Path, understudy):
    refused = understudy("count", made, *arguments)
    assert refused.code == 2 and refused.out == ""
    assert said in refused.err and refused.err.count("\n") == 1 and refused.err.startswith("understudy: ")


def test_what_is_no_release(desk: Path, understudy):
    assert understudy("count", desk / "nowhere", "age > 40").code == 2


def test_a_release_that_was_changed(made: Path, understudy):
    (made / "synthetic.csv").write_bytes((made / "synthetic.csv").read_bytes() + b"\n")
    changed = understudy("count", made, "age > 40")
    assert changed.code == 1 and "synthetic.csv was changed" in changed.err
