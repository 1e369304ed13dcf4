"""How a command ends that was not done: one sentence, an exit code, and how an interrupted release goes on."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.journal import ENDING, Journal
from understudy.boundary.privacy.ledger.claims import Overtaken
from understudy.boundary.privacy.ledger.known_rows import LedgerWarning
from understudy.cli import signals
from understudy.errors import InputError, InternalError, UnderstudyError, located, shown

BAD_INPUT = 2  # as the argument parser exits
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it; another signal has another number
BUG = 70  # EX_SOFTWARE of sysexits.h
HOW = "the release is paid for and can go on: repeat the command with --resume"
FEWER_ROWS = "where --rows may be fewer"
NO_MEMORY = "there is not enough memory"
_MEMORY_WORDS = ("can't start new thread", "failed to map segment", "cannot allocate memory")
"""Errors of other kinds that say the same: of threads, and of libraries that are loaded."""


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuses bytes that are no text: they could be written neither to a ledger nor to a certificate."""
    for place, text in enumerate(arguments, 1):
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise InputError(f"argument {place} ({text}) must be UTF-8 text; rename the file, or type it anew", text)
        if "\0" in text:  # which no shell can type; the parser asks the system for such a path, and that raises
            raise InputError(f"argument {place} ({shown(text)}) must not hold a zero character; leave it out", text)


def report(error: BaseException) -> int:
    """Prints the error to standard error and says how to exit."""
    if signals.received() and not isinstance(error, UnderstudyError):
        error = KeyboardInterrupt()
    if isinstance(error, UnderstudyError):
        _say(str(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        _say("interrupted; what was debited stays debited")
        return signals.exit_code()
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error of the argument parser
        if hasattr(error, "message"):
            error.message = shown(str(error.message))
        error.show()
        return int(error.exit_code)
    if _is_memory(error):
        _say(f"{NO_MEMORY}; use fewer bins, smaller marginals or fewer rows")
        return BAD_INPUT
    # An address that was taken for a path stands in the file name, with its password.
    if isinstance(error, OSError):
        where = f"{error.filename!r}: " if error.filename else ""
        _say(shown(f"{where}{error.strerror or located(error)}"))
        return BAD_INPUT
    # Not what it says, which may quote a cell: errors of other libraries do.
    _say(f"a bug of ours ({located(error)}); report it with what --debug prints, unless that shows a value of the data")
    return BUG


@contextmanager
def notices() -> Iterator[None]:
    """What is worth a word about a ledger, as one line on standard error, whatever becomes of other warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", LedgerWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, LedgerWarning):
                _say(f"note: {shown(str(message))}")
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    said = str(error).lower() if isinstance(error, RuntimeError | ImportError) else ""
    return isinstance(error, MemoryError) or any(words in said for words in _MEMORY_WORDS)


def _say(message: str) -> None:
    text = message if message.endswith((".", "?", "!")) else message + "."
    print(f"understudy: {text}", file=sys.stderr)


# --- interrupted releases


class Interrupted(UnderstudyError):  # noqa: N818 - what happened, not a mistake
    """Somebody stopped a release; the sentence says what became of it."""

    def __init__(self, message: str, subject: object = None) -> None:
        super().__init__(message, subject)
        self.exit_code = signals.exit_code()


def journal_path(out: Path) -> Path:
    """Beside the release folder."""
    return Path(f"{out}{ENDING}")


@contextmanager
def unpaid() -> Iterator[None]:
    """Around what comes before any debit: who stops it is told so."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was debited") from None


@contextmanager
def resumable(journal: Journal, written: Callable[[], str]) -> Iterator[None]:
    """Closes the journal, and whatever breaks off after the debit says how to go on; a refusal stays as it is.

    `written` says where the release is, once it is there; from then on nothing is lost, and nothing has to go on.
    """
    with closing(journal):
        try:
            yield
        except KeyboardInterrupt:
            raise _interrupted(journal, written()) from None
        # Whoever was overtaken must not be told to resume: another process goes on with the same release.
        except (Overtaken, InternalError):
            raise
        except Exception as error:
            done = written()
            if signals.received() and not isinstance(error, UnderstudyError):
                raise _interrupted(journal, done) from None
            if not (done or (journal.paid and (journal.used or journal.created))):
                raise
            if isinstance(error, UnderstudyError):
                raise type(error)(f"{error}; {_standing(journal, done)}", error.subject) from error
            if _is_memory(error):
                fewer = "" if done else f", {FEWER_ROWS}"
                raise InputError(f"{NO_MEMORY}; {_standing(journal, done)}{fewer}", journal.path) from error
            # A bug is reported by `report`, which doesn't know of the journal: how to go on is said here.
            _say(_standing(journal, done))
            raise


def _interrupted(journal: Journal, done: str) -> Interrupted:
    return Interrupted(f"interrupted; {_standing(journal, done)}", journal.path)


def _standing(journal: Journal, done: str) -> str:
    """What was paid, and what there is for it."""
    if done:
        return f"but the release is done and paid for: it is in {done}"
    if journal.paid:
        return HOW
    return "nothing was debited"
