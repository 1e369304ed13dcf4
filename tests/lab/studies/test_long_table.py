"""The long table of results: one row for each figure and part, in Parquet and in CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq

from understudy.lab.evaluation.measure import MeasurePart, MeasureResult
from understudy.lab.studies import record as table
from understudy.lab.studies.study import Study, Trial
from understudy.methods.method import STATISTICS_FIRST

FIGURE = MeasureResult(0.25, parts=(MeasurePart("age", 0.5), MeasurePart("job, or none", None, "it is constant")))
TRIALS = (
    Trial("mst", 0.1, 0, 1.5, 200.0, {"tv1": FIGURE, "tv2": MeasureResult.undefined("there is one column")}),
    Trial("mwem", 0.1, 1, 2.5, 300.0, {}, "the domain is too large"),
)
WANTED = [
    ("real rows", None, None, "tv1", None, 0.0, None, None, None),
    ("mst", 0.1, 0, "tv1", None, 0.25, None, 1.5, 200.0),
    ("mst", 0.1, 0, "tv1", "age", 0.5, None, 1.5, 200.0),
    ("mst", 0.1, 0, "tv1", "job, or none", None, "it is constant", 1.5, 200.0),
    ("mst", 0.1, 0, "tv2", None, None, "there is one column", 1.5, 200.0),
    ("mwem", 0.1, 1, None, None, None, "the domain is too large", 2.5, 300.0),
]


def study(trials: tuple[Trial, ...] = TRIALS) -> Study:
    families = dict.fromkeys(("mst", "mwem"), STATISTICS_FIRST)
    return Study("people.csv", 80, 20, 1e-6, None, trials, {"tv1": MeasureResult(0.0)}, families)


def test_every_figure_and_part_has_a_row():
    assert [tuple(row.values()) for row in table.to_arrow(study()).to_pylist()] == WANTED


def test_both_files_hold_the_same(tmp_path: Path):
    table.write(study(), tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"results.parquet", "results.csv"}
    assert [tuple(row.values()) for row in pq.read_table(tmp_path / "results.parquet").to_pylist()] == WANTED
    with (tmp_path / "results.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == list(table.COLUMNS)
    assert lines[1:] == [["" if v is None else str(v) for v in row] for row in WANTED]


def test_a_study_without_figures_has_a_table_all_the_same():
    empty = Study("people.csv", 80, 20, 1e-6, None, (), {}, {})
    assert table.to_arrow(empty).num_rows == 0
    assert table.to_arrow(empty).column_names == list(table.COLUMNS)
