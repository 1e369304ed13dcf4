"""Fifty processes that spend from one ledger at once, some of which are killed: no debit is lost or doubled."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import understudy as us
from fuzz.case import Case, Target
from fuzz.ledgers import debit
from fuzz.limits import PATIENCE
from understudy.errors import BudgetExhausted, InputError

SPENDERS = 50
SCALE = 245.0
"""Of the noise of a debit: of these the limit has room for some 250."""
KILL_EVERY = 0.4
"""Seconds."""
BEGAN, DONE, REFUSED, LOCKED, BROKEN = b"b", b"d", b"r", b"l", b"x"
RECORD = 9
"""Bytes that a spender writes at a time: a pipe keeps so few together."""


def race(case: Case) -> None:
    """For most of the time of the case; even numbers have room for all, odd ones reach the limit."""
    path = case.folder / "ledger.sqlite"
    limit = us.Budget(1_000.0, 1e-2) if case.index % 2 == 0 else us.Budget(0.25, 1e-6)
    us.Ledger.open(path).set_limit(limit, "add-remove")
    seconds = float(os.environ.get(SECONDS, "60"))
    told, killed = _run(case, path, seconds, until=REFUSED if case.index % 2 else DONE)
    _check(case, path, limit, told, killed)


SECONDS = "UNDERSTUDY_FUZZ_SECONDS"
"""The environment variable by which a shorter race can be asked for."""


def _run(case: Case, path: Path, seconds: float, until: bytes) -> tuple[list[tuple[bytes, int]], int]:
    """What all spenders said, in order, and how many were killed; on a busy machine it goes on `until` one says so."""
    ear, mouth = os.pipe()
    running = [_start(path, mouth) for _ in range(SPENDERS)]
    heard, killed, end, next_kill = bytearray(), 0, time.monotonic() + seconds, time.monotonic() + KILL_EVERY
    latest = end + seconds * (PATIENCE - 1)
    try:
        while (now := time.monotonic()) < end or (now < latest and until not in heard[::RECORD]):
            if select.select([ear], [], [], 0.05)[0]:
                heard += os.read(ear, 1 << 16)
            if now > next_kill:
                victim = case.draw.randrange(SPENDERS)
                os.kill(running[victim], signal.SIGKILL)
                os.waitpid(running[victim], 0)
                running[victim], killed, next_kill = _start(path, mouth), killed + 1, now + KILL_EVERY
    finally:
        for child in running:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(mouth)
        while piece := os.read(ear, 1 << 16):
            heard += piece
        os.close(ear)
    records = [heard[i : i + RECORD] for i in range(0, len(heard) - RECORD + 1, RECORD)]
    return [(bytes(r[:1]), int.from_bytes(r[1:], "big")) for r in records], killed + SPENDERS


def _start(path: Path, mouth: int) -> int:
    child = os.fork()
    if child:
        return child
    signal.setitimer(signal.ITIMER_REAL, 0)
    while True:
        _say(mouth, BEGAN)
        try:
            _say(mouth, DONE, debit(path, SCALE))
        except BudgetExhausted:
            _say(mouth, REFUSED)
            time.sleep(0.2)
        except InputError as error:
            # What starves for a minute, since 49 others were faster each time, is told so and has spent nothing.
            starved = "stayed locked by another process" in str(error)
            _say(mouth, LOCKED if starved else BROKEN)
            if not starved:
                path.with_name("broken").write_text(str(error))
        except BaseException as error:
            path.with_name("broken").write_text(repr(error))
            _say(mouth, BROKEN)
            os._exit(1)


def _say(mouth: int, kind: bytes, number: int = 0) -> None:
    os.write(mouth, kind + number.to_bytes(RECORD - 1, "big"))


def _check(case: Case, path: Path, limit: us.Budget, told: list[tuple[bytes, int]], killed: int) -> None:
    count = {kind: sum(k == kind for k, _ in told) for kind in (BEGAN, DONE, REFUSED, LOCKED, BROKEN)}
    paid = [number for kind, number in told if kind == DONE]
    ledger = us.Ledger.open(path, create=False)
    entries = [entry.id for entry in ledger.entries()]
    case.outcomes += ["debit accepted"] * count[DONE] + ["debit refused"] * count[REFUSED] + ["killed"] * killed
    case.outcomes += ["debit kept waiting for a minute"] * count[LOCKED]
    if count[BROKEN]:
        case.fail("a debit broke off", f"{count[BROKEN]} of {count[BEGAN]}: {path.with_name('broken').read_text()}")
    if len(set(paid)) != len(paid):
        case.fail("two spenders got the same debit")
    if lost := set(paid) - set(entries):
        case.fail("a debit was lost", sorted(lost))
    # Whoever was killed may have debited, and not said so.
    if len(entries) > len(paid) + killed:
        case.fail("more debits than were asked for", f"{len(entries)} entries, {len(paid)} paid, {killed} killed")
    if ledger.standing().epsilon > limit.epsilon * (1 + 1e-9):
        case.fail("overspent", ledger.standing().epsilon)
    if not paid:
        case.fail("nothing was debited, so that nothing was tried")
    if case.index % 2 and not count[REFUSED] and float(os.environ.get(SECONDS, "60")) >= 60:
        case.fail("the limit was not reached, so that nothing was tried", count[DONE])


TARGETS = (
    Target("spenders", "50 spenders of one ledger for 60 s, with kill -9", 2, race, seconds=150.0, chunk=1, whole=True),
)
