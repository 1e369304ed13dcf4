"""`understudy evaluate`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from understudy.boundary.schema.schema import Schema
from understudy.cli.place import beside
from understudy.cli.screen import print_table, progress
from understudy.errors import InputError, ReleaseError
from understudy.lab.evaluation.evaluation import MEASURES, NOTICE, Evaluation, evaluate
from understudy.lab.evaluation.measure import LOWER, Figure, Measure
from understudy.pages.page import check_figure_format
from understudy.releases.release import FORMATS, SCHEMA, synthetic_name

ENDINGS = (".html", ".json")
READING_AND_DRAWING = 2


def show(
    real: str,
    synthetic: str,
    holdout: str | None,
    target: str | None,
    groups: Sequence[str],
    schema: Path | None,
    report: Path | None,
    as_json: bool,
    quiet: bool,
    figures: Path | None = None,
    figure_format: str = "svg",
) -> None:
    """Compares a synthetic table, or that of a release folder, with the real one."""
    check_figure_format(figure_format)
    if report is not None:
        check_report(report)
    rows, known = rows_of(synthetic), comparison_schema(real, synthetic, schema)
    with progress(len(MEASURES) + READING_AND_DRAWING, quiet or as_json) as begin:
        found = evaluate(real, rows, holdout=holdout, target=target, groups=groups, schema=known, progress=begin)
        if report is not None:
            found.save(report)
        if figures is not None:
            found.save_figures(figures, figure_format)
    if as_json:
        print(found.to_json())
        return
    _print(found)
    if report is not None:
        print(f"The report is {report}.")
    if figures is not None:
        print(f"The figures are in {figures}.")


def check_report(path: Path) -> None:
    """Refuses a path that can't be written, before any work is done: proves it by writing beside it."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"report ({path.name!r}) must end in {' or '.join(ENDINGS)}", path)
    if path.is_dir():
        raise ReleaseError(f"{str(path)!r} is a folder; name a file for the report", path)
    try:
        with tempfile.NamedTemporaryFile(prefix=".understudy.tmp-", dir=path.parent):
            pass
    except OSError as error:
        raise ReleaseError(f"{str(path)!r} can't be written: {error.strerror}", path) from None


def rows_of(synthetic: str) -> str:
    """The file itself, or the one that a release folder holds."""
    folder = Path(synthetic)
    if not folder.is_dir():
        return synthetic
    found = next((p for p in (folder / synthetic_name(f) for f in FORMATS) if p.is_file()), None)
    if found is None:
        names = " nor ".join(map(synthetic_name, FORMATS))
        raise InputError(f"{synthetic!r} is not the folder of a release: it has neither {names}", folder)
    return str(found)


def comparison_schema(real: str, synthetic: str, given: Path | None) -> Schema | None:
    """The one that was given, that of the release folder, or the one beside the real data; else one is drafted."""
    if given is not None:
        return Schema.load(given)
    found = next((p for p in (Path(synthetic) / SCHEMA, beside(real, ".toml")) if p.is_file()), None)
    return None if found is None else Schema.load(found)


def _print(found: Evaluation) -> None:
    facts = found.facts
    held = f", hold-out {facts.holdout_rows:,}" if facts.holdout_rows is not None else ""
    rows = f"{facts.real_rows:,} real rows, {facts.synthetic_rows:,} synthetic{held}"
    print(f"{facts.synthetic} against {facts.real}: {rows}")
    if facts.drafted:
        print("The schema is a draft from the real rows, which no person confirmed; give a better one with --schema.")
    if facts.left_out:
        print(f"Left out: {', '.join(facts.left_out)}.")
    for section in dict.fromkeys(m.section for m in found.measures):
        _print_section(section, [(m, found[m.name]) for m in found.measures if m.section == section])
    print(NOTICE)


def _print_section(title: str, figures: Sequence[tuple[Measure, Figure]]) -> None:
    """A table of the figures, and below it why some measures have none."""
    rows = [_row(measure, figure) for measure, figure in figures if figure.value is not None]
    if rows:
        print_table(title, ("measure", "value", "better is", "worst part"), rows)
    reasons: dict[str, list[str]] = {}
    for measure, figure in figures:
        if figure.value is None:
            reasons.setdefault(figure.reason, []).append(measure.title)
    for reason, titles in reasons.items():
        print(f"{title}, no figure: {'; '.join(titles)}: {reason}.")


def _row(measure: Measure, figure: Figure) -> tuple[str, str, str, str]:
    return measure.title, f"{figure.value:.4g}", measure.direction, _worst(measure, figure)


def _worst(measure: Measure, figure: Figure) -> str:
    """The part that is furthest from good; nothing where all are alike."""
    known = {p.name: p.value for p in figure.parts if p.value is not None}
    if len(set(known.values())) < 2:
        return ""
    name = (max if measure.direction == LOWER else min)(known, key=lambda n: known[n])
    return f"{name} ({known[name]:.4g})"
