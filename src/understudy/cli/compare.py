"""`understudy compare`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.cli.place import beside, schema_of
from understudy.cli.screen import print_facts, print_json, print_table
from understudy.errors import InputError
from understudy.lab.evaluation.evaluation import NOTICE as INTERNAL
from understudy.lab.evaluation.measure import Measure
from understudy.lab.studies.comparing import EPSILONS, NOTICE, TrialAdvance, compare
from understudy.lab.studies.layout import check_layout
from understudy.lab.studies.study import Study, Summary, Trial
from understudy.pages.page import check_figure_format
from understudy.progress import Advance, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Display

REPORT = "study.html"
HEADLINES, MOST_SHOWN = ("tv1", "tv2", "propensity-auc", "tstr-auc", "tstr-r2"), 4
A_WEEK = 7 * 24 * 3600.0


def show(
    data: str,
    methods: str | None,
    epsilons: str | None,
    seeds: int,
    target: str | None,
    groups: Sequence[str],
    holdout: str | None,
    schema: Path | None,
    delta: float,
    out: Path | None,
    jobs: int,
    layout: str | None,
    as_json: bool,
    quiet: bool,
    figures: Path | None = None,
    figure_format: str = "svg",
) -> None:
    """Runs the study, or what is left of it, and writes its report."""
    check_figure_format(figure_format)
    check_layout(layout)
    folder = out or beside(data, "-study")
    budgets = EPSILONS if epsilons is None else tuple(_number(e) for e in listed("epsilons", epsilons))
    names = None if methods is None else listed("methods", methods)
    known = schema_of(data, schema)
    if not (quiet or as_json):
        print(NOTICE, file=sys.stderr)
    with reported(folder, quiet or as_json) as step:
        study = compare(
            data, known, methods=names, epsilons=budgets, seeds=seeds, delta=delta, target=target, groups=groups,
            holdout=holdout, out=folder, jobs=jobs, progress=step,
        )  # fmt: skip
    study.save(folder / REPORT, layout)
    if figures is not None:
        study.save_figures(figures, figure_format)
    if as_json:
        print_json({"out": str(folder), "notice": INTERNAL, **to_dict(study)})
    else:
        _print(study, folder)


def listed(name: str, text: str) -> tuple[str, ...]:
    """What stands between commas."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise InputError(f"{name} ({text!r}) must be a list with commas between its parts", text)
    return parts


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"epsilon ({text!r}) must be a number", text) from None


@contextmanager
def reported(folder: Path, quiet: bool) -> Iterator[Progress]:
    """Progress on standard error: a bar with the time left, or a line for each trial where nobody watches."""
    with _display(quiet) as shown:
        try:
            yield shown
        except KeyboardInterrupt:
            if shown.last is not None:
                found = f"{shown.last.done} of {shown.last.total} trials are recorded in {folder}"
                print(f"\nStopped: {found}; the same command goes on from there.", file=sys.stderr)
            raise


class _Trials(Progress):
    """Remembers how far the study is."""

    last: TrialAdvance | None = None

    def advance(self, now: Advance, /) -> None:
        if isinstance(now, TrialAdvance):
            self.last = now
            self.show(now)

    def show(self, now: TrialAdvance) -> None:
        """Nothing, where it should be quiet."""


class _Lines(_Trials):
    def show(self, now: TrialAdvance) -> None:
        if now.trial is not None:
            print(f"{now.done}/{now.total}  {described(now.trial)}", file=sys.stderr, flush=True)
        elif now.recorded:
            print(f"{now.recorded} of {now.total} trials are on record already", file=sys.stderr, flush=True)


class _Bar(_Trials):
    def __init__(self, shown: Display) -> None:
        self._shown, self._task = shown, shown.add_task("reading", total=None)

    def show(self, now: TrialAdvance) -> None:
        if now.trial is None:
            self._shown.reset(self._task, total=now.total, completed=now.done, description="first trials")
            return
        self._shown.update(self._task, advance=1, description=described(now.trial))
        if now.trial.failed:
            self._shown.console.print(described(now.trial), markup=False, highlight=False)


