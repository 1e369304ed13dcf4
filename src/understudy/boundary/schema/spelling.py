"""One text per value: how a value is spelled depends on that value alone, never on the type that its column has.

A frame stores a column in a type that fits *all* of its rows. One missing value, one text or one other UTC offset turns
truth values, whole numbers and times into Python objects, or into floats. So every value has one text, which is the
same however it is stored, and everything that is read as text starts from it. `tables.sql` spells typed columns of an
engine by the same rules, and `tests/boundary/tables/test_storage.py` holds the two together.

    truth values     1, 0: Python, numpy, pandas and polars take True for 1 where both stand in one column
    numbers          as doubles: 1 and not 1.0, 0.1, 1e+16
    points in time   in UTC: 2024-03-01, and with a time of day 2024-03-01 12:30:00.5
    bytes            ASCII as it is, everything else as \\xHH
    anything else    nothing: a list, a dictionary or any other object can't be read, so it is missing
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import numbers
import uuid
from typing import Any

EXACT = 2**53
"""Below that every whole number is a double of its own; pandas turns whole numbers to doubles beside a missing one."""

WRITTEN_OUT = 1e16
"""Engines disagree about which larger whole numbers have an exponent; below that none has one here."""

# Those that DuckDB leaves as they are when it writes a BLOB as text; the backslash and both quotes are not among them.
_PLAIN_BYTES = frozenset(range(32, 127)) - frozenset(b"\\'\"")
_SECOND = 10**9
NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
NANOSECONDS |= {"D": 24 * NANOSECONDS["h"], "W": 7 * 24 * NANOSECONDS["h"]}


def spell(value: Any, *, exactly: bool = False) -> str | None:
    """The text of a value; None for a missing one, and for an object that has no text of its own.

    `exactly` keeps all digits of a whole number, which people's ids need: as doubles, two of them may be one.

    >>> spell(True), spell(1.0), spell(dt.date(2024, 3, 1)), spell(float("nan"))
    ('1', '1', '2024-03-01', None)
    """
    try:
        if isinstance(value, str):
            text = str.__str__(value)  # whatever a subclass says of itself
            if text.isascii():
                return text
            return text.encode("utf-8", "replace").decode()  # half a character, which no engine takes, is "?"
        return _spelled(_of_python(value), exactly)
    except Exception:  # of whatever object somebody put into a cell: a row must not decide whether a table is read
        return None


def _spelled(value: Any, exactly: bool) -> str | None:
    match value:
        case bool():
            return "1" if value else "0"
        case int():
            if exactly or abs(value) < EXACT:
                return str(value)
            # As the double that a frame would make of it if another row of the column were missing.
            return spell_double(_double(value))
        case float():
            return spell_double(value)
        case str():
            return value
        case decimal.Decimal():
            return _spell_decimal(value, exactly)
        case dt.date():
            return _spell_moment(value)
        case dt.time():
            return _without_zeros(str(value))
        case dt.timedelta():
            return spell_span(value // dt.timedelta(microseconds=1))
        case bytes():
            return "".join(chr(byte) if byte in _PLAIN_BYTES else f"\\x{byte:02X}" for byte in value)
        case uuid.UUID():
            return str(value)
    # Of pandas, whose `cut` makes categories of them: (0, 1], also where the ends are 0.0 and 1.0.
    if type(value).__name__ == "Interval":
        before = "[" if value.closed in ("left", "both") else "("
        after = "]" if value.closed in ("right", "both") else ")"
        return f"{before}{spell(value.left)}, {spell(value.right)}{after}"
    return None


def spell_double(value: float) -> str | None:
    """The shortest text that reads back as this double, and that of a whole number without a point."""
    if math.isnan(value):
        return None
    if value.is_integer() and abs(value) < WRITTEN_OUT:
        return str(int(value))
    return repr(value)


def special_text(value: str | int | float) -> str:
    """A special value of a schema as the text that its rows have.

    >>> special_text(-99), special_text(-99.0), special_text("N")
    ('-99', '-99', 'N')
    """
    if isinstance(value, str):
        return value
    return str(spell_double(float(value)))


def special_name(column: str) -> str:
    """Under which expressions find the special values of a column as texts, beside its numbers."""
    return f"special:{column}"


def may_be_number(text: str) -> bool:
    """Whether a number could be spelled like that; if in doubt, it could."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _of_python(value: Any) -> Any:
    """Scalars of numpy and pandas as those of Python; times to the microsecond, rounded down."""
    import numpy as np

    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return None
        return _far_or_near(value.astype("datetime64[us]"))  # rounds down, before 1970 too
    if isinstance(value, np.timedelta64):
        if np.isnat(value):
            return None
        return spell_span(_microseconds(value))
    if isinstance(value, np.floating):  # not by `item`, which leaves a long double as it is
        return float(value)
    if isinstance(value, np.generic):
        return value.item()
    # Known by their methods, so that pandas need not be imported.
    if hasattr(value, "to_pydatetime"):  # a Timestamp, or NaT, of pandas
        if value != value:  # NaT, which equals nothing
            return None
        return _far_or_near(value.to_datetime64().astype("datetime64[us]"))  # in UTC
    if hasattr(value, "to_pytimedelta"):
        return spell_span(_microseconds(value.to_timedelta64()))
    if hasattr(value, "to_timestamp"):  # a period: its first moment
        return _far_or_near(value.to_timestamp().to_datetime64().astype("datetime64[us]"))
    if isinstance(value, numbers.Integral) and not isinstance(value, int):
        return int(value)
    return value


def _far_or_near(moment: Any) -> dt.datetime | str:
    """A datetime64 of microseconds; Python has no years beyond 9999."""
    import numpy as np

    found = moment.item()
    if isinstance(found, dt.datetime):
        return found
    return _without_zeros(np.datetime_as_string(moment).replace("T", " ")).removesuffix(".").removesuffix(" 00:00:00")


def _microseconds(span: Any) -> int:
    """Whole ones, rounded down; in Python's integers, which don't overflow."""
    import numpy as np

    unit, count = np.datetime_data(span.dtype)
    return int(span.astype("int64")) * count * NANOSECONDS[unit] // 1000


def spell_span(microseconds: int) -> str | None:
    """A span of time; None for one that is longer than Python's."""
    try:
        return _without_zeros(str(dt.timedelta(microseconds=microseconds)))
    except OverflowError:
        return None


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _spell_decimal(value: decimal.Decimal, exactly: bool) -> str | None:
    if value.is_nan():  # a signalling one can't even be made a float
        return None
    if exactly and value.is_finite():
        return format(value.normalize(), "f")
    return spell_double(float(value))


def _spell_moment(value: dt.date) -> str | None:
    """In UTC; the time of day is left out at midnight, where a date and a time of it are one."""
    if not isinstance(value, dt.datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        try:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        except OverflowError:  # the first or the last day that there is
            value = value.replace(tzinfo=None)
    return _without_zeros(value.isoformat(sep=" ")).removesuffix(" 00:00:00")


def _without_zeros(text: str) -> str:
    """A fraction of a second without zeros at its end."""
    return text.rstrip("0") if "." in text else text
