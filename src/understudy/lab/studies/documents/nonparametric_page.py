"""The page on nonparametric Bayes: what a Polya tree learns, what its draws cost, and what simulating that cost misses.

It holds results of made-up data alone, so it may be shown to anybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from understudy.lab.studies.layout import TextTable
from understudy.pages.axis import Scale, bottom_axis, left_axis
from understudy.pages.curves import TOP, Band, Box, Series, band, boxes, curves
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, heading, line, path, text
from understudy.pages.formatting import valued
from understudy.pages.page import fill
from understudy.pages.palette import var

WIDTH = 520


@dataclass(frozen=True)
class Supremum:
    """The largest log ratio of densities over one parameter: exactly, and as far as random tables show it."""

    parameter: str
    at: tuple[float, ...]
    exact: tuple[float, ...]
    simulated: tuple[float, ...]
    setting: str


@dataclass(frozen=True)
class Failures:
    """δ over ε: of random neighbours by simulation, and of the worst neighbours exactly."""

    title: str
    epsilons: tuple[float, ...]
    curves: Mapping[str, tuple[float, ...]]
    note: str


@dataclass(frozen=True)
class PosteriorDraws:
    """Densities on a line: single posterior draws, their mean, the predictive one, and the rows' histogram."""

    concentration: float
    points: tuple[float, ...]
    draws: tuple[tuple[float, ...], ...]
    mean: tuple[float, ...]
    predictive: tuple[float, ...]
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class RatioCloud:
    """ln of a density ratio for each of many runs, and the ε whose line they are held against."""

    title: str
    epsilon: float
    ratios: tuple[float, ...]
    """Infinite where a draw is impossible under the neighbour."""
    note: str

    @property
    def above(self) -> float:
        """The share above the line: the simulated δ."""
        return sum(r > self.epsilon for r in self.ratios) / len(self.ratios)


@dataclass(frozen=True)
class NonparametricStudy:
    """All that the page shows."""

    bands: Mapping[str, Sequence[tuple[float, Band]]]
    """For each law of the data: c, and what was learned with it."""
    distances: Mapping[str, Sequence[Box]]
    """Box plots by their titles, which name the quantity, the law and the parameter."""
    suprema: Sequence[Supremum]
    failures: Sequence[Failures]
    prices: Sequence[tuple[float, int, float]]
    """ε, depth, and the c per draw that it needs."""
    missed: str
    """What the simulation missed, in a sentence."""
    rows: int
    depth: int
    draws: Mapping[str, PosteriorDraws] = field(default_factory=dict)
    clouds: Sequence[RatioCloud] = ()
    exponents: Sequence[tuple[str, Sequence[Box]]] = ()
    exponent_price: Supremum | None = None
    columns: TextTable | None = None
    """How trees fare on real columns, beside other ways to bin them; where somebody has measured it."""


def render(study: NonparametricStudy) -> str:
    """One self-contained page; same input, same bytes."""
    return fill(
        "nonparametric.html.j2",
        study=study,
        bands=[(law, [_band(law, c, b) for c, b in found]) for law, found in study.bands.items()],
        draws=[_draws(law, found) for law, found in study.draws.items()],
        distances=[_boxes(title, found) for title, found in study.distances.items()],
        exponents=_exponents(study),
        clouds=[_cloud(cloud) for cloud in study.clouds],
        suprema=[_supremum(s) for s in study.suprema],
        failures=[_failures(f) for f in study.failures],
        prices=_prices(study),
    )


def pictures(study: NonparametricStudy) -> list[Figure]:
    """Every picture of the page, in its order."""
    found = [_band(law, c, b) for law, some in study.bands.items() for c, b in some]
    found += [_draws(law, some) for law, some in study.draws.items()]
    found += [_boxes(title, some) for title, some in study.distances.items()]
    found += [*_exponents(study), *map(_cloud, study.clouds)]
    return [*found, *map(_supremum, study.suprema), *map(_failures, study.failures)]


def _band(law: str, c: float, found: Band) -> Figure:
    return band(found, title=f"{law}, c = {c:g}")


def _exponents(study: NonparametricStudy) -> list[Figure]:
    drawn = [_boxes(title, found) for title, found in study.exponents]
    if study.exponent_price is not None:
        drawn.append(_supremum(study.exponent_price))
    return drawn


