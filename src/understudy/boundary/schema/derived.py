"""Derived columns: a difference or a sum of other columns, modelled in place of one of them; or a part of a date.

`stay = discharged - admitted` is modelled where `discharged` was, which is rebuilt from it: `admitted + stay`. A part,
such as `weekday(admitted)`, is modelled beside its date, and says which date of a bin is drawn. A row's derived value
depends on that row and the schema alone, so it is one more column of codes to everything above.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeAlias

from understudy.boundary.schema.column import Column, Datetime, Integer, Line, Number
from understudy.errors import SchemaError

DERIVED = "derived"
EPOCH = datetime(1970, 1, 1)
"""From where the dates of a difference are counted, whatever their own bounds are."""
LARGEST_TERM = 1e300
"""Numbers beyond are taken for it: some engines raise an error where a sum of doubles overflows."""

PARTS = {"year": (1, 9999), "month": (1, 12), "weekday": (1, 7), "hour": (0, 23)}
_PART = re.compile(r'\s*(\w+)\(\s*(?:"((?:[^"]|"")+)"|([^\W\d]\w*))\s*\)\s*')
_PIECE = re.compile(r'\s*(?:([+-])|"((?:[^"]|"")+)"|([^\W\d]\w*))')


class Term(NamedTuple):
    """A column that is added, or subtracted where the sign is -1."""

    sign: int
    column: str


@dataclass(frozen=True)
class _Formula(Line):
    of: str = field(default="", kw_only=True)
    rebuilds: str | None = field(default=None, kw_only=True)
    sources: tuple[Column, ...] = field(default=(), kw_only=True, compare=False, repr=False)
    """The columns that are named in `of`, in their order there; the schema puts them in."""

    def __post_init__(self) -> None:
        terms = self.terms
        if self.special:
            raise self._refuse("a derived column has no special values; give them to the columns that it is made of")
        if self.rebuilds is not None and self.rebuilds not in (self.name, *(t.column for t in terms)):
            raise self._refuse(f"rebuilds ({self.rebuilds!r}) must be one of the columns in of ({self.of!r})")

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(self._read_terms())

    def _read_terms(self) -> Iterator[Term]:
        place, sign, seen = 0, 1, set[str]()
        text = self.of.rstrip()
        while place < len(text):
            found = _PIECE.match(text, place)
            if found is None or (sign == 0) != bool(found[1]):
                break
            place = found.end()
            if found[1]:
                sign = 1 if found[1] == "+" else -1
                continue
            name = found[2].replace('""', '"') if found[2] else found[3]
            if name in seen:
                raise self._refuse(f"of ({self.of!r}) names {name!r} twice; name each column once")
            seen.add(name)
            yield Term(sign, name)
            sign = 0
        if place < len(text) or sign or len(seen) < 2:
            raise self._refuse(
                f"of ({self.of!r}) must be columns joined by + and -, such as discharged - admitted; names with spaces "
                "or hyphens stand in double quotes"
            )

    @property
    def target(self) -> str:
        """The column that is rebuilt: the first that is named, unless `rebuilds` says another."""
        return self.rebuilds or self.terms[0].column

    @property
    def in_table(self) -> bool:
        """Whether the table has the column itself: then nothing of it is modelled, and it is always computed."""
        return self.rebuilds == self.name

    @property
    def unit_seconds(self) -> int | None:
        """Of a difference of dates: how long one unit is."""
        first = self.sources[0]
        return first.unit_seconds if isinstance(first, Datetime) else None


@dataclass(frozen=True)
class DerivedInteger(_Formula, Integer):
    """Whole days (or other units) between two dates, or a sum of whole numbers."""

    type: ClassVar[str] = DERIVED

    def __post_init__(self) -> None:
        _Formula.__post_init__(self)
        Integer.__post_init__(self)


@dataclass(frozen=True)
class DerivedNumber(_Formula, Number):
    """A sum of numbers."""

    type: ClassVar[str] = DERIVED

    def __post_init__(self) -> None:
        _Formula.__post_init__(self)
        Number.__post_init__(self)


@dataclass(frozen=True)
class DerivedPart(Integer):
    """The year, month, weekday (Monday is 1) or hour of a date, modelled beside it."""

    of: str = field(default="", kw_only=True)
    sources: tuple[Column, ...] = field(default=(), kw_only=True, compare=False, repr=False)
    """The date; the schema puts it in, and with it the bounds of a year."""

    type: ClassVar[str] = DERIVED
    in_table: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise self._refuse(f"{self.part!r} is no part of a date that can be taken; use {', '.join(PARTS)}")
        low, high = PARTS[self.part]
        if self.part != "year":
            object.__setattr__(self, "minimum", low)
            object.__setattr__(self, "maximum", high)
        Integer.__post_init__(self)

    @property
    def part(self) -> str:
        return self._read[1]

    @property
    def date(self) -> str:
        """The name of the date."""
        read = self._read
        return read[2].replace('""', '"') if read[2] else read[3]

    @property
    def _read(self) -> re.Match[str]:
        read = _PART.fullmatch(self.of)
        assert read is not None  # or `derived` had made another column of it
        return read

    def value_of(self, moment: datetime) -> int:
        match self.part:
            case "year":
                return moment.year
            case "month":
                return moment.month
            case "weekday":
                return moment.isoweekday()
        return moment.hour


Formula: TypeAlias = DerivedInteger | DerivedNumber
Derived: TypeAlias = Formula | DerivedPart


def is_part(of: object) -> bool:
    """Whether a formula names a part of a date."""
    return isinstance(of, str) and _PART.fullmatch(of) is not None


def derived(name: str, columns: Mapping[str, Column], **facts: Any) -> Derived:
    """A derived column, whole where all that it is made of is; bound to its sources by the schema."""
    if is_part(facts["of"]):
        needless = sorted(facts.keys() - {"of", "missing", "missing_values"})
        if needless:
            raise SchemaError(
                f"column {name!r}: {facts['of']} has values of its own, and no {needless[0]}; leave it out", facts
            )
        return DerivedPart(name, **facts)
    draft = DerivedNumber(name, of=facts["of"])
    real = any(isinstance(columns.get(t.column), Number) for t in draft.terms)
    odd = "step" if real else "decimals"
    if odd in facts:
        kind = "a number" if real else "whole"
        raise SchemaError(f"column {name!r}: {facts['of']} is {kind}, which has no {odd}; leave it out", facts)
    return DerivedNumber(name, **facts) if real else DerivedInteger(name, **facts)


def grid_power(column: Formula) -> float | None:
    """10^decimals of a derived number that is rounded to them: sums of doubles miss their last place.

    None where there are no decimals, or more steps between the bounds than doubles have halves of.
    """
    if not isinstance(column, DerivedNumber) or column.decimals is None:
        return None
    power = 10.0**column.decimals
    if column.minimum is None or column.maximum is None:  # while its bounds are bought
        return None
    return power if max(abs(column.minimum), abs(column.maximum)) * power <= 2.0**52 else None


def bound(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns with each derived one bound to its sources, and each rebuilt one to what it is rebuilt from.

    Refuses what can't be rebuilt: a chain of derived columns must be declared in the order in which it is rebuilt.
    """
    if not any(isinstance(c, Derived) for c in columns):
        return tuple(columns)
    plain = {c.name: dataclasses.replace(c, rebuilt_from=None) if isinstance(c, Line) else c for c in columns}
    found, rebuilt = dict(plain), dict[str, str]()
    formulas = [c for c in plain.values() if isinstance(c, Formula)]
    for column in formulas:
        sources = tuple(_source(column, t.column, plain) for t in column.terms)
        _check_kinds(column, sources)
        target = column.target
        if target in rebuilt:
            raise column._refuse(
                f"{target!r} is rebuilt from {rebuilt[target]!r} already; set rebuilds to another column"
            )
        needed = {s.name for s in sources} - {target}
        later = [d.name for d in formulas[formulas.index(column) + 1 :] if d.target in needed]
        if later:
            raise column._refuse(f"it needs a column that is rebuilt from {later[0]!r}; declare {later[0]!r} before it")
        rebuilt[target] = column.name
        _check_target(column, plain[target], sources)
        found[column.name] = dataclasses.replace(column, sources=sources)
        whole = found[target]
        assert isinstance(whole, Line)  # as all sources are
        found[target] = dataclasses.replace(whole, rebuilt_from=column.of if column.in_table else column.name)
    for part in plain.values():
        if isinstance(part, DerivedPart):
            found[part.name] = _bound_part(part, found)
    return tuple(found[c.name] for c in columns)


