"""The study of every size as a command: what it refuses, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from understudy.cli import study_commands
from understudy.cli.study_commands import show_prediction
from understudy.datasets import schema
from understudy.errors import InputError, ReleaseError
from understudy.lab.studies.documents.prediction_grid import sizes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng, names = np.random.default_rng(1), schema("votes").names
    party = rng.integers(0, 2, 90)
    columns = {names[0]: np.array(["democrat", "republican"])[party]}
    columns |= {n: np.array(["n", "y"])[np.where(rng.random(90) < 0.1, 1 - party, party)] for n in names[1:]}
    pacsv.write_csv(pa.table(columns), tmp_path / "votes.csv")
    return tmp_path


def test_the_tables_that_are_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(study_commands, "QUICK_DEPTHS", (1, 2))
    monkeypatch.setattr(study_commands, "QUICK_TREES", (1, 2))
    monkeypatch.setattr(study_commands, "QUICK_EPSILONS", (10.0,))
    show_prediction(folder, folder / "out", [], repeats=2, quick=True, quiet=True)
    body = json.loads((folder / "out" / "prediction-grid.json").read_text())
    assert {o["table"] for o in body["outcomes"]} == {"votes"}
    assert len(body["outcomes"]) == sizes((1, 2), (1, 2), (10.0,)) == 2 * 3 + 2 * 4
    assert "private greedy tree" in capsys.readouterr().out
    assert (folder / "out" / "prediction-grid.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("tables", "sentence"), [(["insurance"], "must be one of adult"), (["nursery"], "has no nursery.csv")]
)
def test_refused_before_any_work(folder: Path, tables: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        show_prediction(folder, folder / "out", tables, repeats=1, quick=True, quiet=True)
    assert not (folder / "out").exists()


def test_an_empty_folder_and_one_that_is_a_file(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the folder of the public tables"):
        show_prediction(tmp_path / "nothing", tmp_path / "out", [], repeats=1, quick=True, quiet=True)
    with pytest.raises(ReleaseError, match="can't be written"):
        show_prediction(folder, folder / "votes.csv", [], repeats=1, quick=True, quiet=True)
