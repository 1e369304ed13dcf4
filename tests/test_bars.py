"""Progress by default: a bar where somebody can see one, and nothing in a pipe."""

from __future__ import annotations

import sys

import pytest

from understudy.bars import NotebookBar, Plain, line, shown
from understudy.progress import Advance, Progress


def test_a_pipe_gets_nothing_and_false_is_silence(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (None, False):
        with shown(given, 3) as told:
            told("measuring")
            told.caution("noise")
    assert capsys.readouterr() == ("", "")


def test_whoever_is_given_is_told() -> None:
    own, heard = Progress(), list[str]()
    with shown(own, 3) as told:
        assert told is own
    with shown(heard.append, 3) as told:
        told("measuring")
    assert heard == ["measuring"]


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with shown(None, 3) as told:
        assert type(told).__name__ == "Bars"
        told("measuring")
        told.advance(Advance("round", 1, 2, epsilon=0.5, budget=1.0))
        told.caution("a [bracket]")


def test_a_notebook_gets_a_line_that_is_wiped_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with line(2) as told:
        told("measuring")
        told.advance(Advance("round", 1, 2))
        told("drawing rows")
    said = capsys.readouterr().err
    assert "measuring" in said and "drawing rows" in said and said.endswith("\r")
    assert "\n" not in said


def test_cautions_are_said_where_no_bar_is(capsys: pytest.CaptureFixture[str]) -> None:
    Plain().caution("epsilon 50 is above 5")
    assert capsys.readouterr().err == "caution: epsilon 50 is above 5.\n" and issubclass(NotebookBar, Plain)
