"""The whole auditor: honest methods pass, every mutant is caught, stopped audits go on, bad input is refused."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import understudy as us
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.schema import NEIGHBOURS
from understudy.lab.audits import audit as audit_module
from understudy.lab.audits import audit_plan
from understudy.lab.audits.audit import audit, audit_mutants
from understudy.lab.audits.audit_plan import SETTINGS, AuditEffort, AuditPlan
from understudy.lab.audits.checks.conformance import choice_check, sample_check
from understudy.lab.audits.checks.curator_checks import CuratorChecks
from understudy.lab.audits.checks.paired_gate import RecordingRandomness, RepeatedNoise
from understudy.lab.audits.games.games import RATIO, MeteredPlayer, rounds, white_box_bound
from understudy.lab.audits.harness import Harness
from understudy.lab.audits.mutants.mutants import MUTANTS, OF_TRAINING, RepeatedSeed, halved, harness_of
from understudy.lab.audits.pairs import named, pairs
from understudy.lab.audits.result import BLACK_BOX, FAILED, PASSED, SKIPPED, WHITE_BOX, Audit
from understudy.lab.audits.subjects import (
    PREDICTORS,
    QUERIES,
    applies,
    subject_of,
    subjects,
    syntheses,
)

TINY = AuditEffort("tiny", main=96, white=24, black=40, seconds=3600.0, learners=1)
QUIET = 1e-6
"""The level of audits here: one in a million of them calls a correct method a violation."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pairs, and few runs."""
    monkeypatch.setitem(audit_plan.SETTINGS, "tiny", TINY)
    monkeypatch.setattr(audit_plan, "pairs", lambda *of, **keys: pairs(*of, **keys)[:2])


FEW = ("equal rows", "first in line", "crowd", "private category")
"""Pairs that betray every mutant; audits look at all of them."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_plan, "pairs", lambda *of, **keys: [p for p in pairs(*of, **keys) if p.name in FEW])


def inside(name: str, mutant: str | None = None, delta: float = 1e-6, neighbours: str = "add-remove") -> CuratorChecks:
    budget = Budget(1.0, delta)
    wanted = AuditPlan(name, None, mutant, budget, SETTINGS["quick"], QUIET, sys.executable, neighbours)
    return CuratorChecks(wanted, wanted.pairs(), lambda text: None)


REPLACED = ("independent", "mst", "private-tree", "query-groups")
"""Subjects that are looked at under replace-one, too."""
RELATIONS = [(name, "add-remove") for name in subjects()] + [(name, "replace-one") for name in REPLACED]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("name", "neighbours"), RELATIONS)
def test_honest_methods_pass_from_inside(name: str, neighbours: str, few: None) -> None:
    """All that is checked from inside is exact, or refuses below 1e-10.

    Which methods make private choices is written down by hand; here it is looked up in what they spend.
    """
    looked = inside(name, neighbours=neighbours)
    assert looked.first_violation() == ""
    spends = {s.mechanism for _, exchanges in looked.runs for a in exchanges for s in a.spends}
    assert applies("monotone-constant", name) == ("exponential" in spends)
    several = [a for _, exchanges in looked.runs for a in exchanges if a.kind is Select and a.questions[0]["k"] > 1]
    assert applies("late-admission", name) or not several


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["independent", "query-average"])
def test_honest_methods_pass_with_pure_epsilon(name: str, few: None) -> None:
    assert inside(name, delta=0.0).first_violation() == ""


MUTATED = (*syntheses(), "private-tree", "private-boosting", "private-forest", "query-groups", "query-quantile")
"""Every method, and one predictor and one query of each way to ask; `understudy audit --mutants` breaks them all."""


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", MUTATED)
def test_every_mutant_is_caught(name: str, few: None) -> None:
    matrix = audit_mutants([name])
    assert matrix.survivors == ()
    assert set(matrix.cells) == {(mutant, name) for mutant in MUTANTS if mutant not in OF_TRAINING}
    assert (matrix.cells["monotone-constant", name] == "does not apply") == (not applies("monotone-constant", name))


def test_a_mutant_survives_where_nothing_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that `survivors` says something: a mutant that makes no mistake is not caught."""
    monkeypatch.setitem(MUTANTS, "half-noise", dataclasses.replace(MUTANTS["half-noise"], harness=Harness()))
    assert audit_mutants(["independent"], ["half-noise"]).survivors == (("half-noise", "independent"),)


