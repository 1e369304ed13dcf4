"""The report of a study: utility over ε with intervals, ranking, the two families, time and memory, every figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.lab.evaluation.evaluation import NOTICE
from understudy.lab.evaluation.measure import Measure
from understudy.lab.studies.layout import NOTHING, TextTable, lay_out
from understudy.lab.studies.study import Study, Summary
from understudy.methods.method import MODEL_FIRST, STATISTICS_FIRST
from understudy.pages.curves import Dot, Reference, Series, curves, dots
from understudy.pages.figure import Figure
from understudy.pages.formatting import valued
from understudy.pages.page import fill

DRAWN = (
    "tv1", "tv2", "tv3", "query-error", "association", "wasserstein-1", "tstr-auc", "tstr-r2", "propensity-auc",
    "pca-overlap", "attack-membership-density", "attack-inference",
)  # fmt: skip
"""The measures that are drawn over ε; all others are in the tables."""
CEILINGS = ("tstr-auc", "tstr-accuracy", "tstr-f1", "tstr-r2")
"""Where the real rows show what can be reached at best; of a distance they would show 0."""
HEADLINES = ("tv2", "tstr-auc", "tstr-r2", "propensity-auc")
COSTS = {"seconds": "Seconds to make the rows", "megabytes": "Most memory, in megabytes"}
WIDTH = 520
"""Of a curve: two stand side by side."""


@dataclass(frozen=True)
class Winner:
    """Which method is best by a measure, at each ε."""

    measure: Measure
    rows: tuple[tuple[str, str, str], ...]
    """ε, the method, its mean."""


def render(study: Study, layout: str | None = None, first: Sequence[TextTable] = ()) -> str:
    """One self-contained page; same input, same bytes. Tables that come `first` stand before those of the layout."""
    drawn = [m for m in study.measures if m.name in DRAWN]
    return fill(
        "study.html.j2",
        notice=NOTICE,
        study=study,
        seeds=max((len(study.of(m, e)) for m in study.methods for e in study.epsilons), default=0),
        winners=[_winner(study, m) for m in study.measures if m.name in HEADLINES],
        figures=[_over_budgets(study, m) for m in drawn],
        rankings=_rankings(study),
        families=_families(study, drawn),
        costs=_costs(study),
        tables=[_table(study, m) for m in study.measures],
        grids=[*first, *(lay_out(study, layout) if layout else [])],
        layout=layout,
        failures=list(study.failures()),
    )


def pictures(study: Study) -> list[Figure]:
    """Every picture of the report, in its order."""
    drawn = [m for m in study.measures if m.name in DRAWN]
    curves_of = [_over_budgets(study, m) for m in drawn]
    return [*curves_of, *_rankings(study), *_families(study, drawn), *_costs(study)]


def render_brief(study: Study) -> str:
    """Which method is best, for a notebook."""
    winners = [_winner(study, m) for m in study.measures if m.name in HEADLINES]
    return fill("study-brief.html.j2", notice=NOTICE, study=study, winners=winners)


def _winner(study: Study, measure: Measure) -> Winner:
    found = [(e, study.best(e, measure)) for e in study.epsilons]
    return Winner(measure, tuple((f"{e:g}", b[0], valued(b[1].mean)) for e, b in found if b))


def _over_budgets(study: Study, measure: Measure) -> Figure:
    series = []
    for method in study.methods:
        found = [(e, study.summary(method, e, measure.name)) for e in study.epsilons]
        series.append(Series(_label(study, method), tuple(_point(e, s, measure) for e, s in found if s)))
    return curves(
        series,
        title=measure.title,
        across="ε",
        up=f"{measure.name}, {measure.direction} is better",
        reference=_ceiling(study, measure),
        note=measure.explanation,
        width=WIDTH,
    )


def _label(study: Study, method: str) -> str:
    return method if method in study.guaranteed else f"{method} (no guarantee)"


def _point(epsilon: float, summary: Summary, measure: Measure) -> tuple[float, float, float, float]:
    """An interval ends where the measure does."""
    # A mean of figures is inside the measure's range, but Student's interval of it need not be.
    low, high = max(summary.low, measure.low), min(summary.high, measure.high)
    return (epsilon, summary.mean, min(low, summary.mean), max(high, summary.mean))


def _ceiling(study: Study, measure: Measure) -> Reference | None:
    figure = study.baseline.get(measure.name)
    if measure.name not in CEILINGS or figure is None or figure.value is None:
        return None
    return Reference("real rows", figure.value)


def _rankings(study: Study) -> list[Figure]:
    return [f for e in study.epsilons if (f := _ranking(study, e))]


def _ranking(study: Study, epsilon: float) -> Figure | None:
    ranks = study.ranking(epsilon)
    if len(ranks) < 2:  # a method alone is always first
        return None
    return dots(
        [Dot(r.method, r.mean, r.best, r.worst) for r in ranks],
        title=f"Mean rank at ε = {epsilon:g}",
        across="mean rank; the line runs from best to worst",
        width=346,  # three stand side by side
    )


def _families(study: Study, measures: Sequence[Measure]) -> list[Figure]:
    """The best method of each family over ε; nothing where only one family took part."""
    if {study.families[m] for m in study.guaranteed} != {MODEL_FIRST, STATISTICS_FIRST}:
        return []
    return [_family_curves(study, m) for m in measures if m.name in HEADLINES]


def _family_curves(study: Study, measure: Measure) -> Figure:
    series = []
    for family in (STATISTICS_FIRST, MODEL_FIRST):
        # The best at each ε by itself: along a curve the method may change, and its choice among several flatters it.
        found = [(e, study.best(e, measure, family)) for e in study.epsilons]
        series.append(Series(f"{family}: best", tuple(_point(e, b[1], measure) for e, b in found if b)))
    return curves(
        series, title=f"{measure.title}, the best of each family", across="ε",
        up=f"{measure.name}, {measure.direction} is better", reference=_ceiling(study, measure), width=WIDTH,
    )  # fmt: skip


def _costs(study: Study) -> list[Figure]:
    """At the largest ε, where methods work most."""
    epsilon, drawn = max(study.epsilons), []
    for what, title in COSTS.items():
        found = [(m, study.cost(m, epsilon, what)) for m in study.methods]
        known = sorted(((m, s) for m, s in found if s), key=lambda pair: pair[1].mean)
        ranking = [Dot(m, s.mean, max(0.0, s.low), s.high) for m, s in known]
        drawn.append(dots(ranking, title=title, across=f"{what} at ε = {epsilon:g}, on one core", width=WIDTH))
    return drawn


def _table(study: Study, measure: Measure) -> TextTable:
    rows = []
    for method in study.methods:
        found = (study.summary(method, e, measure.name) for e in study.epsilons)
        rows.append((_label(study, method), *(NOTHING if s is None else s.written(valued) for s in found)))
    baseline = study.baseline.get(measure.name)
    if baseline is not None and baseline.value is not None:
        rows.append(("real rows", *[valued(baseline.value)] * len(study.epsilons)))
    heads = ("method", *(f"ε = {e:g}" for e in study.epsilons))
    note = f"{measure.explanation} {measure.direction.capitalize()} is better."
    return TextTable(measure.title, heads, tuple(rows), note)
