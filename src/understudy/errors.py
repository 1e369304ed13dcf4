"""Every exception that Understudy raises on purpose.

    UnderstudyError
    ├── InputError              what the user gave is wrong                        exit code 2
    │   ├── SchemaError         a schema says something impossible or unclear
    │   ├── TableError          a table can't be read, or doesn't fit its schema
    │   ├── MethodError         a method can't do what was asked of it
    │   ├── SiteError           a site is not there, refuses, or answers what can't be
    │   └── ReleaseError        a release can't be written, or read back
    ├── BudgetExhausted         the ledger or the curator refused a spend          exit code 3
    ├── CheckFailed             verify, replay or audit found a mismatch           exit code 1
    └── InternalError           a bug of ours: please report it                    exit code 70

A message is one sentence on one line that names the thing, its value and its bound, and says what to do.
It never repeats a value read from a private row, nor the password in an address, and it holds no character that a
terminal would obey (`shown`).
"""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# Greedy, since a password may hold an @, and a space where it stands in quotes; a path takes one of two slashes away.
_ADDRESS = re.compile(r"(\w:/{1,2})[^\s/]*:(?:[^'\"]*|\S*)@")
_PASSWORD = re.compile(r"(password\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&'\"]+)", re.IGNORECASE)
# Line breaks and escapes (C0, DEL, C1), what turns the direction of writing, and halves of characters.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HERE = Path(__file__).parent
T = TypeVar("T")


class UnderstudyError(Exception):
    """Base of all of the above; `subject` is the offending object, for programs that want more than the sentence."""

    exit_code = 70  # EX_SOFTWARE of sysexits.h: a bug of ours, unless a subclass says otherwise

    def __init__(self, message: str, subject: Any = None) -> None:
        super().__init__(shown(message))
        self.subject = subject


def without_secrets(text: str) -> str:
    """The text without the user and password of an address.

    >>> without_secrets("'postgresql://ada:s3cret@host/db' does not exist")
    "'postgresql://…@host/db' does not exist"
    """
    text = _ADDRESS.sub(r"\1…@", text)
    return _PASSWORD.sub(r"\1…", text)


def shown(text: str) -> str:
    r"""The text as it may stand in a terminal, on one line: without passwords, and with what a terminal obeys escaped.

    >>> print(shown("a name\x1b[2J, and\na line"))
    a name\x1b[2J, and\na line
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), without_secrets(text))


def without_cells(read: Callable[..., T]) -> Callable[..., T]:
    """Around a function of a source and its name: an error of another library, which may quote a cell, is not shown."""

    @functools.wraps(read)
    def guarded(source: Any, name: str, **options: Any) -> T:
        try:
            return read(source, name, **options)
        except UnderstudyError:
            raise
        except Exception:
            # `from None`: a traceback that is shown with --debug would print the cause, and the cell with it.
            raise TableError(f"{name} can't be read: it holds values of no kind that a table has", name) from None

    return guarded


def located(error: BaseException) -> str:
    """An unforeseen error by its type and by the line of ours that met it; what it says may quote a cell.

    >>> located(ValueError("could not convert 'Ada'"))
    'ValueError'
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(_HERE)]
    if not frames:
        return type(error).__name__
    # The innermost frame of ours: those below it belong to the library that raised.
    return f"{type(error).__name__} at {Path(frames[-1].filename).relative_to(_HERE)}:{frames[-1].lineno}"


class InputError(UnderstudyError):
    """What the user gave is wrong."""

    exit_code = 2


class SchemaError(InputError):
    """A schema says something impossible or unclear."""


class TableError(InputError):
    """A table can't be read, or doesn't fit its schema."""


class MethodError(InputError):
    """A method can't do what was asked of it."""


class SiteError(InputError):
    """A site of a federated table is not there, refuses, or answers what can't be."""


class ReleaseError(InputError):
    """A release can't be written, or read back."""


class BudgetExhausted(UnderstudyError):  # noqa: N818 - it is a state of affairs, not a mistake
    """The ledger or the curator refused a spend; nothing was debited."""

    exit_code = 3


class CheckFailed(UnderstudyError):  # noqa: N818 - the check worked; what it checked did not hold
    """`verify`, `replay` or `audit` found a mismatch."""

    exit_code = 1


class InternalError(UnderstudyError):
    """A bug of ours: please report it."""


def installing(extra: str) -> str:
    """How to install an extra: from the clone, since a registry may have another package of this name."""
    return f"pip install '.[{extra}]' in a clone of Understudy"
