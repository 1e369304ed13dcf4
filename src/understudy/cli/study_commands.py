"""`understudy compare`, and the pages of `understudy study`, which need no private table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.cli.locations import beside, schema_of
from understudy.cli.screen import (
    Output,
    check_folder,
    check_report,
    print_facts,
    print_json,
    print_table,
    progress,
    tell,
)
from understudy.datasets import names
from understudy.datasets import schema as bundled_schema
from understudy.errors import InputError, ReleaseError, shown
from understudy.files import make_private
from understudy.lab.evaluation.evaluation import NOTICE as INTERNAL
from understudy.lab.evaluation.measure import Measure
from understudy.lab.studies.documents import forests, model_or_statistics, nonparametric, prediction_grid
from understudy.lab.studies.documents import selection_study as selection
from understudy.lab.studies.documents.prediction_page import PredictionGrid
from understudy.lab.studies.layout import check_layout
from understudy.lab.studies.method_comparison import NOTICE, TrialAdvance, compare
from understudy.lab.studies.study import Study, Summary, Trial
from understudy.methods.params import parse_options
from understudy.methods.registry import find_method
from understudy.parameters import known_name, one_of
from understudy.progress import Advance, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Display

REPORT = "study.html"
HEADLINES, MOST_SHOWN = ("tv1", "tv2", "propensity-auc", "tstr-auc", "tstr-r2"), 4
A_WEEK = 7 * 24 * 3600.0  # longer than any study: a trial may take many minutes, so speed is judged by all of them
SELECTED = ("adult", "covertype")
"""The tables on which rows are selected, if none are named."""
QUICK_DEPTHS, QUICK_TREES, QUICK_EPSILONS = (1, 3, 5, 7), (1, 10, 100), (0.001, 0.1, 10.0)


def show_comparison(
    data: str,
    output: Output,
    *,
    methods: str | None,
    epsilons: str | None,
    schema: Path | None,
    out: Path | None,
    layout: str | None,
    options: Sequence[str] = (),
    **asked: Any,
) -> None:
    """Runs the study, or what is left of it, and writes its report.

    What is `asked` besides (seeds, target, hold-out, jobs …) goes to `understudy.compare` as it is.
    """
    output.check()
    check_layout(layout)
    folder = out or beside(data, "-study")
    if methods is not None:
        asked["methods"] = listed("methods", methods)
    if epsilons is not None:
        asked["epsilons"] = tuple(_number(e) for e in listed("epsilons", epsilons))
    asked["options"] = options_by_method(options)
    known = schema_of(data, schema)
    # Before the work, and to standard error: whoever reads only the result has chosen by it already.
    if not output.silent:
        tell(NOTICE, error=True)
    with reported(folder, output.silent) as told:
        study = compare(data, known, out=folder, progress=told, **asked)
    study.save(folder / REPORT, layout)
    output.save(study)
    if output.as_json:
        print_json({"out": str(folder), "notice": INTERNAL, **to_dict(study)})
    else:
        _print_study(study, folder)


def listed(name: str, text: str) -> tuple[str, ...]:
    """What stands between commas."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise InputError(f"{name} ({text!r}) must be a list with commas between its parts", text)
    return parts


