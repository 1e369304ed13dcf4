"""Progress: what a watcher is told of steps, votes, rounds and questions, and that being watched changes nothing."""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
pytest.importorskip("torch", reason="the extra gan is not installed")

import understudy as us
from understudy import bars
from understudy.boundary.privacy.budget import Budget, Spend, compose
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gaussian_dp import epsilon_from_gdp
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.cli import screen
from understudy.inference.generators.adversarial_training import TrainingConfig
from understudy.methods import registry
from understudy.methods.aim import Aim
from understudy.methods.dp_ctgan import dp_ctgan
from understudy.methods.dp_gan import dp_gan
from understudy.methods.dp_select import DpSelect
from understudy.methods.mst import Mst
from understudy.methods.pate_gan import PateConfig, PateGan
from understudy.methods.rake.rake import Rake
from understudy.progress import Advance, Progress, listening
from understudy.releases.synthesis import STEPS, steps_of, watched

TINY = TrainingConfig(steps=4, lessons=2, batch=50, hidden=4, deep_share=0.1)
VOTING = TrainingConfig(hidden=0, deep_share=0.0, batch=50)
SEMINAR = PateConfig(rounds=3, votes=20, lessons=2)
BUDGET = Budget(2.0, 1e-5)
ADD_REMOVE = us.Schema.loads(
    '[columns.a]\ntype = "categorical"\nvalues = ["x", "y", "z"]\n[columns.b]\ntype = "boolean"\n'
    '[columns.c]\ntype = "integer"\nmin = 0\nmax = 9'
)
REPLACE_ONE = us.Schema.loads('neighbours = "replace-one"\n' + ADD_REMOVE.dumps().split("\n", 1)[1])
TRAINED = {"dp-gan": dp_gan((), TINY), "dp-ctgan": dp_ctgan((), TINY)}
RECIPES = {
    **TRAINED,
    "pate-gan": PateGan(SEMINAR, VOTING),
    "dp-select": DpSelect(dp_gan((), TINY)),
    "of statistics": DpSelect(Mst()),
    "mst": Mst(),
    "aim": Aim(),
    "rake": Rake(),
}


class Told(Progress):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.advances: list[Advance] = []

    def __call__(self, step: str, /) -> None:
        self.parts.append(step)

    def advance(self, now: Advance, /) -> None:
        self.advances.append(now)

    def of(self, unit: str) -> list[Advance]:
        return [s for s in self.advances if s.unit == unit]


