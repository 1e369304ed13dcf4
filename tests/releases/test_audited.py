"""A release can carry the audit of its method: of this very claim, without a violation, or nothing is spent."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import understudy as us
from understudy.cli import run as run_command
from understudy.lab.audits.result import FAILED, PASSED, SKIPPED, WHITE_BOX, Audit, AuditCheck, AuditStep, Bound, Claim
from understudy.releases.certificate import versions

MADE = "2026-01-01T00:00:00+00:00"
SCHEMA = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 9\n[columns.ill]\ntype = "boolean"')
ROWS = pa.table({"age": [i % 10 for i in range(50)], "ill": [i % 3 == 0 for i in range(50)]})


def made(outcome: str = PASSED, **changes: Any) -> Audit:
    claim = Claim(1.0, 1e-6, "add-remove", 0.024, None)
    steps = (
        AuditStep("taint", "Taint", "…", (AuditCheck("pair 'x'", outcome, "words"),)),
        AuditStep("game", "Game", "…", reason="none"),
    )
    bound = Bound("equal rows", WHITE_BOX, "ratio", 100, 0.025, 0.54, 0.1, 0.001, 0.1)
    facts: dict[str, Any] = {"subject": "mst", "claim": claim} | changes
    audit = Audit(
        "mst", "method", "quick", claim, 0.05, (), steps, (bound,), 1.0, 1.0, "2026-01-01T00:00:00+00:00", versions()
    )
    return dataclasses.replace(audit, **facts)


def released(audit: Audit | None, ledger: Path | None = None) -> us.Release:
    return us.synthesize(us.open(ROWS, SCHEMA), method="mst", epsilon=1.0, rows=20, audit=audit, ledger=ledger)


def test_the_certificate_carries_it(tmp_path: Path) -> None:
    released(made()).save(tmp_path / "release")
    written = json.loads((tmp_path / "release" / "certificate.json").read_text())["audit"]
    assert written["verdict"] == "no violation found (power 1.00 against halved noise)"
    assert written["steps"] == {"Taint": PASSED, "Game": f"{SKIPPED}: none"}
    assert written["bounds"][0]["mu"] == 0.1 and written["claim"]["epsilon"] == 1.0
    assert us.verify(tmp_path / "release").claimed
    assert us.replay(tmp_path / "release").rows == 20
    assert "no violation found" in (tmp_path / "release" / "report.html").read_text()


def test_an_audit_that_was_edited_is_a_failed_check(tmp_path: Path) -> None:
    released(made()).save(tmp_path / "release")
    path = tmp_path / "release" / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b"no violation found", b"no violation  ever"))
    with pytest.raises(us.CheckFailed):
        us.verify(tmp_path / "release")


def test_without_one_the_certificate_says_nothing_of_audits() -> None:
    assert "audit" not in released(None).certificate.to_dict()


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": "aim"},
        {"claim": Claim(2.0, 1e-6, "add-remove")},
        {"claim": Claim(1.0, 1e-5, "add-remove")},
        {"claim": Claim(1.0, 1e-6, "replace-one")},
    ],
)
def test_an_audit_of_something_else_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(us.InputError, match="must be of mst at epsilon 1"):
        released(made(**changes), tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()


def test_a_violation_stops_the_release_before_anything_is_spent(tmp_path: Path) -> None:
    with pytest.raises(us.CheckFailed, match="found a violation"):
        released(made(FAILED), tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()


def test_the_command_audits_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Exit code 1 for a violation, and neither ledger nor release; else the verdict is shown."""
    import pyarrow.csv as pacsv

    pacsv.write_csv(ROWS, tmp_path / "rows.csv")
    (tmp_path / "rows.toml").write_text(SCHEMA.dumps())
    arguments = [
        "synth",
        str(tmp_path / "rows.csv"),
        "--epsilon",
        "1",
        "--method",
        "mst",
        "--rows",
        "20",
        "--audit",
        "quick",
    ]
    before = sorted(p.name for p in tmp_path.iterdir())
    asked: list[tuple[str, float, str]] = []

    def audited(method: str, *, epsilon: float, setting: str, **rest: Any) -> Audit:
        asked.append((method, epsilon, setting))
        return made(FAILED if len(asked) == 1 else PASSED)

    monkeypatch.setattr("understudy.lab.audits.audit.audit", audited)
    assert run_command(arguments) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert run_command(arguments) == 0
    assert asked == [("mst", 1.0, "quick")] * 2
    assert "no violation found" in capsys.readouterr().out