@contextmanager
def _display(quiet: bool) -> Iterator[_Trials]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    if quiet:
        yield _Trials()
    elif not sys.stderr.isatty():
        yield _Lines()
    else:
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), *times)
        words = TextColumn("{task.description}", markup=False)
        # A trial may take many minutes, so speed is judged by all of them.
        with Display(
            *columns, words, console=Console(stderr=True), transient=True, speed_estimate_period=A_WEEK
        ) as shown:
            yield _Bar(shown)


def described(trial: Trial) -> str:
    """A trial in one line."""
    case = f"{trial.method} at epsilon {trial.epsilon:g}, seed {trial.seed}" if trial.epsilon else f"{trial.method}"
    return f"{case}: {'failed: ' + trial.failed if trial.failed else f'{trial.seconds:.1f} s'}"


def to_dict(study: Study) -> dict[str, Any]:
    """For programs: every measure over the seeds of each method at each ε, and what failed."""
    results = [
        {"method": m, "epsilon": e, "measure": measure.name, **asdict(summary)}
        for m, e, measure, summary in _summaries(study, study.measures)
        if summary
    ]
    failures = [
        {"method": t.method, "epsilon": t.epsilon, "seed": t.seed, "reason": t.failed} for t in study.failures()
    ]
    baseline = {name: figure.value for name, figure in study.baseline.items()}
    facts = {"table": study.table, "rows": study.rows, "holdout_rows": study.holdout_rows, "delta": study.delta}
    return {**facts, "target": study.target, "baseline": baseline, "results": results, "failures": failures}


def _summaries(study: Study, measures: Sequence[Measure]) -> Iterator[tuple[str, float, Measure, Summary | None]]:
    for method in study.methods:
        for epsilon in study.epsilons:
            for measure in measures:
                yield method, epsilon, measure, study.summary(method, epsilon, measure.name)


def _print(study: Study, folder: Path) -> None:
    measures = _headlines(study)
    heads = ("method", "epsilon", *(m.name for m in measures), "seconds", "MB")
    rows = [_row(study, m, e, measures) for m in study.methods for e in study.epsilons if study.of(m, e)]
    title = f"{study.table}: {study.rows:,} rows, hold-out {study.holdout_rows:,}; means over the seeds"
    print_table(title, heads, [_baseline_row(study, measures), *rows])
    for measure in measures:
        print(f"{measure.name}: {measure.title}, {measure.direction} is better")
    for trial in study.failures():
        print(described(trial))
    print_facts([("report", str(folder / REPORT)), ("all figures", f"{folder / 'results.csv'}, results.parquet")])
    print(INTERNAL)


def _headlines(study: Study) -> tuple[Measure, ...]:
    """As many measures as a terminal is wide; the report has them all."""
    known = {m.name: m for m in study.measures}
    return tuple(known[name] for name in dict.fromkeys((*HEADLINES, *known)) if name in known)[:MOST_SHOWN]


def _row(study: Study, method: str, epsilon: float, measures: Sequence[Measure]) -> tuple[str, ...]:
    figures = (_mean(study.summary(method, epsilon, m.name), "{:.3g}") for m in measures)
    costs = (_mean(study.cost(method, epsilon, what), "{:,.1f}") for what in ("seconds", "megabytes"))
    return (method, f"{epsilon:g}", *figures, *costs)


def _mean(summary: Summary | None, form: str) -> str:
    return "–" if summary is None else form.format(summary.mean)


def _baseline_row(study: Study, measures: Sequence[Measure]) -> tuple[str, ...]:
    values = [study.baseline[m.name].value if m.name in study.baseline else None for m in measures]
    return ("(real rows)", "", *("–" if v is None else f"{v:.3g}" for v in values), "", "")
