"""How a CSV file is written: its encoding, delimiter and quotes, and the marks inside its numbers.

All of it is declared under `[file]`, so that how a row is read depends on that row and on the schema alone.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from understudy.errors import SchemaError
from understudy.parameters import one_of, suggestion

DECIMALS = (".", ",")
THOUSANDS = ("", ".", ",", " ", "'", "\u00a0", "\u202f", "\u2019")
QUOTES = ('"', "'")
_REFUSED = re.compile(r"utf-7|hz|iso2022_.*|idna|punycode|undefined|(raw-)?unicode-escape|(raw_)?unicode_escape")
"""Codecs in which what a byte means depends on bytes of earlier rows, and those that no file is written in."""


@dataclass(frozen=True)
class Marks:
    """What stands in a number: before its fraction, and between its thousands (nothing, if empty)."""

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        one_of("file: decimal", self.decimal, DECIMALS, error=SchemaError, subject=self)
        one_of("file: thousands", self.thousands, THOUSANDS, error=SchemaError, subject=self)
        if self.decimal == self.thousands:
            raise SchemaError(f"file: decimal and thousands are both {self.decimal!r}; they must differ", self)

    @property
    def plain(self) -> bool:
        """Whether numbers are written as everywhere else in this program."""
        return self == Marks()

    def to_dict(self) -> dict[str, Any]:
        return {"decimal": self.decimal} | ({"thousands": self.thousands} if self.thousands else {})


@dataclass(frozen=True)
class FileFormat:
    """The notation of one CSV file. It has no say in how frames, Parquet files and databases are read."""

    encoding: str = "utf-8"
    delimiter: str | None = None
    """None leaves it to the header: the one that gives it the most fields."""
    quote: str = '"'
    marks: Marks = field(default_factory=Marks)
    columns: Mapping[str, Marks] = field(default_factory=dict)
    """Of columns whose numbers are written in another way."""

    def __post_init__(self) -> None:
        try:
            found = codecs.lookup(self.encoding)
            known = found._is_text_encoding
        except (LookupError, TypeError, ValueError):
            known = False
        if known and _REFUSED.fullmatch(found.name):
            raise SchemaError(
                f"file: encoding ({self.encoding!r}) must be one in which each row can be read by itself; convert the "
                "file to utf-8",
                self,
            )
        if not known:
            raise SchemaError(f"file: encoding ({self.encoding!r}) is not known; try utf-8, utf-16 or cp1252", self)
        one_of("file: quote", self.quote, QUOTES, error=SchemaError, subject=self)
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in "\"'\r\n"):
            raise SchemaError(f"file: delimiter ({self.delimiter!r}) must be one character, such as ';'", self)

    def __hash__(self) -> int:
        return hash((self.encoding, self.delimiter, self.quote, self.marks, tuple(self.columns.items())))

    @property
    def is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")

    def marks_of(self, column: str) -> Marks:
        return self.columns.get(column, self.marks)

    def can_write(self, text: str) -> bool:
        """Whether the encoding has all its characters."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"encoding": self.encoding}
        if self.delimiter is not None:
            out["delimiter"] = self.delimiter
        out |= {"quote": self.quote} | self.marks.to_dict()
        if self.columns:
            out["columns"] = {name: marks.to_dict() for name, marks in self.columns.items()}
        return out

    @classmethod
    def from_dict(cls, raw: Any) -> FileFormat | None:
        """What stands under `[file]`; None where nothing does."""
        if raw is None:
            return None
        _check("file", raw, ("encoding", "delimiter", "quote", "decimal", "thousands"), ("columns",))
        columns = raw.get("columns", {})
        if not isinstance(columns, dict):
            raise SchemaError("file: columns must be tables such as [file.columns.price]", raw)
        for name, marks in columns.items():
            _check(f"file: columns: {name!r}", marks, ("decimal", "thousands"))
        own = {key: raw[key] for key in ("encoding", "delimiter", "quote") if key in raw}
        return cls(**own, marks=_marks(raw), columns={name: _marks(m) for name, m in columns.items()})


def _marks(raw: Mapping[str, Any]) -> Marks:
    return Marks(raw.get("decimal", "."), raw.get("thousands", ""))


def _check(where: str, raw: Any, texts: tuple[str, ...], others: tuple[str, ...] = ()) -> None:
    if not isinstance(raw, dict):
        raise SchemaError(f'{where} must be a table, such as [file] with encoding = "utf-8"', raw)
    for key, value in raw.items():
        if key not in (*texts, *others):
            raise SchemaError(f"{where}: key {key!r} is unknown; {suggestion(key, (*texts, *others), 'it takes')}", raw)
        if key in texts and not isinstance(value, str):
            raise SchemaError(f"{where}: {key} ({value!r}) must be a string", raw)
