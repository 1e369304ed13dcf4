"""`understudy.attack`: every attack on a synthetic table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.attacks import attacking
from understudy.attacks.attacking import Progress, attack_tables
from understudy.files import write_atomically
from understudy.reports import attacks as attacks_report
from understudy.schema.schema import Schema
from understudy.studies.result import report_writer, save_figures


class Attacks(attacking.Attacks):
    """The findings of all attacks on a synthetic table. It is internal: it was computed from real rows."""

    def to_html(self) -> str:
        """The report as one page that needs nothing else."""
        return attacks_report.render(self)

    def save(self, path: str | Path) -> None:
        """Writes the report (.html) or the findings (.json), by the ending of the path."""
        path = Path(path)
        write_atomically(path, report_writer(path, {".html": self.to_html, ".json": self.to_json})().encode())

    def save_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Writes every picture of the report as a file of its own, for papers and slides."""
        return save_figures(attacks_report.pictures(self), Path(folder), format)

    def _repr_html_(self) -> str:
        return attacks_report.render_brief(self)


def attack(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    schema: Schema | str | Path | None = None,
    secrets: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Attacks:
    """Attacks a synthetic table as somebody would who wants to learn about people. The result is internal.

    Tables are frames, paths, or what `understudy.open` returned: the rows that the synthetic table was made from, real
    rows from the same population that it was not made from, and itself. `secrets` are the columns that an attacker
    would like to learn; by default every column is one in its turn.

    >>> import pyarrow as pa
    >>> people, others = pa.table({"age": range(20, 60)}), pa.table({"age": range(60, 100)})
    >>> attack(people, others, people)["copies"].verdict
    'advantage'
    """
    found = attack_tables(train, holdout, synthetic, schema=schema, secrets=secrets, seed=seed, progress=progress)
    return Attacks(found.facts, found.findings)
