"""`understudy evaluate` and `understudy compare`, called as the command line calls them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.cli import evaluation_commands, study_commands
from understudy.cli.app import app
from understudy.cli.screen import Output
from understudy.errors import InputError, UnderstudyError
from understudy.lab.evaluation.evaluation import MEASURES, NOTICE
from understudy.lab.studies.method_comparison import TrialAdvance
from understudy.lab.studies.study import Trial

Show = Callable[..., str]


@pytest.fixture(autouse=True)
def few_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cheap ones; all the others have tests of their own."""
    cheap = tuple(m for m in MEASURES if m.name in ("tv1", "tv2"))
    for module in (
        "understudy.lab.evaluation.evaluation",
        "understudy.lab.studies.study",
        "understudy.cli.evaluation_commands",
    ):
        monkeypatch.setattr(f"{module}.MEASURES", cheap)


@pytest.fixture
def show_evaluation(desk: Path, capsys: pytest.CaptureFixture[str]) -> Show:
    """`evaluate` of people.csv against itself, but for what is said."""

    def show(real: str = "people.csv", synthetic: str = "people.csv", **wish: Any) -> str:
        evaluation_commands.show_evaluation(real, synthetic, **with_output({"quiet": True, **wish}))
        return capsys.readouterr().out

    return show


def facts(printed: str) -> dict[str, Any]:
    return json.loads(printed)["facts"]


def test_evaluate_prints_a_table_by_sections(show_evaluation: Show):
    printed = show_evaluation()
    assert "people.csv against people.csv: 300 real rows, 300 synthetic\n" in printed
    assert "Left out: name." in printed
    assert "Total variation of single columns" in printed and "lower" in printed and "(0)" not in printed
    assert NOTICE in printed and "draft" not in printed


def test_evaluate_prints_json(show_evaluation: Show):
    found = json.loads(show_evaluation(holdout="people.csv", as_json=True))
    assert found["figures"]["tv1"]["value"] == 0.0
    assert found["facts"]["holdout_rows"] == 300 and found["notice"] == NOTICE


def test_evaluate_takes_a_release_folder(show_evaluation: Show, understudy: Any, desk: Path):
    understudy("synth", "people.csv", "--epsilon", 1, "--method", "independent", "--rows", 50)
    (desk / "people.toml").unlink()
    found = facts(show_evaluation(synthetic="people-release", as_json=True))
    assert (found["synthetic_rows"], found["synthetic"], found["drafted"]) == (50, "synthetic.csv", False)
    understudy("synth", "people.csv", "--epsilon", 1, "--method", "independent", "--rows", 60, "--out", "other",
               "--format", "parquet", "--schema", "people-release/schema.toml")  # fmt: skip
    assert facts(show_evaluation(synthetic="other", as_json=True))["synthetic"] == "synthetic.parquet"


def test_evaluate_drafts_a_schema_where_there_is_none(show_evaluation: Show, desk: Path):
    (desk / "people.toml").rename(desk / "mine.toml")
    assert "The schema is a draft from the real rows" in show_evaluation()
    assert not facts(show_evaluation(schema=Path("mine.toml"), as_json=True))["drafted"]


def test_evaluate_writes_its_report(show_evaluation: Show, desk: Path):
    assert "The report is out.json." in show_evaluation(report=Path("out.json"))
    assert json.loads((desk / "out.json").read_text())["figures"]["tv2"]["value"] == 0.0
    assert "The figures are in drawn." in show_evaluation(report=Path("out.HTML"), figures=Path("drawn"))
    assert NOTICE in (desk / "out.HTML").read_text()
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml", "out.json", "out.HTML", "drawn"}
    assert all(p.read_text().startswith("<svg") for p in (desk / "drawn").iterdir())


def one_age(path: Path) -> None:
    """Every person of a file is 30 years old from now on."""
    head, *lines = path.read_text().splitlines()
    fields = [line.split(",") for line in lines]
    path.write_text("\n".join([head, *(",".join([n, j, "30", *rest]) for n, j, _, *rest in fields), ""]))


