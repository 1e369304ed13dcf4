"""Rows that outgrow memory go to a private folder, and nothing of them stays: not after a kill either."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from understudy.boundary.tables import connection as spill
from understudy.boundary.tables.connection import PREFIX, spill_directory, sweep

CANARY = "canary-of-a-person"
ROWS = 600_000

# Numbers each person's rows, as a cap does, in too little memory; tells of the first batch, and waits.
SPILLING = """
    import pathlib, sys
    from understudy.boundary.tables import connection as engine, sources
    engine._SETTINGS |= {"memory_limit": "100MB", "threads": "2"}
    path = pathlib.Path(sys.argv[1])
    connection = engine.connect(path)
    numbered = "SELECT *, row_number() OVER (PARTITION BY who ORDER BY x) AS turn FROM "
    batches = iter(connection.sql(numbered + sources.csv_relation(path).sql(dialect="duckdb")).to_arrow_reader(2048))
    rows = len(next(batches))
    print("spilled", flush=True)
    sys.stdin.readline()
    print(rows + sum(map(len, batches)))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder of temporary files, for this test and its processes alone."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(spill, "_current", None)
    return place


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.csv"
    lines = (f"{CANARY}-{i:08d}-{'x' * 60},{i % 10}" for i in range(ROWS))
    path.write_text("who,x\n" + "\n".join(lines) + "\n")
    return path


def spilling(people: Path, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(SPILLING), str(people)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd)
    assert process.stdout is not None and process.stdout.readline() == "spilled\n"
    return process


def folders(place: Path) -> list[Path]:
    return sorted(place.glob(f"{PREFIX}*"))


def holds_rows(folder: Path) -> bool:
    return any(CANARY.encode() in f.read_bytes() for f in folder.rglob("*") if f.is_file())


def test_spilled_rows_are_private_and_gone_at_the_end(people: Path, place: Path, tmp_path: Path):
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    process = spilling(people, cwd)
    (folder,) = folders(place)
    assert holds_rows(folder), "nothing was spilled, so this test shows nothing"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    told, _ = process.communicate("go on\n", timeout=600)
    assert (process.returncode, told) == (0, f"{ROWS}\n")
    assert folders(place) == [] and list(cwd.iterdir()) == []


def test_what_a_killed_process_left_is_swept_by_the_next(people: Path, place: Path, tmp_path: Path):
    alive, killed = spilling(people, tmp_path), spilling(people, tmp_path)
    assert len(folders(place)) == 2
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert sum(map(holds_rows, folders(place))) == 2
    spill_directory()  # the next start: this process
    left = folders(place)
    assert len(left) == 2 and sum(map(holds_rows, left)) == 1
    told, _ = alive.communicate("go on\n", timeout=600)
    assert (alive.returncode, told) == (0, f"{ROWS}\n")
    spill._current.remove()
    assert folders(place) == []


def test_importing_and_counting_plain_frames_make_no_folder(place: Path):
    code = """
        import os, pyarrow as pa, understudy as us
        schema = us.Schema.loads('[columns.x]\\ntype = "integer"\\nmin = 0\\nmax = 9')
        us.synthesize(us.open(pa.table({"x": [1, 2, 3]}), schema), epsilon=1.0, method="independent")
        print(os.listdir(os.environ["TMPDIR"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_one_folder_of_a_process_and_a_directory_per_connection(place: Path):
    first, second = spill_directory(), spill_directory()
    assert first != second and Path(first).parent == Path(second).parent == folders(place)[0]
    assert not Path(first).exists()  # the engine makes it when it needs it


FORKING = """
    import os, pathlib
    from understudy.boundary.tables import connection as spill
    ours = pathlib.Path(spill.spill_directory()).parent
    child = os.fork()
    if not child:
        theirs = pathlib.Path(spill.spill_directory()).parent
        spill._current.remove()
        os._exit(0 if theirs != ours and not theirs.exists() and ours.exists() else 1)
    assert os.waitpid(child, 0)[1] == 0 and ours.exists()
"""


def test_a_forked_child_has_its_own_and_leaves_the_parents(place: Path):
    subprocess.run([sys.executable, "-c", textwrap.dedent(FORKING)], check=True)
    assert folders(place) == []


def test_what_may_be_somebody_elses_is_not_swept(place: Path, tmp_path: Path):
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (precious / "file").write_text("keep")
    (place / f"{PREFIX}link").symlink_to(precious)
    (place / f"{PREFIX}file").write_text("keep")
    (place / f"{PREFIX}open").mkdir(mode=0o755)
    (place / f"{PREFIX}open").chmod(0o755)
    (place / f"{PREFIX}dead").mkdir(mode=0o700)
    sweep(place)
    assert {p.name for p in folders(place)} == {f"{PREFIX}link", f"{PREFIX}file", f"{PREFIX}open"}
    assert (precious / "file").read_text() == "keep"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of somebody else's")
def test_the_folder_of_another_user_is_not_swept(place: Path):
    theirs = place / f"{PREFIX}theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 12345, 12345)
    sweep(place)
    assert theirs.exists()


def test_without_room_for_a_folder_nothing_is_spilled(place: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> str:
        raise OSError("no room")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert spill_directory() == ""
