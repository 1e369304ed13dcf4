"""A release: the synthetic table, its certificate, and the noisy measurements that it is made of."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.card import Card, shortened
from understudy.errors import CheckFailed, ReleaseError
from understudy.files import KEPT, staged_folder, sweep, write_synced
from understudy.inference.model import Model
from understudy.methods.forecast.caution import cautions_after, spoken
from understudy.methods.forecast.forecast import Forecast
from understudy.methods.parts.prior import Prior
from understudy.parameters import one_of
from understudy.releases.certificate import Certificate
from understudy.releases.priors import prior_bytes
from understudy.releases.synthetic_table import csv_bytes, parquet_bytes
from understudy.releases.untrusted.arrays import demand_names, read_arrays
from understudy.releases.untrusted.reading import parse_json

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.releases.interval import Count, Counter

CERTIFICATE, MEASUREMENTS, SCHEMA, REPORT = "certificate.json", "measurements.npz", "schema.toml", "report.html"
PRIOR = "prior.npz"
"""Only where a prior was given: its tables, which `replay` needs."""
FORMATS = ("csv", "parquet")
MOST_NAMES = 12
"""Columns that the summary of a release names."""


@dataclass(frozen=True, repr=False)
class Release(Card):
    """What `synthesize` returns. `table` is the kind of frame that went in (a pyarrow table for files)."""

    table: Any
    certificate: Certificate
    record: tuple[RecordedAnswer, ...]
    schema: Schema
    domain: Domain
    arrow: pa.Table
    model: Model = field(repr=False)
    """The fitted distribution: a function of the record, and of public facts."""
    prior: Prior | None = field(default=None, repr=False)
    """What was known before, where something was."""

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        names, claim = self.arrow.column_names, self.certificate.guarantee
        head = list(self.certificate.imprint.stated.items())
        guarantee = f"none ({self.certificate.stamp})"
        if claim is not None:
            pair = f"({claim['epsilon']:.6g}, {claim['delta']:g})"
            guarantee = f"{pair}-differential privacy, neighbours {claim['neighbours']}"
        facts = [("method", self.certificate.method), ("guarantee", guarantee), ("protects", self.certificate.protects)]
        if self.expected is not None:
            facts.append(("expected", spoken(self.expected, self.total)))
        facts += [("rows", f"{self.arrow.num_rows:,}"), ("columns", shortened(names, MOST_NAMES))]
        return "Release", [*head, *facts, *(("caution", c) for c in self.cautions)]

    @property
    def total(self) -> int:
        """The noisy number of private rows (the true one where it is public)."""
        return max(1, round(self.model.total))

    @cached_property
    def expected(self) -> Forecast | None:
        """How far off this table is expected to be, by the noisy number of rows; None where nothing is known of it."""
        from understudy.releases.planning import forecast_of

        return forecast_of(self.certificate, self.domain.schema, self.total)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What somebody who uses this table should know, such as that noise exceeds signal."""
        return cautions_after(self.expected, self.total, self.certificate.asked)

    @classmethod
    def load(cls, directory: str | Path) -> Release:
        """Reads a release folder back, checking it on the way: what `verify` and `replay` find wrong is raised.

        Table and model are rebuilt from the recorded measurements, which takes as long as fitting took.
        """
        from understudy.releases.checking import load

        return load(Path(directory))

    def complete(self, frame: Any, *, seed: int | None = None) -> Any:
        """The frame (pandas, polars or pyarrow) with all released columns that it lacks.

        They are drawn row by row from the model, given the row's values, so this spends nothing.

        Args:
            frame: Some of the released columns. They stay as they are: they are your own, and nothing protects them.
            seed: Makes the draw repeatable.

        >>> import pyarrow as pa, understudy as us
        >>> columns = '[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99\\n[columns.smoker]\\ntype = "boolean"'
        >>> people = pa.table({"age": [31, 47, 52], "smoker": [True, False, False]})
        >>> release = us.synthesize(us.open(people, us.Schema.loads(columns)), epsilon=1.0)
        >>> release.complete(pa.table({"smoker": [True, True]})).column_names
        ['age', 'smoker']
        """
        from understudy.releases.frames import complete_frame

        return complete_frame(self.model, self.domain, frame, seed)

    def impute(self, frame: Any, *, seed: int | None = None) -> Any:
        """The frame (pandas, polars or pyarrow) with its missing cells filled in.

        Each is drawn from the model given all other values of its row, so this spends nothing. A row that lacks all
        gets one of the model's rows.

        Args:
            frame: Some of the released columns. What is there stays as it is.
            seed: Makes the draw repeatable.

        >>> import pyarrow as pa, understudy as us
        >>> columns = '[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99\\n[columns.smoker]\\ntype = "boolean"'
        >>> people = pa.table({"age": [31, 47, 52], "smoker": [True, False, False]})
        >>> release = us.synthesize(us.open(people, us.Schema.loads(columns)), epsilon=1.0)
        >>> release.impute(pa.table({"age": [40, None], "smoker": [None, True]})).column("age").null_count
        0
        """
        from understudy.releases.frames import fill_frame

        return fill_frame(self.model, self.domain, frame, seed)

    def log_density(self, frame: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """How likely the model holds each row of a frame: the natural logarithm of its density.

        It is a probability for columns of values and of whole numbers (even inside a bin), and a density over the unit
        of the column for other numbers. Constraints of the schema are not divided out: rows that break one have the
        density that the model gives them. Some methods have no density; `generative-forest` is made for it.

        Args:
            frame: Every modelled column; others are not looked at.

        >>> import pyarrow as pa, understudy as us
        >>> columns = '[columns.smoker]\\ntype = "boolean"'
        >>> people = us.open(pa.table({"smoker": [True, False, False]}), us.Schema.loads(columns))
        >>> release = us.synthesize(people, epsilon=1.0, method="generative-forest")
        >>> float(np.exp(release.log_density(pa.table({"smoker": [True, False]}))).sum().round(6))
        1.0
        """
        from understudy.releases.frames import log_density_of

        return log_density_of(self.model, self.domain, frame, self.certificate.method)

    def count(self, expression: str, *, confidence: float = 0.95) -> Count:
        """How many private rows satisfy an expression such as "age > 40 and sex = 'Female'", with an interval.

        It is estimated from the noisy measurements and the model, so this spends nothing. The interval covers the
        noise, and what the model had to infer; where that makes it approximate, `exact_noise` is False.

        Args:
            expression: What a row must satisfy, in the language of the schema's constraints.
            confidence: The probability with which the interval holds the true number.

        >>> import pyarrow as pa, understudy as us
        >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
        >>> release = us.synthesize(us.open(pa.table({"age": [31, 47, 52]}), schema), epsilon=1.0)
        >>> counted = release.count("age > 40")
        >>> counted.low <= counted.value <= counted.high, counted.exact_noise, counted.basis
        (True, True, 'measured in 1 table')
        """
        return self._counter.count(expression, confidence)

    @cached_property
    def _counter(self) -> Counter:
        from understudy.releases.interval import Counter

        return Counter.of(self)

    def save(self, directory: str | Path, *, format: str = "csv", overwrite: bool = False) -> Path:
        """Writes the release folder: whole, or not at all.

        Args:
            directory: The folder, which is made.
            format: "csv" or "parquet", of the synthetic table.
            overwrite: Replace a folder that exists, if it holds a release and nothing else.
        """
        target = Path(directory)
        check_writable(target, overwrite)
        return write_folder(target, self.files(format), overwrite, private=self.certificate.void is not None)

    def files(self, format: str = "csv") -> dict[str, bytes]:
        """The content of every file of the release folder; the certificate holds the hashes of the others."""
        # The certificate last, since it holds the hashes of the others; so the report can't quote its digest.
        content = {synthetic_name(format): self.synthetic_bytes(format)}
        content[MEASUREMENTS] = record_bytes(self.record)
        content[SCHEMA] = self.schema.dumps().encode()
        if self.prior is not None:
            content[PRIOR] = prior_bytes(self.prior)
        content[REPORT] = self.report_bytes()
        certificate = dataclasses.replace(self.certificate, files={name: sha256(c) for name, c in content.items()})
        return content | {CERTIFICATE: certificate.to_bytes()}

    def report_bytes(self) -> bytes:
        """The report, of everything but the hashes of the files, of which it is one."""
        from understudy.releases.report import render

        certificate = dataclasses.replace(self.certificate, files={})
        page = render(
            certificate, self.domain, self.arrow, record=self.record, expected=self.expected, cautions=self.cautions
        )
        return page.encode()

    def synthetic_bytes(self, format: str) -> bytes:
        one_of("format", format, FORMATS, error=ReleaseError)
        if format == "csv":
            return csv_bytes(self.arrow, self.schema)
        return parquet_bytes(self.arrow)


def synthetic_name(format: str) -> str:
    return f"synthetic.{format}"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def record_bytes(record: Sequence[RecordedAnswer]) -> bytes:
    """Questions as JSON, answers as arrays; no pickle, so that reading it runs nothing."""
    questions = json.dumps([a.question for a in record], ensure_ascii=False).encode()
    arrays: dict[str, Any] = {f"answer_{i}": a.value for i, a in enumerate(record)}
    buffer = io.BytesIO()
    # numpy dates every member 1980, so the same record gives the same bytes.
    np.savez_compressed(buffer, questions=np.frombuffer(questions, dtype=np.uint8), **arrays)
    return buffer.getvalue()


def read_record(content: bytes) -> tuple[RecordedAnswer, ...]:
    """The inverse of `record_bytes`."""
    arrays = read_arrays(content, MEASUREMENTS)
    questions = parse_json(arrays.get("questions", np.empty(0)).tobytes(), MEASUREMENTS)
    if not isinstance(questions, list) or not all(isinstance(q, dict) for q in questions):
        raise CheckFailed(f"{MEASUREMENTS} can't be read: its questions are no list of questions", MEASUREMENTS)
    demand_names(arrays, {"questions", *(f"answer_{i}" for i in range(len(questions)))}, MEASUREMENTS)
    return tuple(RecordedAnswer(q, arrays[f"answer_{i}"]) for i, q in enumerate(questions))


def check_writable(target: Path, overwrite: bool, expected_bytes: int = 0) -> None:
    """Refuses a target that can't be written, before anything is spent: proves it by writing."""
    if target.exists():
        if not overwrite:
            raise ReleaseError(
                f"{str(target)!r} exists already; choose another folder, or say --overwrite (overwrite=True)", target
            )
        if not target.is_dir():
            raise ReleaseError(f"{str(target)!r} is a file; choose another folder", target)
        _check_replaceable(target)
    # Folders above the target may be still to be made: where they will be is the nearest one that exists.
    parent = next(folder for folder in target.absolute().parents if folder.exists())
    try:
        # As the release will be written, so that a name that is too long is found now, too.
        with staged_folder(parent / target.name) as staging, (staging / CERTIFICATE).open("wb") as probe:
            # Reserves the room, so that a full disk refuses now and not after the budget is spent. Linux has this call;
            # where it is missing, writing a little must do.
            if expected_bytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(probe.fileno(), 0, expected_bytes)
            probe.write(b"room")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise ReleaseError(f"{str(target)!r} can't be written: {error.strerror}", target) from None


def _check_replaceable(target: Path) -> None:
    """Overwriting deletes the old folder, so it must hold a release and nothing else."""
    ours = {CERTIFICATE, MEASUREMENTS, SCHEMA, REPORT, PRIOR, *map(synthetic_name, FORMATS)}
    foreign = sorted({p.name for p in target.iterdir()} - ours)
    if foreign:
        raise ReleaseError(
            f"{str(target)!r} holds {foreign[0]!r}, which is no part of a release; choose another", target
        )


def write_folder(target: Path, files: dict[str, bytes], overwrite: bool, *, private: bool) -> Path:
    """Writes every file into a temporary folder beside the target, then renames the folder.

    A release is made to be read by others: folder and files follow the umask. One that guarantees nothing, as of a
    draft that was read off the rows, is for its owner's eyes (`private`).
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged_folder(target) as staging:
            if private:
                staging.chmod(0o700)
            for name, content in files.items():
                if private:
                    (staging / name).touch(0o600)
                write_synced(staging / name, content)
            # All is on the disk before the folder gets its name: after a crash it is there whole, or not at all.
            _put_in_place(staging, target, overwrite)
    except OSError as error:
        raise ReleaseError(f"{str(target)!r} can't be written: {error.strerror}", target) from None
    sweep(target, everything=True)
    return target


def _put_in_place(staging: Path, target: Path, overwrite: bool) -> None:
    if not (overwrite and target.exists()):
        staging.rename(target)
        return
    # A folder that holds files can't be renamed over: move the old one away first, and back if the new one fails.
    with staged_folder(target) as aside:
        target.rename(aside / KEPT)
        try:
            staging.rename(target)
        except OSError:
            (aside / KEPT).rename(target)
            raise
