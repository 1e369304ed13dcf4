"""`--option`: a method's own options on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from outcomes import Command, contents

import understudy as us
from understudy.cli.app import _complete_method, _complete_option, command
from understudy.releases.checking import read_certificate


def test_an_option_reaches_the_method_and_the_certificate(desk: Path, understudy: Command):
    wanted = (
        "--method",
        "dp-select",
        "--option",
        "distance=l2",
        "--option",
        "sections=2",
        "--option",
        "pool_share=0.3",
    )
    made = understudy("synth", "people.csv", "--epsilon", 3, *wanted)
    assert made.code == 0, made.err
    assert read_certificate(desk / "people-release").parameters["options"] == {"distance": "L2", "sections": 2}
    assert understudy("verify", "people-release").code == understudy("replay", "people-release").code == 0
    assert "distance = L2; sections = 2" in (desk / "people-release" / "report.html").read_text()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("distence=L2",), "option 'distence' of method dp-select is not known; did you mean 'distance'?"),
        (("distance=L2", "distance=L1"), "option 'distance' is given twice; keep one of its values"),
        (("sections=many",), "sections ('many') must be a whole number from 1 to 1,000"),
        (("sections",), "option ('sections') must be a name and a value, as in distance=L2"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_leaves_nothing(
    texts: tuple[str, ...], message: str, desk: Path, understudy: Command
):
    before = contents(desk)
    given = [word for text in texts for word in ("--option", text)]
    refused = understudy("synth", "people.csv", "--epsilon", 1, "--method", "dp-select", *given)
    assert refused.code == 2 and message in refused.err and refused.err.count("\n") == 1
    assert contents(desk) == before


def test_an_interrupted_release_goes_on_with_its_own_options_only(
    desk: Path, understudy: Command, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*anything: object, **named: object) -> None:
        raise KeyboardInterrupt

    release = ("synth", "people.csv", "--epsilon", 1, "--method", "mwem", "--option", "rounds=2")
    with monkeypatch.context() as patched:
        patched.setattr("understudy.cli.synth.write_folder", interrupt)
        assert understudy(*release).code == 130
    other = understudy(*release[:-1], "rounds=3", "--resume")
    assert other.code == 2 and "options" in other.err
    assert understudy(*release, "--resume").code == 0


def test_rows_without_privacy_have_options_too(desk: Path, understudy: Command):
    wanted = ("--no-privacy", "--method", "arf", "--option", "num_trees=3", "--option", "oob=yes")
    made = understudy("synth", "people.csv", *wanted, "--json")
    parameters = json.loads(made.out)["parameters"]
    assert (parameters["num_trees"], parameters["oob"]) == (3, True)
    with pytest.raises(us.MethodError, match=r"num_trees \(0\) must be a whole number from 1 to 10,000"):
        us.specimen("people.csv", "people.toml", method="arf", options={"num_trees": 0})


def test_methods_lists_the_options_of_one(understudy: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "one of entropy, L1, L2, Kolmogorov" in understudy("methods", "dp-select").out
    assert "has no options of its own" in understudy("methods", "mst").out
    assert "guarantee  none" in understudy("methods", "published-bnp").out
    assert understudy("methods", "mts").err == "understudy: method 'mts' is not known; did you mean 'mst'?\n"
    (options,) = [m["options"] for m in json.loads(understudy("methods", "--json").out) if m["method"] == "mwem"]
    assert options[0] == {
        "name": "rounds",
        "type": "int",
        "default": None,
        "must be": "a whole number from 1 to 10,000",
        "help": "pairs that are measured, by default as many as columns",
    }


def test_names_are_completed():
    assert _complete_method("dp-") == ["dp-arf", "dp-ctgan", "dp-gan", "dp-select"]
    context = typer.Context(command())
    context.params = {"method": "dp-select"}
    assert _complete_option(context, "distance=") == [f"distance={d}" for d in ("entropy", "L1", "L2", "Kolmogorov")]
    assert _complete_option(context, "s") == ["sections="]
    context.params = {"method": "auto"}
    assert _complete_option(context, "") == []
