"""How a command ends: signals, closed pipes, full devices, short memory, encodings; what is said is what is so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from outcomes import contents, sentence

from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.releases import room, synthesis
from understudy.releases.release import Release

SYNTH = ("synth", "people.csv", "--epsilon", "1", "--method", "mst", "--out", "out", "--rows", "50")
LEDGER = "people.csv.ledger.sqlite"
PAID = "interrupted; the release is paid for and can go on: repeat the command with --resume."
UNPAID = "interrupted; nothing was debited."
DONE = "interrupted; but the release is done and paid for: it is in out."

# Sends itself a signal at a moment of a release, and goes on if that was ignored.
STOPPED = """
import os, signal, sys
from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.cli import main, synth

moment, number = sys.argv.pop(1), int(sys.argv.pop(1))

def around(owner, name, after, when=lambda *a: True):
    honest = getattr(owner, name)
    def call(*arguments, **named):
        if not after and when(*arguments):
            os.kill(os.getpid(), number)
        found = honest(*arguments, **named)
        if after and when(*arguments):
            os.kill(os.getpid(), number)
        return found
    setattr(owner, name, call)

{
    "reading": lambda: around(synth, "open_table", True),
    "before the debit": lambda: around(Ledger, "debit", False),
    "after the debit": lambda: around(Ledger, "debit", True),
    "after an answer": lambda: around(Ledger, "claim", True, lambda book, entry, place, digest: place == 2),
    "writing": lambda: around(synth, "write_folder", False),
    "written": lambda: around(synth, "write_folder", True),
    "finished": lambda: around(Journal, "finish", True),
}[moment]()
main()
"""
MOMENTS = {
    "reading": UNPAID,
    "before the debit": UNPAID,
    "after the debit": PAID,
    "after an answer": PAID,
    "writing": PAID,
    "written": None,
    "finished": DONE,
}
CASES = [(moment, number) for moment in MOMENTS for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


def answer_signals() -> None:
    """Who runs the tests in the background, or by `nohup`, has signals ignored, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def child(desk: Path, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=desk, text=True, check=False, preexec_fn=answer_signals,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )  # fmt: skip


def debits(desk: Path) -> int:
    return len(Ledger.open(desk / LEDGER).entries()) if (desk / LEDGER).exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "number"), CASES, ids=lambda x: x.name if isinstance(x, signal.Signals) else x)
def test_a_signal_at_any_moment(moment: str, number: signal.Signals, desk: Path, understudy):
    ended = child(desk, "-c", STOPPED, moment, str(int(number)), *SYNTH)
    assert ended.returncode == 128 + number, ended.stderr
    said = sentence(ended.stderr)
    if moment == "written":  # before or after the command noted it, both of which are true
        assert said in (PAID, DONE)
    else:
        assert said == MOMENTS[moment]
    assert debits(desk) == (said != UNPAID)
    assert (desk / "out.journal").exists() == (said == PAID or moment == "written")
    assert not [p for p in desk.iterdir() if ".tmp-" in p.name]
    if said != DONE or moment == "written":
        again = ("--resume",) if (desk / "out.journal").exists() else ()
        assert understudy(*SYNTH, *again).code == 0
    assert debits(desk) == 1 and not (desk / "out.journal").exists()
    assert understudy("verify", "out").code == 0 and understudy("replay", "out").code == 0


@pytest.mark.slow
def test_who_ignores_a_hangup_is_left_in_peace(desk: Path):
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{STOPPED}"
    ended = child(desk, "-c", ignoring, "after the debit", str(int(signal.SIGHUP)), *SYNTH)
    assert (ended.returncode, ended.stderr) == (0, "")


