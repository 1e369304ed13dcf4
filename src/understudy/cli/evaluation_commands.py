"""`understudy evaluate` and `attack`: a synthetic table beside real rows. Both are internal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.cli.locations import beside
from understudy.cli.screen import Output, print_json, print_table, progress, tell
from understudy.errors import InputError
from understudy.lab.attacks.attacks import ATTACKS, NO_PROOF, Attacks, attack
from understudy.lab.attacks.report import summary
from understudy.lab.attacks.shadow_models import SHADOW
from understudy.lab.attacks.threat import DISTANCE, NOT_DEFINED, Attack, Finding
from understudy.lab.evaluation.evaluation import MEASURES, NOTICE, Evaluation, evaluate
from understudy.lab.evaluation.measure import LOWER, Measure, MeasureResult
from understudy.releases.release import FORMATS, SCHEMA, synthetic_name

READING, DRAWING = 1, 1
"""Parts of the work beside the measures or the attacks."""


def show_evaluation(real: str, synthetic: str, output: Output, *, schema: Path | None = None, **asked: Any) -> None:
    """Compares a synthetic table, or that of a release folder, with the real one.

    What is `asked` (the hold-out, the target, the groups) goes to `understudy.evaluate` as it is.
    """
    output.check()
    rows, known = rows_of(synthetic), comparison_schema(real, synthetic, schema)
    with progress(len(MEASURES) + READING + DRAWING, output.silent) as told:
        found = evaluate(real, rows, schema=known, progress=told, **asked)
        output.save(found)
    if output.as_json:
        print_json(json.loads(found.to_json()))
        return
    _print_evaluation(found)
    output.print_paths()


def rows_of(synthetic: str) -> str:
    """The file itself, or the one that a release folder holds."""
    folder = Path(synthetic)
    if not folder.is_dir():
        return synthetic
    for format in FORMATS:
        path = folder / synthetic_name(format)
        if path.is_file():
            return str(path)
    names = " nor ".join(map(synthetic_name, FORMATS))
    raise InputError(f"{synthetic!r} is not the folder of a release: it has neither {names}", folder)


def comparison_schema(real: str, synthetic: str, given: Path | None) -> Schema | None:
    """The one that was given, that of the release folder, or the one beside the real data; else one is drafted."""
    if given is not None:
        return Schema.load(given)
    # That of the release first: its facts are those that the synthetic values were made by.
    for path in (Path(synthetic) / SCHEMA, beside(real, ".toml")):
        if path.is_file():
            return Schema.load(path)
    return None


def _print_evaluation(found: Evaluation) -> None:
    facts = found.facts
    rows = f"{facts.real_rows:,} real rows, {facts.synthetic_rows:,} synthetic"
    if facts.holdout_rows is not None:
        rows += f", hold-out {facts.holdout_rows:,}"
    tell(f"{facts.synthetic} against {facts.real}: {rows}")
    _print_caveats(drafted=facts.drafted, left_out=facts.left_out)
    for section in dict.fromkeys(m.section for m in found.measures):
        _print_section(section, [(m, found[m.name]) for m in found.measures if m.section == section])
    tell(NOTICE)


def _print_section(title: str, figures: Sequence[tuple[Measure, MeasureResult]]) -> None:
    """A table of the figures, and below it why some measures have none."""
    rows = [(m.title, f"{f.value:.4g}", m.direction, _worst(m, f)) for m, f in figures if f.value is not None]
    if rows:
        print_table(title, ("measure", "value", "better is", "worst part"), rows)
    reasons: dict[str, list[str]] = {}
    for measure, figure in figures:
        if figure.value is None:
            reasons.setdefault(figure.reason, []).append(measure.title)
    for reason, titles in reasons.items():
        tell(f"{title}, no figure: {'; '.join(titles)}: {reason}.")


def _worst(measure: Measure, figure: MeasureResult) -> str:
    """The part that is furthest from good; nothing where all are alike."""
    known = {p.name: p.value for p in figure.parts if p.value is not None}
    if len(set(known.values())) < 2:
        return ""
    furthest = max if measure.direction == LOWER else min
    name = furthest(known, key=lambda n: known[n])
    return f"{name} ({known[name]:.4g})"


def _print_caveats(*, drafted: bool, left_out: Sequence[str]) -> None:
    """What a reader of the figures should know first."""
    if drafted:
        tell("The schema is a draft from the real rows, which no person confirmed; give a better one with --schema.")
    if left_out:
        tell(f"Left out: {', '.join(left_out)}.")


# --- attack


def show_attacks(
    train: str, holdout: str, synthetic: str, output: Output, *, schema: Path | None = None, **asked: Any
) -> None:
    """Attacks a synthetic table, or that of a release folder, and the method that is named.

    What is `asked` (the secrets, the seed, the shadow models) goes to `understudy.attack` as it is.
    """
    output.check()
    rows, known = rows_of(synthetic), comparison_schema(train, synthetic, schema)
    parts = READING + len(ATTACKS) + (asked.get("method") is not None)
    with progress(parts, output.silent) as told:
        found = attack(train, holdout, rows, schema=known, progress=told, **asked)
        output.save(found)
    if output.as_json:
        print_json(json.loads(found.to_json()))
        return
    _print_attacks(found)
    output.print_paths()


def _print_attacks(found: Attacks) -> None:
    facts = found.facts
    rows = f"{facts.train_rows:,} training rows, {facts.synthetic_rows:,} synthetic, hold-out {facts.holdout_rows:,}"
    tell(f"{facts.synthetic} from {facts.train}: {rows}")
    _print_caveats(drafted=facts.drafted, left_out=facts.left_out)
    findings = [(a, found[a.name]) for a in found.attacks]
    made = [_attack_row(a, f) for a, f in findings if f.verdict != NOT_DEFINED]
    if made:
        heads = ("attack", "success", "baseline", "advantage", f"{100 * facts.level:g} % interval", "verdict")
        print_table("Attacks", heads, made)
    for attack_, finding in findings:
        if finding.verdict == NOT_DEFINED:
            tell(f"{attack_.title}, not defined: {finding.reason}.")
        elif attack_.name == SHADOW.name:
            tell(f"{attack_.title}: {finding.note}. {attack_.meaning}")
    tell(summary(found))
    tell(NO_PROOF)
    tell(NOTICE)


def _attack_row(attack_: Attack, finding: Finding) -> tuple[str, ...]:
    assert finding.success is not None and finding.baseline is not None and finding.advantage is not None
    assert finding.interval is not None
    form = ".3f" if attack_.unit == DISTANCE else ".2%"
    low, high = finding.interval
    ends = f"{low:+{form}} to {high:+{form}}"
    rates = (f"{finding.success:{form}}", f"{finding.baseline:{form}}", f"{finding.advantage:+{form}}")
    return attack_.title, *rates, ends, finding.verdict
