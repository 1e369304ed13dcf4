"""Taint (PRIVACY.md §4.3): with the noise silent and selections pinned, a neighbour changes the measurements alone.

A whole release is made from a table and from the same table with one hostile row more. Whatever is outside the
declared measurements must be the same byte for byte; were it not, something about a row would be told unpaid.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.randomness import SilentRandomness
from helpers.tables import SpyTable, opened
from helpers.taint import (
    FIRST,
    HONEST,
    HOSTILE,
    PRIVATE,
    PUBLIC,
    ROWS,
    Columns,
    as_csv,
    differences,
    neighbour,
    replaced,
)
from helpers.tuning import tune
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.column import Categorical, Number
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table
from understudy.cli import run as run_command
from understudy.inference.noisy_table import estimate_total
from understudy.lab.audits.checks.taint import PinnedGate
from understudy.methods.method import Options
from understudy.methods.rake import rake
from understudy.releases.release import Release
from understudy.releases.synthesis import Plan, synthesize_with

FIXED = {"independent": Options(), "marginals": Options(targets=("city",), marginals=(("age", "pay"),))}
OPTIONS = FIXED | {"mst": Options(), "aim": Options(targets=("city",)), "mwem": Options(), "privbayes": Options()}
OPTIONS |= {"rake": Options(targets=("city",))}

Open = Callable[[Columns, Schema, Path], Table]


def as_pandas(columns: Columns, schema: Schema, folder: Path) -> Table:
    """As pandas itself would hold the rows: one missing value turns a column of whole numbers into one of floats."""
    import pandas as pd

    from understudy.boundary.tables.sources import open as open_table

    return open_table(pd.DataFrame(columns), schema, name="people")


def as_parquet(columns: Columns, schema: Schema, folder: Path) -> Table:
    floats = columns | {"age": [None if a is None else float(a) for a in columns["age"]]}
    return opened("parquet", floats, schema, folder)


BACK_ENDS: dict[str, Open] = {"pandas": as_pandas, "csv": as_csv, "parquet": as_parquet}


def release_of(table: Table, method: str, budget: Budget, rows: int | None = 50) -> Release:
    plan = Plan.of(table.schema, budget, method, OPTIONS[method], rows, seed=11)
    return synthesize_with(table, plan, randomness=SilentRandomness())


def changes(first: Release, second: Release) -> list[float]:
    """By how much each measured histogram changed, in L1; one row more may change it by one."""
    pairs = zip(first.record, second.record, strict=True)
    return [float(np.abs(a.value - b.value).sum()) for a, b in pairs if a.question["ask"] in ("marginal", "partition")]


BUDGETS = {"public": (PUBLIC, Budget(1.0, 0.0)), "private": (PRIVATE, Budget(20.0, 1e-6))}
_KEPT: dict[tuple[str, str, str], Release] = {}
"""The release of the honest table does not depend on the hostile row, so each is made once."""


def base_release(back_end: str, method: str, knowledge: str, folder: Path) -> Release:
    key = (back_end, method, knowledge)
    if key not in _KEPT:
        text, budget = BUDGETS[knowledge]
        (folder / "base").mkdir()
        _KEPT[key] = release_of(BACK_ENDS[back_end](HONEST, Schema.loads(text), folder / "base"), method, budget)
    return _KEPT[key]


# Every hostile row on a CSV file; those that change the types of a frame on frames; a few of them for the rest.
CASES = [("csv", "independent", "public", h) for h in FIRST]
CASES += [("csv", "marginals", "public", h) for h in FIRST[:4]]
CASES += [("pandas", "independent", "public", h) for h in (*FIRST[:5], "a bad date", "everything missing")]
CASES += [("parquet", "marginals", "public", h) for h in FIRST[:3]]
CASES += [("csv", "marginals", "private", h) for h in FIRST[:3]]
CASES += [(kind, "independent", "private", FIRST[0]) for kind in ("pandas", "parquet")]
CASES += [("csv", "mst", "public", h) for h in FIRST[:5]]
CASES += [(kind, "mst", "private", FIRST[0]) for kind in ("csv", "pandas")]


@pytest.mark.slow_after(8)
@pytest.mark.parametrize(("back_end", "method", "knowledge", "hostile"), CASES)
def test_a_hostile_row_changes_the_measurements_alone(
    back_end: str, method: str, knowledge: str, hostile: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    first = base_release(back_end, method, knowledge, tmp_path)
    text, budget = BUDGETS[knowledge]
    second = release_of(BACK_ENDS[back_end](neighbour(HOSTILE[hostile]), Schema.loads(text), tmp_path), method, budget)
    assert differences(first, second) == []
    assert max(changes(first, second)) == 1.0
    assert caplog.records == []


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("knowledge", BUDGETS)
@pytest.mark.parametrize(
    ("method", "hostile"),
    [("aim", h) for h in FIRST[:5]] + [(m, h) for m in ("mwem", "privbayes", "rake") for h in FIRST[:2]],
)
def test_a_hostile_row_changes_nothing_where_the_answers_are_the_same(
    method: str, knowledge: str, hostile: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For a method whose questions follow from earlier answers: with those pinned, all that is shown is the same."""
    caplog.set_level(logging.DEBUG)
    first = base_release("csv", method, knowledge, tmp_path)
    text, budget = BUDGETS[knowledge]
    table = as_csv(neighbour(HOSTILE[hostile]), Schema.loads(text), tmp_path)
    plan = Plan.of(table.schema, budget, method, OPTIONS[method], 50, seed=11)
    gate = PinnedGate(table, first.record, SilentRandomness())
    second = plan.release(Curator(table.schema, budget, gate), table.kind, lambda step: None)
    assert differences(first, second) == [] and gate.exhausted
    assert first.arrow.equals(second.arrow)
    assert caplog.records == []


