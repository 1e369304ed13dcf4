"""docs/architecture.md cannot go stale: its rooms and words exist, and a release takes the walk that it describes."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import understudy
from understudy.cli import run

SOURCE = Path(understudy.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
SCHEMA = """
[columns.job]
type = "categorical"
values = ["clerk", "cook"]
[columns.age]
type = "integer"
min = 18
max = 25
[columns.smoker]
type = "boolean"
"""
ROWS = "job,age,smoker\n" + "".join(f"{('clerk', 'cook')[i % 2]},{18 + i % 8},{i % 3 == 0}\n" for i in range(60))


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def hops() -> list[str]:
    return re.findall(r"^\| \d+ \| `([\w/]+\.py:[\w.]+)` \|", section("The walk of a release"), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The functions of the package that the command of the page calls, in the order of their first call."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "people.csv").write_text(ROWS)
    (folder / "people.toml").write_text(SCHEMA)
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            called.setdefault(f"{Path(code.co_filename).relative_to(SOURCE).as_posix()}:{code.co_qualname}")

    words = re.search(r"`understudy (synth people\.csv [^`]+)`", PAGE)
    assert words is not None
    before = sys.getprofile()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        sys.setprofile(note)
        try:
            assert run(words[1].split()) == 0
        finally:
            sys.setprofile(before)
    return list(called)


def test_every_hop_is_called_and_in_the_order_of_the_page(walked: list[str]):
    assert len(hops()) > 20
    absent = [hop for hop in hops() if hop not in walked]
    assert not absent, f"docs/architecture.md names hops that a release does not take: {absent}"
    assert hops() == sorted(hops(), key=walked.index), "docs/architecture.md: the hops are in another order"


def test_every_room_has_its_line():
    rooms = re.findall(r"`([a-z_/]+)`", "".join(re.findall(r"(?m)^\| (.*?) \|", section("The rooms"))))
    assert all((SOURCE / room).is_dir() or (SOURCE / f"{room}.py").is_file() for room in rooms), rooms
    there = {p.parent.relative_to(SOURCE).as_posix() for p in SOURCE.glob("*/__init__.py")}
    there |= {
        p.parent.relative_to(SOURCE).as_posix() for s in ("boundary", "lab") for p in SOURCE.glob(f"{s}/*/__init__.py")
    }
    assert there - {"."} <= set(rooms), there - set(rooms)


def test_every_word_in_code_font_is_defined_in_the_package():
    defined = set()
    for path in SOURCE.rglob("*.py"):
        defined |= {path.stem, *re.findall(r"(?m)^class (\w+)", path.read_text())}
    words = re.findall(r"`([A-Za-z_]+)`", section("Glossary"))
    assert len(words) > 40
    assert [w for w in words if w not in defined] == []


def test_words_are_in_alphabetical_order_and_stand_once():
    words = re.findall(r"(?m)^\| (\w[\w ]*) \|", section("Glossary"))[1:]
    assert words == sorted(set(words))


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|scripts|docs)/[\w/.-]+)", PAGE))))
def test_every_path_of_the_page_is_there(path: str):
    assert (SOURCE.parents[1] / path.rstrip("/")).exists()


def test_every_module_of_the_walk_can_be_imported():
    for hop in hops():
        importlib.import_module("understudy." + hop.partition(".py")[0].removesuffix("/__init__").replace("/", "."))
