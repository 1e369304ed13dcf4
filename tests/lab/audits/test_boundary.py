"""The looks before and beside the noise: their pairs are neighbours and odd, and each finds what it is for."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.exponential import Admission, OneOfEach
from understudy.boundary.schema.schema import ADD_REMOVE, NEIGHBOURS, REPLACE_ONE
from understudy.lab.audits.checks import boundary as module
from understudy.lab.audits.checks.boundary import DRAFTS, FILES, SERVER, SPILLS, UNITS, Boundary, Watch
from understudy.lab.audits.checks.paired_gate import Selection, late_picks
from understudy.lab.audits.harness import Harness
from understudy.lab.audits.mutants.broken_boundary import Hesitant
from understudy.lab.audits.mutants.mutants import MUTANTS, harness_of
from understudy.lab.audits.pairs import PANDAS, PERSON, Pair, Row, odd_pair, people_pairs, undated_pair, wide_pair
from understudy.lab.audits.result import FAILED, PASSED, SKIPPED
from understudy.lab.audits.subjects import applies, subject_of

BUDGET = Budget(1.0, 1e-6)


def looks(name: str, harness: Harness | None = None, neighbours: str = ADD_REMOVE) -> Boundary:
    return Boundary(subject_of(name, BUDGET), harness or Harness(), BUDGET, neighbours, wide=False)


# --- pairs


def only_in(one: Sequence[Row], other: Sequence[Row]) -> list[Row]:
    left = list(map(repr, other))
    return [row for row in one if repr(row) not in left or left.remove(repr(row))]  # type: ignore[func-returns-value]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("made", [odd_pair, undated_pair, wide_pair])
def test_pairs_differ_by_one_row(made, neighbours: str) -> None:
    pair = made(neighbours)
    gone, come = only_in(pair.first[:50], pair.second), only_in(pair.second[-50:], pair.first)
    come = come or only_in(pair.second[:50], pair.first)
    assert come == [pair.extra] and len(pair.second) - len(pair.first) == (neighbours == ADD_REMOVE)
    assert len(gone) <= 1


@pytest.mark.parametrize("pair", people_pairs(), ids=lambda p: p.name)
def test_pairs_of_people_differ_by_one_person(pair: Pair) -> None:
    """By the id that it has when spaces are gone; nobody, or somebody else, has none."""
    gone, come = only_in(pair.first, pair.second), only_in(pair.second, pair.first)
    replaced = pair.schema.neighbours == REPLACE_ONE
    assert len({_who(row) for row in come}) == 1 and len(gone) == replaced
    kept = [row for row in pair.second if row in pair.first]
    assert not {_who(row) for row in (*come, *gone)} & {_who(row) for row in kept} - {None}
    assert pair.schema.unit is not None and pair.schema.unit.column == PERSON


def _who(row: Row) -> str | None:
    text = str(row[PERSON]).strip()
    return None if text in ("None", "nan", "?") else text


def test_one_odd_row_changes_how_pandas_stores_every_kind_of_column() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    for pair in (odd_pair(ADD_REMOVE), undated_pair(ADD_REMOVE)):
        first, second = (frame.dtypes for frame in pair.tables)
        changed = {c for c in first.index if first[c] != second[c]}
        assert changed in ({"weight", "size", "ripe", "price", "rings", "picked"}, {"sown"})


# --- looks


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["independent", "private-tree", "query-total"])
def test_every_look_is_made(name: str) -> None:
    found = {c.name: c.outcome for c in looks(name).checks()}
    assert set(found.values()) <= {PASSED, SKIPPED}
    assert [n for n, outcome in found.items() if outcome == SKIPPED] == [SERVER]
    assert {DRAFTS, UNITS, FILES, SPILLS} < set(found)
    assert {f"pair {p.name!r}" for p in looks(name).pairs} < set(found)


SUBJECTS = ("mst", "private-forest", "query-total", "query-groups")


CASES = [(name, m) for name in SUBJECTS for m in MUTANTS if MUTANTS[m].boundary and applies(m, name)]


@pytest.mark.parametrize(("name", "mutant"), CASES)
def test_each_mistake_is_found_by_its_own_look(name: str, mutant: str) -> None:
    revealed_by = MUTANTS[mutant].revealed_by
    checks = looks(name, harness_of(mutant)).checks(first=revealed_by)
    caught = next(c for c in checks if c.outcome == FAILED)
    assert caught.name in (*revealed_by, *(f"pair {b!r}" for b in revealed_by), SPILLS)


def test_without_pandas_its_frames_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    found = [c for c in looks("query-total").checks() if c.outcome == SKIPPED]
    monkeypatch.undo()
    assert len(found) == 1 + sum(p.frame == PANDAS for p in looks("query-total").pairs)
    assert importlib.util.find_spec("pyarrow")


# --- selections


def walked(order: Sequence[int], rule: Admission, k: int) -> list[int]:
    picked: list[int] = []
    for candidate in order:
        if len(picked) < k and rule.admits(candidate):
            picked.append(candidate)
            rule = rule.after(candidate)
    return picked


@dataclass(frozen=True)
class Joining:
    """What fits into a size, or joins two parts whatever its size, which then is allowed: AIM's rule as it once was."""

    sizes: tuple[int, ...]
    joins: tuple[bool, ...]
    allowed: int

    def admits(self, candidate: int) -> bool:
        return self.joins[candidate] or self.sizes[candidate] <= self.allowed

    def after(self, picked: int) -> Joining:
        return Joining(self.sizes, self.joins, max(self.allowed, self.sizes[picked]))


@pytest.mark.parametrize(
    ("rule", "late"),
    [
        (OneOfEach(["a", "a", "b", "b", "c", "c"]), ()),
        (Hesitant(OneOfEach(list("abcdef"))), (1, 3, 5)),
        (Joining((10, 10, 30, 30, 50, 50), (False, False, True, False, False, False), 10), (3,)),
    ],
)
def test_a_rule_that_admits_what_it_refused_is_seen(rule: Admission, late: tuple[int, ...]) -> None:
    order = [2, 0, 4, 1, 3, 5]
    picks = walked(order, rule, 3)
    question = {"ask": "select", "k": 3}
    drawn = Selection(np.zeros(6), 1.0, order)
    assert late_picks(question, [drawn], [np.array(picks)], lambda o: [np.array(walked(o, rule, 3))]) == late


# --- files


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    for folder in (here, temporary):
        folder.mkdir()
        (folder / "before").write_text("canary")
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return here, temporary


def test_a_canary_is_found_in_new_files_alone(folders: tuple[Path, Path]) -> None:
    with Watch.begun(b"canary") as watch:
        for folder in folders:
            (folder / "clean").write_text("nothing")
        assert watch.found(anywhere=True) == []
        (folders[0] / "left").write_text("a canary sings")
        (folders[1] / "deep" / "er").mkdir(parents=True)
        (folders[1] / "deep" / "er" / "spilled").write_text("canary")
        assert sorted(watch.found(anywhere=False)) == ["left", "spilled"]


def test_a_file_that_nobody_else_can_read_may_be_there_for_a_while(folders: tuple[Path, Path]) -> None:
    with Watch.begun(b"canary") as watch:
        private = folders[1] / "private"
        private.mkdir(mode=0o700)
        (private / "spilled").write_text("canary")
        assert watch.found(anywhere=False) == [] and watch.found(anywhere=True) == ["spilled"]
