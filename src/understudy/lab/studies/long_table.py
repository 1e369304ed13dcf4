"""The results of a study as one long table: a row for each figure of each trial, and for each of its parts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.files import write_atomically
from understudy.lab.evaluation.measure import MeasureResult
from understudy.lab.studies.case import BASELINE
from understudy.lab.studies.study import Study
from understudy.releases.synthetic_table import parquet_bytes

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET, CSV = "results.parquet", "results.csv"
COLUMNS = ("method", "epsilon", "seed", "measure", "part", "value", "reason", "seconds", "megabytes")

Row = tuple[Any, ...]


def to_arrow(study: Study) -> pa.Table:
    """A figure as a whole has no `part`; a trial that failed is one row without a measure. Real rows have no ε."""
    import pyarrow as pa

    kinds = (pa.string(), pa.float64(), pa.int64(), pa.string(), pa.string(), pa.float64(), pa.string())
    fields = [pa.field(n, k) for n, k in zip(COLUMNS, (*kinds, pa.float64(), pa.float64()), strict=True)]
    columns = list(zip(*_rows(study), strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def write(study: Study, folder: Path) -> None:
    """Writes the table in both formats, each whole or not at all."""
    table = to_arrow(study)
    write_atomically(folder / PARQUET, parquet_bytes(table))
    write_atomically(folder / CSV, _csv_bytes(table))


def _rows(study: Study) -> Iterator[Row]:
    for name, figure in study.baseline.items():
        yield from _figure_rows((BASELINE.method, None, None), name, figure, (None, None))
    for trial in study.trials:
        cost = (trial.seconds, trial.megabytes)
        if trial.failed:
            yield (*trial.key, None, None, None, trial.failed, *cost)
        for name, figure in trial.figures.items():
            yield from _figure_rows(trial.key, name, figure, cost)


def _figure_rows(key: Row, name: str, figure: MeasureResult, cost: Row) -> Iterator[Row]:
    yield (*key, name, None, figure.value, figure.reason or None, *cost)
    for part in figure.parts:
        yield (*key, name, part.name, part.value, part.reason or None, *cost)


def _csv_bytes(table: pa.Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(c.to_pylist() for c in table.columns), strict=True))
    return text.getvalue().encode()
