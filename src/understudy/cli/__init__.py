"""The command line: arguments in, exit codes out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from understudy.cli import signals, streams


def main() -> None:
    """The entry point of the `understudy` command."""
    signals.catch()  # before anything that takes time, so that Ctrl-C is answered from the first moment on
    outlet = streams.prepare()
    code = run(sys.argv[1:], signals.interrupt)
    signals.ended(code)
    sys.exit(streams.finish(outlet, code))


def run(arguments: Sequence[str], begin: Callable[[], None] = lambda: None) -> int:
    """Runs one command and returns its exit code; `--debug` anywhere shows the traceback of an error.

    `begin` is called when all that every command needs is loaded.
    """
    from understudy.cli.app import command
    from understudy.cli.failures import INTERRUPTED, check_arguments, notices, report

    # Taken out before the parser sees it, so that it may stand before or after the command.
    debug = "--debug" in arguments
    begin()
    try:
        check_arguments(arguments)
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
