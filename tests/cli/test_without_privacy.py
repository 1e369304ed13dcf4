"""`synth --no-privacy`: one file, no release, no ledger, and never by accident."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

from understudy.lab.specimens.all_specimens import SPECIMENS
from understudy.methods.registry import METHODS, NOT_PRIVATE


def test_names_agree():
    assert set(SPECIMENS) == NOT_PRIVATE
    assert not set(SPECIMENS) & set(METHODS)


@pytest.mark.parametrize("method", SPECIMENS)
def test_the_flag_must_be_said(desk: Path, refused, method: str):
    assert "say --no-privacy" in refused("synth", "people.csv", "--method", method, "--epsilon", 1)


@pytest.mark.parametrize("method", SPECIMENS)
def test_rows_are_one_file_and_no_release(desk: Path, understudy, method: str):
    before = {p.name for p in desk.iterdir()}
    done = understudy("synth", "people.csv", "--method", method, "--no-privacy", "--rows", 7, "--seed", 3, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["guarantee"] is None and told["method"] == method
    assert {p.name for p in desk.iterdir()} - before == {f"people-{method}-no-privacy.csv"}
    rows = pacsv.read_csv(desk / told["out"])
    assert rows.num_rows == 7 and {"job", "age", "pay", "smoker"} <= set(rows.column_names)
    assert understudy("verify", told["out"]).code == 2


def test_parquet_says_that_there_is_no_guarantee(desk: Path, understudy):
    done = understudy(
        "synth", "people.csv", "--method", "arf", "--no-privacy", "--format", "parquet", "--out", "a.parquet"
    )
    assert done.code == 0 and "guarantee  none" in done.out
    assert json.loads(papq.read_schema(desk / "a.parquet").metadata[b"understudy"])["guarantee"] is None


def test_bad_wishes(desk: Path, refused):
    assert "method auto is private" in refused("synth", "people.csv", "--no-privacy", "--epsilon", 1)
    assert "needs --epsilon" in refused("synth", "people.csv")
    arf = ("synth", "people.csv", "--method", "arf", "--no-privacy")
    assert "rows (0)" in refused(*arf, "--rows", 0)
    assert "epsilon (-1.0)" in refused(*arf, "--epsilon", -1)
    assert "exists already" in refused(*arf, "--out", "people.csv")
    assert "is a folder" in refused(*arf, "--out", ".")
    assert "does not exist" in refused(*arf, "--out", "nowhere/rows.csv")
    assert "format ('xls')" in refused(*arf, "--format", "xls")
    (desk / "people.csv").write_text("name,job,age,pay,smoker\n")
    assert "no rows" in refused(*arf)


def test_the_library_refuses_a_release(desk: Path):
    import understudy as us

    table = us.open("people.csv", us.Schema.load("people.toml"))
    with pytest.raises(us.MethodError, match=r"understudy\.specimen"):
        us.synthesize(table, epsilon=1.0, method="arf")
    with pytest.raises(us.MethodError, match="did you mean 'arf'"):
        us.specimen("people.csv", "people.toml", method="art")