# --- What a method that chooses its own questions lets them depend on -------------------------------------------------

WISHES: dict[str, dict[str, Any]] = {
    "pairs": {},
    "two targets": {"target": ["city", "well"]},
    "weights": {"weights": [[["age", "pay"], 5.0], [["pay", "city", "well"], 2.0]]},
    "triples": {"workload": "triples"},
}


class TellingCurator(Curator):
    """Tells what every selection would score: sets of columns, what is expected of them, weights, penalties, groups."""

    def __init__(self, *of: Any, **named: Any) -> None:
        super().__init__(*of, **named)
        self.told: list[tuple[Any, ...]] = []

    def ask(self, ask: Any) -> Any:
        if isinstance(ask, Select):
            self.told += [(c.columns, c.estimate.tobytes(), c.weight, c.offset, c.grid, ask.k) for c in ask.candidates]
        return super().ask(ask)


def pinned_differences(relation: str, wish: str, hostile: str, tmp_path: Path) -> tuple[list[str], int]:
    """Where two runs of `rake` differ that are given the same answers, the second with a hostile row in its table.

    And how many columns the largest set had that could be picked.
    """
    schema, budget = Schema.loads(f'neighbours = "{relation}"\n' + PUBLIC), Budget(10.0, 1e-6)
    plan = Plan.of(schema, budget, "rake", Options.from_dict(WISHES[wish]), 50, seed=11)
    other = (neighbour if relation == "add-remove" else replaced)(HOSTILE[hostile])
    curator = TellingCurator.on(as_csv(HONEST, schema, tmp_path), budget, randomness=SilentRandomness())
    first = plan.release(curator, "pyarrow", lambda step: None)
    again = TellingCurator(
        schema, budget, PinnedGate(as_csv(other, schema, tmp_path), first.record, SilentRandomness())
    )
    second = plan.release(again, "pyarrow", lambda step: None)
    found = differences(first, second) + ["rows"] * (not first.arrow.equals(second.arrow))
    return found + ["candidates"] * (curator.told != again.told), max(len(columns) for columns, *_ in again.told)


