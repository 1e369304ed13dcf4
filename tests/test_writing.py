"""Files that are written whole: who may read them, and what killed processes leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from understudy.errors import ReleaseError
from understudy.files import KEPT, make_private, staged_folder, sweep, write_atomically

UMASKS = (0o022, 0o077, 0o000)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("mask", UMASKS)
def test_private_files_are_for_their_owner_and_public_ones_follow_the_umask(tmp_path: Path, mask: int):
    with umask(mask):
        for _ in range(2):  # also where there is a file already
            write_atomically(tmp_path / "private", b"x", private=True)
            write_atomically(tmp_path / "public", b"x", private=False)
        make_private(tmp_path / "a" / "b")
    assert mode(tmp_path / "private") == 0o600 and mode(tmp_path / "public") == 0o666 & ~mask
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700
    assert {p.name for p in tmp_path.iterdir()} == {"private", "public", "a"}


def test_a_private_file_that_replaces_an_open_one_is_private(tmp_path: Path):
    (tmp_path / "report.html").touch(mode=0o644)
    write_atomically(tmp_path / "report.html", b"x", private=True)
    assert mode(tmp_path / "report.html") == 0o600


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path):
    (tmp_path / "a").mkdir(mode=0o755)
    make_private(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o755


KILLED = """
import os, pathlib, signal, sys
from understudy import files
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
os.fsync = die
target = pathlib.Path(sys.argv[1])
if sys.argv[2] == "file":
    files.write_atomically(target, b"secret", private=True)
with files.staged_folder(target) as folder:
    (folder / sys.argv[2]).mkdir()
    die()
"""


def killed(target: Path, what: str) -> Path:
    """What a process that was killed left beside the target."""
    before = set(target.parent.iterdir())
    subprocess.run([sys.executable, "-c", KILLED, str(target), what], check=False)
    (left,) = set(target.parent.iterdir()) - before
    return left


def test_what_a_killed_process_left_is_swept_by_the_next_writing(tmp_path: Path):
    left = killed(tmp_path / "out", "file")
    assert mode(left) == 0o600
    other = killed(tmp_path / "other", "folder")
    write_atomically(tmp_path / "out", b"x", private=True)
    assert set(tmp_path.iterdir()) == {tmp_path / "out", other}


def test_what_is_in_use_is_not_swept(tmp_path: Path):
    with staged_folder(tmp_path / "out") as ours:
        write_atomically(tmp_path / "out", b"x", private=True)
        sweep(tmp_path / "out", everything=True)
        assert ours.exists()
    assert not ours.exists()


def test_a_target_that_was_moved_aside_stays_until_there_is_a_new_one(tmp_path: Path):
    left = killed(tmp_path / "out", KEPT)
    sweep(tmp_path / "out")
    assert (left / KEPT).exists()
    sweep(tmp_path / "out", everything=True)
    assert not left.exists()


def test_links_and_files_of_others_names_are_not_swept(tmp_path: Path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / ".out.tmp-link").symlink_to(precious)
    (tmp_path / ".outer.tmp-x").touch()
    sweep(tmp_path / "out", everything=True)
    assert precious.exists() and (tmp_path / ".out.tmp-link").is_symlink() and (tmp_path / ".outer.tmp-x").exists()


def test_a_name_that_is_too_long_is_refused_in_a_sentence(tmp_path: Path):
    with pytest.raises(ReleaseError, match="can't be written: File name too long"):
        write_atomically(tmp_path / ("x" * 250), b"x", private=True)
