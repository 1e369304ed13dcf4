"""A study in the layout of a source document: its own tables, with its printed figures beside ours where it has any.

`adversarial-forests`: H. Merchant, "Enhancing Generative Tree Based Modeling With Differential Privacy" (2024).
`selection`: F. Ebrahimianghazani, "DP-Select: Improving Utility and Privacy in Tabular Data Synthesis …" (Waterloo).
`model-or-statistics`: "Comparative Study of DP Synthetic Data Generation: Model-First vs Stat-First", a plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from understudy.lab.evaluation.measure import MeasurePart, MeasureResult
from understudy.lab.evaluation.measures.nearest_distances import numbers_without
from understudy.lab.studies.study import Study, Trial, summarize
from understudy.methods.registry import METHODS
from understudy.parameters import one_of

NOTHING = "–"
CORRELATION = "correlation"
QUANTITIES = {
    CORRELATION: ("pearson", "Correlation"),
    "wasserstein": ("wasserstein-1", "Wasserstein distance"),
    "chi-square": ("chi2-one-sided", "Chi-square test"),
    "rmse": ("rmse-paired", "RMSE"),
    "mae": ("mae-paired", "MAE"),
    "classification": ("trts-accuracy", "Classification accuracy"),
    "reconstruction": ("reconstruction", "Reconstruction attack error"),
}
"""What the document calls each table, and the measure whose parts fill it."""
LEFT_OUT = {"insurance": "charges", "healthcare": "Billing Amount", "adult": "income"}
"""The column that the document leaves out before it looks for the nearest rows."""
CLASSIFIER, TREE = "logistic regression", "decision tree"
FEWER_ROWS = "The document has 55,500 rows of this table: among fewer rows, as ours, the nearest lie further off."
REMARKS = {
    37: "Printed for the healthcare table, but a copy of table 4: the features are those of the insurance table.",
    39: "Printed for the healthcare table, but its features are those of the insurance table.",
    42: "Cancer or not, as in the document: who always says “not Cancer” is right about as often.",
    55: "Cancer or not, as in the document: who always says “not Cancer” is right about as often.",
    80: "Cancer or not, as in the document: who always says “not Cancer” is right about as often.",
    43: FEWER_ROWS,
    56: FEWER_ROWS,
    81: FEWER_ROWS,
    9: "The document leaves the target among the features of the insurance table, so its figures say little.",
    19: "The document leaves the target among the features of the insurance table, so its figures say little.",
    29: "The document leaves the target among the features of the insurance table, so its figures say little.",
}


@dataclass(frozen=True)
class TextTable:
    """A table to be shown: texts, row by row."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def check_layout(layout: str | None) -> None:
    """Refuses a layout that is not known."""
    if layout is not None:
        one_of("layout", layout, LAYOUTS)


def lay_out(study: Study, layout: str) -> list[TextTable]:
    """The tables of a study as a source document would have printed them."""
    check_layout(layout)
    return list(LAYOUTS[layout](study))


def _forest_tables(study: Study) -> Iterator[TextTable]:
    """Merchant §5: seven quantities for each ε, printed ones of its ARF and DP-ARF beside the methods of the study."""
    data = _document(study)
    for epsilon in study.epsilons:
        for quantity, (measure, title) in QUANTITIES.items():
            entry = _entry(data, epsilon, quantity)
            rows = tuple(_rows(study, epsilon, quantity, measure, data, entry))
            if not rows:
                continue
            heads = ["feature", "printed: ARF", "printed: DP-ARF", *study.methods]
            if quantity == CORRELATION:
                heads.insert(1, "real")
            where, note = "", "The document prints none at this ε."
            if entry:
                where, note = f" (table {entry['table']})", REMARKS.get(entry["table"], "")
            yield TextTable(f"{title}, ε = {epsilon:g}{where}", tuple(heads), rows, note)


