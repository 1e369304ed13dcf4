"""`understudy attack`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from understudy.cli.evaluate import check_report, comparison_schema, rows_of
from understudy.cli.screen import print_table, progress
from understudy.lab.attacks.all_attacks import ATTACKS
from understudy.lab.attacks.attack import DISTANCE, NOT_DEFINED, Attack, Finding
from understudy.lab.attacks.attacks import NO_PROOF, Attacks, attack
from understudy.lab.attacks.report import summary
from understudy.lab.attacks.shadow_models import SHADOW
from understudy.lab.evaluation.evaluation import NOTICE

READING = 1


def show(
    train: str,
    holdout: str,
    synthetic: str,
    secrets: Sequence[str],
    schema: Path | None,
    seed: int,
    report: Path | None,
    as_json: bool,
    quiet: bool,
    method: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    shadows: int | None = None,
) -> None:
    """Attacks a synthetic table, or that of a release folder, and the method that is named."""
    if report is not None:
        check_report(report)
    rows, known = rows_of(synthetic), comparison_schema(train, synthetic, schema)
    with progress(len(ATTACKS) + READING + _steps(method, shadows), quiet or as_json) as begin:
        found = attack(
            train,
            holdout,
            rows,
            schema=known,
            secrets=tuple(secrets) or None,
            method=method,
            epsilon=epsilon,
            delta=delta,
            shadows=shadows,
            seed=seed,
            progress=begin,
        )
        if report is not None:
            found.save(report)
    if as_json:
        print(found.to_json())
        return
    _print(found)
    if report is not None:
        print(f"The report is {report}.")


def _steps(method: str | None, shadows: int | None) -> int:
    """Of the shadow models: the attack itself, and every run of the method."""
    return 0 if method is None else 1


def _print(found: Attacks) -> None:
    facts = found.facts
    rows = f"{facts.train_rows:,} training rows, {facts.synthetic_rows:,} synthetic, hold-out {facts.holdout_rows:,}"
    print(f"{facts.synthetic} from {facts.train}: {rows}")
    if facts.drafted:
        print("The schema is a draft from the real rows, which no person confirmed; give a better one with --schema.")
    if facts.left_out:
        print(f"Left out: {', '.join(facts.left_out)}.")
    findings = [(a, found[a.name]) for a in found.attacks]
    made = [_row(a, f) for a, f in findings if f.verdict != NOT_DEFINED]
    if made:
        heads = ("attack", "success", "baseline", "advantage", f"{100 * facts.level:g} % interval", "verdict")
        print_table("Attacks", heads, made)
    for attack_, finding in findings:
        if finding.verdict == NOT_DEFINED:
            print(f"{attack_.title}, not defined: {finding.reason}.")
        elif attack_.name == SHADOW.name:
            print(f"{attack_.title}: {finding.note}. {attack_.meaning}")
    print(summary(found))
    print(NO_PROOF)
    print(NOTICE)


def _row(attack_: Attack, finding: Finding) -> tuple[str, ...]:
    assert finding.success is not None and finding.baseline is not None and finding.advantage is not None
    assert finding.interval is not None
    form = ".3f" if attack_.unit == DISTANCE else ".2%"
    low, high = finding.interval
    ends = f"{low:+{form}} to {high:+{form}}"
    rates = (f"{finding.success:{form}}", f"{finding.baseline:{form}}", f"{finding.advantage:+{form}}")
    return attack_.title, *rates, ends, finding.verdict
