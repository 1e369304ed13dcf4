"""Files in another notation than UTF-8 with commas, read as the schema's [file] says."""

from __future__ import annotations

from pathlib import Path

import pytest

import understudy as us
from understudy.lab.evaluation.holdout import HoldoutSplit
from understudy.lab.specimens.points import Points

ROWS = 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = [f"{('Köln', 'Zürich')[i % 2]};{i},5;{i % 7}" for i in range(ROWS)]
    path.write_text("\n".join(["Stadt;Betrag;Kinder", *lines]) + "\n", encoding="latin-1")
    return path


def test_forests_and_hold_outs_read_a_file_as_its_schema_says(file: Path) -> None:
    schema = us.draft_schema(file)
    points = Points.of(file, schema)
    assert points.values[:, points.names.index("Betrag")].max() == ROWS - 0.5
    assert len(points.read(file)) == ROWS
    split = HoldoutSplit.of(file, schema)
    assert split.train.num_rows + split.holdout.num_rows == ROWS
    assert set(split.train["Stadt"].to_pylist()) == {"Köln", "Zürich"}
