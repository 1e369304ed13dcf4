"""How a release that was interrupted goes on: said at the moment of the interruption."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from understudy.boundary.privacy.journal import ENDING, Journal
from understudy.boundary.privacy.ledger.claims import Overtaken
from understudy.cli.failure import INTERRUPTED
from understudy.errors import InternalError, UnderstudyError

HOW = "the release is paid for and can go on: repeat the command with --resume"


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
        except (Overtaken, InternalError):
            raise
        except UnderstudyError as error:
            if journal.paid and journal.used:
                raise type(error)(f"{error}; {HOW}", error.subject) from error
            raise
        except Exception:
            if journal.paid:
                print(f"understudy: {HOW}.", file=sys.stderr)
            raise
