"""How a command ends that was not done: one sentence, an exit code, and how an interrupted release goes on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.journal import ENDING, Journal
from understudy.boundary.privacy.ledger.claims import Overtaken
from understudy.boundary.privacy.ledger.known_rows import LedgerWarning
from understudy.errors import InternalError, UnderstudyError, located, without_secrets

BAD_INPUT = 2  # as the argument parser exits
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
BUG = 70  # EX_SOFTWARE of sysexits.h
HOW = "the release is paid for and can go on: repeat the command with --resume"


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
    # An address that was taken for a path stands in the file name, with its password.
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


@contextmanager
def notices() -> Iterator[None]:
    """What is worth a word about a ledger, as one line on standard error, whatever becomes of other warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", LedgerWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, LedgerWarning):
                _say(f"note: {message}")
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _say(message: str) -> None:
    text = message if message.endswith((".", "?", "!")) else message + "."
    print(f"understudy: {text}", file=sys.stderr)


# --- interrupted releases


class Interrupted(UnderstudyError):  # noqa: N818 - what happened, not a mistake
    """Somebody stopped a release that can go on."""

    exit_code = INTERRUPTED


def journal_path(out: Path) -> Path:
    """Beside the release folder."""
    return Path(f"{out}{ENDING}")


@contextmanager
def resumable(journal: Journal) -> Iterator[None]:
    """Closes the journal, and whatever breaks off after the debit says how to go on; a refusal stays as it is."""
    with closing(journal):
        try:
            yield
        except KeyboardInterrupt:
            if journal.paid:
                raise Interrupted(f"interrupted; {HOW}", journal.path) from None
            raise
        # Whoever was overtaken must not be told to resume: another process goes on with the same release.
        except (Overtaken, InternalError):
            raise
        except UnderstudyError as error:
            if journal.paid and journal.used:
                raise type(error)(f"{error}; {HOW}", error.subject) from error
            raise
        except Exception:
            # A bug is reported by `report`, which doesn't know of the journal: how to go on is said here.
            if journal.paid:
                print(f"understudy: {HOW}.", file=sys.stderr)
            raise
