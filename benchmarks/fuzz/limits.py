"""What a case may use: seconds of the processor, and memory beyond what the imports took."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from fuzz.case import MEGABYTES

GRACE = 3.0
"""Seconds after which a case that does not even let Python raise is ended with its worker."""
PATIENCE = float(os.environ.get("UNDERSTUDY_FUZZ_PATIENCE", "1"))
"""By how much all limits of time are stretched: a test on a busy machine must not fail by its clock."""
WAITING = 12
"""Times as many seconds may pass on the wall, since others use the machine; who waits for a lock uses no processor."""
HARD = resource.getrlimit(resource.RLIMIT_DATA)[1]


class TooLong(BaseException):
    """No `Exception`: what the product catches must not end it early."""


def limit_memory(megabytes: int = MEGABYTES) -> None:
    """From here on this process may take so much more than it has."""
    # Data and not addresses: libraries reserve gigabytes of addresses that they never use.
    resource.setrlimit(resource.RLIMIT_DATA, (_status("VmData") * 1024 + megabytes * 1024 * 1024, HARD))


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises `TooLong` in the case; one that never comes back to Python ends the process, and that is noticed there."""

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise TooLong

    seconds *= PATIENCE
    faulthandler.dump_traceback_later(WAITING * seconds + GRACE, exit=True)
    clocks = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, WAITING * seconds)}
    before = {ends: signal.signal(ends, raise_it) for ends, _ in clocks.values()}
    for clock, (_, limit) in clocks.items():
        # Again and again: the first may fall into code that lets no exception out.
        signal.setitimer(clock, limit, 0.5)
    try:
        yield
    finally:
        for clock in clocks:
            signal.setitimer(clock, 0)
        for ends, handler in before.items():
            signal.signal(ends, handler)
        faulthandler.cancel_dump_traceback_later()


class Meter:
    """What was used since it was made: seconds of the processor, and megabytes at the peak."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._begun, self._held = time.process_time(), _status("VmRSS")

    @property
    def seconds(self) -> float:
        return time.process_time() - self._begun

    @property
    def megabytes(self) -> float:
        return (_status("VmHWM") - self._held) / 1024


def _status(name: str) -> int:
    """A figure of this process in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])
