"""The tests' own randomness: the same in every run, unless a test is marked, and says how often it may fail."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest

import draws
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness

SEEN = """
import os, secrets
print(os.urandom(4).hex(), secrets.token_hex(4))
"""
SUITE = """
import os, pytest

@pytest.fixture(scope="module")
def shared():
    return os.urandom(4).hex()

def test_first(shared):
    print("drawn", "first", shared, os.urandom(4).hex())

def test_second(shared):
    print("drawn", "second", shared, os.urandom(4).hex())

@pytest.mark.noise(false_alarm=0, why="it asserts nothing")
def test_marked(shared):
    print("drawn", "marked", shared, os.urandom(8).hex())
"""


def seen() -> list[object]:
    """Every way to the system's randomness that Python has."""
    noise = ExactRandomness.system().noise("discrete-laplace", 1e6, 5).tolist()
    numbers = np.random.default_rng().integers(10**9, size=3).tolist()
    return [os.urandom(8), secrets.randbelow(10**9), secrets.token_hex(4), uuid.uuid4(), noise, numbers]


def child() -> str:
    return subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=True).stdout


def test_a_stream_is_the_same_every_time_and_goes_on() -> None:
    with draws.stream("one"):
        first, more = seen(), seen()
    with draws.stream("two"):
        other = seen()
    with draws.stream("one"):
        assert seen() == first
        with draws.stream("two"):
            assert seen() == other
        assert seen() == more
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_processes_have_streams_of_their_own() -> None:
    with draws.stream("one"):
        first, second = child(), child()
    with draws.stream("one"):
        assert (child(), child()) == (first, second)
    assert first != second


def test_processes_keep_a_sitecustomize_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with draws.stream("one"):
        first = child()
    with draws.stream("one"):
        assert child() == first
    assert first.startswith("mine\n")


@pytest.mark.noise(false_alarm=2**-63, why="two draws of 64 bits are equal, in this process or in two that it starts")
def test_a_marked_test_reads_the_system() -> None:
    assert os.urandom(8) != os.urandom(8) and draws._name is None
    assert child() != child()


def run(folder: Path, *words: str) -> tuple[int, str, dict[str, list[str]]]:
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *words, "test_suite.py"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line.partition("drawn ")[2].split() for line in ended.stdout.splitlines() if "drawn " in line]
    return ended.returncode, ended.stdout + ended.stderr, {name: found for name, *found in lines}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of its own under the real conftest."""
    here = Path(draws.__file__).parent
    (tmp_path / "conftest.py").symlink_to(here / "conftest.py")
    (tmp_path / "draws.py").symlink_to(here / "draws.py")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  noise: as in pyproject.toml\n  slow: too\n  slow_after: too\n"
    )
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


@pytest.mark.slow
def test_draws_are_those_of_the_test_whichever_comes_first(suite: Path) -> None:
    code, said, together = run(suite)
    assert code == 0, said
    alone, other = run(suite, "-k", "second or marked")[2], run(suite, "--draws", "1")[2]
    assert alone["second"] == together["second"] and together["second"][1] != together["first"][1]
    assert together["first"][0] == together["second"][0] == alone["marked"][0]
    assert alone["marked"][1] != together["marked"][1]
    assert all(mine != theirs for name in together for mine, theirs in zip(together[name], other[name], strict=True))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        ("false_alarm=1e-8, why='a guess'", "false_alarm is 1e-08 but must be in 0..1e-09"),
        ("false_alarm=0, why=''", "why is empty"),
        ("false_alarm=0", "missing 1 required positional argument: 'why'"),
    ],
)
def test_a_mark_must_promise_enough(mark: str, sentence: str, suite: Path) -> None:
    (suite / "test_suite.py").write_text(f"import pytest\n@pytest.mark.noise({mark})\ndef test_it(): pass\n")
    code, said, _ = run(suite)
    assert code != 0 and sentence in said


def test_the_list_names_what_is_marked(suite: Path) -> None:
    _, said, drawn = run(suite, "--noise-list")
    assert "1 x  test_suite.py::test_marked: it asserts nothing" in said and not drawn


def test_some_cases_of_what_is_slow_stay_quick(suite: Path) -> None:
    cases = '@pytest.mark.slow_after(2)\n@pytest.mark.parametrize("i", range(5))\ndef test_it(i): print("drawn", i)\n'
    (suite / "test_suite.py").write_text("import pytest\n" + cases)
    assert set(run(suite, "-m", "not slow")[2]) == {"0", "1"}
