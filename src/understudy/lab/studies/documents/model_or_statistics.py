"""Model-first against statistics-first at equal budgets: the experiment of a plan, run on the Adult table.

("Comparative Study of DP Synthetic Data Generation: Model-First vs Stat-First", §4.) Three networks against counts and
what is fitted to them, with attacks on every table and figures by group.

    write("model-or-statistics", folder, schema)

makes the page and, beside it, the verdict as a short table. It reads real rows, so both are internal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.files import write_atomically
from understudy.lab.studies.layout import NOTHING, TextTable
from understudy.lab.studies.method_comparison import TrialAdvance, compare
from understudy.lab.studies.report import render
from understudy.lab.studies.study import Study, Summary
from understudy.methods.method import MODEL_FIRST, STATISTICS_FIRST
from understudy.progress import Progress

TABLE, TARGET, GROUPS = "adult", "income", ("sex", "race")
FILES = ("adult.train.csv", "adult.test.csv")
METHODS = ("dp-gan", "dp-ctgan", "pate-gan", "privbayes", "mwem", "mst", "aim", "rake", "generative-forest")
EPSILONS, SEEDS, DELTA = (1.0, 5.0, 10.0), 3, 1e-6
GRADIENTS = ("dp-gan", "dp-ctgan")
LAYOUT = "model-or-statistics"
PAGE, VERDICT = "study.html", "verdict.md"


@dataclass(frozen=True)
class Question:
    """A measure of the verdict, with the digits that its figures are worth."""

    measure: str
    title: str
    digits: int = 3


QUESTIONS = (
    Question("tstr-accuracy", "TSTR accuracy"),
    Question("tstr-auc", "TSTR AUC"),
    Question("tv1", "TV of columns"),
    Question("tv2", "TV of pairs"),
    Question("propensity-auc", "AUC, real or synthetic"),
    Question("tstr-gap-groups", "gap between groups"),
    Question("parity-gap", "error of parity"),
    Question("attack-membership-density", "membership advantage"),
    Question("attack-inference", "inference advantage"),
)
"""What the plan asks of each method, one measure of a kind: use, statistics, fairness, attacks."""
MEASURES: tuple[str, ...] = (
    "tv1",
    "tv2",
    "js",
    "wasserstein-1",
    "pearson",
    "association",
    "query-error",
    "pmse",
    "propensity-auc",
)
MEASURES += ("tstr-accuracy", "tstr-f1", "tstr-auc", "parity-gap", "tstr-gap-groups")
"""Of utility; every attack besides."""


@dataclass(frozen=True)
class StudyPlan:
    """How much is tried, and how much of the table is learned from."""

    methods: tuple[str, ...] = METHODS
    epsilons: tuple[float, ...] = EPSILONS
    seeds: int = SEEDS
    rows: int = 10_000
    """At most so many rows to learn from, and half as many to test with: all of Adult takes hours."""
    steps: int = 50
    """Of the two networks that learn by gradients; half of their default."""
    jobs: int = 2

    @property
    def options(self) -> dict[str, dict[str, int]]:
        return {method: {"steps": self.steps} for method in self.methods if method in GRADIENTS}


def study(
    folder: str | Path,
    schema: Schema,
    out: str | Path,
    plan: StudyPlan | None = None,
    progress: Progress | Callable[[TrialAdvance], None] | None = None,
) -> Study:
    """All trials, recorded in the folder `out`; the same call goes on where it was stopped."""
    plan = plan or StudyPlan()
    most = (plan.rows, max(1, plan.rows // 2))
    train, test = (Rows.of(Path(folder) / f).everything().slice(0, n) for f, n in zip(FILES, most, strict=True))
    found = compare(
        train, schema, methods=plan.methods, epsilons=plan.epsilons, seeds=plan.seeds, delta=DELTA, target=TARGET,
        groups=GROUPS, holdout=test, measures=MEASURES, attacks=True, options=plan.options, out=out, jobs=plan.jobs,
        progress=progress,
    )  # fmt: skip
    return replace(found, table=f"{TABLE}, the first rows")


def write(study: Study, out: str | Path) -> None:
    """The page, and the verdict in Markdown; only this user may read them."""
    out = Path(out)
    write_atomically(out / PAGE, render(study, LAYOUT, (verdict(study),)).encode(), private=True)
    write_atomically(out / VERDICT, markdown(study).encode(), private=True)


def markdown(study: Study) -> str:
    """The verdict, then every method at every ε."""
    return "\n\n".join(_markdown(table) for table in (verdict(study), everything(study))) + "\n"


def verdict(study: Study) -> TextTable:
    """At each ε and by each measure: the best network, the best of the others, and whether their intervals overlap."""
    rows, won = [], {MODEL_FIRST: 0, STATISTICS_FIRST: 0}
    for epsilon in study.epsilons:
        for question in QUESTIONS:
            found = _duel(study, epsilon, question)
            if found is not None:
                cells, winner = found
                rows.append((f"{epsilon:g}", question.title, *cells))
                if winner:
                    won[winner] += 1
    clear = ", ".join(f"{family} in {count}" for family, count in won.items())
    return TextTable(
        "Model-first against statistics-first",
        ("ε", "measure", f"best {MODEL_FIRST}", f"best {STATISTICS_FIRST}", "better"),
        tuple(rows),
        f"Clearly better, their 95 % intervals of the mean being apart: {clear} of {len(rows)} comparisons.",
    )


def _duel(study: Study, epsilon: float, question: Question) -> tuple[tuple[str, str, str], str] | None:
    measure = next((m for m in study.measures if m.name == question.measure), None)
    if measure is None:
        return None
    first, second = (study.best(epsilon, measure, family) for family in (MODEL_FIRST, STATISTICS_FIRST))
    if first is None or second is None:
        return None
    cells = (_named(first, question), _named(second, question))
    if first[1].mean == second[1].mean:
        return (*cells, "equal"), ""
    winner = MODEL_FIRST if study.best(epsilon, measure) == first else STATISTICS_FIRST
    apart = first[1].high < second[1].low or second[1].high < first[1].low
    if not apart:
        return (*cells, f"{winner}, within the intervals"), ""
    return (*cells, winner), winner


def _named(found: tuple[str, Summary], question: Question) -> str:
    return f"{found[0]} {_figure(found[1], question)}"


def _figure(found: Summary | None, question: Question) -> str:
    if found is None:
        return NOTHING
    return found.written(f"{{:.{question.digits}f}}".format)


def everything(study: Study) -> TextTable:
    """Every method at every ε; real rows last."""
    rows = [
        (
            method,
            study.families[method],
            f"{epsilon:g}",
            *(_figure(study.summary(method, epsilon, q.measure), q) for q in QUESTIONS),
            _seconds(study, method, epsilon),
        )
        for method in study.methods
        for epsilon in study.epsilons
    ]
    known = (study.baseline.get(q.measure) for q in QUESTIONS)
    real = (NOTHING if f is None or f.value is None else f"{f.value:.3f}" for f in known)
    rows.append(("real rows", NOTHING, NOTHING, *real, NOTHING))
    return TextTable(
        "Every method",
        ("method", "family", "ε", *(q.title for q in QUESTIONS), "seconds"),
        tuple(rows),
        f"Means over the seeds ± half of the 95 % interval; every method at δ = {study.delta:g}. Seconds are those of "
        "a clock, on one core that others may have used too.",
    )


def _seconds(study: Study, method: str, epsilon: float) -> str:
    found = study.cost(method, epsilon, "seconds")
    return NOTHING if found is None else f"{found.mean:.0f}"


def _markdown(table: TextTable) -> str:
    lines: Sequence[Sequence[str]] = [table.heads, ["---"] * len(table.heads), *table.rows]
    grid = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"## {table.title}\n\n{grid}\n\n{table.note}"