def test_half_of_a_prior_is_seen_in_its_draws() -> None:
    """All that hides a row of a posterior's draws is the prior. False alarms: below 1e-9."""
    honest, mutant = (sample_check(3.0, make) for make in (ExactRandomness.system, halved))
    assert (honest.outcome, mutant.outcome) == (PASSED, FAILED)


def test_a_source_that_starts_over_is_seen_in_its_choices() -> None:
    assert choice_check(0.1, RepeatedSeed.again).outcome == FAILED


# --- Games ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_game_proves_a_loud_mechanism_and_refutes_its_mutant() -> None:
    """At ε = 8 the worlds are 1.5 deviations apart: 400 twos show it, and those of halved noise exceed the claim.

    False alarms of the level: 1e-6. The honest worlds differ in about 54 % of the twos, where 32 % prove two fifths of
    μ, and the mutant's in 86 %, where 67 % refute the claim: both are missed with a probability below 1e-6.
    """
    budget = Budget(8.0, 1e-6)
    claim = audit_module._claim(plan_of(budget), inside_of(budget).exchanges)
    assert claim.mu is not None and claim.rho is not None
    for mutant, refuted in ((None, False), ("half-noise", True)):
        player = MeteredPlayer(subject_of("independent", budget), harness_of(mutant), pairs()[0], budget)
        bound = white_box_bound("equal rows", rounds(player, WHITE_BOX, 800), QUIET, claim)
        assert bool(bound.refutes) == refuted, mutant
        assert bound.mu > 0.4 * claim.mu


def plan_of(budget: Budget) -> AuditPlan:
    return AuditPlan("independent", None, None, budget, SETTINGS["quick"], QUIET, sys.executable)


def inside_of(budget: Budget) -> CuratorChecks:
    looked = CuratorChecks(plan_of(budget), pairs(), lambda text: None)
    looked.first_violation()
    return looked


@pytest.mark.slow
def test_the_statistic_favours_the_table_that_was_played() -> None:
    """On average it can't be negative in the second world, or positive in the first (Gibbs' inequality).

    The averages of 300 runs are 10 deviations from 0: false alarms below 1e-9.
    """
    budget = Budget(8.0, 1e-6)
    player = MeteredPlayer(subject_of("mst", budget), Harness(), pairs()[0], budget)
    runs = rounds(player, WHITE_BOX, 120)
    for second in (False, True):
        seen = [found[RATIO] for coin, found in runs if coin == second]
        assert (sum(seen) > 0) == second


def test_both_tables_of_a_pair_are_played_with_the_same_noise() -> None:
    """Then no answer says less for the second table where the second table was played."""
    budget = Budget(1.0, 1e-6)
    player = MeteredPlayer(subject_of("independent", budget), Harness(), pairs()[0], budget)
    runs = rounds(player, WHITE_BOX, 40)
    assert [coin for coin, _ in runs] == [0, 1] * 20
    assert all(second[RATIO] > first[RATIO] for (_, first), (_, second) in zip(runs[::2], runs[1::2], strict=True))


