"""`understudy synth --resume`: after Ctrl-C, an error or `kill -9`, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import contents, sentence

from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.releases.release import Release

SYNTH = ("synth", "people.csv", "--epsilon", 1, "--method", "mst", "--out", "out")
HOW = "the release is paid for and can go on: repeat the command with --resume."
LEDGER = "people.csv.ledger.sqlite"


def breaking(error: BaseException, number: int) -> Callable[..., None]:
    """A claim after which the n-th answer never reaches the method."""
    honest, done = Ledger.claim, [0]

    def claim(self: Ledger, entry: int, place: int, digest: str) -> None:
        honest(self, entry, place, digest)
        done[0] += 1
        if done[0] == number:
            raise error

    return claim


@pytest.fixture
def stop(understudy, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command that breaks with this error after its n-th answer."""

    def call(*arguments: object, error: BaseException | None = None, number: int = 2) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "claim", breaking(error or KeyboardInterrupt(), number))
            return understudy(*arguments)

    return call


def check_finished(desk: Path, understudy: Any) -> None:
    """A whole release, no journal, and one debit."""
    assert understudy("verify", "out").code == 0 and understudy("replay", "out").code == 0
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml", LEDGER, "out"}
    assert len(Ledger.open(desk / LEDGER).entries()) == 1


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_after_an_interrupt(neighbours: str, number: int, desk: Path, understudy, stop):
    schema = desk / "people.toml"
    schema.write_text(f'neighbours = "{neighbours}"\n{schema.read_text()}')
    outcome = stop(*SYNTH, number=number)
    assert outcome.code == 130 and outcome.out == "" and outcome.err == f"understudy: interrupted; {HOW}\n"
    assert (desk / "out.journal").stat().st_mode & 0o777 == 0o600 and not (desk / "out").exists()
    spent = Ledger.open(desk / LEDGER).spent()
    assert understudy(*SYNTH, "--resume").code == 0
    check_finished(desk, understudy)
    assert Ledger.open(desk / LEDGER).spent() == spent


def test_after_an_interrupt_before_anything_was_paid(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "debit", interrupt)
        outcome = understudy(*SYNTH)
    assert outcome.code == 130 and outcome.err == "understudy: interrupted; nothing was debited.\n"
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml", LEDGER}
    assert understudy(*SYNTH).code == 0
    check_finished(desk, understudy)


def test_after_a_bug(desk: Path, understudy, stop):
    outcome = stop(*SYNTH, error=ZeroDivisionError("oh"))
    assert outcome.code == 70 and outcome.err.splitlines()[0] == f"understudy: {HOW}"
    assert "a bug of ours (ZeroDivisionError at " in outcome.err and "oh" not in outcome.err
    assert understudy(*SYNTH, "--resume").code == 0
    check_finished(desk, understudy)


