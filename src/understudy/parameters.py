"""Checks of what a caller gave. A refusal names the parameter, its value and its bound, and knows no rows."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection, Iterable
from typing import Any

from understudy.errors import InputError

LARGEST_SEED = 2**63 - 1
"""Seeds are recorded in JSON and SQLite, whose whole numbers have 64 bits."""


class _Short(reprlib.Repr):
    """Values of any size and depth, on one line of bounded length."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict = 2, 4, 4, 2
        self.maxstring = self.maxother = 120

    def repr_int(self, value: int, level: int) -> str:
        if value.bit_length() > 400:  # Python itself refuses to write out thousands of digits
            return f"a whole number of {value.bit_length():,} bits"
        return repr(value)


_SHORT = _Short()


def shown(value: object) -> str:
    """A value as a refusal quotes it: on one line, short, and without characters that steer a terminal.

    >>> print(shown("two" + chr(10) + "lines"), shown([[[1]]]))
    'two\\nlines' [[[...]]]
    """
    return _SHORT.repr(value)


def printable(text: str) -> str:
    """A text with whatever is no letter, sign or space written as an escape, as `repr` does, but without quotes.

    >>> print(printable("a" + chr(27) + "[31m"))
    a\\x1b[31m
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def is_whole(value: object) -> bool:
    """Whether it is a whole number; True and False are none, though Python counts with them."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole_number(
    name: str,
    value: Any,
    low: int,
    high: int | None = None,
    *,
    error: type[InputError] = InputError,
    subject: object = None,
    advice: str = "",
) -> int:
    """The value, if it is a whole number from `low` to `high`; `advice` ends the sentence that refuses another.

    >>> whole_number("rows", 0, 1, 200_000)
    Traceback (most recent call last):
        ...
    understudy.errors.InputError: rows (0) must be a whole number from 1 to 200,000
    """
    if is_whole(value) and low <= value and (high is None or value <= high):
        return int(value)
    if high is None:
        bounds = f"of at least {low}"
    elif high == LARGEST_SEED:
        bounds = f"from {low} to 2^63 - 1"  # known by its exponent, and not by its nineteen digits
    else:
        bounds = f"from {low} to {high:,}"
    stated = printable(value[:120]) if isinstance(value, str) else shown(value)
    text = f"{name} ({stated}) must be a whole number {bounds}{advice}"
    raise error(text, value if subject is None else subject)


def seed_number(value: Any, name: str = "seed") -> int:
    """A seed that can be recorded."""
    return whole_number(name, value, 0, LARGEST_SEED)


def number_between(name: str, value: float, low: float, high: float) -> float:
    """The value, if it is a number from `low` to `high`."""
    # Written so that NaN, which compares with nothing, is refused.
    if not low <= value <= high:
        raise InputError(f"{name} ({value}) must be from {low} to {high}", value)
    return float(value)


def one_of(
    name: str,
    value: str,
    choices: Collection[str],
    *,
    error: type[InputError] = InputError,
    subject: object = None,
) -> str:
    """The value, if it is one of the choices, which the refusal lists."""
    if value not in choices:
        listed = ", ".join(choices)
        raise error(f"{name} ({shown(value)}) must be one of {listed}", value if subject is None else subject)
    return value


def known_name(what: str, name: str, names: Collection[str], *, error: type[InputError] = InputError) -> str:
    """The name, if it is known; the refusal suggests the one that was probably meant.

    >>> known_name("method", "mts", ["aim", "mst"])
    Traceback (most recent call last):
        ...
    understudy.errors.InputError: method 'mts' is not known; did you mean 'mst'?
    """
    if name not in names:
        raise error(f"{what} {name!r} is not known; {suggestion(name, names)}", name)
    return name


def suggestion(name: str, names: Iterable[str], otherwise: str = "there are") -> str:
    """What was probably meant, or else all that there is.

    >>> suggestion("rows", ["pair_share"]), suggestion("pair_shar", ["pair_share"])
    ("the only one is 'pair_share'", "did you mean 'pair_share'?")
    """
    known = list(names)
    near = close_names(name, known, most=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if len(known) == 1:
        return f"the only one is {known[0]!r}"
    return f"{otherwise} {', '.join(known)}"


def close_names(name: str, names: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Those that look most like the name, whatever their case."""
    # difflib compares by case, and "Age" for "age" is the commonest slip of all.
    lowered = {n.lower(): n for n in names}
    return [lowered[n] for n in difflib.get_close_matches(name.lower(), lowered, most, cutoff)]