def test_noise_is_repeated_where_its_law_is_the_same() -> None:
    fresh = RecordingRandomness(ExactRandomness.seeded(1))
    drawn = [fresh.noise("rounded-gaussian", 100.0, 50) for _ in range(3)]
    repeated = RepeatedNoise(ExactRandomness.seeded(2), fresh.draws)
    assert np.array_equal(repeated.noise("rounded-gaussian", 100.0, 50), drawn[0])
    # Another scale, or another number of cells, uses the turn up: what was drawn for it is never handed out.
    assert not np.array_equal(repeated.noise("rounded-gaussian", 50.0, 50), drawn[1])
    assert len(repeated.noise("rounded-gaussian", 100.0, 20)) == 20
    assert len(repeated.noise("rounded-gaussian", 100.0, 50)) == 50


@pytest.mark.slow
def test_a_whole_audit(tiny: None, tmp_path: Path) -> None:
    heard: list[str] = []
    found = audit("independent", setting="tiny", level=QUIET, jobs=1, progress=heard.append)
    assert not found.violated and found.power == 1.0
    assert found.verdict == "no violation found (power 1.00 against halved noise)"
    assert [s.outcome for s in found.steps] == [PASSED] * 5 + [SKIPPED]
    assert {b.view for b in found.bounds} == {WHITE_BOX, BLACK_BOX}
    assert {b.pair for b in found.bounds} == {p.name for p in pairs()[:2]}
    assert heard[0] == "sensitivity" and heard[-1] == "games: run 96 of 96"
    assert json.loads(found.to_json())["violated"] is False
    found.save(tmp_path / "audit.html")
    assert "no violation found" in (tmp_path / "audit.html").read_text()


@pytest.mark.slow
def test_a_mutant_is_a_violation(tiny: None) -> None:
    found = audit("independent", setting="tiny", mutant="half-noise", jobs=1)
    assert found.violated and found.verdict == "violation at 95 %" and found.kind == "mutant"
    assert [s.outcome for s in found.steps[:3]] == [PASSED, FAILED, PASSED]


@pytest.mark.slow
def test_a_stopped_audit_goes_on(tiny: None, tmp_path: Path) -> None:
    """What was played is kept; the rounds of the first are part of the second."""
    whole = audit("independent", setting="tiny", level=QUIET, jobs=1, out=tmp_path / "audit")
    path = tmp_path / "audit" / "rounds.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    again = audit("independent", setting="tiny", level=QUIET, jobs=1, out=tmp_path / "audit")
    kept = path.read_bytes().splitlines(keepends=True)
    assert kept[:5] == lines[:5] and len(kept) == len(lines)
    assert [b.runs for b in again.bounds] == [b.runs for b in whole.bounds]
    with pytest.raises(us.ReleaseError, match="holds another audit"):
        audit("independent", epsilon=2.0, setting="tiny", jobs=1, out=tmp_path / "audit")


def test_time_is_kept(tiny: None) -> None:
    """No task is begun after the time is up, and what was played says no more than it can."""
    found = audit("independent", setting="tiny", time_limit=1e-9, jobs=1)
    assert found.bounds == () and found.steps[4].outcome == SKIPPED
    assert found.steps[4].reason == "time was up before a game had enough runs"


def test_a_function_needs_time(functions: None) -> None:
    """Nothing else is looked at, so that nothing could be said."""
    with pytest.raises(us.InputError, match="time limit"):
        audit(function="theirs:copies", setting="tiny", time_limit=1e-9, jobs=1)


# --- Functions of somebody else's -------------------------------------------------------------------------------------

FUNCTIONS = """
def copies(frame, epsilon, delta, seed):
    return frame

def nothing(frame, epsilon, delta, seed):
    return frame.iloc[:0]

def breaks(frame, epsilon, delta, seed):
    raise ValueError("it broke")

def chatters(frame, epsilon, delta, seed):
    print("a warning of the library " * 400)
    return frame.iloc[:0]
"""


