"""The page of a check: the verdict first, then columns, values, people, rules and noise. It is internal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.lab.intake.findings import NOISE_AT, NOTICE, Check, ColumnCheck
from understudy.lab.intake.looking import QUANTILES
from understudy.lab.intake.verdict import MENDABLE, spoken
from understudy.pages.figure import Figure
from understudy.pages.formatting import percent, written
from understudy.pages.page import fill

MOST_ISSUES = 3
"""Issues that the small table of a notebook has."""


@dataclass(frozen=True)
class ReadingRow:
    """A column as a line of the table of columns."""

    column: ColumnCheck
    state: str
    words: tuple[str, ...]


def render(check: Check) -> str:
    """One self-contained page for the steward; same input, same bytes."""
    return fill(
        "check.html.j2",
        check=check,
        notice=NOTICE,
        lines=[_line(c, check.rows) for c in check.columns],
        blurred=[(c, _blur_cells(c)) for c in check.columns if c.blur is not None],
        quantile_names=[f"{100 * q:g} %" for q in QUANTILES],
        spoken=spoken,
        share=lambda rows: percent(rows / check.rows),
        noise_at=NOISE_AT,
        mendable=percent(MENDABLE),
    )


def render_brief(check: Check) -> str:
    """The verdict and the gravest issues, for a notebook."""
    return fill("check-brief.html.j2", check=check, notice=NOTICE, issues=check.issues[:MOST_ISSUES])


def pictures(check: Check) -> Sequence[Figure]:
    """None: a check is a matter of numbers and words."""
    return []


def _line(column: ColumnCheck, rows: int) -> ReadingRow:
    counts = (
        (column.undeclared, "not declared"),
        (column.unreadable, "unreadable"),
        (column.below, "below min"),
        (column.above, "above max"),
        (column.missing_undeclared, "missing, though not declared so"),
    )
    words = tuple(f"{n:,} {what} ({percent(n / rows)})" for n, what in counts if n)
    state = "fits"
    if words:
        state = "mend" if column.changed / rows >= MENDABLE or any(s.meant for s in column.strange) else "look"
    if column.missing and column.missing_declared:
        words = (*words, f"{column.missing:,} missing ({percent(column.missing / rows)})")
    return ReadingRow(column, state, words)


def _short(number: float) -> str:
    """Enough digits to compare two."""
    return written(float(f"{number:.4g}"))


def _blur_cells(column: ColumnCheck) -> list[tuple[str, str]]:
    """Before and after, the mean first."""
    assert column.blur is not None
    return [(_short(before), _short(after)) for before, after in (column.blur.mean, *column.blur.quantiles)]
