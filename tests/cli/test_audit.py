"""`understudy audit`, called as the command line calls it, with results made by hand; the auditor has its own tests."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.cli import audit_command as command
from understudy.lab.audits.mutants.mutants import MUTANTS
from understudy.lab.audits.result import (
    BLACK_BOX,
    DOES_NOT_APPLY,
    FAILED,
    LIMITS,
    PASSED,
    SKIPPED,
    WHITE_BOX,
    Audit,
    AuditCheck,
    AuditStep,
    Bound,
    Claim,
    MutantMatrix,
    PairFacts,
)
from understudy.progress import Advance

Audited = Callable[..., Any]
RIGHT = AuditCheck("every answer is paid for", PASSED, "all 1,240 answers are debited.")
WRONG = AuditCheck("scale of the noise", FAILED, "the variance of 12,400 residuals is 0.25 times the declared one.")
CLAIM = Claim(1.0, 1e-6, "add-remove", rho=0.026, mu=0.228)
GAMES = (
    Bound("equal rows", WHITE_BOX, "likelihood ratio", 7_000, 0.004, 0.53, 0.8149, 0.0199, 0.1998),
    Bound("equal rows", BLACK_BOX, "rows [bold]", 2_000, 0.004, 0.51, 0.1, 0.0002, 0.02),
)


def made(*checks: AuditCheck, **changes: Any) -> Audit:
    steps = (
        AuditStep("noise", "Noise conformance", "The noise has its law.", (RIGHT, *checks), 2.25),
        AuditStep("canaries", "One run", "Many canaries.", reason="mst trains nothing by gradients."),
    )
    whole = {"subject": "mst", "kind": "method", "setting": "quick", "claim": CLAIM, "level": 0.05, "power": 0.9987}
    whole |= {"pairs": (PairFacts("equal rows", "one more"),), "steps": steps, "bounds": GAMES, "seconds": 95.04}
    return Audit(**(whole | {"created": "2024-05-06T07:08:09Z", "versions": {"numpy": "2.1.0"}} | changes))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """Every call of the auditor; it finds nothing wrong."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    answers(monkeypatch, calls, made())
    return calls


def answers(monkeypatch: pytest.MonkeyPatch, calls: list[tuple[Any, dict[str, Any]]], found: Audit) -> None:
    def audit(method: str | None = None, **wish: Any) -> Audit:
        calls.append((method, wish))
        wish["progress"]("games")
        wish["progress"].advance(Advance("run", 1_200, 14_000))
        return found

    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(command, "audit", audit)


@pytest.fixture
def audited(understudy: Callable[..., Any], desk: Path) -> Audited:
    return lambda *arguments: understudy("audit", *arguments)


# --- one audit


def test_it_prints_the_claim_the_steps_the_bounds_and_the_verdict(audited: Audited, asked: list[Any]):
    outcome = audited("mst")
    assert outcome.code == 0 and outcome.err == ""
    assert outcome.out.startswith("mst (method), at the quick setting\n")
    assert "claim         ε = 1 at δ = 1e-6, ρ = 0.026, μ = 0.228\n" in outcome.out
    assert "at most 5 % of audits" in outcome.out and "87.6\N{NO-BREAK SPACE}% of the claimed μ proved" in outcome.out
    assert "One run, not made: mst trains nothing by gradients.\n" in outcome.out
    assert "≥ 0.814" in outcome.out and "≥ 0.199" in outcome.out and "rows [bold]" in outcome.out
    assert "Verdict: no violation found (power 0.99 against halved noise).\n" in outcome.out and LIMITS in outcome.out


def test_what_was_typed_is_what_is_audited(audited: Audited, asked: list[Any]):
    audited("mst", "--epsilon", 2, "--delta", 0, "--setting", "full", "--mutant", "half-noise", "--level", 0.01)
    method, wish = asked.pop()
    del wish["progress"]
    nothing = dict.fromkeys(("function", "python", "time_limit", "out", "jobs", "postgres", "sites"))
    plain = {"epsilon": 2.0, "delta": 0.0, "setting": "full", "mutant": "half-noise", "level": 0.01}
    assert (method, wish) == ("mst", nothing | plain | {"neighbours": "add-remove"})


def test_the_relation_and_a_server_are_handed_on(audited: Audited, asked: list[Any]):
    audited("mst", "--neighbours", "replace-one", "--postgres", "postgresql://host/base")
    _, wish = asked.pop()
    assert (wish["neighbours"], wish["postgres"]) == ("replace-one", "postgresql://host/base")


