"""`understudy attack`, called as the command line calls it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from understudy.cli import evaluation_commands
from understudy.cli.screen import Output
from understudy.errors import InputError, UnderstudyError
from understudy.lab.attacks import identification
from understudy.lab.attacks.attacks import ATTACKS, NO_PROOF
from understudy.lab.attacks.shadow_models import SHADOW
from understudy.lab.evaluation.evaluation import NOTICE
from understudy.progress import Advance, Progress

Show = Callable[..., str]


@pytest.fixture
def show_attack(desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Show:
    """`attack` with the first 200 people as the training table and as the synthetic one, and the others held out."""
    monkeypatch.setattr(identification, "MOST_GUESSES", 50)
    head, *lines = (desk / "people.csv").read_text().splitlines()
    (desk / "people.csv").write_text("\n".join([head, *lines[:200], ""]))
    (desk / "others.csv").write_text("\n".join([head, *lines[200:], ""]))

    def show(train: str = "people.csv", holdout: str = "others.csv", synthetic: str = "people.csv", **wish: Any) -> str:
        output = Output(wish.pop("as_json", False), quiet=True, report=wish.pop("report", None))
        evaluation_commands.show_attacks(train, holdout, synthetic, output, **wish)
        return capsys.readouterr().out

    return show


def test_it_prints_a_table(show_attack: Show, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "160")
    printed = show_attack()
    assert "people.csv from people.csv: 200 training rows, 200 synthetic, hold-out 100\n" in printed
    assert all(a.title in printed for a in ATTACKS) and "Left out: name." in printed
    assert "100.00%" in printed and "attacks found an advantage" in printed
    assert NOTICE in printed and NO_PROOF in printed and "draft" not in printed


def test_it_prints_json(show_attack: Show):
    found = json.loads(show_attack(as_json=True, secrets=("age",)))
    assert found["notice"] == NOTICE and found["facts"]["secrets"] == ["age"]
    assert found["findings"]["copies"]["verdict"] == "advantage"


def test_it_takes_a_release_folder(show_attack: Show, understudy: Any, desk: Path):
    understudy("synth", "people.csv", "--epsilon", 1, "--method", "independent", "--rows", 50)
    (desk / "people.toml").unlink()
    facts = json.loads(show_attack(synthetic="people-release", as_json=True))["facts"]
    assert (facts["synthetic_rows"], facts["synthetic"], facts["drafted"]) == (50, "synthetic.csv", False)


def test_it_writes_its_report(show_attack: Show, desk: Path):
    assert "The report is out.html." in show_attack(report=Path("out.html"))
    show_attack(report=Path("out.json"))
    assert NOTICE in (desk / "out.html").read_text()
    assert json.loads((desk / "out.json").read_text())["findings"]["copies"]["parts"]["equal rows"]["success"] == 1.0


def test_it_attacks_the_method_that_is_named(show_attack: Show, monkeypatch: pytest.MonkeyPatch, desk: Path):
    monkeypatch.setenv("COLUMNS", "160")
    asked = {"method": "independent", "epsilon": 0.1, "delta": 0.0, "shadows": 16}
    printed = show_attack(report=Path("out.html"), **asked)
    assert "│ Membership by shadow models │" in printed and "of 8 attacks found an advantage" in printed
    assert "Membership by shadow models: independent with epsilon 0.1 at delta 0, on 200 training rows with" in printed
    assert "this attacks the method, not the table." in printed and NOTICE in printed
    assert "Membership by shadow models: " in (desk / "out.html").read_text()
    finding = json.loads(show_attack(as_json=True, **asked))["findings"]["shadow"]
    assert finding["baseline"] == 0.5 and "8 runs to learn from, 8 to test" in finding["note"]


def test_without_a_method_no_shadow_is_mentioned(show_attack: Show):
    assert "hadow" not in show_attack()
    assert list(json.loads(show_attack(as_json=True))["findings"]) == [a.name for a in ATTACKS]


def test_its_options_arrive(understudy: Any, show_attack: Show, monkeypatch: pytest.MonkeyPatch):
    asked = ("--method", "mst", "--epsilon", 2, "--delta", 1e-5, "--shadows", 30, "--seed", 3)
    arrived: dict[str, Any] = {}
    monkeypatch.setattr(evaluation_commands, "attack", lambda *tables, **wish: arrived.update(wish) or 1 / 0)
    understudy("attack", "people.csv", "others.csv", "people.csv", *asked)
    wished = {name: arrived[name] for name in ("method", "epsilon", "delta", "shadows", "seed")}
    assert wished == {"method": "mst", "epsilon": 2.0, "delta": 1e-5, "shadows": 30, "seed": 3}


def test_the_progress_bar_ends_with_the_last_shadow(show_attack: Show, monkeypatch: pytest.MonkeyPatch):
    """Every part is announced once: reading, the attacks, the shadow models. Each run of the method advances it."""
    begun: list[str] = []
    runs: list[Advance] = []
    totals: list[int] = []

    class Told(Progress):
        def __call__(self, part: str, /) -> None:
            begun.append(part)

        def advance(self, now: Advance, /) -> None:
            runs.append(now)

    @contextmanager
    def bar(parts: int, quiet: bool) -> Iterator[Progress]:
        totals.append(parts)
        yield Told()

    monkeypatch.setattr(evaluation_commands, "progress", bar)
    show_attack(method="independent", epsilon=1.0, shadows=17)
    assert totals == [len(begun)] == [1 + len(ATTACKS) + 1] and begun[-1] == SHADOW.title
    assert runs == [Advance("run", i, 18) for i in range(1, 19)]


def test_few_rows_are_explained(show_attack: Show, desk: Path):
    (desk / "few.csv").write_text("".join((desk / "others.csv").read_text().splitlines(keepends=True)[:4]))
    printed = show_attack(holdout="few.csv")
    assert "Copies, not defined: few.csv has 3 rows, and fewer than 10 say nothing." in printed
    assert "No attack could be made." in printed


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"report": Path("out.txt")}, "must end in"),
        ({"secrets": ("shoe",)}, "'shoe' is not a column"),
        ({"seed": -1}, "must be 0 or more"),
        ({"synthetic": "."}, "not the folder of a release"),
        ({"epsilon": 1.0}, "name their method too"),
        ({"method": "mst"}, "need an epsilon"),
        ({"method": "mts", "epsilon": 1.0}, "did you mean 'mst'"),
        ({"method": "mst", "epsilon": 1.0, "shadows": 4}, r"shadows \(4\) must be a whole number of at least 16"),
    ],
)
def test_wrong_wishes_are_refused(show_attack: Show, wish: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        show_attack(**wish)


def test_a_missing_file_is_one_sentence(show_attack: Show):
    with pytest.raises(UnderstudyError, match=r"nobody\.csv"):
        show_attack(holdout="nobody.csv")
