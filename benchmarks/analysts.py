"""Many analysts, one ledger: processes that ask as fast as they can, each from its own share of one limit.

    scripts/bench analysts --processes 50 --seconds 30

Afterwards the ledger must hold exactly the debits that the processes were told of, no share and no limit may be
overspent, and nobody may have waited for the lock until it was given up. It exits with 1 where one of these fails.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from understudy.boundary.privacy.budget import Budget, Cost, covers
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger.allowance import share_fits
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.errors import BudgetExhausted, UnderstudyError

LIMIT = Budget(1.5, 1e-6)
ASKED = (0.005, 0.02, 0.05, 0.2)


def prepared(path: Path, analysts: int) -> Ledger:
    """Shares that add up to one and a half: the limit is reached before all of them are."""
    ledger = Ledger.open(path)
    ledger.set_limit(LIMIT, "add-remove")
    for i in range(analysts):
        ledger.set_share(f"analyst {i}", min(1.0, 1.5 / analysts))
    return ledger


def analyst(path: Path, name: str, seconds: float) -> None:
    """One process: asks, looks things up, and tells at the end what it was told."""
    ledger, draw = Ledger.open(path, create=False), random.Random(name)
    print("ready", flush=True)
    sys.stdin.readline()
    accepted, refused, broken, waits = [], 0, [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        budget, begun = Budget(draw.choice(ASKED), 1e-6), time.monotonic()
        try:
            value = budget.capacity.value
            cost = Cost(value, None, Fraction(0), gdp=value)
            accepted.append(ledger.debit(cost, budget, "add-remove", "hammer", name, unit=PrivacyUnit()))
            ledger.remember(f"question {draw.randrange(100)}", name.encode())
        except BudgetExhausted:
            refused += 1
        except UnderstudyError as error:
            broken.append(str(error))
        waits.append(time.monotonic() - begun)
    print(json.dumps({"accepted": accepted, "refused": refused, "broken": broken, "longest": max(waits, default=0)}))


def hammer(path: Path, processes: int, seconds: float) -> dict[str, dict]:
    """What every process was told, by name."""
    names = [f"analyst {i}" for i in range(processes)]
    command = [sys.executable, __file__, "--worker", str(path), "--seconds", str(seconds), "--name"]
    running = [subprocess.Popen([*command, n], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in names]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return {
        n: json.loads(p.communicate(timeout=seconds + 300)[0].splitlines()[-1])
        for n, p in zip(names, running, strict=True)
    }


def complaints(ledger: Ledger, told: dict[str, dict]) -> list[str]:
    """What went wrong, if anything did."""
    found = [f"{name}: {error}" for name, said in told.items() for error in said["broken"]]
    entries = {entry.id: entry for entry in ledger.entries()}
    said = {(i, name) for name, report in told.items() for i in report["accepted"]}
    if said != {(i, entry.analyst) for i, entry in entries.items()}:
        found.append("the ledger's debits are not those that the analysts were told of")
    if not covers(LIMIT, ledger.spent()):
        found.append("the limit is overspent")
    shares = {s.analyst: s.share for s in ledger.shares()}
    found += [
        f"{a.analyst} has overspent a share"
        for a in ledger.accounts()
        if not share_fits(LIMIT, shares.get(a.analyst, 0.0), a.spent)
    ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        analyst(options.worker, options.name, options.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        ledger = prepared(Path(folder) / "hammered.ledger", options.processes)
        told = hammer(ledger.path, options.processes, options.seconds)
        wrong = complaints(ledger, told)
        accepted = sum(len(r["accepted"]) for r in told.values())
        refused = sum(r["refused"] for r in told.values())
        print("| processes | seconds | debits | refused | longest wait | spent | of limit | wrong |")
        print("|---|---|---|---|---|---|---|---|")
        print(
            f"| {options.processes} | {options.seconds:g} | {accepted:,} | {refused:,} "
            f"| {max(r['longest'] for r in told.values()):.1f} s | {ledger.standing().epsilon:.6f} "
            f"| {LIMIT.epsilon:g} | {'; '.join(wrong) or 'nothing'} |"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