@pytest.mark.parametrize(("method", "mutant"), [("dp-gan", "no-clipping"), ("pate-gan", "raw-ids"), ("mst", "raw-ids")])
def test_mutants_of_networks_and_of_the_boundary_can_be_named(
    audited: Audited, asked: list[Any], method: str, mutant: str
):
    assert audited(method, "--mutant", mutant).code == 0
    assert asked.pop()[1]["mutant"] == mutant


def test_a_function_of_another_tool_is_audited(audited: Audited, asked: list[Any]):
    audited("--callable", "rival:synthesize", "--python", sys.executable, "--time-limit", 60, "--out", "o", "--jobs", 2)
    method, wish = asked.pop()
    told = (wish["function"], wish["python"], wish["time_limit"], wish["out"], wish["jobs"])
    assert (method, *told) == (None, "rival:synthesize", Path(sys.executable), 60.0, Path("o"), 2)


def test_a_violation_is_told_and_exits_1(audited: Audited, monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, [], made(WRONG))
    outcome = audited("mst")
    assert outcome.code == 1 and "Verdict: violation at 95 %.\n" in outcome.out
    assert f"Noise conformance, violation: {WRONG.name}: {WRONG.found}\n" in outcome.out
    said = "mst does not keep its claim of ε = 1 at δ = 1e-6: 1 of 2 checks found a violation (noise conformance)."
    assert outcome.err == f"understudy: {said}\n" and said not in outcome.out


def test_a_check_that_was_not_made_says_why(audited: Audited, monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, [], made(AuditCheck("people on a server", SKIPPED, "no server was named.")))
    outcome = audited("mst")
    assert (
        outcome.code == 0 and "Noise conformance, not made: people on a server: no server was named.\n" in outcome.out
    )


def test_json_is_alone_on_standard_output(audited: Audited, monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, [], made(WRONG))
    outcome = audited("mst", "--json")
    found = json.loads(outcome.out)
    assert outcome.code == 1 and found["violated"] is True and found["verdict"] == "violation at 95 %"
    assert found["steps"][0]["outcome"] == FAILED and found["bounds"][0]["epsilon"] == 0.8149


def test_it_prints_without_bounds_and_without_steps(audited: Audited, monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, [], made(bounds=(), steps=(), power=None, claim=Claim(1.0, 0.0, "replace-one")))
    outcome = audited("mst")
    assert outcome.code == 0 and "claim         pure ε = 1\n" in outcome.out and "lower bounds" not in outcome.out
    assert "Nothing could be checked" in outcome.out and "(power unknown against halved noise)" in outcome.out


def test_it_writes_its_report_even_of_a_violation(audited: Audited, desk: Path, monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, [], made(WRONG))
    outcome = audited("mst", "--report", "audit.html")
    assert outcome.code == 1 and "The report is audit.html.\n" in outcome.out
    assert "Violation at 95 %" in (desk / "audit.html").read_text()
    audited("mst", "--report", "audit.json")
    assert json.loads((desk / "audit.json").read_text())["violated"] is True