def _draws(law: str, found: PosteriorDraws) -> Figure:
    """As the document draws them: every draw thin, their mean and the predictive over them, the rows as bars behind."""
    bottom, right, left = 250.0, WIDTH - 8.0, 40.0
    half = (found.points[1] - found.points[0]) / 2 if len(found.points) > 1 else 0.5
    x = Scale.over((0.0, 1.0), left, right)
    y = Scale.over((0.0, *found.histogram, *(v for d in found.draws for v in d)), bottom, TOP)
    title = f"{law}, c = {found.concentration:g}: {len(found.draws)} posterior draws"
    marks = [heading(title, WIDTH), *_draws_legend(), *left_axis(y, left, right), *bottom_axis(x, bottom)]
    steps = [(x(p + s * half), y(h)) for p, h in zip(found.points, found.histogram, strict=True) for s in (-1, 1)]
    ground = [*steps, (x(1.0), y(0.0)), (x(0.0), y(0.0))]
    marks.append(element("path", d=path(ground, closed=True), fill=var("real"), fill_opacity=0.25))
    thin: dict[str, str | float] = {"fill": "none", "stroke": var("synthetic"), "stroke_width": 0.7}
    for draw in found.draws:
        along = [(x(p), y(v)) for p, v in zip(found.points, draw, strict=True)]
        marks.append(element("path", d=path(along), stroke_opacity=0.35, **thin))
    for heights, colour, dash in ((found.mean, var("accent"), None), (found.predictive, "currentColor", "4 3")):
        along = [(x(p), y(v)) for p, v in zip(found.points, heights, strict=True)]
        marks.append(
            element("path", d=path(along), fill="none", stroke=colour, stroke_width=1.8, stroke_dasharray=dash)
        )
    lines = zip(found.points, found.mean, found.predictive, found.histogram, strict=True)
    rows = tuple(tuple(f"{v:.4g}" for v in row) for row in list(lines)[:: max(1, len(found.points) // 20)])
    said = "Single posterior draws, their mean and the predictive density, over the histogram of the rows."
    return figure(marks, WIDTH, bottom + 22, title, said, Numbers(("value", "mean", "predictive", "rows"), rows))


def _draws_legend() -> list[str]:
    return [
        element("rect", x=0, y=24, width=14, height=10, fill=var("real"), fill_opacity=0.25),
        text(19, 33, "rows", quiet=True),
        line(62, 29, 76, 29, var("synthetic"), 0.9),
        text(81, 33, "draws", quiet=True),
        line(130, 29, 144, 29, var("accent"), 1.8),
        text(149, 33, "their mean", quiet=True),
        line(226, 29, 240, 29, "currentColor", width=1.8, dash="4 3"),
        text(245, 33, "predictive", quiet=True),
    ]


MOST_DOTS = 1_500


def _cloud(found: RatioCloud) -> Figure:
    """A dot for each run, those above the line in another colour; what is infinite lies on the upper edge."""
    bottom, left, right = 250.0, 52.0, WIDTH - 64.0  # the line has its name at its end
    finite = [r for r in found.ratios if math.isfinite(r)]
    y = Scale.over((found.epsilon, 0.0, *finite), bottom, TOP + 12).widened(0.08)
    shown = found.ratios[:MOST_DOTS]
    x = Scale(0.0, float(len(shown)), left, right)
    marks = [heading(found.title, WIDTH), text(0, 34, "ln of the density ratio", size=SMALL, quiet=True)]
    marks += [*left_axis(y, left, right), *bottom_axis(x, bottom)]
    for over, colour in ((False, var("real")), (True, var("synthetic"))):
        dots = [
            (x(i), y.end if r == math.inf else y.start if r == -math.inf else y(r))
            for i, r in enumerate(shown)
            if (r > found.epsilon) == over
        ]
        spots = "".join(f"{path([dot])}h0" for dot in dots)
        # A line of length zero with round ends is a dot: one path of many is smaller than an element for each.
        if spots:
            marks.append(
                element("path", d=spots, fill="none", stroke=colour, stroke_width=3.4, stroke_linecap="round",
                        stroke_opacity=0.6)
            )  # fmt: skip
    marks.append(line(left, y(found.epsilon), right, y(found.epsilon), "currentColor", width=1.2, dash="3 3"))
    marks.append(text(right + 6, y(found.epsilon) + 4, f"ε = {found.epsilon:g}", size=SMALL))
    infinite = sum(r == math.inf for r in found.ratios)
    said = f"{found.above:.1%} of {len(found.ratios):,} runs lie above the line"
    if infinite:
        said += f", {infinite / len(found.ratios):.1%} at infinity, drawn on the upper edge"
    for place, words in ((30, said), (45, found.note)):
        marks.append(text((left + right) / 2, bottom + place, words, size=SMALL, anchor="middle", quiet=True))
    ordered = sorted(finite) or [0.0]
    places = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
    rows = tuple((f"{p:.0%}", f"{ordered[round(p * (len(ordered) - 1))]:.4g}") for p in places)
    said = f"{said}; {found.note}."
    return figure(marks, WIDTH, bottom + 52, found.title, said, Numbers(("finite runs up to", "ln ratio"), rows))


def _boxes(title: str, found: Sequence[Box]) -> Figure:
    quantity, law, parameter = title.split(" | ")
    return boxes(found, title=f"{quantity}, {law}", across=parameter, up=f"{quantity}, lower is better")


def _supremum(found: Supremum) -> Figure:
    series = [Series.line("exact ε", found.at, found.exact), Series.line("simulated", found.at, found.simulated)]
    return curves(
        series, title=f"Largest log ratio over {found.parameter}", across=found.parameter,
        up="ln of the largest density ratio", note=found.setting, width=WIDTH,
    )  # fmt: skip


def _failures(found: Failures) -> Figure:
    series = [Series.line(name, found.epsilons, deltas) for name, deltas in found.curves.items()]
    return curves(series, title=found.title, across="ε", up="δ", note=found.note, width=WIDTH)


def _prices(study: NonparametricStudy) -> TextTable:
    rows = tuple((f"{e:g}", str(d), valued(c), f"{100 * 2 * c / (2 * c + 1):.0f} %") for e, d, c in study.prices)
    return TextTable(
        "What as many draws as rows need",
        ("ε", "depth", "c per draw", "prior's weight at the root"),
        rows,
        "The weight of the prior in the first split, 2c/(2c + n), where every row is replaced by a draw.",
    )
