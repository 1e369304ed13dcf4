"""The tutorials are executed, and what they show is what comes out: commands, edits, outputs, Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers.tutorial import Said, Tutorial, edit

PAGES = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))
WRITE = "UNDERSTUDY_WRITE_TUTORIALS" in os.environ
"""Puts what the commands print now into the pages, for a person to read before it is committed."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    tutorial = Tutorial(page)
    said = list(tutorial.executed())
    if WRITE:
        page.write_text(tutorial.with_outputs(said))
    wrong = [s for s in said if not s.holds]
    assert not wrong, "\n\n".join(f"$ {s.command}\n{s.printed}" for s in wrong)


def test_there_are_tutorials():
    assert {"first-ten-minutes", "in-python"} <= {p.stem for p in PAGES}


@pytest.mark.parametrize(
    ("printed", "noisy", "holds"),
    [
        ("rows 1,204 of 0123456789abcdef\n", False, True),
        ("rows 1,198 of 0123456789abcdef\n", False, False),
        ("rows 98 of fedcba9876543210\n", True, True),
        ("columns 98 of fedcba9876543210\n", True, False),
    ],
)
def test_other_words_are_found_out_and_other_figures_where_there_is_no_noise(printed: str, noisy: bool, holds: bool):
    assert Said("c", "rows 1,204 of 0123456789abcdef\n", printed, noisy).holds == holds


def test_an_edit_must_fit(tmp_path: Path):
    path = tmp_path / "a.toml"
    path.write_text("one\ntwo\nthree\n")
    edit(path, " one\n-two\n+2\n...\n-three\n")
    assert path.read_text() == "one\n2\n"
    with pytest.raises(AssertionError, match="0 times"):
        edit(path, "-three\n")


def test_a_page_that_promises_something_else_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ understudy verify nowhere\nverified\n$ echo $?\n2\n```\n")
    refused, code = Tutorial(page).executed()
    assert not refused.holds and code.holds
    assert "is not a folder" in Tutorial(page).with_outputs([refused, code])
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        list(Tutorial(page).executed())
