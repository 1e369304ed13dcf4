"""A few cases of every fuzzer, the same in every run; and the oracle, which must see what it is there for."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from understudy.errors import InputError, InternalError

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SEED = 1
CASES = {
    "schemas": 1_000, "plans": 40, "expressions": 1_000, "questions": 1_000, "values": 40, "csv": 40, "parquet": 40,
    "duckdb": 20, "releases": 60, "bombs": 76, "ledgers": 200, "arguments": 60, "predictors": 70, "journals": 12,
    "extremes": 20, "spenders": 2, "calls": 8, "moments": 3, "notations": 12, "drafts": 20, "cells": 30,
    "workbooks": 12, "disks": 24,
}  # fmt: skip
"""Enough of each for some ten seconds; `scripts/bench fuzz` runs all."""


@pytest.fixture(scope="module")
def fuzz() -> Iterator[ModuleType]:
    """The package of fuzzers, which is no part of ours, and what its cases are made of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import fuzz.targets
        import fuzz.worker

        yield fuzz
    for name in [n for n in sys.modules if n.partition(".")[0] == "fuzz"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def base(fuzz: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fuzz import material

    return material.make(tmp_path_factory.mktemp("fuzz") / "base")


def test_every_fuzzer_has_a_part_here(fuzz: ModuleType) -> None:
    assert set(fuzz.targets.TARGETS) == set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nothing_fails(name: str, fuzz: ModuleType, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "disks" and os.geteuid():
        pytest.skip("only root may mount a file system")
    monkeypatch.setenv("UNDERSTUDY_FUZZ_SECONDS", "4")
    # Limits of time only end what hangs: a busy machine may need minutes for what else takes a second.
    monkeypatch.setenv("UNDERSTUDY_FUZZ_PATIENCE", "10")
    *_, tally = fuzz.worker.run_all(fuzz.targets.TARGETS[name], SEED, CASES[name], base, jobs=1)
    assert tally.cases == CASES[name] and tally.outcomes
    assert {kind: f"{name}:{SEED}:{index}: {note}" for kind, (index, note) in tally.examples.items()} == {}


class TwoLinesError(InputError):
    """Ours escape what ends a line; this one does not."""

    def __str__(self) -> str:
        return "one line\nand another"


def two_lines() -> None:
    raise TwoLinesError("")


def bug() -> None:
    raise InternalError("this can't be")


def crash() -> None:
    raise ZeroDivisionError("oh")


def too_long() -> None:
    with contextlib.suppress(Exception):
        time.sleep(60)


def fine() -> None:
    raise InputError("age (300) must be at most 99.")


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (two_lines, "it: a message of several lines"),
        (bug, "it: calls itself a bug"),
        (crash, "it: ZeroDivisionError"),
        (too_long, "more than 0.1 s"),
        (fine, None),
    ],
)
def test_the_oracle_sees_what_is_wrong(wrong, kind: str | None, fuzz: ModuleType, tmp_path: Path) -> None:
    from fuzz.case import Target

    target = Target("made", "a mutant", 1, lambda case: case.call("it", wrong), seconds=0.1)
    case = fuzz.worker.run_case(target, SEED, 0, tmp_path)
    if kind is None:
        assert case.failures == [] and case.outcomes == ["it refused"]
    else:
        assert case.failures[0].kind.startswith(kind)


def test_the_oracle_sees_characters_that_a_terminal_obeys(fuzz: ModuleType) -> None:
    from fuzz.case import control_characters

    assert control_characters("red \x1b[31m and \x9b2J") == "\\x1b\\x9b" and control_characters("é «x» 😀") == ""


def test_a_case_is_the_same_again(fuzz: ModuleType, tmp_path: Path) -> None:
    target = fuzz.targets.TARGETS["expressions"]
    one, again, other = (target.case(SEED, i, tmp_path, tmp_path).draw.random() for i in (3, 3, 4))
    assert one == again != other
