"""One ledger and several real processes: together they never spend more than the limit, and a crash refunds nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.ledger.ledger import Ledger

WATCHDOG = 600
"""Seconds. It ends what hangs; a busy machine may need minutes for what else takes a second."""


def race(desk: Path, count: int, epsilon: float, delta: float) -> list[subprocess.CompletedProcess[str]]:
    """That many `understudy synth` at once on one ledger."""
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "understudy",
                "synth",
                "people.csv",
                "--epsilon",
                str(epsilon),
                "--delta",
                str(delta),
                "--method",
                "independent",
                "--out",
                f"out{i}",
            ],
            cwd=desk,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    outputs = [p.communicate(timeout=WATCHDOG) for p in running]
    return [
        subprocess.CompletedProcess(p.args, p.returncode, out, err)
        for p, (out, err) in zip(running, outputs, strict=True)
    ]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("count", "each", "delta", "limit", "affordable"),
    [
        (2, 0.6, 0.0, 1.0, 1),
        # g grows about as ε², so 0.5 fits 3.6 times into 1 (g = 0.0280 and 0.0077 at δ = 1e-6).
        (5, 0.5, 1e-6, 1.0, 3),
    ],
)
def test_processes_never_overspend_together(
    count: int, each: float, delta: float, limit: float, affordable: int, desk: Path
):
    ledger = Ledger.open(desk / "people.csv.ledger.sqlite")
    ledger.set_limit(Budget(limit, delta), "add-remove")
    ended = race(desk, count, each, delta)
    assert sorted(p.returncode for p in ended) == [0] * affordable + [3] * (count - affordable), [
        p.stderr for p in ended
    ]
    assert len(ledger.entries()) == affordable and ledger.standing().epsilon <= limit
    for i, process in enumerate(ended):
        assert (desk / f"out{i}").is_dir() is (process.returncode == 0)
        if process.returncode:
            assert process.stderr.startswith("understudy: ") and "left of the limit" in process.stderr
    assert not [p for p in desk.iterdir() if ".tmp-" in p.name or p.name.endswith("-journal")]


KILLED = """
import os, signal, sys
from pathlib import Path
import understudy as us
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.releases.synthesis import Plan, synthesize_with
from understudy.methods.method import Options

class Deadly(ExactRandomness):
    def noise(self, mechanism, scale, size):
        os.kill(os.getpid(), signal.SIGKILL)

schema = us.Schema.load("people.toml")
plan = Plan.of(schema, us.Budget(0.7, 1e-6), "auto", Options(), None, None)
release = synthesize_with(
    us.open("people.csv", schema), plan, randomness=Deadly.system(), ledger=Path("people.csv.ledger.sqlite")
)
release.save("out")
"""


def test_killed_between_debit_and_draw(desk: Path, understudy):
    """`kill -9` before the first noise is drawn: the debit is on the disk, and there is no release."""
    ended = subprocess.run([sys.executable, "-c", KILLED], cwd=desk, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml", "people.csv.ledger.sqlite"}
    (debit,) = json.loads(understudy("budget", "history", "people.csv", "--json").out)
    assert debit["kind"] == "debit" and debit["epsilon"] == 0.7
    assert understudy("budget", "set", "people.csv", "--epsilon", 1).code == 0
    assert understudy("synth", "people.csv", "--epsilon", 0.9).code == 3