EARLY = """
import os, signal, sys
class Loading:
    def find_spec(self, name, path=None, target=None):
        if name == "understudy.cli.app":
            os.kill(os.getpid(), int(sys.argv[-1]))
sys.meta_path.insert(0, Loading())
from understudy.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_modules_are_loaded(number: signal.Signals, desk: Path):
    ended = child(desk, "-c", EARLY, str(int(number)))
    assert ended.returncode == 128 + number
    assert ended.stderr == "understudy: interrupted before anything was read or paid.\n"


def test_the_command_is_there_before_anything_heavy_is_loaded(desk: Path):
    code = "import sys, understudy.cli; print(any(m in sys.modules for m in ('numpy', 'typer', 'sqlite3')))"
    assert child(desk, "-c", code).stdout == "False\n"


# --- standard output


@pytest.mark.slow
def test_a_reader_that_leaves_changes_nothing(desk: Path):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        ended = child(desk, "-m", "understudy", *SYNTH, stdout=closed)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert debits(desk) == 1 and (desk / "out").is_dir() and not (desk / "out.journal").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_told_of_when_all_is_done(desk: Path):
    with Path("/dev/full").open("wb") as full:
        ended = child(desk, "-m", "understudy", *SYNTH, stdout=full)
        refused = child(desk, "-m", "understudy", "verify", "nowhere", stdout=full)
    assert ended.returncode == 74 and "standard output can't be written: No space left" in sentence(ended.stderr)
    assert debits(desk) == 1 and (desk / "out").is_dir() and not (desk / "out.journal").exists()
    assert refused.returncode == 2, "a command that failed keeps its own code"


@pytest.mark.slow
def test_closed_streams_get_no_file(desk: Path):
    """Descriptors 1 and 2 would else be those of the ledger and the journal."""
    code = "import os, sys; os.close(1); os.close(2); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    ended = child(desk, "-c", code, "-m", "understudy", *SYNTH)
    assert (ended.returncode, debits(desk)) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding(encoding: str, desk: Path):
    text = (desk / "people.toml").read_text().replace("clerk", "Ångström 数")
    (desk / "people.toml").write_text(text)
    env = os.environ | {"PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    out = {"env": env, "encoding": encoding}
    assert child(desk, "-m", "understudy", "budget", "set", "people.csv", "--epsilon", "3", **out).returncode == 0
    asked = ("query", "people.csv", "SELECT job, count(*) FROM people GROUP BY job", "--epsilon", "1")
    for command in (asked, (*asked, "--json"), ("budget", "show", "people.csv"), ("budget", "history", "people.csv")):
        ended = child(desk, "-m", "understudy", *command, **out)
        assert (ended.returncode, ended.stderr) == (0, ""), command
    assert "Ångström 数" in str(json.loads(child(desk, "-m", "understudy", *asked, "--json", **out).stdout))


def test_arguments_that_are_no_text(refused):
    assert r"argument 5 (caf\udce9) must be UTF-8 text" in refused(
        "synth", "people.csv", "--epsilon=1", "--analyst", "caf\udce9"
    )


# --- memory and rows


def test_more_rows_than_memory_are_refused_before_the_debit(refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(room, "available_memory", lambda: 10_000_000)
    said = refused(*SYNTH, "--rows", 200_000)
    assert said.startswith("rows (200,000) of 4 columns need about 0.0 GB of memory, and must be at most 62,500")


def test_a_paid_release_goes_on_with_other_rows_format_and_place(desk: Path, understudy, monkeypatch):
    def short(*arguments: object, **named: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(synthesis, "draw", short)
        outcome = understudy(*SYNTH)
    assert outcome.code == 2 and sentence(outcome.err) == (
        "there is not enough memory; the release is paid for and can go on: repeat the command with --resume, where "
        "--rows may be fewer."
    )
    changed = (*SYNTH[:-4], "--rows", "7", "--format", "parquet", "--out", "elsewhere", "--journal", "out.journal")
    assert understudy(*changed, "--resume").code == 0
    assert debits(desk) == 1 and not (desk / "out.journal").exists()
    made = Release.load(desk / "elsewhere")
    assert made.table.num_rows == 7 and (desk / "elsewhere" / "synthetic.parquet").exists()
    assert understudy("replay", "elsewhere").code == 0


def test_what_was_asked_of_the_rows_cant_be_changed(desk: Path, understudy, refused, monkeypatch):
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(synthesis, "draw", interrupt)
        understudy(*SYNTH)
    assert "seed (3) must be" in refused(*SYNTH, "--resume", "--seed", 3)
    assert "method (independent) must be mst" in refused(*SYNTH[:4], "--method", "independent", *SYNTH[6:], "--resume")
    assert understudy(*SYNTH[:-2], "--resume").code == 0
    assert Release.load(desk / "out").table.num_rows == 50, "what isn't said again is as it was"


def test_a_release_that_was_written_before_the_stop_is_found(desk: Path, understudy, monkeypatch):
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("understudy.boundary.privacy.journal.Journal.finish", stop)
        outcome = understudy(*SYNTH)
    assert outcome.code == 130 and sentence(outcome.err) == DONE
    before = contents(desk / "out")
    outcome = understudy(*SYNTH, "--resume")
    assert outcome.code == 0 and "was written whole before the interruption" in outcome.out
    assert contents(desk / "out") == before and not (desk / "out.journal").exists() and debits(desk) == 1


def test_another_release_in_the_place_is_not_taken_for_it(desk: Path, understudy, refused, monkeypatch):
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    assert understudy(*SYNTH).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(synthesis, "draw", interrupt)
        understudy(*SYNTH, "--overwrite")
    assert "exists already" in refused(*SYNTH, "--resume")
    assert understudy(*SYNTH, "--resume", "--overwrite").code == 0


# --- terminals


def test_no_name_reaches_the_terminal_raw(desk: Path, understudy):
    hostile = "\x1b]0;pwned\x07"
    (desk / "people.toml").write_text((desk / "people.toml").read_text().replace('"cook"', r'"\u001b]0;pwned\u0007"'))
    assert understudy("budget", "set", "people.csv", "--epsilon", 9).code == 0
    sql = "SELECT job, count(*) FROM people GROUP BY job"
    printed = [
        understudy("query", "people.csv", sql, "--epsilon", 1, "--analyst", hostile),
        understudy("query", "people.csv", sql, "--epsilon", 1, "--json"),
        understudy("budget", "history", "people.csv"),
        understudy("budget", "show", "people.csv"),
        understudy("query", "people.csv", f"SELECT {hostile} FROM people", "--epsilon", 1),
        understudy("synth", "people.csv", "--epsilon", 1, "--given", f"job={hostile}x"),
        understudy("verify", hostile),
        understudy("synth", "people.csv", f"--{hostile}"),
        understudy(hostile),
    ]
    assert [p.code for p in printed] == [0, 0, 0, 0, 2, 2, 2, 2, 2]
    for outcome in printed:
        assert not set(outcome.out + outcome.err) & set("\x1b\x07")
    assert r"\x1b]0;pwned\x07" in printed[0].out


# --- spreadsheets


def test_values_that_a_spreadsheet_would_run_are_told_of_and_kept(desk: Path, understudy):
    (desk / "people.toml").write_text((desk / "people.toml").read_text().replace('"cook"', '"=1+1"'))
    outcome = understudy(*SYNTH)
    assert outcome.code == 0 and "spreadsheets  values of job begin like formulas" in outcome.out
    assert "=1+1" in (desk / "out" / "synthetic.csv").read_text()
    assert understudy("replay", "out").code == 0


def test_negative_numbers_are_no_formulas(desk: Path, understudy):
    (desk / "people.toml").write_text((desk / "people.toml").read_text().replace("min = 18", "min = -18"))
    outcome = understudy(*SYNTH)
    assert outcome.code == 0 and "spreadsheets" not in outcome.out


@pytest.mark.parametrize("data", ["/", ".", ""])
def test_what_is_no_file_has_nothing_beside_it(data: str, refused):
    for command in (("budget", "share", data, "ada", 0.5), ("evaluate", data, "people.csv"), ("plan", data)):
        assert refused(*command, *(("--epsilon", 1) if command[0] == "plan" else ()))
