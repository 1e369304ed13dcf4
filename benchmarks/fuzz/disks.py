"""`synth` on disks that are nearly full: whatever it says is true, and with room again it comes to its end.

Each disk is a small file system in memory, which only root can mount.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fuzz.case import Case, Target
from fuzz.children import in_child
from fuzz.kills import check_material, debits, finish, said_in
from fuzz.material import JOURNAL, SYNTH, desk_in
from understudy.cli import run

SIZE = 700
"""Kilobytes: a release takes some 200, the ledger 50."""
FILLER = "filler"
ROOM = (0, 4, 8, 12, 20, 28, 36, 44, 52, 60, 68, 76, 84, 92, 100, 110, 120, 130, 140, 150, 170, 190, 210, 240)
"""Kilobytes that are left, in steps of the files that are written."""


def filled(case: Case) -> None:
    """The number of the case says how much room there is."""
    with _disk(case.folder):
        desk = desk_in(case.folder, case.base)
        _fill(desk / FILLER, ROOM[case.index % len(ROOM)] << 10)
        code = in_child(functools.partial(run, SYNTH), said_in(case))
        said = said_in(case).read_text(errors="replace")
        (desk / FILLER).unlink()
        case.outcomes.append(f"exit {code}")
        _demand_true(case, desk, code, said)
        finish(case, desk)


def _demand_true(case: Case, desk: Path, code: int, said: str) -> None:
    """What was said of budget, release and journal."""
    paid, journal, release = debits(desk), (desk / JOURNAL).exists(), (desk / "out").exists()
    if (code == 0) != (release and "but " not in said):
        case.fail(f"exit {code}, and the release is {'there' if release else 'not there'}", said)
    if "nothing was debited" in said and paid:
        case.fail("nothing was debited, it says, though it was", said)
    if code and paid and not release and not (journal and "--resume" in said):
        case.fail("a release that was paid for is lost, or nobody is told how to go on", said)
    if code and "--resume" in said and not journal:
        case.fail("it can't go on, though it says so", said)
    if code not in (0, 2):
        case.fail(f"exit {code}", said)


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}k", "tmpfs", folder], check=True, capture_output=True)
    try:
        yield
    finally:
        os.chdir("/")
        subprocess.run(["umount", folder], check=True, capture_output=True)


def _fill(path: Path, room: int) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    os.truncate(path, path.stat().st_size - room)


def prepare(base: Path) -> None:
    probe = base / "disk"
    probe.mkdir(exist_ok=True)
    with _disk(probe):
        pass
    check_material(base)


TARGETS = (
    Target("disks", "synth on full disks, then resumed", len(ROOM), filled, 60.0, 4, whole=True, prepare=prepare),
)
