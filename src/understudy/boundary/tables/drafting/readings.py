"""How the texts of a column seem to be meant: as numbers in some notation, as dates in some format, or as texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from understudy.boundary.schema.file_format import Marks
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.tables.connection import quoted_text
from understudy.boundary.tables.sql import MOMENT, Stored
from understudy.boundary.tables.text_files import plain_number

MOST_STRAYS = 3
"""Different texts among numbers or dates that may be markers."""
FEWEST_NUMBERS = 12
"""Different numbers beside a marker; fewer are a list of codes, of which the marker is one."""
MOST_TRIED = 400
"""Different texts on which a format of dates is tried."""

_NOTATIONS = [
    Marks(),
    *(Marks(decimal, mark) for decimal, mark in ((".", ","), (",", "."))),
    Marks(",", ""),
    *(Marks(decimal, mark) for decimal in (".", ",") for mark in ("'", " ", "\u00a0", "\u202f", "\u2019")),
]
_TIMES = {"": "", " %H:%M": r" \d{1,2}:\d{2}", " %H:%M:%S": r" \d{1,2}:\d{2}:\d{2}", "T%H:%M:%S": r"T\d{2}:\d{2}:\d{2}"}
_DAYS = {
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}", "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%d-%m-%Y": r"\d{1,2}-\d{1,2}-\d{4}", "%m-%d-%Y": r"\d{1,2}-\d{1,2}-\d{4}", "%Y/%m/%d": r"\d{4}/\d{1,2}/\d{1,2}",
    "%Y.%m.%d": r"\d{4}\.\d{1,2}\.\d{1,2}", "%Y%m%d": r"(19|20)\d{2}[01]\d[0-3]\d",
    "%d.%m.%y": r"\d{1,2}\.\d{1,2}\.\d{2}", "%m/%d/%y": r"\d{1,2}/\d{1,2}/\d{2}", "%d/%m/%y": r"\d{1,2}/\d{1,2}/\d{2}",
    "%d %b %Y": r"\d{1,2} [A-Z][a-z]{2} \d{4}", "%d-%b-%Y": r"\d{1,2}-[A-Za-z]{3}-\d{4}",
    "%d-%b-%y": r"\d{1,2}-[A-Za-z]{3}-\d{2}", "%d %B %Y": r"\d{1,2} [A-Z][a-z]+ \d{4}",
    "%b %d, %Y": r"[A-Z][a-z]{2} \d{1,2}, \d{4}", "%B %d, %Y": r"[A-Z][a-z]+ \d{1,2}, \d{4}",
}  # fmt: skip
FORMATS = {day + time: re.compile(d + t) for day, d in _DAYS.items() for time, t in _TIMES.items()}
_ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?\s*(Z|[+-]\d{2}(:?\d{2})?)?")


@dataclass(frozen=True)
class Reading:
    """What the texts of a column are read as."""

    kind: Literal["text", "truth", "number", "moment"]
    marks: Marks = field(default_factory=Marks)
    form: str | None = None
    doubtful: bool = False
    """Whether days and months could also be the other way round."""

    def sql(self, text: str) -> str:
        """The value of a text in DuckDB's SQL: a double, a point in time or the text; null where it is none."""
        if self.kind == "number":
            plain = text
            if not self.marks.plain:
                plain = plain_number(exp.column(text), self.marks).sql(dialect="duckdb")
            return f"TRY_CAST({plain} AS DOUBLE)"
        if self.kind == "moment":
            iso = f"{MOMENT}({text})"
            return iso if self.form is None else f"coalesce(TRY_STRPTIME({text}, {quoted_text(self.form)}), {iso})"
        return text


def reading_of(texts: Counter[str], stored: Stored, believed: bool) -> Reading:
    """How these texts are read; `believed` says that whoever stored them as texts meant texts."""
    if stored.kind == "truth" or ({t.lower() for t in texts} <= {"true", "false"} and texts):
        return Reading("truth")
    if stored.kind == "moment":
        return Reading("moment")
    if stored.kind in ("whole", "real", "decimal"):
        return Reading("number")
    if stored.kind != "text" or not texts:
        return Reading("text")
    dates = _dates(texts)
    if dates is not None:
        return dates
    marks = _notation(texts)
    if marks is None or (believed and len(texts) <= 50):
        return Reading("text")
    return Reading("number", marks)


def agreed(readings: Sequence[Reading], samples: Sequence[Counter[str]]) -> list[Reading]:
    """Beside decimal commas, points between groups of three digits are marks of thousands."""
    if not any(r.marks.decimal == "," for r in readings):
        return list(readings)
    return [
        replace(r, marks=Marks(",", "."))
        if r.kind == "number" and r.marks.plain and _all_grouped(s, ".") else r
        for r, s in zip(readings, samples, strict=True)
    ]  # fmt: skip


def _all_grouped(texts: Counter[str], mark: str) -> bool:
    """Whether the mark stands somewhere, and nowhere but between thousands."""
    marked = [t for t in texts if mark in t]
    pattern = re.compile(rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+")
    return bool(marked) and all(pattern.fullmatch(t) for t in marked)


def _notation(texts: Counter[str]) -> Marks | None:
    for marks in _NOTATIONS:
        if marks.thousands and not any(marks.thousands in t for t in texts):
            continue
        # "1,234" is a number of thousands only if all commas are where those would be.
        if marks == Marks(".", ",") and not all(_grouped_before_point(t) for t in texts if "," in t):
            continue
        pattern = _number_pattern(marks)
        strays = sum(not pattern.fullmatch(t) for t in texts)
        if strays == 0 or (strays <= MOST_STRAYS and len(texts) - strays > FEWEST_NUMBERS):
            return marks
    return None


def _grouped_before_point(text: str) -> bool:
    return re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", text) is not None or not re.search(r"\d", text)


def _number_pattern(marks: Marks) -> re.Pattern[str]:
    point, between = re.escape(marks.decimal), re.escape(marks.thousands)
    whole = rf"(\d{{1,3}}({between}\d{{3}})+|\d+)" if between else r"\d+"
    return re.compile(rf"[+-]?({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?", re.ASCII)


def _dates(texts: Counter[str]) -> Reading | None:
    tried = list(texts)[:MOST_TRIED]
    if _fits(tried, _ISO):
        return Reading("moment")
    fitting = [form for form, shape in FORMATS.items() if _fits(tried, shape) and _reads(tried, form)]
    if not fitting:
        return None
    form = fitting[0]
    # Of one shape, days and months are told apart by a number above 12 alone.
    other = form.replace("%d", "%").replace("%m", "%d").replace("%/", "%m/").replace("%-", "%m-")
    return Reading("moment", form=form, doubtful=other != form and other in fitting)


def _strays_allowed(texts: Sequence[str]) -> int:
    return MOST_STRAYS if len(texts) > 4 * MOST_STRAYS else 0


def _fits(texts: Sequence[str], pattern: re.Pattern[str]) -> bool:
    return sum(not pattern.fullmatch(t) for t in texts) <= _strays_allowed(texts)


def _reads(texts: Sequence[str], form: str) -> bool:
    failed, allowed = 0, _strays_allowed(texts)
    for text in texts:
        try:
            datetime.strptime(text, form)
        except ValueError:
            failed += 1
        if failed > allowed:
            return False
    return True
