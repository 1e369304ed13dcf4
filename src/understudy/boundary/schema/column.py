"""What is publicly known about one column: its type, its bounds or values, and how fine it is looked at.

A column is a frozen fact. `None` in place of a bound or of the values means *private*: it will be bought
with budget (see `Column.private`), and `dataclasses.replace` puts the bought value in its place.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from understudy.boundary.schema.expression import Kind
from understudy.boundary.schema.spelling import special_text
from understudy.errors import SchemaError
from understudy.parameters import is_whole, shown

Label: TypeAlias = str | int
Special: TypeAlias = str | int | float

DEFAULT_BINS = 64
"""Of a column on a line that declares neither bins nor cuts."""
SINGLE_VALUE_BINS = 128
"""A whole-number column with at most this many values keeps each of them apart; a wider one is cut into bins."""
MAX_LABELS = 100_000
MAX_BINS = 100_000
MAX_TEMPLATE = 1_000
"""Characters of a `made_up` or a `format`."""
MAX_WIDTH = 100
MAX_SPECIAL = 100
# Not 2^53, up to which doubles hold every whole number: from 2^52 on they hold no halves.
LARGEST_INTEGER = 2**52
"""Every engine bins in double precision, which has halves (for rounding) and exact differences up to here."""
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What is stripped from both ends of a text before it is read: the spaces of Unicode (category Zs), but no tabs."""

TRUE_WORDS, FALSE_WORDS = ("1", "1.0", "true", "True", "TRUE"), ("0", "0.0", "false", "False", "FALSE")
"""How frames, files and engines write a truth value."""

# What DuckDB reads, of which Python reads most and PostgreSQL the usual ones (`tables.dialect`).
_DIRECTIVE = re.compile("%[aAbBcdfgGhHIjmMnpSTuUVwWxXyYzZ%]|%-[dmyHIMSj]")
_USUAL = "%Y %m %d %H %M %S"
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")

RESOLUTIONS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Column:
    """Base of every column type; `missing` says that a missing value is a value of its own."""

    name: str
    missing: bool = False
    missing_values: tuple[str, ...] = field(default=(), kw_only=True)
    """Texts that mean a missing value in this column alone."""

    type: ClassVar[str]
    _kind: ClassVar[Kind]

    @cached_property
    def missing_texts(self) -> tuple[str, ...]:
        """All of them: whole numbers among them with a point, too."""
        return with_points(self.missing_values)

    @property
    def kind(self) -> Kind:
        """How an expression such as `age > 40` treats the column's values."""
        return self._kind

    @property
    def modelled(self) -> bool:
        """Whether a method ever looks at the column (an identifier is never looked at)."""
        return True

    @property
    def private(self) -> bool:
        """Whether something about the column must be bought before it can be encoded."""
        return False

    @property
    def ordered(self) -> bool:
        return False

    def _refuse(self, problem: str) -> SchemaError:
        return SchemaError(f"column {shown(self.name)}: {problem}", self)


