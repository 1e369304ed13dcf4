"""A folder with a small table and its schema, and the command line as a function."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import Command, Outcome, contents, sentence

from understudy.cli import run

SCHEMA = """\
missing_values = ["?"]

[columns.name]
type = "identifier"

[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true

[columns.age]
type = "integer"
min = 18
max = 80

[columns.pay]
type = "number"
min = 0
max = 100
bins = 10
decimals = 1

[columns.smoker]
type = "boolean"
"""


@pytest.fixture
def understudy(capsys: pytest.CaptureFixture[str]) -> Command:
    """`understudy(...)` runs a command in this process."""

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([str(a) for a in arguments])
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with people.csv and people.toml in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(people_csv(300))
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def refused(understudy: Command, desk: Path) -> Callable[..., str]:
    """Runs a command that must fail: one sentence, exit 2, and not a byte of the desk changed."""

    def call(*arguments: object, code: int = 2) -> str:
        before = contents(desk)
        outcome = understudy(*arguments)
        assert outcome.code == code, outcome
        assert contents(desk) == before
        assert outcome.out == ""
        return sentence(outcome.err)

    return call


def people_csv(rows: int, seed: int = 7) -> str:
    """Generated people; nurses smoke more, and the old earn more."""
    draw = random.Random(seed)
    lines = ["name,job,age,pay,smoker"]
    for i in range(rows):
        job, age = draw.choice(["clerk", "cook", "nurse", "?"]), draw.randint(18, 80)
        smokes = "true" if draw.random() < (0.7 if job == "nurse" else 0.2) else "false"
        lines.append(f"person {i},{job},{age},{min(99.9, age + 10 * draw.random()):.1f},{smokes}")
    return "\n".join(lines) + "\n"