def some_rows(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(1)
    c = rng.integers(0, 10, rows)
    return pa.table({"a": np.array(["x", "y", "z"])[c % 3], "b": c > 4, "c": c})


def run(recipe: Any, told: Told | None, schema: us.Schema = ADD_REMOVE) -> Curator:
    """The recipe on a curator whose noise is the same each time."""
    curator = Curator.on(us.open(some_rows(), schema), BUDGET, randomness=ExactRandomness.seeded(7))
    asked = curator
    if told is not None:
        recipe, asked = watched(recipe, curator, told.advance)
    if prepare := getattr(recipe, "prepare", None):
        prepare(asked)
    recipe.calibrate(Domain.of(schema), asked.remaining()).fit(asked, np.random.default_rng(3))
    return curator


def epsilons(advances: Sequence[Advance]) -> list[float]:
    return [s.epsilon for s in advances]


def epsilon_of_steps(spends: Sequence[Spend], steps: int) -> float:
    """From the certificate's spends alone: everything that was counted, and a training of so many steps."""
    return compose([dataclasses.replace(s, steps=steps) if s.steps else s for s in spends], BUDGET.delta)[0]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("schema", [ADD_REMOVE, REPLACE_ONE], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize("name", TRAINED)
def test_epsilon_so_far_is_that_of_a_release_which_ends_at_this_step(name: str, schema: us.Schema) -> None:
    told = Told()
    curator = run(RECIPES[name], told, schema)
    steps = told.of("step")
    assert [(s.done, s.total, s.budget) for s in steps] == [(i, 4, 2.0) for i in (1, 2, 3, 4)]
    assert epsilons(steps) == [epsilon_of_steps(curator.spends, i) for i in (1, 2, 3, 4)]
    assert steps[-1].epsilon == curator.guarantee[0]
    without_counts = compose([s for s in curator.spends if s.steps], BUDGET.delta)[0]
    assert steps[-1].epsilon > without_counts + 0.1  # a report that forgot the counting part would be found here


def test_votes_cost_what_noisy_counts_cost() -> None:
    """By hand: k votes of noise σ have g = k/(2σ²), beside the g of the counts that were bought first."""
    told = Told()
    curator = run(RECIPES["pate-gan"], told)
    *counts, votes = curator.spends
    assert [(s.done, s.total) for s in told.of("vote")] == [(20, 60), (40, 60), (60, 60)]
    costs = [sum(float(s.cost.gdp) for s in counts) + k / (2 * votes.scale**2) for k in (20, 40, 60)]
    assert epsilons(told.of("vote")) == pytest.approx(
        [epsilon_from_gdp(Fraction(g), Fraction(BUDGET.delta)) for g in costs], rel=1e-9
    )
    assert told.of("vote")[-1].epsilon == curator.guarantee[0]


@pytest.mark.parametrize(("name", "pool"), [("dp-select", 4), ("of statistics", 0)])
def test_a_selection_tells_of_its_pool_and_then_of_its_own_rounds(name: str, pool: int) -> None:
    told = Told()
    curator = run(RECIPES[name], told)
    steps, rounds = told.of("step"), told.of("round")
    assert len(steps) == pool and rounds[-1].done == rounds[-1].total
    assert {s.done for s in rounds} == set(range(1, rounds[-1].total + 1))
    assert all(told.advances.index(s) < told.advances.index(rounds[0]) for s in steps)
    assert rounds[-1].epsilon == curator.guarantee[0] <= 2.0


@pytest.mark.parametrize("name", RECIPES)
def test_epsilon_never_falls_and_ends_at_the_claim(name: str) -> None:
    told = Told()
    curator = run(RECIPES[name], told)
    assert all(a.epsilon <= b.epsilon for a, b in itertools.pairwise(told.advances))
    assert told.advances[-1].epsilon == curator.guarantee[0] <= BUDGET.epsilon
    assert len(told.advances) > 2


def test_rake_counts_its_rounds_once_it_knows_how_many_there_are() -> None:
    told = Told()
    run(RECIPES["rake"], told)
    rounds = [s for s in told.advances if s.unit == "round"]
    assert rounds and {s.total for s in rounds} == {rounds[-1].total}
    assert [s.done for s in rounds] == sorted(s.done for s in rounds) and rounds[-1].done <= rounds[-1].total
    assert {(s.unit, s.total) for s in told.advances} == {("question", 0), ("round", rounds[-1].total)}


@pytest.mark.parametrize("name", ["mst", "aim"])
def test_methods_that_count_tell_of_their_questions(name: str) -> None:
    told = Told()
    curator = run(RECIPES[name], told)
    assert {(s.unit, s.total) for s in told.advances} == {("question", 0)}
    numbers = [s.done for s in told.advances]
    assert numbers == sorted(set(numbers)) and numbers[-1] == len(curator.spends)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", RECIPES)
def test_being_watched_changes_nothing(name: str) -> None:
    """Neither the recipe, nor a question, nor an answer."""
    alone, seen = run(RECIPES[name], None), run(RECIPES[name], Told())
    assert alone.spends == seen.spends
    assert [a.question for a in alone.record] == [a.question for a in seen.record]
    assert all(np.array_equal(a.value, b.value) for a, b in zip(alone.record, seen.record, strict=True))
    if reporting := getattr(RECIPES[name], "reporting", None):
        assert reporting(lambda *facts: None) == RECIPES[name]


# --- through `synthesize`, and on a terminal


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    method = registry.Method("dp-gan", "(ε, δ)", "", "", lambda options, params: TRAINED["dp-gan"])
    monkeypatch.setitem(registry.METHODS, "dp-gan", method)


def release(progress: Any) -> us.Release:
    table = us.open(some_rows(), ADD_REMOVE)
    return us.synthesize(
        table, method="dp-gan", epsilon=2.0, delta=1e-5, rows=50, seed=1, test_only_noise_seed=1, progress=progress
    )


def test_a_plain_function_is_told_the_names_of_parts_alone(short: None) -> None:
    told, parts = Told(), list[str]()
    assert told.detailed and not listening(parts.append).detailed
    watched_release, plain = release(told), release(parts.append)
    assert told.parts == parts == [*STEPS[1:]] and len(told.of("step")) == 4
    assert watched_release.arrow.equals(plain.arrow)


def test_an_advance_as_text_is_never_below_the_truth() -> None:
    assert str(Advance("step", 35, 100, 1.1191, 2.0)) == "step 35 of 100, ε 1.12 of 2"
    assert str(Advance("vote", 1000, 1000, 0.10001, 0.5)) == "vote 1,000 of 1,000, ε 0.101 of 0.5"
    assert str(Advance("question", 14, 0, 0.25, 1.0)) == "question 14, ε 0.25 of 1"
    assert Advance("question", 14, 0, 0.25, 1.0).share == 0.25 and Advance("step", 3, 4, 0.1, 1.0).share == 0.75
    assert str(Advance("run", 3, 4)) == "run 3 of 4" and Advance("run", 3, 4).share == 0.75


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, quiet: bool = False) -> str:
    """What a command prints on standard error, without colours; a line for each state of a bar."""
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with screen.progress(len(STEPS) + 1, quiet) as begin:
        release(begin)
    text = re.sub(r"\x1b\[[0-9;?]*([A-Za-z])", lambda found: "\n" if found[1] in "AK" else "", stderr.getvalue())
    return text.replace("\r", "\n")


def test_a_terminal_shows_steps_epsilon_and_the_time_left(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.progress.Progress.update", _refreshing())
    lines = shown(monkeypatch, Terminal()).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(re.search(r"step 3 of 4, ε [\d.]+ of 2 +0:0\d:\d\d left$", line.rstrip()) for line in lines)
    assert any("step 4 of 4, ε 2 of 2" in line and "left" not in line for line in lines)
    assert not any("step" in line for line in lines[-2:])


def _refreshing() -> Any:
    """Every state is drawn, however short it lasts."""
    from rich.progress import Progress

    update = Progress.update

    def drawn(self: Progress, *arguments: Any, **named: Any) -> None:
        update(self, *arguments, **named)
        self.refresh()

    return drawn


def test_without_a_terminal_nothing_is_shown(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == ""
    assert shown(monkeypatch, Terminal(), quiet=True) == ""


def test_time_left_is_known_from_the_second_report_on() -> None:
    """By hand: 10 steps in 20 seconds, and 30 to go: 60 seconds."""
    first, now = Advance("step", 10, 50, 0.1, 1.0), Advance("step", 20, 50, 0.2, 1.0)
    assert bars._end(first, 100.0, now, 120.0) == 180.0
    assert bars._end(first, 100.0, first, 100.0) is None
    assert bars._end(first, 100.0, dataclasses.replace(now, done=50), 120.0) is None
    assert bars._end(first, 100.0, dataclasses.replace(now, total=0), 120.0) is None


@pytest.mark.parametrize(("low", "parts"), [("0", 2), ('"private"', 3)])
def test_a_bar_has_as_many_parts_as_are_begun(low: str, parts: int):
    schema = us.Schema.loads(f'[columns.c]\ntype = "integer"\nmin = {low}\nmax = 9\n')
    told = Told()
    us.synthesize(us.open(some_rows().select(["c"]), schema), epsilon=5.0, method="independent", progress=told)
    assert len(told.parts) == parts == steps_of(schema)