@dataclass(frozen=True)
class Line(Column):
    """A column on a line, seen through public bins: `bins` of equal width, or `cuts` between them.

    `special` values lie beside the line, each by itself: "N" for not asked, -99 for refused.
    """

    bins: int | None = None
    cuts: tuple[float, ...] | None = None
    minimum: Any = None
    maximum: Any = None
    special: tuple[Special, ...] = field(default=(), kw_only=True)
    rebuilt_from: str | None = field(default=None, kw_only=True)
    """The derived column that is modelled in place of this one; the schema that has both puts it in."""

    _kind: ClassVar[Kind] = Kind.NUMBER

    @property
    def ordered(self) -> bool:
        return True

    @property
    def modelled(self) -> bool:
        return self.rebuilt_from is None

    @property
    def private(self) -> bool:
        return self.modelled and (self.minimum is None or self.maximum is None)

    @property
    def special_texts(self) -> tuple[str, ...]:
        """Each special value as a text, by which expressions and tables of texts know it."""
        return tuple(map(special_text, self.special))

    def _check_special(self) -> None:
        if not isinstance(self.special, tuple) or not all(isinstance(v, str) or _is_finite(v) for v in self.special):
            raise self._refuse(f"special ({shown(self.special)}) must be a list of texts and numbers")
        if len(set(self.special_texts)) < len(self.special):
            twice = Counter(self.special_texts).most_common(1)[0][0]
            raise self._refuse(f"special value {twice!r} is listed twice")
        if len(self.special) > MAX_SPECIAL:
            raise self._refuse(f"special ({len(self.special)} values) must have at most {MAX_SPECIAL}")
        for value in self.special:
            self._check_special_value(value)

    def _check_special_value(self, value: Special) -> None:
        if not isinstance(value, str):
            if not math.isfinite(value) or abs(value) > LARGEST_INTEGER:
                raise self._refuse(f"special value {value!r} must lie between -2^52 and 2^52")
        elif not value or value.strip(SPACES) != value:
            raise self._refuse(f"special value {value!r} must not be empty, nor have spaces around it")

    def _check_bins(self) -> None:
        if self.bins is not None and self.cuts is not None:
            raise self._refuse("bins and cuts exclude each other; keep one of them")
        if self.bins is not None and not (is_whole(self.bins) and 1 <= self.bins <= MAX_BINS):
            raise self._refuse(f"bins ({shown(self.bins)}) must be a whole number from 1 to {MAX_BINS:,}")
        if self.cuts is not None and not all(map(_is_finite, self.cuts)):
            raise self._refuse(f"cuts ({', '.join(map(shown, self.cuts[:4]))}) must be finite numbers")
        if self.cuts is not None and list(self.cuts) != sorted(set(self.cuts)):
            raise self._refuse(f"cuts ({_short(self.cuts)}) must rise strictly")

    def _check_cuts_between(self, low: float, high: float) -> None:
        # A cut is the first value of the bin on its right: at max it keeps max apart, at min it leaves a bin empty.
        if self.cuts and not (low < self.cuts[0] and self.cuts[-1] <= high):
            raise self._refuse(f"cuts ({_short(self.cuts)}) must lie above min ({low}) and not above max ({high})")


@dataclass(frozen=True)
class _Numeric(Line):
    """A column of numbers. Its special values are numbers or texts that are none."""

    def _check_special_value(self, value: Special) -> None:
        super()._check_special_value(value)
        # A text that reads as a number would be that number in a table that stores numbers.
        if isinstance(value, str) and reads_as_number(value):
            raise self._refuse(f"special value {value!r} is a number in quotes; write it without them")


@dataclass(frozen=True)
class Integer(_Numeric):
    """Whole numbers from `minimum` to `maximum`, both included; all of them multiples of `step` where there is one."""

    minimum: int | None = None
    maximum: int | None = None
    step: int | None = field(default=None, kw_only=True)

    type: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        self._check_special()
        if not all(isinstance(v, str) or float(v).is_integer() for v in self.special):
            raise self._refuse("special values of an integer column must be whole numbers or texts")
        if self.step is not None and not (is_whole(self.step) and 1 <= self.step <= LARGEST_INTEGER):
            raise self._refuse(f"step ({self.step!r}) must be a whole number from 1 on")
        for key, bound in (("min", self.minimum), ("max", self.maximum)):
            if bound is not None and not (is_whole(bound) and abs(bound) <= LARGEST_INTEGER):
                raise self._refuse(f"{key} ({shown(bound)}) must be a whole number between -2^52 and 2^52")
        self._check_bins()
        if self.cuts and not all(float(c).is_integer() for c in self.cuts):
            raise self._refuse(f"cuts ({_short(self.cuts)}) must be whole numbers")
        if self.minimum is not None and self.maximum is not None:
            if self.minimum > self.maximum:
                raise self._refuse(f"min ({self.minimum}) must not be above max ({self.maximum})")
            self._check_cuts_between(self.minimum, self.maximum)


