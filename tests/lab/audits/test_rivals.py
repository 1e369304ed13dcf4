"""The benchmark that audits other tools: its adapters and its page, without any of the tools."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
FRUIT = pd.DataFrame({"colour": ["red"], "weight": [12.5], "size": [1], "ripe": [True]})
SWITCHES = pd.DataFrame({"s0": [0], "s1": [1]})


@pytest.fixture(scope="module")
def rivals() -> Any:
    """Imported from the folder that `scripts/bench` puts on the path, and forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("audits.rivals")
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("audits", "marginals"):
                del sys.modules[name]


def function_of(case: Any) -> Any:
    module, _, name = case.function.partition(":")
    return getattr(importlib.import_module(f"audits.{module}"), name)


def test_every_case_has_a_function_an_environment_and_a_name_of_its_own(rivals: ModuleType) -> None:
    names = [case.name for case in rivals.CASES]
    assert len(set(names)) == len(names)
    for case in rivals.CASES:
        assert callable(function_of(case)), case.name
        assert case.tool == rivals.OURS or case.tool in rivals.PINS, case.name


def test_commands_name_the_function_the_environment_and_the_claim(rivals: ModuleType) -> None:
    case = rivals.Case("name", "dpmm", "theirs_dpmm:privbayes", "", "", delta=1e-6, seconds=600)
    python = "--python ../.bench/dpmm/bin/python"
    assert case.command == (
        f"understudy audit --callable audits.theirs_dpmm:privbayes {python} --epsilon 1 --delta 1e-06"
        " --setting full --time-limit 600 --jobs 1"
    )
    assert "--python" not in rivals.Case("name", rivals.OURS, "ours:mst", "", "").command


def test_adapters_release_nothing_of_tables_that_they_are_not_about(rivals: ModuleType) -> None:
    coded = importlib.import_module("audits.coded")
    asked: list[Any] = []
    release = coded.of_fruit(lambda frame, epsilon, delta, seed: asked.append((epsilon, delta, seed)) or frame)
    assert release(SWITCHES, epsilon=1.0, delta=0.0, seed=7).empty and not asked
    assert len(release(FRUIT, epsilon=1.0, delta=0.0, seed=7)) == 1 and asked == [(1.0, 0.0, 7)]


def test_no_tool_is_needed_for_a_table_that_an_adapter_is_not_about(rivals: ModuleType) -> None:
    about_fruit = [case for case in rivals.CASES if case.name not in ("dpmm-privbayes", "smartnoise-mwem")]
    for case in about_fruit:
        if case.tool != rivals.OURS:
            assert function_of(case)(SWITCHES, epsilon=1.0, delta=0.0, seed=0).empty, case.name


def test_empty_modules_stand_in_for_absent_packages_alone(rivals: ModuleType) -> None:
    absent = importlib.import_module("audits.theirs_synthcity").Absent()
    assert absent.find_spec("json", None) is None
    module = absent.create_module(absent.find_spec("torchvision.transforms", None))
    assert isinstance(module.Compose, type) and not hasattr(module, "__file__")


def found(epsilon: float, violated: bool) -> dict[str, Any]:
    bound = {"epsilon": epsilon, "runs": 160, "accuracy": 1.0, "statistic": "number of rows at least 21", "pair": "p"}
    told = {"violated": violated, "seconds": 61.2, "created": "2026-01-02T03:04:05+00:00", "verdict": ""}
    return told | {"bounds": [bound, bound | {"epsilon": 0.0, "pair": "other"}]}


def test_the_facts_are_those_of_the_pair_that_shows_the_leak(rivals: ModuleType) -> None:
    audit = found(2.8799, violated=True)
    assert (rivals.facts(audit)["pair"], rivals.facts(audit, "other")["pair"]) == ("p", "other")
    assert rivals.facts(audit, "not played")["pair"] == "p"


def test_a_page_is_sorted_by_what_was_found(rivals: ModuleType) -> None:
    broken, leaking, honest = rivals.CASES[:3]
    kept = {
        broken.name: {"failed": "can't be installed: no wheel"},
        leaking.name: rivals.facts(found(2.8799, violated=True)),
        honest.name: rivals.facts(found(0.0, violated=False)),
    }
    page = rivals.written(json.loads(json.dumps(kept)))
    first, second = page.split("## Nothing found (1)")
    assert "## Violations found (1)" in first and f"- **{leaking.name}**: {leaking.known}" in first
    assert "| 1, 0 | 2.87 | 160 | 100 % | number of rows at least 21 (p) | 61 |" in first  # rounded down
    assert f"| {honest.name} |" in second and "failed: can't be installed: no wheel" in second
    assert all(case.command in second for case in (broken, leaking, honest))


@pytest.mark.slow
def test_a_command_that_breaks_off_is_a_fact(rivals: ModuleType) -> None:
    case = rivals.Case("name", rivals.OURS, "no_module:nothing", "", "", seconds=1)
    assert "failed" in rivals.audited(case)
