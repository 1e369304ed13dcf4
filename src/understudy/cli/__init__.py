"""The command line: arguments in, exit codes out."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main() -> None:
    """The entry point of the `understudy` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code; `--debug` anywhere shows the traceback of an error."""
    from understudy.cli.app import command
    from understudy.cli.failures import INTERRUPTED, notices, report

    # Taken out before the parser sees it, so that it may stand before or after the command.
    debug = "--debug" in arguments
    try:
        # Not standalone: there the parser would print an error and exit by itself, and `report` would never see it.
        typed = [a for a in arguments if a != "--debug"]
        with notices():
            result = command()(args=typed, prog_name="understudy", standalone_mode=False)
        code = int(result or 0)
        # The parser turns an interrupt into a silent code.
        return report(KeyboardInterrupt()) if code == INTERRUPTED else code
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        return report(error)
