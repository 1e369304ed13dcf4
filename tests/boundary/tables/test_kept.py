"""Codes that are kept for later come back as they were, from memory or from disk, and leave nothing behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from understudy.boundary.tables import kept
from understudy.boundary.tables.kept import KeptCodes

KINDS = {"a": np.uint8, "b": np.uint32, "c": np.uint16}


def made(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {c: rng.integers(0, np.iinfo(kind).max, rows).astype(kind) for c, kind in KINDS.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept, "spill_directory", lambda: str(tmp_path / "spill"))
    return tmp_path / "spill"


@pytest.mark.parametrize("room", [0, 2_000, 1 << 20])
def test_what_is_kept_comes_back_as_it_was(room: int, folder: Path):
    batches = [made(rows, seed) for seed, rows in enumerate([100, 257, 1, 333])]
    codes = KeptCodes(tuple(KINDS), room=room)
    for batch in batches:
        codes.add(batch)
    for columns in (("a",), ("c", "a", "b")):
        for _ in range(2):
            for batch, found in zip(batches, codes.batches(columns), strict=True):
                assert list(found) == list(columns)
                assert all(np.array_equal(found[c], batch[c]) and found[c].dtype == batch[c].dtype for c in columns)
                assert all(found[c].flags.aligned for c in columns)
    assert folder.exists() == (room < 1 << 20)


def test_the_file_has_no_name_and_its_folder_is_for_its_user_alone(folder: Path):
    codes = KeptCodes(tuple(KINDS), room=0)
    codes.add(made(1_000, 0))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.iterdir()) == []
    assert codes._file is not None
    found = os.fstat(codes._file._file.fileno())
    assert found.st_nlink == 0 and stat.S_IMODE(found.st_mode) == 0o600


KILLED = """
    import os, signal
    import numpy as np
    from understudy.boundary.tables.kept import KeptCodes
    codes = KeptCodes(("a",), room=0)
    for _ in range(20):
        codes.add({"a": np.frombuffer(b"canary" * 20_000, dtype=np.uint8)})
    held = list(codes.batches(("a",)))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_no_code_behind(tmp_path: Path):
    """Its folder is empty, and swept away by the next process that needs one."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED)], env=environment, check=False)
    assert done.returncode < 0
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    sweeping = "from understudy.boundary.tables.connection import spill_directory; spill_directory()"
    subprocess.run([sys.executable, "-c", sweeping], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
