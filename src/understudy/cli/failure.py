"""Every error as one sentence and an exit code."""

from __future__ import annotations

import sys

from understudy.errors import UnderstudyError, located, without_secrets

BAD_INPUT = 2
INTERRUPTED = 130
BUG = 70


def report(error: BaseException) -> int:
    """Prints the error to standard error and says how to exit."""
    if isinstance(error, UnderstudyError):
        _say(str(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        _say("interrupted; what was debited stays debited")
        return INTERRUPTED
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error of the argument parser
        error.show()
        return int(error.exit_code)
    if isinstance(error, OSError):
        where = f"{error.filename!r}: " if error.filename else ""
        _say(without_secrets(f"{where}{error.strerror or located(error)}"))
        return BAD_INPUT
    if isinstance(error, MemoryError):
        _say("not enough memory; use fewer bins, smaller marginals or fewer rows")
        return BAD_INPUT
    # Not what it says, which may quote a cell: errors of other libraries do.
    _say(f"a bug of ours ({located(error)}); report it with what --debug prints, unless that shows a value of the data")
    return BUG


def _say(message: str) -> None:
    text = message if message.endswith((".", "?", "!")) else message + "."
    print(f"understudy: {text}", file=sys.stderr)
