"""Ledger files with spoiled bytes, read and then debited: refused, or what they were before the damage."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import understudy as us
from fuzz.case import Case, Target, failed
from fuzz.material import SCHEMA
from fuzz.mutation import spoiled_bytes
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.facts import PrivacyUnit

PAGE = 4_096
BUDGET = us.Budget(0.25, 1e-7)


def damaged(case: Case) -> None:
    """Never less spent and never another limit; nor after a debit that was admitted."""
    path, whole = case.folder / "ledger.sqlite", case.base / "ledger.sqlite"
    path.write_bytes(_damaged(case.draw, whole.read_bytes()))
    if path.read_bytes() == whole.read_bytes():
        return
    honest = us.Ledger.open(whole, create=False).standing()
    forget(case)
    found = case.call("read", lambda: us.Ledger.open(path, create=False).standing())
    if not failed(found):
        _compare(case, "a damaged ledger was read", honest, found)
    _debit(case, path, whole, honest)


def _debit(case: Case, path: Path, whole: Path, honest: Any) -> None:
    entry = case.call("debit", debit, path)
    if failed(entry):
        return
    sound = case.folder / "sound.sqlite"
    shutil.copy(whole, sound)
    forget(case)
    debit(sound)
    forget(case)
    after = case.call("read again", lambda: us.Ledger.open(path, create=False).standing())
    forget(case)
    if not failed(after):
        _compare(case, "a damaged ledger was debited", us.Ledger.open(sound, create=False).standing(), after)


def forget(case: Case) -> None:
    """What this machine remembers of a ledger is not to tell a damaged one, nor a second copy, from the first."""
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-", dir=case.folder)


def debit(path: Path, scale: float = 40.0) -> int:
    """What a query does to a ledger."""
    spend = Spend("rounded-gaussian", "a count", sensitivity=1.0, scale=scale)
    unit = PrivacyUnit.of(us.Schema.loads(SCHEMA))
    return us.Ledger.open(path, create=False).debit(spend.cost, BUDGET, "add-remove", "a query", "ada", unit=unit)


def _compare(case: Case, what: str, honest: Any, found: Any) -> None:
    if found.limit != honest.limit or found.division != honest.division:
        case.fail(f"{what}, with another limit", f"{found.limit} for {honest.limit}")
    if found.entries != honest.entries:
        case.fail(f"{what}, with another number of debits", f"{found.entries} for {honest.entries}")
    elif found.spent != honest.spent:
        less = "less" if found.epsilon < honest.epsilon else "more"
        case.fail(f"{what}, with {less} spent", f"{found.epsilon} for {honest.epsilon}")


def _damaged(draw: Random, content: bytes) -> bytes:
    spoiled = bytearray(content)
    match draw.randrange(6):
        case 0:
            return spoiled_bytes(draw, content)
        case 1:
            return content[: draw.choice([0, 1, 16, 100, PAGE - 1, PAGE, 3 * PAGE, draw.randrange(len(content))])]
        case 2:  # pages exchanged, as a bad copy may leave them
            one, other = (PAGE * draw.randrange(len(content) // PAGE) for _ in range(2))
            spoiled[one : one + PAGE], spoiled[other : other + PAGE] = (
                content[other : other + PAGE],
                content[one : one + PAGE],
            )
        case 3:  # a digit, where costs and limits are written as digits
            places = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
            spoiled[draw.choice(places)] = draw.choice(b"0123456789-+g.")
        case 4:
            filled = [i for i, byte in enumerate(content) if byte]
            for _ in range(draw.randint(1, 3)):
                spoiled[draw.choice(filled)] ^= 1 << draw.randrange(8)
        case _:
            at = draw.randrange(len(content))
            spoiled[at : at + draw.choice([1, 8, 100, PAGE])] = b""
            spoiled += bytes(len(content) - len(spoiled))
    return bytes(spoiled)


TARGETS = (Target("ledgers", "ledger files, read and debited", 2_500, damaged),)
