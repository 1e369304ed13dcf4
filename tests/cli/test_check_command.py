"""`understudy check`, and what other commands say about a schema, a forecast and a value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import Command

Refused = Callable[..., str]


def test_a_schema_that_fits_ends_well(desk: Path, understudy: Command) -> None:
    done = understudy("check", "people.csv")
    assert done.code == 0 and "The schema fits the rows" in done.out and "INTERNAL" in done.out
    assert not list(desk.glob("*.ledger.sqlite"))


def test_a_draft_that_fits_is_still_called_a_draft(desk: Path, understudy: Command) -> None:
    assert "status" not in understudy("check", "people.csv").out
    understudy("schema", "people.csv", "--out", "draft.toml")
    told = understudy("check", "people.csv", "--schema", "draft.toml").out
    assert "The schema fits the rows" in told and 'then set status = "confirmed"' in told


def test_what_would_spoil_a_release_fails_with_a_page(desk: Path, understudy: Command) -> None:
    schema = (desk / "people.toml").read_text()
    (desk / "people.toml").write_text(schema.replace('"clerk"', '"Clerk"'))
    done = understudy("check", "people.csv", "--report", "check.html")
    assert done.code == 1 and "did you mean 'Clerk'?" in done.out
    assert "\njob: " not in done.out  # the finding has it
    assert done.err == "understudy: the schema does not fit: 1 thing to mend; nothing was spent.\n"
    assert "did you mean" in (desk / "check.html").read_text()
    told = json.loads(understudy("check", "people.csv", "--json").out)
    assert told["to_mend"] == 1 and told["notice"].startswith("Internal")


def test_wrong_input_is_refused_before_the_rows_are_read(desk: Path, refused: Refused) -> None:
    assert "check.pdf" in refused("check", "people.csv", "--report", "check.pdf")
    assert "does not exist" in refused("check", "nothing.csv", "--schema", "people.toml")


def test_plan_finds_the_epsilon_of_an_error(desk: Path, understudy: Command, refused: Refused) -> None:
    done = understudy("plan", "people.csv", "--error", "5%", "--rows", 100_000)
    assert "is the least at which it is expected to err by 5 %" in done.out
    assert "understudy check people.csv" in done.out
    found = json.loads(understudy("plan", "people.csv", "--error", "0.05", "--rows", 100_000, "--json").out)
    assert f"Epsilon {found['epsilon']:g} is" in done.out
    assert "such as 3%" in refused("plan", "people.csv", "--error", "much")
    assert "either epsilon" in refused("plan", "people.csv")
    assert "either epsilon" in refused("plan", "people.csv", "--epsilon", 1, "--error", "5%")


def test_the_summary_says_whom_it_protects_and_how_near_it_is(desk: Path, understudy: Command) -> None:
    done = understudy("synth", "people.csv", "--epsilon", 50)
    assert "protects    each row" in done.out and "of the rows misplaced per pair of columns" in done.out
    assert "is above 5" in done.err and "is above 5" in done.out
    assert "understudy check people.csv" in done.out
    quiet = understudy("synth", "people.csv", "--epsilon", 50, "--overwrite", "--quiet")
    assert quiet.err == "" and "caution" in quiet.out


@pytest.mark.parametrize("typed", ["job = 'clerkk'", "job <> 'clerkk'", "age > 3 and (job IN ('cook', 'clerkk'))"])
def test_a_value_that_is_not_declared_is_told_before_anything_is_spent(
    typed: str, desk: Path, understudy: Command, refused: Refused
) -> None:
    understudy("synth", "people.csv", "--epsilon", 1, "--quiet", "--rows", 10)
    spent = understudy("budget", "show", "people.csv", "--json").out
    for told in (
        refused("count", "people-release", typed),
        refused("query", "people.csv", f"SELECT count(*) FROM people WHERE {typed}", "--epsilon", 1),
    ):
        assert told == "value 'clerkk' of column 'job' is not declared in the schema; did you mean 'clerk'?"
    assert understudy("budget", "show", "people.csv", "--json").out == spent
