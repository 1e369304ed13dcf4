"""`understudy study`: pages that need no private table."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.lab.studies.documents import nonparametric

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
