"""What a check finds: frozen facts, each a count of rows or a few words."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from understudy.errors import InputError
from understudy.lab.intake.blur import Blur
from understudy.pages.page import Rendered, Report

NOTICE = (
    "Internal: this was read off the private rows, quotes some of them, and has no privacy guarantee. Do not publish "
    "it. Mend the schema by code books and common sense: a bound or a value copied from here is not public."
)
NOISE_AT = 1.0
"""The ε whose noise is foretold."""


@dataclass(frozen=True)
class Strange:
    """A text that is on no list, or can't be read; `meant` is what was probably meant."""

    text: str
    rows: int
    meant: str | None = None


@dataclass(frozen=True)
class ColumnCheck:
    """What reading does to one column. Counts are of rows."""

    name: str
    type: str
    cells: int | None
    """Codes that it has, or None where that is private."""
    missing: int
    missing_declared: bool
    unreadable: int
    undeclared: int
    other: str | None
    """What an undeclared value becomes, where the schema names it."""
    below: int
    above: int
    least: str | None
    most: str | None
    """The extremes of the values that are there."""
    strange: tuple[Strange, ...] = ()
    """The commonest texts that are undeclared or unreadable."""
    blur: Blur | None = None

    @property
    def clamped(self) -> int:
        return self.below + self.above

    @property
    def missing_undeclared(self) -> int:
        return 0 if self.missing_declared else self.missing

    @property
    def changed(self) -> int:
        """Rows whose value becomes another one by the schema's rules alone."""
        undeclared = 0 if self.other is not None else self.undeclared
        return self.clamped + undeclared + self.unreadable + self.missing_undeclared


@dataclass(frozen=True)
class Cap:
    """What one `max_rows` would lose."""

    max_rows: int
    rows_lost: int
    persons_cut: int


@dataclass(frozen=True)
class PersonCheck:
    """The rows of each person, where the schema names a unit."""

    column: str
    max_rows: int
    persons: int
    without_id: int
    """Rows that belong to nobody: they don't count."""
    most: int
    """The rows of whoever has most of them."""
    caps: tuple[Cap, ...]

    @property
    def stated(self) -> Cap:
        return next(c for c in self.caps if c.max_rows == self.max_rows)


@dataclass(frozen=True)
class RuleCheck:
    """How many rows break a constraint, as their cleaned values say; None where a column of it has private bounds."""

    text: str
    broken: int | None


@dataclass(frozen=True)
class NoiseCheck:
    """What to expect of a release with ε = `NOISE_AT` of a table with as many rows."""

    method: str
    error: float
    low: float
    high: float
    cells: int
    """Of all single columns together."""
    pair_cells: float
    """Of a pair of columns, on average."""


@dataclass(frozen=True)
class Issue:
    """Something that a person should mend, or at least know; the gravest come first."""

    place: str
    words: str
    share: float
    """Of the rows."""
    mend: bool

    @property
    def sentence(self) -> str:
        end = "" if self.words.endswith("?") else "."
        return f"{self.place}: {self.words}{end}"


@dataclass(frozen=True)
class Check(Rendered):
    """What a schema does to a table's rows. It is internal: it was read off the rows, and quotes some of them."""

    table: str
    rows: int
    draft: bool
    protects: str
    columns: tuple[ColumnCheck, ...]
    left_out: tuple[str, ...]
    person: PersonCheck | None
    rules: tuple[RuleCheck, ...]
    noise: NoiseCheck | None
    issues: tuple[Issue, ...] = ()
    verdict: str = ""
    """What to do, in a sentence or two."""

    def __getitem__(self, name: str) -> ColumnCheck:
        found = next((c for c in self.columns if c.name == name), None)
        if found is None:
            raise InputError(
                f"column {name!r} was not checked; there are {', '.join(c.name for c in self.columns)}", name
            )
        return found

    @property
    def to_mend(self) -> tuple[Issue, ...]:
        """What would spoil a release."""
        return tuple(i for i in self.issues if i.mend)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"notice": NOTICE, "to_mend": len(self.to_mend), **dataclasses.asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        """Without the figures, which quote values; the report has them."""
        return f"<Check of {self.table}: {len(self.to_mend)} to mend, {len(self.issues)} in all, internal>"

    def _report(self) -> Report:
        from understudy.lab.intake import report

        return report
