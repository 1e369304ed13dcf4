"""`--prior`: what is refused is refused before anything is paid or written, and what is taken is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import Command

from conftest import people_csv

Refused = Callable[..., str]
SYNTH = ("synth", "people.csv", "--epsilon", "1", "--out", "out", "--quiet")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no header"),
        ("job,age,pay,smoker\n", "no rows"),
        ("colour,shape\nred,round\n", "none of the schema's columns"),
        ("name\nAda\n", "none of the schema's columns"),
        ("job,job\nclerk,clerk\n", "stands twice"),
        ("\x00\x01\x02", ""),
    ],
)
def test_a_file_that_says_nothing_is_refused(content: str, said: str, desk: Path, refused: Refused) -> None:
    (desk / "public.csv").write_text(content)
    assert said in refused(*SYNTH, "--prior", "public.csv")


def test_what_is_no_prior_is_refused(desk: Path, refused: Refused) -> None:
    (desk / "empty").mkdir()
    (desk / "public.docx").write_text("no table")
    (desk / "public.parquet").write_text("no table")
    assert "does not exist" in refused(*SYNTH, "--prior", "nowhere.csv")
    assert "folder of a release" in refused(*SYNTH, "--prior", "empty")
    assert "ending" in refused(*SYNTH, "--prior", "public.docx")
    assert "public.parquet" in refused(*SYNTH, "--prior", "public.parquet")
    assert "the private table itself" in refused(*SYNTH, "--prior", "people.csv")
    (desk / "link.csv").symlink_to(desk / "people.csv")
    assert "the private table itself" in refused(*SYNTH, "--prior", "link.csv")
    (desk / "same.csv").hardlink_to(desk / "people.csv")
    assert "the private table itself" in refused(*SYNTH, "--prior", "same.csv")


@pytest.mark.parametrize("method", ["mst", "aim", "independent", "dp-arf", "dp-select"])
def test_other_methods_take_none(method: str, desk: Path, refused: Refused) -> None:
    (desk / "public.csv").write_text(people_csv(100, seed=8))
    assert "takes no prior; leave prior out, or use rake" in refused(
        *SYNTH, "--method", method, "--prior", "public.csv"
    )


def test_a_prior_is_said_on_the_screen_and_in_the_certificate(desk: Path, understudy: Command) -> None:
    (desk / "public.csv").write_text(people_csv(100, seed=8))
    first = understudy(*SYNTH, "--prior", "public.csv")
    assert first.code == 0, first.err
    assert "taken as public" in " ".join(first.out.split())
    assert json.loads((desk / "out/certificate.json").read_text())["method"]["parameters"]["prior"]["rows"] == 100
    again = understudy("synth", "people.csv", "--epsilon", "1", "--out", "again", "--quiet", "--prior", "out")
    assert again.code == 0, again.err
    assert "counted besides" in " ".join(again.out.split())
    assert understudy("verify", "again").code == understudy("replay", "again").code == 0
    assert "auto would take rake" in understudy("plan", "people.csv", "--epsilon", "1", "--prior", "out").out