@dataclass(frozen=True)
class Number(_Numeric):
    """Real numbers from `minimum` to `maximum`, released with `decimals` places."""

    minimum: float | None = None
    maximum: float | None = None
    decimals: int | None = None

    type: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        self._check_special()
        for key, bound in (("min", self.minimum), ("max", self.maximum)):
            if bound is not None and not _is_finite(bound):
                raise self._refuse(f"{key} ({shown(bound)}) must be a finite number")
        if self.decimals is not None and not (is_whole(self.decimals) and 0 <= self.decimals <= 12):
            raise self._refuse(f"decimals ({shown(self.decimals)}) must be a whole number from 0 to 12")
        self._check_bins()
        if self.minimum is not None and self.maximum is not None:
            if self.minimum >= self.maximum:  # bins have a width, which a single point has not
                raise self._refuse(f"min ({self.minimum}) must be below max ({self.maximum})")
            self._check_cuts_between(self.minimum, self.maximum)


@dataclass(frozen=True)
class Datetime(Line):
    """Points in time from `minimum` to `maximum` (no time zone), counted in whole `resolution` units."""

    minimum: datetime | None = None
    maximum: datetime | None = None
    resolution: str = "day"
    format: str | None = None

    type: ClassVar[str] = "datetime"
    _kind: ClassVar[Kind] = Kind.DATETIME

    def __post_init__(self) -> None:
        if self.resolution not in RESOLUTIONS:
            raise self._refuse(f"resolution ({shown(self.resolution)}) must be one of {', '.join(RESOLUTIONS)}")
        # A frozen dataclass: bounds that were written as dates or texts are put in place as datetimes.
        for key, name in (("min", "minimum"), ("max", "maximum")):
            bound = as_datetime(getattr(self, name))
            if bound is not None and not isinstance(bound, datetime):
                raise self._refuse(
                    f"{key} ({shown(bound)}) must be a date such as 2024-12-31, of the years 1 to 9999 in UTC"
                )
            object.__setattr__(self, name, bound)
        if self.format is not None:
            self._check_format(self.format)
        self._check_special()
        if not all(isinstance(v, str) for v in self.special):
            raise self._refuse("special values of a datetime column must be texts, such as '9999-12-31' or 'open'")
        self._check_bins()
        if self.cuts is not None:
            raise self._refuse("cuts are for integer and number columns; use bins for a datetime")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise self._refuse(f"min ({self.minimum}) must not be after max ({self.maximum})")

    def _check_format(self, form: str) -> None:
        """An engine would refuse the whole table for a piece that it does not know, and only when it is read."""
        unknown = [piece for piece in re.findall("%(?:-?.)?", form) if not _DIRECTIVE.fullmatch(piece)]
        if unknown:
            raise self._refuse(f"format ({shown(form)}) has {shown(unknown[0])}, which is not known; use {_USUAL}")
        if len(form) > MAX_TEMPLATE:
            raise self._refuse(f"format ({len(form):,} characters) must have at most {MAX_TEMPLATE:,}")
        try:
            datetime.strptime("", form)
        except re.error:  # Python reads formats by patterns, in which each part has one place
            raise self._refuse(f"format ({shown(form)}) has a part twice; name each once") from None
        except ValueError:
            pass

    @property
    def start(self) -> datetime:
        """`min` without what is finer than the resolution: where the counting of units begins."""
        # From midnight, so that an hour begins at :00 and a day at 00:00 whatever the minimum is.
        assert self.minimum is not None
        midnight = self.minimum.replace(hour=0, minute=0, second=0, microsecond=0)
        unit = timedelta(seconds=self.unit_seconds)
        return midnight + (self.minimum - midnight) // unit * unit

    @property
    def unit_seconds(self) -> int:
        return RESOLUTIONS[self.resolution]


