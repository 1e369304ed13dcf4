"""What stops a command: Ctrl-C (SIGINT), a request to end (SIGTERM), a terminal that is closed (SIGHUP).

While modules are imported nothing has been read or paid, and the command ends at once with a sentence. After
that a signal is raised as KeyboardInterrupt, so that files are closed and it can be said what was paid; the second one
ends the command at once. This is for the command alone: a library leaves the signals of its program as they are.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_AT_ONCE = b"understudy: stopped at once; what was debited stays debited, and `understudy budget show` tells it.\n"
_received: list[int] = []


def catch() -> None:
    """From now on a signal ends the command at once; nothing has been done yet."""
    _install(_leave)


def interrupt() -> None:
    """From now on a signal is raised as KeyboardInterrupt."""
    _install(_raise)


def ended(code: int) -> None:
    """From now on a signal leaves the exit code as it is: all is done and said."""
    _install(lambda number, frame: os._exit(code))


def received() -> bool:
    """Whether a signal was raised. What is raised while a module is imported may come out as some other error."""
    return bool(_received)


def exit_code() -> int:
    """As a shell reports a program that a signal stopped."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def _install(handler: signal.Handlers | object) -> None:
    for number in _SIGNALS:
        # Who ignores a signal, as `nohup` does, has asked for that.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"understudy: interrupted before anything was read or paid.\n")
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    if _received:
        os.write(2, _AT_ONCE)
        os._exit(128 + _received[0])
    _received.append(number)
    raise KeyboardInterrupt