def test_evaluate_names_the_worst_part(show_evaluation: Show, desk: Path):
    (desk / "other.csv").write_text((desk / "people.csv").read_text())
    one_age(desk / "other.csv")
    lines = show_evaluation(synthetic="other.csv").splitlines()
    assert "age (0." in next(line for line in lines if "single columns" in line)


def test_evaluate_says_why_there_is_no_figure(show_evaluation: Show, desk: Path):
    for name in ("people.csv", "people.toml"):
        (desk / name).write_text(ONE_COLUMN[name])
    printed = show_evaluation()
    assert "Counts, no figure: Total variation of pairs: " in printed and "columns" in printed


ONE_COLUMN = {
    "people.csv": "age\n18\n30\n",
    "people.toml": '[columns.age]\ntype = "integer"\nmin = 18\nmax = 80\n',
}


def test_brackets_in_a_name_are_no_markup(show_evaluation: Show, desk: Path):
    for name, written in (("people.csv", "[/b]"), ("people.toml", '"[/b]"')):
        (desk / name).write_text((desk / name).read_text().replace("age", written, 1))
    (desk / "other.csv").write_text((desk / "people.csv").read_text())
    one_age(desk / "other.csv")
    assert "[/b] (0." in show_evaluation(synthetic="other.csv")


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"report": Path("out.pdf")}, "report ('out.pdf') must end in .html or .json"),
        ({"report": Path("absent/out.html")}, "'absent/out.html' can't be written: No such file or directory"),
        ({"report": Path("people.csv/out.html")}, "can't be written: Not a directory"),
        ({"synthetic": "."}, "'.' is not the folder of a release: it has neither synthetic.csv nor synthetic.parquet"),
        ({"synthetic": "absent.csv"}, "'absent.csv' does not exist"),
        ({"real": "absent.csv"}, "'absent.csv' does not exist"),
        ({"holdout": "absent.csv"}, "'absent.csv' does not exist"),
        ({"schema": Path("absent.toml")}, "absent.toml"),
        ({"target": "wage"}, "the target 'wage' is not a column of all tables"),
        ({"groups": ("age",)}, "the group 'age' is a number"),
    ],
)
def test_evaluate_refuses_in_one_sentence(show_evaluation: Show, desk: Path, wish: dict[str, Any], said: str):
    with pytest.raises(UnderstudyError) as refused:
        show_evaluation(**wish)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.exit_code == 2
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml"}


def test_a_report_is_refused_before_any_work(show_evaluation: Show, desk: Path, monkeypatch: pytest.MonkeyPatch):
    (desk / "folder.html").mkdir()
    monkeypatch.setattr(evaluation_commands, "evaluate", None)
    with pytest.raises(InputError, match="is a folder"):
        show_evaluation(report=Path("folder.html"))


def with_output(wish: dict[str, Any]) -> dict[str, Any]:
    """The wish with what concerns its output put together, as the command line does."""
    names = {field.name for field in dataclasses.fields(Output)}
    output = Output(**{name: value for name, value in wish.items() if name in names})
    return {name: value for name, value in wish.items() if name not in names} | {"output": output}


def show_comparison(**wish: Any) -> None:
    plain = {"data": "people.csv", "methods": "independent,marginals", "epsilons": "1", "seeds": 1, "target": None}
    plain |= {"groups": (), "holdout": None, "schema": None, "delta": 1e-6, "out": None, "jobs": 1, "layout": None}
    study_commands.show_comparison(**with_output({**plain, **wish}))