def _rows(
    study: Study, epsilon: float, quantity: str, measure: str, data: str, entry: Mapping[str, Any] | None
) -> Iterator[tuple[str, ...]]:
    printed: dict[str, Sequence[float | None]] = {}
    if entry:
        printed = {_plain(row[0]): row[1:] for row in entry["rows"]}
    parts = _parts(study, epsilon, measure)
    # Of these two the document prints one figure for all rows, in a line without a name; ours is that of one part.
    wholes = {"classification": CLASSIFIER, "reconstruction": numbers_without(LEFT_OUT.get(data, study.target))}
    if quantity in wholes:
        found = parts.get(wholes[quantity])
        if found is not None:
            yield ("all rows", *_printed(printed.get("")), *_ours(study, found))
        return
    for name, found in parts.items():
        cells = [*_printed(printed.get(_plain(name))), *_ours(study, found)]
        if quantity == CORRELATION:
            cells.insert(0, _mean([p.reference for some in found.values() for p in some]))
        yield (name, *cells)


def _ours(study: Study, found: Mapping[str, Sequence[MeasurePart]]) -> Iterator[str]:
    """The mean over the seeds, method by method; as the document defines the figure, where we define it otherwise."""
    for method in study.methods:
        # `raw` is a distance in the unit of its column, or the synthetic correlation, as printed; `value` is that in
        # standard deviations, or the difference from the real correlation.
        parts = found.get(method, ())
        yield _mean([p.value if p.raw is None else p.raw for p in parts])


def _parts(study: Study, epsilon: float, measure: str) -> dict[str, dict[str, list[MeasurePart]]]:
    """Part by part, method by method: one for each seed."""
    found: dict[str, dict[str, list[MeasurePart]]] = {}
    for method in study.methods:
        for trial in study.of(method, epsilon):
            for part in _parts_of(trial, measure):
                found.setdefault(part.name, {}).setdefault(method, []).append(part)
    return found


def _mean(values: Sequence[float | None]) -> str:
    summary = summarize([v for v in values if v is not None])
    if summary is None:
        return NOTHING
    return _figure_text(summary.mean)


def _figure_text(value: float) -> str:
    return f"{value:,.4f}" if abs(value) < 1e4 else f"{value:,.1f}"


def _printed(row: Sequence[float | None] | None) -> tuple[str, str]:
    """Of ARF and of DP-ARF; what the document prints as infinite has no number."""
    if row is None:
        return NOTHING, NOTHING
    # JSON has no infinity: a χ² that the document prints as infinite is null in the file.
    first, second = ("∞" if value is None else _figure_text(value) for value in row[:2])
    return first, second


def _plain(name: str) -> str:
    """Names as the document and the data write them, made alike: "Education Num" and "education-num"."""
    # Of a pair the document says "Age vs BMI", and our measures "age × bmi".
    return " × ".join(re.sub(r"[^a-z0-9]", "", side) for side in re.split(r" vs | × ", name.lower()))


def _document(study: Study) -> str:
    """Which of the document's tables this is: the one whose features are all among the columns."""
    # A study doesn't say which data set it read: its columns do. These two measures together have a part for each.
    columns = {
        _plain(p.name) for m in ("wasserstein-1", "chi2-one-sided") for t in study.trials for p in _parts_of(t, m)
    }
    # By the Wasserstein tables: of correlations and χ² one table each (37 and 39) has the columns of another data set.
    for data in LEFT_OUT:
        entries = [e for e in _printed_tables() if e["data"] == data and e["quantity"] == "wasserstein"]
        if all(_plain(row[0]) in columns for e in entries for row in e["rows"]):
            return data
    return ""


def _parts_of(trial: Trial, measure: str) -> tuple[MeasurePart, ...]:
    return trial.figures.get(measure, MeasureResult(None)).parts


def _entry(data: str, epsilon: float, quantity: str) -> Mapping[str, Any] | None:
    # ε is compared exactly: 0.1 in the file and 0.1 as typed are one double, and a near ε is another claim.
    keys = (data, epsilon, quantity)
    return next((e for e in _printed_tables() if (e["data"], e["epsilon"], e["quantity"]) == keys), None)


@cache
def _printed_tables() -> list[dict[str, Any]]:
    return json.loads((files("understudy.lab.studies.documents") / "printed" / "adversarial-forests.json").read_text())


# The text states two of the budgets that the figure draws; nothing is read off the drawing.
SELECTION = {
    2.0: {"DP-Select": 0.7366, "DP-GAN": 0.707},
    8.0: {"DP-Select": 0.7445, "DP-GAN": 0.7355},
}
"""Ebrahimianghazani, figure 5.2: accuracy of a tree of depth 10 on Adult, as its text states it."""


