"""`understudy budget backup`, `restore` and `forget`, and what the other commands say of copies and lost ledgers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from outcomes import sentence

LEDGER = "people.csv.ledger.sqlite"
SYNTH = ("synth", "people.csv", "--epsilon", 0.5, "--method", "independent", "--overwrite")
QUERY = ("query", "people.csv", "SELECT count(*) FROM people WHERE age > 40", "--epsilon", 0.5)
SHOW = ("budget", "show", "people.csv")
SET = ("budget", "set", "people.csv", "--epsilon", 9)


def test_a_backup_is_restored_with_all_that_was_spent(desk: Path, understudy):
    assert understudy(*SYNTH).code == 0
    made = understudy("budget", "backup", "people.csv", "backup")
    assert made.code == 0 and made.out == f"1 debit of {LEDGER} copied to backup\n"
    assert understudy(*QUERY).code == 0
    before = understudy("budget", "show", "people.csv").out
    (desk / LEDGER).write_bytes((desk / LEDGER).read_bytes()[:5000])
    refused = understudy(*QUERY)
    assert refused.code == 2 and "is cut off" in sentence(refused.err) and "budget restore" in refused.err
    restored = understudy("budget", "restore", "people.csv", "backup")
    assert restored.out.splitlines() == [
        f"{LEDGER}: 1 debit of backup restored",
        "1 debit that came after it written again",
    ]
    assert understudy("budget", "show", "people.csv").out == before
    assert understudy(*SYNTH).code == 0


@pytest.mark.parametrize("loss", ["emptied", "deleted", "damaged", "older copy"])
@pytest.mark.parametrize("command", [SYNTH, QUERY, SHOW, SET])
def test_a_lost_ledger_is_no_fresh_budget(desk: Path, understudy, refused, command: tuple[object, ...], loss: str):
    assert understudy("budget", "set", "people.csv", "--epsilon", 1).code == 0
    shutil.copy(desk / LEDGER, "copy")
    assert understudy(*SYNTH).code == 0
    if loss == "deleted":
        (desk / LEDGER).unlink()
    elif loss == "older copy":
        shutil.copy("copy", desk / LEDGER)
    else:
        (desk / LEDGER).write_bytes(b"" if loss == "emptied" else b"x" * 5000)
    said = refused(*command)
    assert f"ledger ({LEDGER})" in said.replace(f"{desk}/", "")
    assert "budget restore" in said


def test_a_ledger_that_is_gone_can_be_forgotten(desk: Path, understudy):
    assert understudy(*SYNTH).code == 0
    assert understudy("budget", "forget", "people.csv").code == 2
    (desk / LEDGER).unlink()
    assert understudy(*SYNTH).code == 2
    forgotten = understudy("budget", "forget", "people.csv")
    assert forgotten.code == 0 and "is counted nowhere any more" in forgotten.out
    assert understudy(*SYNTH).code == 0


def test_a_copy_of_the_data_is_noticed(desk: Path, understudy):
    assert understudy(*SYNTH).code == 0
    shutil.copy("people.csv", "copy.csv")
    shutil.copy("people.toml", "copy.toml")
    looked = understudy("budget", "show", "copy.csv")
    assert looked.code == 2 and f"give --ledger {desk / LEDGER}" in sentence(looked.err)
    made = understudy("synth", "copy.csv", "--epsilon", 0.5, "--method", "independent")
    assert made.code == 0
    note = f"note: the same rows were released under ledger {desk / LEDGER}, and the claims of both add up; give "
    assert note in made.err and "the same rows" not in made.out
    assert not any(b"released under" in p.read_bytes() for p in (desk / "copy-release").iterdir())
    assert "same rows" in understudy("budget", "show", "copy.csv").out
    assert json.loads(understudy("budget", "show", "copy.csv", "--json").out)["same_rows"] == [str(desk / LEDGER)]
    ask = ("query", "copy.csv", "SELECT count(*) FROM copy WHERE age > 40", "--epsilon", 0.5)
    assert understudy(*ask, "--ledger", LEDGER).err.count("note: ") == 1, "of the new one"


def test_budget_show_says_that_nobody_watches(desk: Path, understudy, monkeypatch):
    assert "witness" not in understudy(*SYNTH).out
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert understudy(*SYNTH).code == 0
    shown = understudy("budget", "show", "people.csv")
    assert shown.code == 0 and "none, since the state folder can't be written to" in " ".join(shown.out.split())
    assert json.loads(understudy("budget", "show", "people.csv", "--json").out)["witnessed"] is False


@pytest.mark.parametrize("data", [".", "..", "/", ""])
def test_a_folder_has_no_ledger(data: str, refused):
    assert "is a folder; give the file" in refused("budget", "share", data, "ada", 0.5)


def test_what_backup_refuses(desk: Path, understudy, refused):
    assert "can't be opened" in refused("budget", "backup", "people.csv", "backup")
    assert understudy(*SYNTH).code == 0
    assert "'people.toml' exists already" in refused("budget", "backup", "people.csv", "people.toml")
    assert "'nowhere/backup' can't be written" in refused("budget", "backup", "people.csv", "nowhere/backup")
    assert "'nothing' does not exist; give a backup" in refused("budget", "restore", "people.csv", "nothing")
    assert "isn't a ledger" in refused("budget", "restore", "people.csv", "people.toml")


def test_an_analyst_who_is_no_text_is_refused(refused):
    assert "must be UTF-8 text" in refused(*SYNTH, "--analyst", "ad\udcff")