@dataclass(frozen=True)
class Categorical(Column):
    """A value from a list. A value not on it counts as `other`, else as missing, else as the first on the list."""

    values: tuple[Label, ...] | None = None
    other: str | None = None

    type: ClassVar[str] = "categorical"
    _kind: ClassVar[Kind] = Kind.TEXT

    def __post_init__(self) -> None:
        if self.other is not None:
            self._check_matchable(self.other)
        if self.values is None:
            return
        if not self.values:
            raise self._refuse("values must hold at least one value; list them, or declare the column an identifier")
        if len(self.values) > MAX_LABELS:
            raise self._refuse(
                f"values ({len(self.values):,} of them) must be at most {MAX_LABELS:,}; declare it an identifier"
            )
        # In a row, 1 and "1" are the same text: a list of both would have two codes for it.
        if len({type(v) for v in self.values}) > 1 or not isinstance(self.values[0], str | int):
            raise self._refuse("values must be all strings or all whole numbers")
        if isinstance(self.values[0], bool):
            raise self._refuse('values are true and false; use type = "boolean"')
        if len(set(self.values)) < len(self.values):
            twice = Counter(self.values).most_common(1)[0][0]
            raise self._refuse(f"value {shown(twice)} is listed twice")
        if self.other is not None and not isinstance(self.values[0], str):
            raise self._refuse("other needs values that are strings")
        for value in self.values:
            self._check_matchable(value)

    def _check_matchable(self, value: Label) -> None:
        """A label that no row can match would turn into another one when a synthetic table is read back."""
        if isinstance(value, int):
            if abs(value) > LARGEST_INTEGER:
                raise self._refuse(f"value {shown(value)} must lie between -2^52 and 2^52; write the values as strings")
        elif not value:
            raise self._refuse("value '' is empty, which counts as missing; leave it out and set missing = true")
        elif value.strip(SPACES) != value:
            raise self._refuse(
                f"value {shown(value)} has spaces around it, which are stripped from rows; strip them here too"
            )

    @property
    def private(self) -> bool:
        return self.values is None

    @property
    def kind(self) -> Kind:
        return Kind.NUMBER if self.numeric else Kind.TEXT

    @property
    def numeric(self) -> bool:
        """Whether the labels are whole numbers, which are matched as numbers (1.0 is 1) and not as text."""
        return bool(self.values) and isinstance(self.values[0], int)  # type: ignore[index]

    @property
    def labels(self) -> tuple[Label, ...]:
        """The values a synthetic row can have: those declared, and `other` at the end where it is not among them."""
        assert self.values is not None
        if self.other is None or self.other in self.values:
            return self.values
        return (*self.values, self.other)

    @property
    def spellings(self) -> dict[str, Label]:
        """Every text that means a label: the label itself; for a truth value or a whole number what frames make of it.

        They store True as a truth value, as 1 or as text, and whole numbers as doubles, depending on what else is in
        the column; a label must not be another one for that.
        """
        meant: dict[str, Label] = {str(label): label for label in self.labels}
        for label in self.labels:
            for text in _also(str(label)):
                # A text that is itself a label keeps its own meaning: with "1" and "True" declared, both stay apart.
                meant.setdefault(text, label)
        return meant


@dataclass(frozen=True)
class Ordinal(Categorical):
    """A categorical column whose values are listed from lowest to highest."""

    type: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        if self.values is None:
            raise self._refuse('the order of an ordinal must be public; list its values, or use type = "categorical"')
        super().__post_init__()

    @property
    def ordered(self) -> bool:
        return True


@dataclass(frozen=True)
class Boolean(Column):
    """True or false; written true/false, t/f, yes/no, y/n, on/off or 1/0."""

    type: ClassVar[str] = "boolean"
    _kind: ClassVar[Kind] = Kind.BOOLEAN

    # With 1.0, which pandas makes of 1 beside a missing value, and writes into files.
    TRUE: ClassVar[tuple[str, ...]] = ("true", "t", "yes", "y", "on", "1", "1.0")
    FALSE: ClassVar[tuple[str, ...]] = ("false", "f", "no", "n", "off", "0", "0.0")


