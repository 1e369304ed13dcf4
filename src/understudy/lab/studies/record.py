"""What a study has found so far, on disk: a killed run goes on where it stopped, and asks nothing twice.

A folder holds `trials.jsonl`: the question in its first line, then a line for each trial, on the disk before the next
one is awaited. It is locked while a run writes to it. Beside it stands `study.key`, by which a later run knows the
rows again: the question holds a keyed hash of them, which says nothing to whoever lacks the key. At the end the folder
also holds the results as one long table: a row for each figure of each trial, and for each of its parts.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import ReleaseError
from understudy.files import make_private, write_atomically
from understudy.lab.evaluation.measure import MeasurePart, MeasureResult
from understudy.lab.jobs.job_record import JobRecord
from understudy.lab.studies.study import BASELINE, Study, Trial
from understudy.releases.synthetic_table import parquet_bytes

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "trials.jsonl"
KEY = "study.key"
# As many as a SHA-256 has: RFC 2104 advises against a shorter key for an HMAC.
KEY_BYTES = 32
UNDEFINED = "the figure is not a finite number"
HASH = 64
"""Digits of a SHA-256: such a value says nothing to a reader, only that it changed."""


@dataclass(frozen=True)
class StudyQuestion:
    """All that the figures of a case depend on, but the case itself: more methods, ε or seeds may be added later."""

    data: str
    holdout: str
    schema: str
    delta: float
    target: str | None
    groups: tuple[str, ...]
    measures: tuple[str, ...]
    version: str
    """Another version may draw other rows from the same seed, and so can't add to a study."""
    options: str = ""
    """What single methods are told, as JSON; empty in studies in which none was told anything."""
    positive: str | None = None

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> StudyQuestion:
        lists = {name: tuple(facts[name]) for name in ("groups", "measures")}
        return cls(**(facts | lists))

    def changes(self, before: StudyQuestion) -> str:
        """What differs from the question before, in words; empty where nothing does."""
        now, then = dataclasses.asdict(self), dataclasses.asdict(before)
        return "; ".join(_change(SPOKEN[k], now[k], then[k]) for k in now if now[k] != then[k])


SPOKEN = {
    "data": "the data",
    "holdout": "the hold-out",
    "schema": "the schema",
    "delta": "delta",
    "target": "the target",
    "groups": "the groups",
    "measures": "the measures",
    "version": "the version of understudy",
    "options": "the options",
    "positive": "the value asked for",
}


def _change(name: str, now: Any, before: Any) -> str:
    if any(isinstance(v, str) and len(v) == HASH for v in (now, before)):
        return f"{name} changed"
    if isinstance(now, tuple):
        now, before = (", ".join(v) or "none" for v in (now, before))
    return f"{name} changed from {before} to {now}"


@dataclass(frozen=True)
class StudyRecord:
    """The trials of one folder; `add` writes one more."""

    trials: dict[tuple[str, float, int], Trial]
    _lines: JobRecord

    @classmethod
    @contextmanager
    def open(cls, folder: Path, question: StudyQuestion) -> Iterator[StudyRecord]:
        """The record in a folder, made if there is none; refused while another run has it, or for another question."""
        path = folder / FILE
        with JobRecord.open(path) as lines:
            trials = _trials(path, lines.values, question)
            if not lines.values:
                lines.append({"question": dataclasses.asdict(question)})
            yield cls(trials, lines)

    def add(self, trial: Trial) -> None:
        self._lines.append(to_dict(trial))
        self.trials[trial.key] = trial


def _trials(path: Path, values: list[Any], question: StudyQuestion) -> dict[tuple[str, float, int], Trial]:
    if not values:
        return {}
    strange = ReleaseError(f"{str(path)!r} is not the record of a study; choose another folder", path)
    try:
        # Before the trials are read: those of another version may have other fields, and then the question says why.
        changes = question.changes(StudyQuestion.from_dict(values[0]["question"]))
    except (KeyError, TypeError):
        raise strange from None
    if changes:
        where = f"{str(path.parent)!r} holds a study of another question"
        raise ReleaseError(f"{where} ({changes}); choose another folder, or ask as before", path)
    try:
        return {t.key: t for t in map(from_dict, values[1:])}
    except (KeyError, TypeError, AttributeError):  # lines of JSON, but of something else
        raise strange from None


def study_key(folder: Path) -> bytes:
    """The secret key of the study in a folder, made if there is none; only this user may read it."""
    path = folder / KEY
    try:
        make_private(folder)
        if not path.exists():
            _make_key(path)
        key = path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{str(path)!r} can't be written: {error.strerror}", path) from None
    if len(key) != KEY_BYTES:
        raise ReleaseError(f"{str(path)!r} is damaged; choose another folder", path)
    return key


def _make_key(path: Path) -> None:
    found = path.with_name(FILE)
    if found.exists() and found.stat().st_size:
        raise ReleaseError(
            f"{str(path.parent)!r} holds a study without its {KEY}, as earlier versions made them, with a plain "
            "hash of the rows; choose another folder, and delete that one",
            path,
        )
    with contextlib.suppress(FileExistsError):  # another run was first; its key is as good
        # Whoever has the key can try rows against the hash. So nobody else may read the file before it holds the key.
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(os.urandom(KEY_BYTES))


def to_dict(trial: Trial) -> dict[str, Any]:
    """The trial for JSON, which has no infinite numbers: a figure that is not finite becomes an undefined one."""
    return dataclasses.asdict(
        dataclasses.replace(trial, figures={name: _finite(figure) for name, figure in trial.figures.items()})
    )


def from_dict(value: dict[str, Any]) -> Trial:
    figures = {}
    for name, figure in value["figures"].items():
        parts = tuple(MeasurePart(**p) for p in figure["parts"])
        figures[name] = MeasureResult(**figure | {"parts": parts})
    return Trial(**value | {"figures": figures})


def _finite(figure: MeasureResult) -> MeasureResult:
    parts = tuple(_finite_part(p) for p in figure.parts)
    return dataclasses.replace(figure, value=_known(figure.value), reason=_reason(figure), parts=parts)


def _finite_part(part: MeasurePart) -> MeasurePart:
    value, raw, reference = map(_known, (part.value, part.raw, part.reference))
    return dataclasses.replace(part, value=value, reason=_reason(part), raw=raw, reference=reference)


def _reason(found: MeasureResult | MeasurePart) -> str:
    if found.value is None or math.isfinite(found.value):
        return found.reason
    return UNDEFINED


def _known(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(value)  # a numpy number is no JSON


PARQUET, CSV = "results.parquet", "results.csv"
COLUMNS = ("method", "epsilon", "seed", "measure", "part", "value", "reason", "seconds", "megabytes")

Row = tuple[Any, ...]


def to_arrow(study: Study) -> pa.Table:
    """A figure as a whole has no `part`; a trial that failed is one row without a measure. Real rows have no ε."""
    import pyarrow as pa

    kinds = (pa.string(), pa.float64(), pa.int64(), pa.string(), pa.string(), pa.float64(), pa.string())
    fields = [pa.field(n, k) for n, k in zip(COLUMNS, (*kinds, pa.float64(), pa.float64()), strict=True)]
    # No rows would give no columns either.
    columns = list(zip(*_rows(study), strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def write(study: Study, folder: Path) -> None:
    """Writes the table in both formats, each whole or not at all."""
    table = to_arrow(study)
    write_atomically(folder / PARQUET, parquet_bytes(table), private=True)
    write_atomically(folder / CSV, _csv_bytes(table), private=True)


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
