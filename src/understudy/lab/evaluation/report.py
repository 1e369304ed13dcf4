"""The report of an evaluation: every figure in words, and the pictures. It is internal, and says so first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.lab.evaluation.distribution_figures import bars, cumulative, density, scatter
from understudy.lab.evaluation.evaluation import NOTICE, Evaluation
from understudy.lab.evaluation.heatmap import MOST_COLUMNS, heatmaps, pairs
from understudy.lab.evaluation.measure import LOWER, Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.picture_data import Column, SharesPicture
from understudy.pages.figure import Figure
from understudy.pages.formatting import counted, percent, written
from understudy.pages.page import fill

OPEN_PICTURES, MOST_PICTURES, OPEN_CURVES = 12, 60, 6
WORST_PARTS, MOST_PARTS = 3, 100
PLURALS = {"axis": "axes", "number of columns": "numbers of columns"}
TRAINED_ON_REAL = "trtr-auc"

SPOKEN = {
    "tv1": (
        "Single columns",
        "On average {share} of the rows would have to change for a column to match the real one.",
    ),
    "tv2": ("Pairs of columns", "On average {share} would have to change for two columns together to match."),
    "tv3": ("Triples of columns", "On average {share} would have to change for three columns together to match."),
    "tstr-auc": (
        "Learning from it",
        "Models that learnt from synthetic rows rank {share} of pairs of held-out rows rightly{beside}.",
    ),
    "propensity-auc": (
        "Telling it apart",
        "Of a real and a synthetic row, a classifier picks the synthetic one {share} of the time; 50 % is guessing.",
    ),
}
"""The headlines, in their order: a name, and what its value says."""


@dataclass(frozen=True)
class MeasureHeadline:
    """A figure that is told in words."""

    title: str
    measure: Measure
    figure: MeasureResult
    words: str


@dataclass(frozen=True)
class MeasureEntry:
    """A measure as a line of its section: parts come worst first."""

    measure: Measure
    figure: MeasureResult
    parts: tuple[MeasurePart, ...]

    @property
    def worst(self) -> tuple[MeasurePart, ...]:
        if len(self.parts) < 2:
            return ()
        return tuple(p for p in self.parts if p.value is not None)[:WORST_PARTS]

    @property
    def number_of_parts(self) -> str:
        unit = self.measure.unit or "part"
        return counted(len(self.parts), unit, PLURALS.get(unit, ""))

    @property
    def range(self) -> str:
        return f"{_bound(self.measure.low)} to {_bound(self.measure.high)}"

    @property
    def place(self) -> float | None:
        """Where the value lies on its range, from 0 to 1, if both have ends."""
        low, high, value = self.measure.low, self.measure.high, self.figure.value
        if value is None or not all(map(math.isfinite, (low, high, value))) or low >= high:
            return None
        return min(max((value - low) / (high - low), 0.0), 1.0)


@dataclass(frozen=True)
class MeasureSection:
    """Measures of the same kind."""

    title: str
    entries: tuple[MeasureEntry, ...]

    @property
    def defined(self) -> tuple[MeasureEntry, ...]:
        return tuple(e for e in self.entries if e.figure.value is not None)

    @property
    def undefined(self) -> dict[str, list[MeasureEntry]]:
        """Measures without a figure by the reason, which many of them share."""
        found: dict[str, list[MeasureEntry]] = {}
        for entry in self.entries:
            if entry.figure.value is None:
                found.setdefault(entry.figure.reason.rstrip("."), []).append(entry)
        return found


def render(evaluation: Evaluation) -> str:
    """One self-contained page for whoever made the synthetic table; same input, same bytes."""
    pictures = evaluation.pictures
    columns, curves, maps, cloud = _drawn(evaluation)
    number_of_columns = 0
    if pictures.matrix:
        number_of_columns = len(pictures.matrix.columns)
    return fill(
        "evaluation.html.j2",
        notice=NOTICE,
        facts=evaluation.facts,
        headlines=_headlines(evaluation),
        sections=_sections(evaluation),
        most_parts=MOST_PARTS,
        open_columns=columns[:OPEN_PICTURES],
        folded_columns=columns[OPEN_PICTURES:],
        undrawn=len(pictures.columns) - len(columns),
        open_curves=curves[:OPEN_CURVES],
        folded_curves=curves[OPEN_CURVES:],
        rows=pictures.rows,
        heatmaps=maps,
        cut_matrix=max(0, number_of_columns - MOST_COLUMNS),
        cloud=cloud,
        reasons=dict(pictures.reasons),
    )


def pictures(evaluation: Evaluation) -> list[Figure]:
    """Every picture of the report, in its order."""
    columns, curves, maps, cloud = _drawn(evaluation)
    return [figure for figure in (*columns, *curves, *maps, cloud) if figure]


def _drawn(evaluation: Evaluation) -> tuple[list[Figure], list[Figure], tuple[Figure, ...], Figure | None]:
    """The columns, the cumulative curves of numbers, pairs of columns and the cloud of rows; where there are any."""
    pictures = evaluation.pictures
    columns = [_column(c) for c in pictures.columns[:MOST_PICTURES]]  # the worst come first
    curves = [cumulative(c) for c in pictures.cumulative[:MOST_PICTURES]]
    maps: tuple[Figure, ...] = ()
    if pictures.matrix:
        maps = (*heatmaps(pictures.matrix), pairs(pictures.matrix))
    return columns, curves, maps, scatter(pictures.cloud) if pictures.cloud else None


def render_brief(evaluation: Evaluation) -> str:
    """The headlines as a small table, for a notebook."""
    return fill("brief.html.j2", notice=NOTICE, facts=evaluation.facts, headlines=_headlines(evaluation))


def _column(column: Column) -> Figure:
    if isinstance(column, SharesPicture):
        return bars(column)
    return density(column)


def _headlines(evaluation: Evaluation) -> list[MeasureHeadline]:
    """Those that were computed; where somebody asked for other measures only, the first of these."""
    known = {m.name: m for m in evaluation.measures}
    stated = [_headline(evaluation, known[name]) for name in SPOKEN if name in known]
    others = [MeasureHeadline(m.title, m, evaluation.figures[m.name], m.explanation) for m in evaluation.measures]
    return stated or others[: len(SPOKEN)]


def _headline(evaluation: Evaluation, measure: Measure) -> MeasureHeadline:
    title, sentence = SPOKEN[measure.name]
    found = evaluation.figures[measure.name]
    if found.value is None:
        return MeasureHeadline(title, measure, found, found.reason)
    real = evaluation.figures.get(TRAINED_ON_REAL, MeasureResult(None))
    beside = ""
    if real.value is not None:
        beside = f"; from real rows, {percent(real.value)}"
    return MeasureHeadline(title, measure, found, sentence.format(share=percent(found.value), beside=beside))


def _sections(evaluation: Evaluation) -> list[MeasureSection]:
    """In the order in which the measures name them first."""
    titles = dict.fromkeys(m.section for m in evaluation.measures)
    entries = []
    for measure in evaluation.measures:
        found = evaluation.figures[measure.name]
        entries.append(MeasureEntry(measure, found, tuple(_worst_first(found.parts, measure.direction))))
    return [MeasureSection(title, tuple(e for e in entries if e.measure.section == title)) for title in titles]


def _worst_first(parts: Sequence[MeasurePart], direction: str) -> list[MeasurePart]:
    """Parts without a value come last."""
    sign = -1.0 if direction == LOWER else 1.0
    known = sorted((sign * p.value, i) for i, p in enumerate(parts) if p.value is not None)
    return [parts[i] for _, i in known] + [p for p in parts if p.value is None]


def _bound(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return written(value).replace("-", "−")