@dataclass(frozen=True)
class Identifier(Column):
    """Never modelled: dropped, or replaced by made-up values such as `made_up = "P{:06d}"`."""

    made_up: str | None = None

    type: ClassVar[str] = "identifier"
    _kind: ClassVar[Kind] = Kind.TEXT

    def __post_init__(self) -> None:
        if self.made_up is None:
            return
        try:
            parts = [part for part in string.Formatter().parse(self.made_up) if part[1] is not None]
            fields = [name for _, name, _, _ in parts]
            self._check_width([str(spec) for _, _, spec, _ in parts])
            # Two rows must never get one made-up value.
            plain = fields in ([""], ["0"]) and self.made_up.format(1) != self.made_up.format(2)
        except (ValueError, IndexError, KeyError, AttributeError, TypeError):
            plain = False
        if not plain:
            raise self._refuse(f'made_up ({shown(self.made_up)}) must hold one number field, such as "P{{:06d}}"')

    def _check_width(self, specs: Sequence[str]) -> None:
        """A width of a billion would fill the memory, and a width that is a field itself would grow with the rows."""
        widths = [int(digits) for spec in specs for digits in re.findall("[0-9]{1,9}", spec)]
        if len(str(self.made_up)) > MAX_TEMPLATE or max(widths, default=0) > MAX_WIDTH or any("{" in s for s in specs):
            raise self._refuse(
                f"made_up ({shown(self.made_up)}) must have at most {MAX_TEMPLATE:,} characters and a width of at most "
                f"{MAX_WIDTH}"
            )

    @property
    def modelled(self) -> bool:
        return False


COLUMN_TYPES: dict[str, type[Column]] = {
    cls.type: cls for cls in (Integer, Number, Categorical, Ordinal, Boolean, Datetime, Identifier)
}


def reads_as_number(text: str) -> bool:
    """Whether a text is read as a number, `true` and `nan` included."""
    try:
        float(text)
    except ValueError:
        return text.lower() in ("true", "false")
    return text.isascii()


def spelled_with_point(text: str) -> tuple[str, ...]:
    """`1.0` for `1`: what pandas makes of whole numbers beside a missing one, and writes into files."""
    if text.isascii() and text.removeprefix("-").isdecimal():
        return (f"{text}.0",)
    return ()


def with_points(texts: Sequence[str]) -> tuple[str, ...]:
    """The texts, and behind them those that pandas makes of the whole numbers among them."""
    return tuple(dict.fromkeys((*texts, *(text for value in texts for text in spelled_with_point(value)))))


def _also(label: str) -> tuple[str, ...]:
    """Other texts of the same value, the likeliest first."""
    words = next((words for words in (TRUE_WORDS, FALSE_WORDS) if label in words), ())
    texts = (*words, *spelled_with_point(label))
    if not (_NUMBER.fullmatch(label) and math.isfinite(float(label))):
        return texts
    # `7` for `007` and `0.5` for `0.50`: what a reader makes of such texts where all of a column are numbers.
    value = float(label)
    if value.is_integer() and abs(value) < 1e16:  # `spelling.WRITTEN_OUT`: from there on with an exponent
        return (*texts, str(int(value)))
    return (*texts, repr(value))


def as_datetime(value: object) -> object:
    """A TOML date or ISO text as a naive datetime; anything else unchanged, for the column to refuse."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    if isinstance(value, datetime):
        if value.tzinfo:  # as engines read it: one moment is one value, however its offset is written
            try:
                return value.astimezone(UTC).replace(tzinfo=None)
            except OverflowError:  # an hour before the first day that there is, or after the last
                return value.isoformat(sep=" ")
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return value


def _is_finite(value: object) -> bool:
    """Whether it is a number that a double can hold; of whole numbers those beyond 1.8e308 are none."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _short(values: Sequence[float]) -> str:
    return ", ".join([*(f"{v:g}" for v in values[:4]), *["…"][: len(values) > 4]])