def _bound_part(part: DerivedPart, columns: Mapping[str, Column]) -> DerivedPart:
    """With its date, and missing wherever that is missing or special."""
    date = _source(part, part.date, columns)
    if not isinstance(date, Datetime):
        raise part._refuse(f"of ({part.of!r}) must name a date, and {date.name!r} is {date.type}")
    if not date.modelled:
        raise part._refuse(
            f"{date.name!r} is rebuilt from {date.rebuilt_from!r}, and so are all its parts; leave this out"
        )
    if part.part == "hour" and date.resolution == "day":
        raise part._refuse(f"{date.name!r} is counted in days, which have no hour; set its resolution to hour")
    low, high = part.minimum, part.maximum
    if part.part == "year":
        if date.minimum is None or date.maximum is None:
            raise part._refuse(f"the years of {date.name!r} follow from its min and max; state them")
        low, high = date.minimum.year, date.maximum.year
    absent = date.missing or bool(date.special)
    return dataclasses.replace(part, sources=(date,), minimum=low, maximum=high, missing=absent)


def _source(column: Derived, name: str, columns: Mapping[str, Column]) -> Column:
    source = columns.get(name)
    if source is None:
        raise column._refuse(f"of ({column.of!r}) names {name!r}, which is not a column of the schema")
    if isinstance(source, Derived) or not isinstance(source, Line):
        raise column._refuse(f"of ({column.of!r}) must name numbers or dates, and {name!r} is {source.type}")
    return source


def _check_kinds(column: Formula, sources: Sequence[Column]) -> None:
    dates = [s for s in sources if isinstance(s, Datetime)]
    if not dates:
        if isinstance(column, DerivedNumber) != any(isinstance(s, Number) for s in sources):
            raise column._refuse("a derived column is an integer where all that it is made of are, else a number")
        return
    if len(dates) != 2 or len(sources) != 2 or sum(t.sign for t in column.terms) != 0:
        raise column._refuse(f"of ({column.of!r}) must be numbers alone, or one date less another")
    if dates[0].resolution != dates[1].resolution:
        raise column._refuse(
            f"{dates[0].name!r} and {dates[1].name!r} must have one resolution, in which their difference is counted"
        )
    if column.in_table:
        raise column._refuse("a difference of dates can't rebuild itself; set rebuilds to one of the dates")


def _check_target(column: Formula, target: Column, sources: Sequence[Column]) -> None:
    assert isinstance(target, Line)
    if target.special:
        raise column._refuse(f"{target.name!r} is rebuilt from it and can't have special values")
    others = [s for s in sources if s.name != target.name]
    special = any(isinstance(s, Line) and s.special != () for s in others)
    absent = column.missing or special or any(s.missing for s in others)
    if absent and not target.missing:
        raise column._refuse(
            f"{target.name!r} is rebuilt from values that may be missing or special; set missing = true for it"
        )
