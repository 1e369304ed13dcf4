"""`understudy study`: pages that need no private table."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.lab.studies.documents import forests, nonparametric

SMALL = nonparametric.NonparametricSize(rows=500, depth=4, measures=8, repeats=2, neighbours=4, runs=20)


def test_the_page_is_written(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    whole = nonparametric.study
    monkeypatch.setattr(nonparametric, "study", lambda seed, size: whole(seed, SMALL))
    done = understudy("study", "nonparametric", "--out", "page.html", "--seed", 3)
    assert done.code == 0 and "page.html" in done.out
    assert nonparametric.render(whole(3, SMALL)) == (desk / "page.html").read_text()


def test_a_page_that_cannot_be_written(desk: Path, refused):
    assert "must end in .html" in refused("study", "nonparametric", "--out", "page.json")
    assert "can't be written" in refused("study", "nonparametric", "--out", "nowhere/page.html")
    (desk / "folder.html").mkdir()
    assert "is a folder" in refused("study", "nonparametric", "--out", "folder.html")


def test_the_page_of_selection_needs_known_tables(desk: Path, refused):
    assert "must be the folder" in refused("study", "selection", "nowhere")
    assert "'towns' is not known" in refused("study", "selection", ".", "--table", "towns")
    assert "must end in .html" in refused("study", "selection", ".", "--out", "page.txt")
    assert "'gan' is not known" in refused("study", "selection", ".", "--pools", "mst,gan")
    assert "epsilon (0.0) must" in refused("study", "selection", ".", "--swept-epsilons", "0")


@pytest.mark.parametrize("name", ["forests", "model-or-statistics"])
def test_a_document_needs_its_tables(desk: Path, refused, name: str):
    assert "give the folder of the public tables" in refused("study", name, ".")
    assert not (desk / name).exists()
    (desk / "insurance.csv").write_text("age\n1\n")
    (desk / "file").touch()
    if name == "forests":
        assert "must be one of insurance, healthcare, adult" in refused("study", name, ".", "--table", "votes")
        assert "has no adult.train.csv" in refused("study", name, ".", "--table", "adult")
        assert "can't be written" in refused("study", name, ".", "--out", "file")


def test_the_sizes_that_are_asked_for_arrive(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    asked: list[object] = []

    def study(folder: Path, schemas: object, out: Path, plan: object, *told: object) -> list[object]:
        asked.append(plan)
        return []

    monkeypatch.setattr(forests, "study", study)
    (desk / "insurance.csv").touch()
    done = understudy("study", "forests", ".", "--seeds", 1, "--rows", 50, "--no-pictures", "--jobs", 1)
    assert done.code == 0 and "adversarial-forests.html" in done.out
    assert asked == [forests.ForestsPlan(seeds=1, rows=50, pictures=False, jobs=1)]
    assert (desk / "forests" / forests.PAGE).stat().st_mode & 0o777 == 0o600
    assert (desk / "forests").stat().st_mode & 0o777 == 0o700


def test_an_option_names_its_method(refused):
    assert "must name a method and its option" in refused("compare", "people.csv", "--option", "steps=5")