def options_by_method(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Options as they are typed, each with its method before it.

    >>> options_by_method(["dp-gan.steps=50", "rake.rounds=9"])
    {'dp-gan': {'steps': '50'}, 'rake': {'rounds': '9'}}
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        method, dot, own = text.partition(".")
        if not dot or "=" in method:
            raise InputError(f"option ({text!r}) must name a method and its option, as in dp-gan.steps=50", text)
        found.setdefault(method, []).append(own)
    return {method: parse_options(own) for method, own in found.items()}


def _budget(text: str) -> float:
    return Budget(_number(text), DEFAULT_DELTA).epsilon


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
                # Each trial was written as it ended, so only those that were under way are lost.
                found = f"{shown.last.done} of {shown.last.total} trials are recorded in {folder}"
                tell(f"Stopped: {found}; the same command goes on from there.", error=True)
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
            tell(f"{now.done}/{now.total}  {described(now.trial)}", error=True)
        elif now.recorded:
            tell(f"{now.recorded} of {now.total} trials are on record already", error=True)


class _Bar(_Trials):
    def __init__(self, shown: Display) -> None:
        self._shown, self._task = shown, shown.add_task("reading", total=None)

    def show(self, now: TrialAdvance) -> None:
        if now.trial is None:
            self._shown.reset(self._task, total=now.total, completed=now.done, description="first trials")
            return
        self._shown.update(self._task, advance=1, description=described(now.trial))
        if now.trial.failed:
            # A line that stays above the bar; without markup, since the reason may hold brackets.
            self._shown.console.print(shown(described(now.trial)), markup=False, highlight=False)


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
        with Display(
            *columns, words, console=Console(stderr=True), transient=True, speed_estimate_period=A_WEEK
        ) as shown:
            yield _Bar(shown)


def described(trial: Trial) -> str:
    """A trial in one line."""
    case = trial.method
    # Only the baseline, real rows in place of synthetic ones, has an ε of 0.
    if trial.epsilon:
        case += f" at epsilon {trial.epsilon:g}, seed {trial.seed}"
    if trial.failed:
        return f"{case}: failed: {trial.failed}"
    return f"{case}: {trial.seconds:.1f} s"


def to_dict(study: Study) -> dict[str, Any]:
    """For programs: every measure over the seeds of each method at each ε, and what failed."""
    results = [
        {"method": method, "epsilon": epsilon, "measure": measure.name, **asdict(summary)}
        for method in study.methods
        for epsilon in study.epsilons
        for measure in study.measures
        if (summary := study.summary(method, epsilon, measure.name))
    ]
    failures = [
        {"method": t.method, "epsilon": t.epsilon, "seed": t.seed, "reason": t.failed} for t in study.failures()
    ]
    baseline = {name: figure.value for name, figure in study.baseline.items()}
    facts = {"table": study.table, "rows": study.rows, "holdout_rows": study.holdout_rows, "delta": study.delta}
    return {**facts, "target": study.target, "baseline": baseline, "results": results, "failures": failures}


def _print_study(study: Study, folder: Path) -> None:
    measures = _headlines(study)
    heads = ("method", "epsilon", *(m.name for m in measures), "seconds", "MB")
    rows = [_row(study, m, e, measures) for m in study.methods for e in study.epsilons if study.of(m, e)]
    title = f"{study.table}: {study.rows:,} rows, hold-out {study.holdout_rows:,}; means over the seeds"
    print_table(title, heads, [_baseline_row(study, measures), *rows])
    for measure in measures:
        tell(f"{measure.name}: {measure.title}, {measure.direction} is better")
    for trial in study.failures():
        tell(described(trial))
    print_facts([("report", str(folder / REPORT)), ("all figures", f"{folder / 'results.csv'}, results.parquet")])
    tell(INTERNAL)


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
    known = {name: figure.value for name, figure in study.baseline.items() if figure.value is not None}
    values = (f"{known[m.name]:.3g}" if m.name in known else "–" for m in measures)
    return ("(real rows)", "", *values, "", "")


# --- studies of public tables


def show_nonparametric(out: Path, seed: int, quiet: bool) -> None:
    check_report(out, endings=(".html",), name="out")
    with progress(2, quiet) as begin:
        begin("learning from made-up rows, and simulating what that costs")
        nonparametric.write(out, seed)
        begin("writing")
    tell(f"The page is {out}.")


def show_selection(
    folder: Path, out: Path, tables: Sequence[str], seed: int, quiet: bool, *, pools: str, epsilons: str, swept: str,
    swept_epsilons: str, **more: Any,
) -> None:  # fmt: skip
    """The experiments on selection; `more` are the other fields of a `SelectionSize`."""
    check_report(out, endings=(".html",), name="out")
    size = selection.SelectionSize(
        listed("pools", pools), tuple(map(_budget, listed("epsilons", epsilons))), swept=swept,
        swept_epsilons=tuple(map(_budget, listed("swept-epsilons", swept_epsilons))), **more,
    )  # fmt: skip
    for pool in (*size.pools, swept):
        find_method(pool)
    wanted = tuple(tables) or SELECTED
    for table in wanted:
        known_name("table", table, names())
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} must be the folder of the public tables", folder)
    schemas = {t: bundled_schema(t) for t in wanted}
    with progress(len(list(selection.cases(size, list(schemas)))), quiet) as begin:
        selection.write(out, folder, schemas, seed=seed, size=size, progress=begin)
    tell(f"The page is {out}.")


