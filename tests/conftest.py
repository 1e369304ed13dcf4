"""What all test folders share: tables, and randomness that is the same in every run."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import draws

SHARED_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
LARGEST_FALSE_ALARM = 1e-9
"""Of one test with real noise: a hundred of them, run ten times a day, fail once in three thousand years."""
SEED = pytest.StashKey[int]()
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
"""Before gRPC is loaded: what it does in a forked child, between fork and exec, now and then ends a process that a test
starts after Spark or sites were used in this one."""

draws.install()
draws.use("before the tests")
UNTIMED: dict[str, Any] = {
    "database": None,
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
"""No example is remembered from an earlier run, and none is judged by the time it takes on a busy machine."""
hypothesis.settings.register_profile("same", derandomize=True, **UNTIMED)
hypothesis.settings.register_profile("other", **UNTIMED)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public tables beside the repository, which does not carry them."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the public tables are not in ../shared/data beside the repository")
    return SHARED_DATA


# --- The state folder -------------------------------------------------------------------------------------------------

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="understudy-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
"""For what is made for several tests; the user's own is never touched, by the processes that tests start neither."""


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty state folder for each test: what it makes of ledgers is forgotten with it."""
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home


# --- Randomness -------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("randomness")
    group.addoption("--draws", type=int, default=0, metavar="N", help="other draws than those of every run (0)")
    group.addoption("--noise-list", action="store_true", help="print the tests that draw real noise, and run nothing")


def pytest_configure(config: pytest.Config) -> None:
    """Without `--draws` every run makes the same draws; with it, a test shows that it does not hang on them."""
    config.stash[SEED] = config.getoption("--draws")
    hypothesis.settings.load_profile("other" if config.stash[SEED] else "same")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _mark_slow(items)
    for item in items:
        mark = item.get_closest_marker("noise")
        if mark is not None:
            _check(item, **mark.kwargs)
    if config.getoption("--noise-list"):
        _list(items)
        items.clear()


def _mark_slow(items: list[pytest.Item]) -> None:
    """Of a function marked `slow_after(n)` the first n cases stay with the quick tests, so that each kind has some."""
    seen: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("slow_after")
        if mark is None:
            continue
        name = item.nodeid.partition("[")[0]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > mark.args[0]:
            item.add_marker("slow")


def _check(item: pytest.Item, false_alarm: float, why: str) -> None:
    """A mark without both arguments is an error of Python's; one that promises too little is one of ours."""
    if not 0 <= false_alarm <= LARGEST_FALSE_ALARM:
        limit = f"must be in 0..{LARGEST_FALSE_ALARM:g}: draw more, or leave real noise"
        raise pytest.UsageError(f"{item.nodeid}: false_alarm is {false_alarm:g} but {limit}")
    if not why:
        raise pytest.UsageError(f"{item.nodeid}: why is empty but must say where false_alarm is computed")


def _list(items: list[pytest.Item]) -> None:
    """One line for each function: its largest rate, how many cases it has, and where the rate comes from."""
    rates: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for item in items:
        mark = item.get_closest_marker("noise")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            rates.setdefault(name, []).append(mark.kwargs["false_alarm"])
            reasons[name] = mark.kwargs["why"]
    for name, found in rates.items():
        print(f"{max(found):8.1g}  {len(found):3d} x  {name}: {reasons[name]}")
    print(f"{sum(map(len, rates.values()))} tests draw real noise; together {sum(map(sum, rates.values())):.2g}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """From setup to teardown draws come from the test's own stream, whatever ran before it in this process."""
    real = item.get_closest_marker("noise") is not None
    with draws.stream(None if real else f"{item.config.stash[SEED]} {item.nodeid}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> Iterator[Any]:
    """What several tests share must not depend on which of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"{request.config.stash[SEED]} {fixturedef.baseid} {fixturedef.argname} {request.param_index}"
    with draws.stream(name):
        return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which engine passed how many tests of the suite that all tables share, wherever that suite was run."""
    found: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            engine = _ENGINE.search(report.nodeid)
            if engine and "test_conformance.py::" in report.nodeid:
                found.setdefault(engine[1], Counter())[outcome] += 1
    if found:
        terminalreporter.section("tables that conform (tests/boundary/tables/test_conformance.py)")
    for engine, outcomes in sorted(found.items()):
        terminalreporter.line(f"{engine:12} " + ", ".join(f"{count} {said}" for said, count in outcomes.items()))


_ENGINE = re.compile(
    r"\[(pandas|polars|polars-lazy|pyarrow|csv|csv-gz|parquet|duckdb|sqlite|postgresql\S*?|sail|spark)(?:-\d+)?\]$"
)
