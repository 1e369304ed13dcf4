"""Older copies, lost ledgers and backups: nothing that was debited is ever taken back by them."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.old_ledgers import old_ledger
from understudy.boundary.privacy.accountant import round_up
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger import witness
from understudy.boundary.privacy.ledger.backup import back_up, begin_anew, restore
from understudy.boundary.privacy.ledger.chain import DamagedLedger
from understudy.boundary.privacy.ledger.claims import Overtaken
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.ledger.witness import OlderCopy
from understudy.errors import InputError

ROW = PrivacyUnit()
WATCHDOG = 600
SPENDER = """
import os, signal, sys
from fractions import Fraction
from pathlib import Path
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger.ledger import Ledger
def spend():
    cost = Cost(Fraction(1, 1024), None, Fraction(0), gdp=Fraction(1, 1024))
    Ledger.open(Path(sys.argv[1])).debit(cost, Budget(0.1, 1e-6), "add-remove", "x", unit=PrivacyUnit())
"""


def spend(ledger: Ledger, gdp: float = 0.001, journal: str = "") -> int:
    cost = Cost(round_up(gdp), None, round_up(1e-8), gdp=round_up(gdp))
    return ledger.debit(cost, Budget(0.1, 1e-6), "add-remove", "count of smokers", "ada", unit=ROW, journal=journal)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.ledger"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup"


# --- older copies


def test_an_older_copy_is_refused_by_everything(path, backup):
    ledger = Ledger.open(path)
    spend(ledger)
    shutil.copy(path, backup)
    spend(ledger)
    newer = path.read_bytes()
    shutil.copy(backup, path)
    for use in (lambda: Ledger.open(path), ledger.standing, lambda: spend(ledger), lambda: Ledger.open(backup)):
        with pytest.raises(InputError):
            use()
    with pytest.raises(OlderCopy, match=r"is an older copy: it has 2 entries, and had 3 on 20.*budget restore DATA"):
        Ledger.open(path)
    path.write_bytes(newer)
    assert spend(Ledger.open(path)) == 3


def test_of_two_copies_one_may_be_written_to(path, backup):
    spend(Ledger.open(path))
    shutil.copy(path, backup)
    spend(Ledger.open(path))
    spend(Ledger.open(path))
    with pytest.raises(OlderCopy):
        spend(Ledger.open(backup))
    # On a machine that knows neither, both can go on. Where both come together, one of them is refused.
    other = {**os.environ, "XDG_STATE_HOME": str(path.parent / "elsewhere")}
    script = "for _ in range(3):\n    spend()\n"
    subprocess.run([sys.executable, "-c", SPENDER + script, backup], env=other, check=True, timeout=WATCHDOG)
    with pytest.raises(OlderCopy, match=r"entry 4 is not the one that was written on .*, to another copy"):
        Ledger.open(backup)
    assert restore(backup, backup).added == 2, "what the other copy spent"
    assert len(Ledger.open(backup).entries()) == 6
    with pytest.raises(OlderCopy):
        Ledger.open(path)


def test_a_moved_ledger_goes_on(path, backup):
    spend(Ledger.open(path))
    path.rename(backup)
    spend(Ledger.open(backup))
    assert spend(Ledger.open(path)) == 1, "where it was another one may begin"
    assert len(Ledger.open(backup).entries()) == 2


def test_looking_at_a_copy_moves_nothing(path, backup):
    spend(Ledger.open(path))
    shutil.copy(path, backup)
    Ledger.open(backup)
    path.unlink()
    with pytest.raises(DamagedLedger, match="is gone, and releases were debited in it"):
        Ledger.open(path)


# --- the witness


def test_the_witness_is_its_owners_alone(path, state_home):
    spend(Ledger.open(path))
    made = [p for p in (state_home / "understudy").rglob("*") if p.is_file()]
    assert made and all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in made)
    assert stat.S_IMODE((state_home / "understudy").stat().st_mode) == 0o700


def test_nobody_else_may_exchange_the_folder_of_the_witness(path, tmp_path, monkeypatch):
    """By what is above it, where that had to be made."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    before = os.umask(0)
    try:
        spend(Ledger.open(path))
    finally:
        os.umask(before)
    for folder in ("home", "home/state", "home/state/understudy"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


@pytest.mark.parametrize("home", ["/dev/null", "/proc/nothing", "relative"])
def test_work_goes_on_without_a_witness(path, home, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", home)
    monkeypatch.setenv("HOME", "/dev/null")
    assert spend(Ledger.open(path)) == 1
    assert len(Ledger.open(path).entries()) == 1


def test_a_witness_that_was_damaged_stands_in_nobodys_way(path, state_home):
    spend(Ledger.open(path))
    (log,) = (state_home / "understudy" / "witnesses").iterdir()
    for content in (b"", b"\xff" * 99, b"[]\n{}\n" + b"[" * 9999, log.read_bytes()[:-9]):
        log.write_bytes(content)
        spend(Ledger.open(path))
    assert max(witness.branch(Ledger.open(path).identity())) == 6, "the next opening makes up for what is missing"


def test_a_debit_that_is_on_the_disk_is_one_whatever_the_witness_does(path, monkeypatch):
    ledger = Ledger.open(path)

    def broken(*_: object) -> None:
        raise sqlite3.OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(witness, "record", broken)
        assert spend(ledger) == 1
    assert len(Ledger.open(path).entries()) == 1


def test_on_a_file_system_without_links_a_ledger_is_made_all_the_same(path, monkeypatch):
    def no_links(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    assert spend(Ledger.open(path)) == 1
    assert path.stat().st_mode & 0o777 == 0o600 and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["link", "unlink"])
def test_what_kill_9_leaves_beside_a_new_ledger_goes_with_the_next_opening(path, step):
    dying = f"os.{step} = lambda *_, **named: os.kill(os.getpid(), signal.SIGKILL)\nspend()\n"
    ended = subprocess.run([sys.executable, "-c", SPENDER + dying, path], timeout=WATCHDOG, check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = (p for p in path.parent.iterdir() if p != path)
    living = left.with_name(left.name.rpartition("tmp-")[0] + f"tmp-{os.getpid()}-00")
    living.touch()
    assert spend(Ledger.open(path)) == 1
    assert {p for p in path.parent.iterdir() if ".tmp-" in p.name} == {living}


KILLED = """
import understudy.boundary.privacy.ledger.{module} as module
honest = module.{name}
def deadly(*arguments, **named):
    {before}
    os.kill(os.getpid(), signal.SIGKILL)
module.{name} = deadly
spend()
"""


@pytest.mark.parametrize(
    ("module", "name", "before", "debits"),
    [
        ("chain", "_extend", "", 1),
        ("chain", "_extend", "honest(*arguments, **named)", 1),
        ("ledger", "append", "honest(*arguments, **named)", 1),
        ("state", "append", "", 2),
        ("state", "append", "honest(*arguments, **named)", 2),
    ],
)
def test_kill_9_between_two_steps_leaves_all_in_order(path, module, name, before, debits):
    spend(Ledger.open(path))
    script = SPENDER + KILLED.format(module=module, name=name, before=before or "pass")
    ended = subprocess.run([sys.executable, "-c", script, path], timeout=WATCHDOG, check=False)
    assert ended.returncode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert len(ledger.entries()) == debits
    known_entries = witness.branch(ledger.identity())
    assert sorted(known_entries) == list(range(1, max(known_entries) + 1))
    assert max(known_entries) == len(ledger.entries()) + 1
    spend(ledger)


# --- backups


def test_a_backup_is_the_ledger(path, backup):
    spend(Ledger.open(path))
    assert back_up(path, backup) == 1
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert Ledger.open(backup).export() == Ledger.open(path).export()
    for taken in (backup, Path(), Path("/"), backup.parent):
        with pytest.raises(InputError, match="exists already"):
            back_up(path, taken)
    with pytest.raises(InputError, match="is sound, and none of its 2 entries may be lost"):
        restore(path, backup)


@pytest.mark.parametrize("loss", ["gone", "emptied", "damaged", "cut off", "older"])
def test_a_restored_ledger_has_spent_as_much(path, backup, loss):
    ledger = Ledger.open(path)
    ledger.set_limit(Budget(5.0, 1e-6), "add-remove", ROW)
    spend(ledger, 0.01)
    back_up(path, backup)
    ledger.set_share("ada", 0.5)
    ledger.set_limit(Budget(3.0, 1e-6), "add-remove", ROW, failure_delta=4e-7)
    spend(ledger, 0.02)
    spend(ledger, 0.03)
    before = ledger.export(), ledger.standing(), ledger.accounts(), ledger.identity()
    content = path.read_bytes()
    if loss == "gone":
        path.unlink()
    elif loss == "older":
        shutil.copy(backup, path)
    else:
        path.write_bytes({"emptied": b"", "damaged": b"x" * 9999, "cut off": content[:-4096]}[loss])
    restored = restore(path, backup)
    assert (restored.debits, restored.added, restored.witnessed) == (1, 2, True)
    ledger = Ledger.open(path)
    assert (ledger.export(), ledger.standing(), ledger.accounts(), ledger.identity()) == before
    assert spend(ledger) == 4
    kept = [p for p in path.parent.iterdir() if ".replaced-" in p.name]
    assert len(kept) == (0 if loss == "gone" else 1)
    with pytest.raises(OlderCopy):
        Ledger.open(backup)


def test_where_there_is_no_room_to_restore_nothing_is_moved(path, backup, monkeypatch):
    spend(Ledger.open(path))
    back_up(path, backup)
    path.write_bytes(b"x" * 9999)

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()}
    with monkeypatch.context() as patch, pytest.raises(InputError, match=r"data\.ledger' can't be written: No space"):
        patch.setattr(os, "fsync", full)
        restore(path, backup)
    assert {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()} == before
    assert restore(path, backup).debits == 1


def test_restoring_twice_counts_nothing_twice(path, backup):
    ledger = Ledger.open(path)
    spend(ledger)
    back_up(path, backup)
    for _ in range(3):
        spend(ledger)
    for expected in (4, 5, 6):
        path.unlink()
        restore(path, backup)
        assert len(Ledger.open(path).entries()) == expected
        spend(Ledger.open(path))


def test_a_release_in_progress_is_closed(path, backup):
    """Which of its answers were handed out after the backup is not known: none may be drawn again."""
    ledger = Ledger.open(path)
    entry = spend(ledger, journal="head")
    ledger.claim(entry, 1, "first")
    back_up(path, backup)
    ledger.claim(entry, 2, "second")
    path.unlink()
    restore(path, backup)
    with pytest.raises(Overtaken, match="is finished"):
        Ledger.open(path).claim(entry, 2, "another")


def test_a_ledger_of_the_first_version_as_a_backup(path, backup):
    old_ledger(path, 1, debits=2)
    shutil.copy(path, backup)
    ledger = Ledger.open(path)
    ledger.state_unit(ROW)
    spend(ledger)
    before = ledger.export(), ledger.identity()
    path.unlink()
    assert restore(path, backup).added == 1
    assert (Ledger.open(path).export(), Ledger.open(path).identity()) == before


def test_what_restore_refuses(path, backup, tmp_path):
    ledger = Ledger.open(path)
    spend(ledger)
    with pytest.raises(InputError, match="lacks nothing"):
        restore(path, path)
    other = tmp_path / "other"
    spend(Ledger.open(other))
    with pytest.raises(InputError, match="must be that of the backup, and is another one"):
        restore(path, other)
    notes = tmp_path / "people.csv"
    notes.write_text("not a ledger\n" * 999)
    with pytest.raises(InputError, match="isn't a ledger"):
        restore(notes, path)
    with pytest.raises(InputError, match="isn't a ledger"):
        restore(path, notes)
    assert len(ledger.entries()) == 1


def test_what_nobody_knows_is_not_restored(path, backup, state_home):
    ledger = Ledger.open(path)
    spend(ledger)
    back_up(path, backup)
    spend(ledger)
    spend(ledger)
    (log,) = (state_home / "understudy" / "witnesses").iterdir()
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if b'"n":3' not in line))
    path.unlink()
    with pytest.raises(InputError, match="entry 3 is neither in the backup nor known otherwise"):
        restore(path, backup)
    assert not path.exists()


def test_without_a_witness_the_backup_is_all_there_is(path, backup, state_home):
    ledger = Ledger.open(path)
    spend(ledger)
    back_up(path, backup)
    spend(ledger)
    shutil.rmtree(state_home / "understudy")
    path.unlink()
    restored = restore(path, backup)
    assert (restored.debits, restored.added, restored.witnessed) == (1, 0, False)


# --- beginning anew


def test_a_ledger_that_is_gone_is_not_made_anew_unasked(path):
    spend(Ledger.open(path))
    path.unlink()
    with pytest.raises(DamagedLedger, match=r"put it back or restore a backup .* `understudy budget forget`"):
        Ledger.open(path)
    assert not path.exists()
    assert begin_anew(path, None) == [path]
    assert Ledger.open(path).entries() == []
    with pytest.raises(InputError, match="still there"):
        begin_anew(path, None)


def test_one_without_debits_may_go(path):
    Ledger.open(path).set_limit(Budget(1.0, 0.0), "add-remove")
    path.unlink()
    assert Ledger.open(path).limit() is None
    path.unlink()
    with pytest.raises(InputError, match="nothing to forget"):
        begin_anew(path, None)