# --- the auditor itself


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the auditor was asked about its mutants; `cells` may be changed before."""
    cells = {("half-noise", "mst"): "noise conformance: its variance", ("index-blocks", "mst"): DOES_NOT_APPLY}
    told: dict[str, Any] = {"cells": cells}

    def audit_mutants(methods: Any = None, mutants: Any = None, **wish: Any) -> MutantMatrix:
        told.update(methods=methods, mutants=mutants, **wish)
        return MutantMatrix(("half-noise", "index-blocks"), ("mst",), told["cells"])

    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(command, "audit_mutants", audit_mutants)
    return told


def test_the_matrix_is_printed(audited: Audited, matrix: dict[str, Any]):
    outcome = audited("--mutants", "mst", "aim", "--epsilon", 2)
    assert outcome.code == 0 and "noise conformance │" in outcome.out and "does not apply" in outcome.out
    assert "1 of 1 mutant was caught.\n" in outcome.out
    assert matrix["methods"] == ("mst", "aim") and matrix["mutants"] is None
    assert (matrix["epsilon"], matrix["delta"]) == (2.0, 1e-6)


def test_all_methods_and_one_mutant(audited: Audited, matrix: dict[str, Any]):
    audited("--mutants", "--mutant", "half-noise")
    assert matrix["methods"] is None and matrix["mutants"] == ("half-noise",)


def test_networks_are_mutated_too(audited: Audited, matrix: dict[str, Any]):
    audited("--mutants", "dp-gan", "--mutant", "no-clipping")
    assert matrix["methods"] == ("dp-gan",) and matrix["mutants"] == ("no-clipping",)


def test_a_survivor_exits_1(audited: Audited, matrix: dict[str, Any], desk: Path):
    matrix["cells"]["half-noise", "mst"] = ""
    outcome = audited("--mutants", "--report", "mutants.html")
    assert outcome.code == 1 and "SURVIVED" in outcome.out and "0 of 1 mutant were caught." in outcome.out
    assert outcome.err == "understudy: the auditor misses 1 of its mutants: half-noise of mst.\n"
    assert "1 mutant survived" in (desk / "mutants.html").read_text()


def test_the_matrix_as_json(audited: Audited, matrix: dict[str, Any], desk: Path):
    outcome = audited("--mutants", "--json", "--report", "mutants.json")
    found = json.loads(outcome.out)
    assert found == json.loads((desk / "mutants.json").read_text())
    assert found["survivors"] == [] and found["caught_by"]["half-noise"] == {"mst": "noise conformance: its variance"}


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a method"),
        (("mst", "--callable", "a:b"), "method 'mst' and --callable can't be audited together"),
        (("mst", "aim"), "one method is audited at a time, not 2"),
        (("mst", "--mutant", "half-nose"), "mutant 'half-nose' is not known; did you mean 'half-noise'?"),
        (("mst", "--mutant", "no-clipping"), "mutant 'no-clipping' is not known"),
        (("dp-gan", "--mutant", "half-noise"), "mutant 'half-noise' is not known"),
        (("--callable", "a:b", "--mutant", "half-noise"), "mutant 'half-noise' is of our own methods"),
        (("mst", "--python", "env"), "--python ('env') says where a --callable runs"),
        (("--callable", "a:b", "--python", "none"), "--python ('none') must be a Python that can be run"),
        (("mst", "--report", "a.txt"), "must end in .html or .json"),
        (("mst", "--report", "no/a.html"), "can't be written"),
        (("--mutants", "--callable", "a:b"), "--callable is for a single audit"),
        (("--mutants", "--setting", "full"), "--setting is for a single audit"),
        (("--mutants", "--out", "x"), "--out is for a single audit"),
        (("--mutants", "--jobs", 2), "--jobs is for a single audit"),
        (("--mutants", "--neighbours", "replace-one"), "--neighbours is for a single audit"),
        (("--mutants", "mts"), "method 'mts' is not known; did you mean 'mst'?"),
    ],
)
def test_wrong_wishes_are_refused(refused: Callable[..., str], asked: list[Any], arguments: Any, said: str):
    assert said in refused("audit", *arguments)
    assert asked == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mts",), "did you mean 'mst'?"),
        (("mst", "--setting", "quik"), "setting 'quik' is not known; did you mean 'quick'?"),
        (("mst", "--epsilon", 0), "epsilon (0.0)"),
        (("mst", "--level", 1), "level (1.0)"),
        (("mst", "--time-limit", 0), "time limit (0.0)"),
        (("mst", "--jobs", 0), "jobs (0)"),
        (("--callable", "rival"), "must be module:name"),
    ],
)
def test_the_auditor_refuses_before_it_looks(refused: Callable[..., str], arguments: Any, said: str):
    """Not made by hand: the auditor itself says so, at once."""
    assert said in refused("audit", *arguments)


def test_the_mutants_that_are_named_exist():
    assert {"half-noise", "index-blocks"} <= set(MUTANTS)


# --- progress


def test_the_bars_show_the_part_and_how_far_it_is(audited: Audited, asked: list[Any], monkeypatch: pytest.MonkeyPatch):
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    audited("mst")
    assert "games" in screen.getvalue() and "run 1,200 of 14,000" in screen.getvalue()
    shown = len(screen.getvalue())
    audited("mst", "--quiet")
    audited("mst", "--json")
    assert len(screen.getvalue()) == shown


def test_runs_that_are_counted_move_the_bar():
    assert Advance("run", 1_200, 14_000).share == 1_200 / 14_000
    assert Advance("run", 1_200, 14_000).counted and not Advance("run", 14_000, 14_000).counted