@pytest.mark.slow
def test_compare_writes_a_folder(desk: Path, capsys: pytest.CaptureFixture[str]):
    show_comparison()
    printed = capsys.readouterr()
    folder = desk / "people-study"
    written = {"trials.jsonl", "study.key", "results.parquet", "results.csv", "study.html"}
    assert {p.name for p in folder.iterdir()} == written
    page = (folder / "study.html").read_text()
    assert "2 methods at 1 budget on people.csv" in page and "The tables of seed" not in page
    assert not list(desk.glob("*ledger*"))
    assert printed.err.startswith("No budget is spent") and printed.err.count("\n") == 4  # and a line for each case
    assert "3/3" in printed.err and NOTICE in printed.out
    assert "(real rows)" in printed.out and "independent" in printed.out
    assert "tv2: Total variation of pairs, lower is better" in printed.out
    assert "marginals at epsilon 1, seed 0: failed: method marginals needs" in printed.out
    _same_again_as_json(folder, capsys)


def _same_again_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_comparison(as_json=True, layout="model-or-statistics", figures=Path("drawn"))
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.err == "" and "The tables of model-or-statistics" in (folder / "study.html").read_text()
    assert {(r["method"], r["measure"], r["seeds"]) for r in found["results"]} == {
        ("independent", "tv1", 1),
        ("independent", "tv2", 1),
    }
    assert found["baseline"] == {"tv1": 0.0, "tv2": 0.0} and found["failures"][0]["method"] == "marginals"
    assert {p.suffix for p in Path("drawn").iterdir()} == {".svg"}
    show_comparison(methods="independent")
    assert "2 of 2 trials are on record already" in capsys.readouterr().err
    with pytest.raises(InputError, match="delta changed from 1e-06 to 1e-05"):
        show_comparison(delta=1e-5)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"methods": "mst,,aim"}, "methods ('mst,,aim') must be a list with commas between its parts"),
        ({"methods": "mts"}, "method 'mts' is not known; did you mean 'mst'?"),
        ({"epsilons": "1,two"}, "epsilon ('two') must be a number"),
        ({"epsilons": "-1"}, "epsilon (-1.0) must"),
        ({"seeds": 0}, "seeds (0) must be"),
        ({"data": "absent.csv"}, "'absent.csv' does not exist"),
        ({"data": "absent.csv", "schema": Path("people.toml")}, "'absent.csv' does not exist"),
        ({"holdout": "absent.csv"}, "'absent.csv' does not exist"),
        ({"target": "wage"}, "the target 'wage' is not a column"),
        ({"out": Path("people.csv")}, "can't be written"),
        (
            {"layout": "unheard-of"},
            "layout ('unheard-of') must be one of adversarial-forests, selection, model-or-statistics",
        ),
        ({"figure_format": "gif"}, "the format of figures ('gif') must be one of svg, png"),
    ],
)
def test_compare_refuses_in_one_sentence(desk: Path, wish: dict[str, Any], said: str):
    with pytest.raises(UnderstudyError) as refused:
        show_comparison(**wish)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.exit_code == 2
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml"}


def test_an_interrupt_says_what_is_kept(capsys: pytest.CaptureFixture[str]):
    trial = Trial("mst", 0.5, 2, 1.234, 100.0, {})
    with pytest.raises(KeyboardInterrupt), study_commands.reported(Path("out"), quiet=True) as told:
        told.advance(TrialAdvance("trial", 4, 9, recorded=3))
        told.advance(TrialAdvance("trial", 5, 9, recorded=3, trial=trial))
        raise KeyboardInterrupt
    assert "Stopped: 5 of 9 trials are recorded in out; the same command goes on" in capsys.readouterr().err


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    trial = Trial("mst", 0.5, 2, 1.234, 100.0, {}, "too [/large]")
    with study_commands.reported(Path("out"), quiet=False) as told:
        told.advance(TrialAdvance("trial", 4, 9, recorded=4))
        told.advance(TrialAdvance("trial", 5, 9, recorded=4, trial=trial))
    assert "mst at epsilon 0.5, seed 2: failed: too [/large]" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_help_says_that_choosing_by_private_rows_voids_the_claim(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        app([command, "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "voids the claim" in printed and "internal" in printed
    assert "voids the claim" in NOTICE