@pytest.fixture
def small_rake(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    tune(monkeypatch, "rake", particles=1000, final_particles=1500, most_picks=10, exchange_rounds=20)
    return monkeypatch


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("wish", "hostile", "cells"),
    list(zip(WISHES, FIRST[:4], (0, 0, 10**6, 0), strict=True)),
)
def test_what_rake_asks_follows_from_answers_alone(
    relation: str, wish: str, hostile: str, cells: int, small_rake: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Drawn particles, or the whole domain; targets, weights, triples, larger sets; a schema rule; both relations.

    A set of four columns is offered where an average cell of its coarsest grid holds twice the noise: with the larger
    noise of replace-one it does not, and neither with all classes of a target.
    """
    tune(small_rake, "rake", whole_domain=cells)
    largest = 2 if wish == "pairs" else 3
    if relation == "add-remove" and wish != "two targets":
        largest = 4
    assert pinned_differences(relation, wish, hostile, tmp_path) == ([], largest)


def test_the_same_check_finds_an_exact_row_count_in_the_scores(small_rake: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No answer shows it, since selections are pinned; what they would score does.

    Without moments: how much they get follows from the number of rows, so that the next question would give it away.
    """
    tune(small_rake, "rake", whole_domain=0, most_moments_share=0.0)
    honest = PinnedGate.__init__

    def peek(self: PinnedGate, table: Table, *rest: Any) -> None:
        honest(self, table, *rest)
        exact = float(table.count_rows())
        small_rake.setattr(rake.RakeState, "total", property(lambda _: exact))

    small_rake.setattr(rake.RakeState, "total", property(lambda _: float(ROWS)))
    small_rake.setattr(PinnedGate, "__init__", peek)
    assert "candidates" in pinned_differences("add-remove", "pairs", FIRST[0], tmp_path)[0]


def test_the_private_parts_were_bought(tmp_path: Path) -> None:
    """So that the test above says something: with the noise silent, the common keys and the bounds are found."""
    release = base_release("csv", "marginals", "private", tmp_path)
    city, pay = release.domain.schema["city"], release.domain.schema["pay"]
    assert isinstance(city, Categorical) and city.values == ("A", "B", "other")
    assert isinstance(pay, Number) and (pay.minimum, pay.maximum) == (64.0, 1024.0)


# --- Deliberate leaks, each of which the same check must find ---------------------------------------------------------


def observed_categories(columns: Columns) -> Schema:
    schema = Schema.loads(PUBLIC)
    seen = tuple(sorted({str(c) for c in columns["city"]}))
    return schema.with_columns([dataclasses.replace(schema["city"], values=seen)])  # type: ignore[type-var]


def observed_bounds(columns: Columns) -> Schema:
    schema = Schema.loads(PUBLIC)
    low = min(p for p in columns["pay"] if p is not None)
    return schema.with_columns([dataclasses.replace(schema["pay"], minimum=low)])  # type: ignore[type-var]


def observed_missingness(columns: Columns) -> Schema:
    schema = Schema.loads(PUBLIC)
    return schema.with_columns([dataclasses.replace(schema["city"], missing=None in columns["city"])])


LEAKS: dict[str, tuple[Callable[[Columns], Schema], str]] = {
    "categories from data": (observed_categories, "a category never seen"),
    "bounds from data": (observed_bounds, "numbers out of range"),
    "missingness from data": (observed_missingness, "a missing value where none is declared"),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("leak", LEAKS)
def test_the_same_check_finds_a_schema_that_was_read_off_the_data(leak: str, tmp_path: Path) -> None:
    learn, hostile = LEAKS[leak]
    releases = [
        release_of(as_csv(columns, learn(columns), tmp_path), "independent", Budget(1.0, 0.0))
        for columns in (HONEST, neighbour(HOSTILE[hostile]))
    ]
    assert {"schema.toml", "domain"} <= set(differences(*releases))


class WideningTable(SpyTable):
    """A back end that lets the data choose the domain behind the schema's back: a cell for each value it meets."""

    def count_by(self, domain: Any, sets: Sequence[tuple[str, ...]]) -> list[Any]:
        found = self._table.count_values("city")[0]
        more = np.zeros(len(set(found) - {"A", "B", "C"}), dtype=np.int64)
        counts = zip(sets, self._table.count_by(domain, sets), strict=True)
        return [np.append(n, more) if s == ("city",) else n for s, n in counts]


class TalkingTable(SpyTable):
    """A back end that remarks on values that are not declared."""

    def count_by(self, domain: Any, sets: Sequence[tuple[str, ...]]) -> list[Any]:
        if "Atlantis" in self._table.count_values("city")[0]:
            logging.getLogger("understudy").debug("a value of city is not declared")
        return self._table.count_by(domain, sets)


def two_releases(wrap: Callable[[Table], Table], tmp_path: Path) -> list[Release]:
    tables = (HONEST, neighbour(HOSTILE["a category never seen"]))
    return [
        release_of(wrap(as_csv(c, Schema.loads(PUBLIC), tmp_path)), "independent", Budget(1.0, 0.0)) for c in tables
    ]


def test_the_same_check_finds_a_back_end_that_widens_the_domain(tmp_path: Path) -> None:
    assert differences(*two_releases(lambda t: WideningTable(t, []), tmp_path)) == ["measurements"]


def test_the_same_check_hears_a_back_end_that_talks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert differences(*two_releases(lambda t: TalkingTable(t, []), tmp_path)) == []
    assert len(caplog.records) == 1


def test_the_same_check_finds_an_exact_row_count(tmp_path: Path) -> None:
    schema, budget = Schema.loads(PUBLIC), Budget(1.0, 0.0)
    releases = [
        release_of(as_csv(columns, schema, tmp_path), "independent", budget, rows=len(columns["age"]))
        for columns in (HONEST, neighbour({}))
    ]
    assert {"certificate", "rows"} <= set(differences(*releases))


# --- How many rows, when nobody says ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED)
def test_the_number_of_rows_comes_from_the_noisy_answers_alone(method: str, tmp_path: Path) -> None:
    """Loud noise, so that the exact count can't be met by accident; then again from the record, without any row."""
    schema, budget = Schema.loads(PUBLIC), Budget(0.01, 0.0)
    plan = Plan.of(schema, budget, method, OPTIONS[method], None, seed=5)
    table = as_csv(HONEST, schema, tmp_path)

    class Loud(SilentRandomness):
        def noise(self, mechanism: str, scale: float, size: int) -> Any:
            return super().noise(mechanism, scale, size) + 3

    release = synthesize_with(table, plan, randomness=Loud())
    measured = [
        Measurement(tuple(a.question["columns"]), a.value, "discrete-laplace", a.question["scale"])
        for a in release.record
    ]
    assert release.certificate.rows_rule == "noisy total"
    assert release.arrow.num_rows == release.certificate.rows == round(estimate_total(measured)) != ROWS
    again = plan.release(Curator.replaying(schema, budget, release.record), "pyarrow", lambda step: None)
    assert again.arrow.equals(release.arrow)


# --- What the command line says ---------------------------------------------------------------------------------------


def said(
    folder: Path, columns: Columns, arguments: Sequence[str], capsys: Any, monkeypatch: Any
) -> tuple[str, str, int]:
    """Output, errors and exit code of `understudy synth`, in a folder in which the names are always the same."""
    folder.mkdir()
    opened("csv", columns, Schema.loads(PUBLIC), folder)
    (folder / "rows.toml").write_text(PUBLIC)
    monkeypatch.chdir(folder)
    seeds = ["--seed", "1", "--test-only-noise-seed", "2"]
    code = run_command(["synth", "rows.csv", "--epsilon", "5", "--method", "independent", *seeds, *arguments])
    shown = capsys.readouterr()
    # What is expected of so many rows follows from the noisy answers.
    out = re.sub(r"^expected .*$", "expected …", shown.out, flags=re.MULTILINE)
    # A ledger has a random name of its own, made before any row is read.
    return re.sub(r"\b[0-9a-f]{16}\b", "…", out), shown.err, code


def masked(text: str) -> str:
    """Hashes and numbers, but not how many lines and words there are."""
    return re.sub(r"-?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?", "#", re.sub(r"\b[0-9a-f]{64}\b", "#", text))


@pytest.mark.parametrize("hostile", ["a category never seen", "a missing value where none is declared", "a bad date"])
def test_the_command_says_the_same(
    hostile: str, tmp_path: Path, capsys: Any, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tables = {"first": HONEST, "second": neighbour(HOSTILE[hostile])}
    fixed = [said(tmp_path / n, c, ["--rows", "40"], capsys, monkeypatch) for n, c in tables.items()]
    assert fixed[0] == fixed[1]
    assert fixed[0][1:] == ("", 0)
    folders = [sorted(p.name for p in (tmp_path / n / "rows-release").iterdir()) for n in tables]
    assert folders[0] == folders[1]
    assert caplog.records == []


def test_the_command_says_the_same_but_for_numbers_when_rows_are_not_asked_for(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    tables = {"first": HONEST, "second": neighbour(HOSTILE["everything missing"])}
    found = [said(tmp_path / n, c, ["--json"], capsys, monkeypatch) for n, c in tables.items()]
    assert [masked(out) for out, _, _ in found[:1]] == [masked(out) for out, _, _ in found[1:]]
    assert "noisy total" in found[0][0]
    assert {(err, code) for _, err, code in found} == {("", 0)}