def test_after_a_disk_was_full(desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    """Everything was drawn, and the folder could not be written: the rows are asked for nothing more."""

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        outcome = understudy(*SYNTH)
    assert outcome.code == 2 and "No space left on device" in outcome.err and "stay debited" in outcome.err
    assert sentence(outcome.err).endswith(HOW) and not (desk / "out").exists()
    claims = claimed(desk)
    assert understudy(*SYNTH, "--resume").code == 0
    assert claimed(desk) == claims
    check_finished(desk, understudy)


@pytest.mark.parametrize("number", [1, 2])
def test_after_a_disk_was_full_for_the_journal(number: int, desk: Path, understudy, monkeypatch: pytest.MonkeyPatch):
    """An answer that was drawn can't be kept, so that nobody sees it, and another one is drawn later."""
    honest, done = os.fsync, [0]

    def full(handle: int) -> None:
        done[0] += (desk / "out.journal").exists()
        if done[0] == 2 + number:  # the head and its folder come first
            raise OSError(28, "No space left on device")
        honest(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        outcome = understudy(*SYNTH)
    assert outcome.code == 2 and len(claimed(desk)) == number - 1
    assert sentence(outcome.err).startswith("journal ('out.journal') can't be written: No space left on device; ")
    assert sentence(outcome.err).endswith(HOW)
    assert understudy(*SYNTH, "--resume").code == 0
    check_finished(desk, understudy)


def claimed(desk: Path) -> list[tuple[Any, ...]]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(desk / LEDGER)) as database:
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'claims'").fetchone() is None:
            return []
        return database.execute("SELECT place, digest FROM claims WHERE place > 0 ORDER BY place").fetchall()


KILLED = """
import os, signal, sys
from understudy.cli import run
from understudy.boundary.privacy.ledger.ledger import Ledger

honest = Ledger.claim
def claim(self, entry, place, digest):
    honest(self, entry, place, digest)
    if place == 2:
        os.kill(os.getpid(), signal.SIGKILL)

Ledger.claim = claim
run(sys.argv[1:])
"""


@pytest.mark.slow
def test_after_kill_9(desk: Path, understudy):
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, SYNTH)], cwd=desk, capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert {p.name for p in desk.iterdir()} == {"people.csv", "people.toml", LEDGER, "out.journal"}
    first = claimed(desk)
    assert len(first) == 2
    made = subprocess.run(
        [sys.executable, "-m", "understudy", *map(str, SYNTH), "--resume", "--json"],
        cwd=desk, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["guarantee"]["epsilon"] <= 1
    assert claimed(desk)[:2] == first and len(claimed(desk)) > 2
    check_finished(desk, understudy)


def test_the_seed_is_the_one_of_the_first_run(desk: Path, understudy, stop):
    stop(*SYNTH, "--seed", 5)
    assert understudy(*SYNTH, "--resume").code == 0
    assert Release.load(desk / "out").certificate.seed == 5


def test_a_journal_that_was_copied_is_resumed_once(desk: Path, understudy, stop, refused):
    stop(*SYNTH)
    shutil.copy(desk / "out.journal", desk / "again.journal")
    assert understudy(*SYNTH, "--resume").code == 0
    found = refused(*SYNTH[:-1], "again", "--resume")
    assert "is finished, and can't be resumed" in found


def test_a_journal_that_was_copied_and_went_on(desk: Path, understudy, stop, refused):
    stop(*SYNTH, number=1)
    shutil.copy(desk / "out.journal", desk / "again.journal")
    stop(*SYNTH, "--resume", number=1)
    assert "is older than the ledger: it lacks answer 2 of the 2" in refused(*SYNTH[:-1], "again", "--resume")


def test_what_is_refused(desk: Path, understudy, stop, refused):
    assert "nothing to resume" in refused(*SYNTH, "--resume")
    stop(*SYNTH)
    assert "'out.journal' is the journal of a release that was interrupted" in refused(*SYNTH)
    assert refused("synth", "people.csv", "--epsilon", 2, "--method", "mst", "--out", "out", "--resume").startswith(
        "epsilon (2.0) must be 1.0, as in journal 'out.journal'"
    )
    assert refused(*SYNTH, "--resume", "--test-only-noise-seed", 3).startswith("noise (seeded, for tests) must be")
    Ledger.open(desk / "other.sqlite")
    assert "knows nothing of journal" in refused(*SYNTH, "--resume", "--ledger", "other.sqlite")
    assert "can't be opened" in refused(*SYNTH, "--resume", "--ledger", "nowhere.sqlite")
    (desk / "other.sqlite").unlink()
    assert understudy(*SYNTH, "--resume").code == 0
    check_finished(desk, understudy)


def test_a_budget_that_is_exhausted_leaves_no_journal(desk: Path, understudy, refused):
    assert understudy("budget", "set", "people.csv", "--epsilon", 0.5).code == 0
    refused(*SYNTH, code=3)
    assert "out.journal" not in contents(desk)


def test_a_release_of_one_run_is_as_it_always_was(desk: Path, understudy):
    assert understudy(*SYNTH).code == 0
    check_finished(desk, understudy)
    assert Release.load(desk / "out").certificate.guarantee