@pytest.fixture
def functions(tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(audit_plan.SETTINGS, "tiny", dataclasses.replace(TINY, black=200))
    (tmp_path / "theirs.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_a_function_that_returns_its_rows_is_caught(functions: None) -> None:
    found = audit(function="theirs:copies", setting="tiny", jobs=1)
    assert found.violated and found.kind == "callable" and found.power is None
    assert [s.outcome for s in found.steps] == [SKIPPED] * 4 + [FAILED, SKIPPED]


@pytest.mark.slow
def test_a_function_that_returns_nothing_is_not(functions: None) -> None:
    found = audit(function="theirs:nothing", setting="tiny", jobs=1)
    assert not found.violated
    assert found.verdict == "no violation found (power unknown against halved noise)"


@pytest.mark.slow
def test_a_function_that_prints_more_than_a_pipe_holds_is_heard_out(functions: None) -> None:
    found = audit(function="theirs:chatters", setting="tiny", jobs=1)
    assert min(b.runs for b in found.bounds) == 200 and not found.violated


def test_a_function_that_breaks_is_named(functions: None) -> None:
    with pytest.raises(us.MethodError, match="it broke"):
        audit(function="theirs:breaks", setting="tiny", jobs=1)


def test_a_python_that_is_not_there_is_named(functions: None) -> None:
    with pytest.raises(us.InputError, match="no-such-python"):
        audit(function="theirs:nothing", setting="tiny", jobs=1, python="no-such-python")


# --- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({}, "either the name of a method or a function"),
        ({"method": "mst", "function": "a:b"}, "either the name of a method or a function"),
        ({"method": "mts"}, "did you mean 'mst'"),
        ({"method": "mst", "mutant": "no-noise"}, "mutant 'no-noise' is not known"),
        ({"method": "mst", "setting": "quikc"}, "did you mean 'quick'"),
        ({"method": "mst", "level": 0.0}, "level"),
        ({"method": "mst", "time_limit": -1.0}, "time limit"),
        ({"method": "mst", "epsilon": -1.0}, "epsilon"),
        ({"method": "mst", "jobs": 0}, "jobs"),
        ({"method": "mst", "neighbours": "add"}, "neighbours"),
        ({"method": "dp-gan", "setting": "quikc"}, "did you mean 'quick'"),
        ({"method": "dp-gan", "neighbours": "add"}, "neighbours"),
        ({"method": "dp-gan", "jobs": 2}, "jobs \\(2\\) is for methods that play games"),
        ({"method": "dp-gan", "time_limit": 5.0}, "time_limit \\(5.0\\) is for methods that play games"),
        ({"method": "dp-gan", "out": "somewhere"}, "out \\(somewhere\\) is for methods that play games"),
        ({"method": "published-dp-arf", "postgres": "postgresql://x/y"}, "no curator to look through"),
        ({"function": "theirs"}, "must be module:name"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wishes: dict[str, object], sentence: str) -> None:
    with pytest.raises(us.InputError, match=sentence):
        audit(**wishes)  # type: ignore[arg-type]


def test_pairs_are_neighbours() -> None:
    """One row added, or one replaced; and `named` finds each of them."""
    for neighbours in NEIGHBOURS:
        for pair in pairs(neighbours):
            first, second = (sorted(map(repr, rows)) for rows in (pair.first, pair.second))
            for row in list(first):
                if row in second:
                    first.remove(row)
                    second.remove(row)
            assert (len(first), len(second)) == ((0, 1) if neighbours == "add-remove" else (1, 1)), pair.name
            assert second == [repr(pair.extra)]
            assert named(pair.name, neighbours) == pair


def test_the_page_lists_every_mutant_and_every_subject() -> None:
    page = (Path(__file__).parents[3] / "docs" / "concepts" / "auditing.md").read_text()
    for mutant in MUTANTS.values():
        assert f"| `{mutant.name}` | {mutant.mistake} |" in page
    for name in (*OF_TRAINING, *PREDICTORS, *QUERIES):
        assert f"`{name}`" in page


def test_the_result_is_typed() -> None:
    assert issubclass(audit_module.Audit, Audit)
