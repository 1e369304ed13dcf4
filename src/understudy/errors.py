"""Every exception that Understudy raises on purpose.

    UnderstudyError
    ├── InputError              what the user gave is wrong                        exit code 2
    │   ├── SchemaError         a schema says something impossible or unclear
    │   ├── TableError          a table can't be read, or doesn't fit its schema
    │   ├── MethodError         a method can't do what was asked of it
    │   └── ReleaseError        a release can't be written, or read back
    ├── BudgetExhausted         the ledger or the curator refused a spend          exit code 3
    ├── CheckFailed             verify, replay or audit found a mismatch           exit code 1
    └── InternalError           a bug of ours: please report it                    exit code 70

A message is one sentence that names the thing, its value and its bound, and says what to do.
It never repeats a value read from a private row.
"""

from __future__ import annotations

from typing import Any


class UnderstudyError(Exception):
    """Base of all of the above; `subject` is the offending object, for programs that want more than the sentence."""

    exit_code = 70

    def __init__(self, message: str, subject: Any = None) -> None:
        super().__init__(message)
        self.subject = subject


class InputError(UnderstudyError):
    """What the user gave is wrong."""

    exit_code = 2


class SchemaError(InputError):
    """A schema says something impossible or unclear."""


class TableError(InputError):
    """A table can't be read, or doesn't fit its schema."""


class MethodError(InputError):
    """A method can't do what was asked of it."""


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