def show_forests(folder: Path, out: Path, tables: Sequence[str], *, quiet: bool, **size: Any) -> None:
    """The tables and pictures of the document on adversarial forests; `size` is that of a `ForestsPlan`."""
    wanted = _tables(folder, tables, {name: (forests.FILES.get(name, f"{name}.csv"),) for name in forests.TARGETS})
    _make_folder(out)
    plan = forests.ForestsPlan(**size)
    schemas = {name: bundled_schema(name) for name in wanted}
    with reported(out, quiet) as told:
        drawing = None if quiet else partial(tell, error=True)
        chapters = forests.study(folder, schemas, out, plan, told, drawing)
    forests.write(chapters, out, plan)
    _print_written(out / forests.PAGE, out / forests.TABLES)


def show_model_or_statistics(
    folder: Path, out: Path, *, methods: str | None, seeds: int, rows: int, steps: int, jobs: int, quiet: bool
) -> None:
    """The verdict on networks and counts."""
    _tables(folder, [], {model_or_statistics.TABLE: model_or_statistics.FILES})
    named = model_or_statistics.METHODS if methods is None else listed("methods", methods)
    plan = model_or_statistics.StudyPlan(named, seeds=seeds, rows=rows, steps=steps, jobs=jobs)
    _make_folder(out)
    with reported(out, quiet) as told:
        found = model_or_statistics.study(folder, bundled_schema(model_or_statistics.TABLE), out, plan, told)
    model_or_statistics.write(found, out)
    verdict = model_or_statistics.verdict(found)
    if verdict.rows:
        print_table(verdict.title, verdict.heads, verdict.rows)
        tell(verdict.note)
    _print_written(out / model_or_statistics.PAGE, out / model_or_statistics.VERDICT)


def _print_written(page: Path, tables: Path) -> None:
    tell(f"The page is {page}; its short form is {tables}.")
    tell(INTERNAL)


def show_prediction(folder: Path, out: Path, tables: Sequence[str], repeats: int, quick: bool, quiet: bool) -> None:
    """Runs the grid on the tables that the folder holds, and writes its page and its numbers."""
    files = {name: (prediction_grid.FILES.get(name, f"{name}.csv"),) for name in prediction_grid.TARGETS}
    names = _tables(folder, tables, files)
    _make_folder(out)
    tried: tuple[Sequence[int], Sequence[int], Sequence[float]] = (
        prediction_grid.DEPTHS, prediction_grid.TREES, prediction_grid.EPSILONS,
    )  # fmt: skip
    if quick:
        tried = QUICK_DEPTHS, QUICK_TREES, QUICK_EPSILONS
    depths, trees, epsilons = tried
    with progress(len(names) * prediction_grid.sizes(*tried), quiet) as begin:
        grid = prediction_grid.prediction_grid(
            folder, {name: bundled_schema(name) for name in names}, depths=depths, trees=trees, epsilons=epsilons,
            repeats=repeats, progress=begin,
        )  # fmt: skip
    prediction_grid.save(grid, out)
    print_table("The best size of each predictor", ("table", "predictor", "accuracy", "size", "ε"), _best_rows(grid))
    tell(f"The page is {out / 'prediction-grid.html'}; the numbers are beside it.")


def _tables(folder: Path, asked: Sequence[str], files: Mapping[str, Sequence[str]]) -> list[str]:
    """Those that were asked for, or all whose files are there."""
    for name in asked:
        one_of("table", name, files)
    lacking = {name: [f for f in some if not (folder / f).is_file()] for name, some in files.items()}
    there = [name for name in files if not lacking[name]]
    absent = next((name for name in asked if name not in there), None)
    if absent is not None or not there:
        missing = lacking[absent or list(files)[-1]][0]
        raise InputError(f"{str(folder)!r} has no {missing}; give the folder of the public tables", folder)
    if asked:
        return [name for name in there if name in asked]
    return there


def _make_folder(out: Path) -> None:
    """Makes the folder, and refuses one that can't be written, before any work is done."""
    try:
        make_private(out)  # what is measured on real rows is for this user alone, and so are its record and its key
    except OSError as error:
        raise ReleaseError(f"{str(out)!r} can't be written: {error.strerror}", out) from None
    check_folder(out, out)


def _best_rows(grid: PredictionGrid) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for table in grid.tables:
        for method in dict.fromkeys(o.method for o in grid.outcomes):
            best = grid.best(table, method)
            plural = "s" if best.trees > 1 else ""
            size = f"depth {best.depth}, {best.trees} tree{plural}"
            epsilon = "–" if best.epsilon is None else f"{best.epsilon:g}"
            found.append((table, method, f"{best.mean:.4f}", size, epsilon))
    return found