def _selection_tables(study: Study) -> Iterator[TextTable]:
    """Ebrahimianghazani §5: accuracy of a tree of depth 10, trained on synthetic rows and tested on real ones, by ε."""
    # The printed ε have columns of their own: a figure never stands beside that of another ε.
    epsilons = sorted({*study.epsilons, *SELECTION})
    heads = ("method", *(f"ε = {e:g}" for e in epsilons))
    names = ("DP-Select", "DP-GAN")
    printed = [(f"printed: {n}", *(_share(SELECTION.get(e, {}).get(n)) for e in epsilons)) for n in names]
    ours = [(m, *(_tree_accuracy(study, m, e) for e in epsilons)) for m in study.methods]
    yield TextTable(
        "Accuracy of a decision tree of depth 10 (figure 5.2)", heads, (*printed, *ours),
        "The printed figures are of the Adult table, for other rows held out; they compare with nothing else.",
    )  # fmt: skip
    times = [(m, *(_cost(study, m, e) for e in epsilons)) for m in study.methods]
    yield TextTable("Running time in seconds", heads, tuple(times))


def _tree_accuracy(study: Study, method: str, epsilon: float) -> str:
    found = _parts(study, epsilon, "tstr-accuracy")
    values = [p.value for name, by in found.items() if name.startswith(TREE) for p in by.get(method, ())]
    known = summarize([v for v in values if v is not None])
    if known is None:
        return NOTHING
    return _share(known.mean)


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f} %"


def _cost(study: Study, method: str, epsilon: float) -> str:
    found = study.cost(method, epsilon, "seconds")
    if found is None:
        return NOTHING
    return f"{found.mean:.1f}"


ROADMAP = (
    ("tstr-accuracy", "TSTR accuracy"),
    ("tstr-auc", "TSTR AUC"),
    ("propensity-auc", "AUC of telling real from synthetic rows"),
    ("pmse", "pMSE"),
    ("pearson", "Difference of correlations"),
    ("tv1", "Difference of single columns"),
    ("tstr-gap-groups", "Largest gap between groups in TSTR"),
    ("parity-gap", "Error of parity between groups"),
    ("attack-membership-distance", "Membership attack by distance: advantage"),
    ("attack-membership-density", "Membership attack by density: advantage"),
    ("attack-inference", "Attribute inference: advantage"),
    ("attack-copies", "Copied rows: share above that of the hold-out"),
)


def _roadmap_tables(study: Study) -> Iterator[TextTable]:
    """§4 of the plan: the two families side by side, one table for each measure of its plan. It prints no figures."""
    heads = ("method", "family", *(f"ε = {e:g}" for e in study.epsilons))
    for measure, title in ROADMAP:
        rows = []
        for method in study.methods:
            found = (study.summary(method, e, measure) for e in study.epsilons)
            cells = (NOTHING if s is None else s.written("{:.4f}".format) for s in found)
            rows.append((method, study.families[method], *cells))
        baseline = study.baseline.get(measure)
        if baseline is not None and baseline.value is not None:
            rows.append(("real rows", NOTHING, *[_figure_text(baseline.value)] * len(study.epsilons)))
        if any(cell != NOTHING for row in rows for cell in row[2:]):
            yield TextTable(title, heads, tuple(rows))
    rows = [(m, study.families[m], *(_cost(study, m, e) for e in study.epsilons)) for m in study.methods]
    yield TextTable("Running time in seconds", heads, tuple(rows))
    rows = [(m, study.families[m], _guarantee(study, m)) for m in study.methods]
    yield TextTable("Privacy used, and how it is accounted for", ("method", "family", "guarantee"), tuple(rows))


def _guarantee(study: Study, method: str) -> str:
    if method not in study.guaranteed or method not in METHODS:
        return "none, whatever ε is named"
    spent = ", ".join(f"{e:g}" for e in study.epsilons)
    return f"ε = {spent} at δ = {study.delta:g}: {METHODS[method].guarantee}"


LAYOUTS: dict[str, Callable[[Study], Iterator[TextTable]]] = {
    "adversarial-forests": _forest_tables,
    "selection": _selection_tables,
    "model-or-statistics": _roadmap_tables,
}
