"""Pictures of several methods or draws: curves over a budget, a ranking of dots, boxes, and densities with a band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.pages.axis import Scale, bottom_axis, left_axis, spread
from understudy.pages.figure import (
    SMALL,
    Figure,
    Numbers,
    element,
    figure,
    heading,
    line,
    path,
    shortened,
    text,
    tip,
    width_of,
)
from understudy.pages.formatting import valued, written
from understudy.pages.palette import series_style, var

Point = tuple[float, float, float, float]
MOST_MARKED = 40
"""Points of a curve that are marked one by one, and stand in its table; of a longer one the table has every so many."""
GAP = 14.5
"""Between the baselines of two labels."""


@dataclass(frozen=True)
class Series:
    """A named curve: at each x the mean, and the interval from low to high about it."""

    name: str
    points: tuple[Point, ...]

    @classmethod
    def line(cls, name: str, across: Sequence[float], up: Sequence[float]) -> Series:
        """A curve without intervals: both of their ends are at the value."""
        return cls(name, tuple((x, y, y, y) for x, y in zip(across, up, strict=True)))

    def drawable(self, logarithmic: bool = True) -> tuple[Point, ...]:
        """The points that the axis has a place for, by x; an interval that is unknown is its mean."""
        known = [p for p in self.points if math.isfinite(p[0]) and math.isfinite(p[1])]
        known = [p for p in known if p[0] > 0 or not logarithmic]
        # A single seed has no interval: NaN would otherwise reach the coordinates.
        return tuple((x, mean, _or(low, mean), _or(high, mean)) for x, mean, low, high in sorted(known))


def _or(value: float, other: float) -> float:
    return value if math.isfinite(value) else other


@dataclass(frozen=True)
class Reference:
    """A value to compare with, such as that of the real rows."""

    name: str
    value: float


def _drawable(reference: Reference | None) -> Reference | None:
    return reference if reference and math.isfinite(reference.value) else None


@dataclass(frozen=True)
class Dot:
    """A method in a ranking."""

    name: str
    value: float
    low: float
    high: float


def curves(
    series: Sequence[Series],
    *,
    title: str,
    across: str,
    up: str,
    reference: Reference | None = None,
    note: str = "",
    width: float = 640.0,
    logarithmic: bool = True,
) -> Figure:
    """A line for each series, with its interval as a band and its name at its end; over a logarithmic axis, or not."""
    drawn = [(i, s.name, s.drawable(logarithmic)) for i, s in enumerate(series) if s.drawable(logarithmic)]
    reference = _drawable(reference)
    names = [name for _, name, _ in drawn]
    labels = [*names, reference.name] if reference else names
    bottom = 44 + max(230.0, GAP * len(labels))
    room = min(max(map(width_of, labels), default=0.0), 150.0)
    x, y = _scales(drawn, reference, width - room - 34, bottom, logarithmic)
    marks = [heading(title, width)]
    marks += left_axis(y, x.start, x.end) + _budget_axis(drawn, x, bottom)
    marks.append(text(0, 34, up, size=SMALL, quiet=True))
    marks.append(text((x.start + x.end) / 2, bottom + 30, across, size=SMALL, anchor="middle", quiet=True))
    # All bands lie under all lines, or a wide band would hide the line of another method.
    marks += [_band(p, x, y, i) for i, _, p in drawn] + [_line(n, p, x, y, i) for i, n, p in drawn]
    marks += _reference_line(reference, x, y) + _end_labels(drawn, reference, x, y, room)
    said = f"{up} over {across} for {', '.join(names) or 'nothing'}. {note}".strip()
    return figure(marks, width, bottom + 38, title, said, _numbers(drawn, reference, across))


Drawn = Sequence[tuple[int, str, tuple[Point, ...]]]


def _scales(
    drawn: Drawn, reference: Reference | None, right: float, bottom: float, logarithmic: bool
) -> tuple[Scale, Scale]:
    values = [v for *_, points in drawn for p in points for v in p[1:]]
    if reference:
        values.append(reference.value)
    x = Scale.over((p[0] for *_, points in drawn for p in points), 52, right, logarithmic=logarithmic)
    return x.widened(0.03), Scale.over(values, bottom, 46).widened(0.04)


def _budget_axis(drawn: Drawn, x: Scale, bottom: float) -> list[str]:
    """At the budgets themselves, where there are few."""
    places = sorted({p[0] for *_, points in drawn for p in points})
    if not 1 <= len(places) <= 9:
        return bottom_axis(x, bottom, at=x.ticks(7))
    return bottom_axis(x, bottom, at=places)


def _band(points: Sequence[Point], x: Scale, y: Scale, index: int) -> str:
    if len(points) < 2 or all(low == high for *_, low, high in points):
        return ""
    outline = [(x(p[0]), y(p[3])) for p in points] + [(x(p[0]), y(p[2])) for p in reversed(points)]
    return element("path", d=path(outline, closed=True), fill=series_style(index)[0], fill_opacity=0.13)


def _line(name: str, points: Sequence[Point], x: Scale, y: Scale, index: int) -> str:
    colour, dash = series_style(index)
    along = [(x(p[0]), y(p[1])) for p in points]
    marks = element("path", d=path(along), fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash or None)
    if len(points) == 1:  # no path leads through one point: its interval is drawn in place of a band
        marks = line(along[0][0], y(points[0][2]), along[0][0], y(points[0][3]), colour, 1.5)
    if len(points) > MOST_MARKED:
        return marks
    for (place, height), (at, mean, low, high) in zip(along, points, strict=True):
        dot = element("circle", cx=place, cy=height, r=3, fill=colour)
        marks += tip(dot, f"{name} at {written(at)}: {mean:.4g} ({low:.4g} to {high:.4g})")
    return marks


def _reference_line(reference: Reference | None, x: Scale, y: Scale) -> list[str]:
    if reference is None:
        return []
    height = y(reference.value)
    return [line(x.start, height, x.end, height, "currentColor", width=1.2, dash="3 3")]


def _end_labels(drawn: Drawn, reference: Reference | None, x: Scale, y: Scale, room: float) -> list[str]:
    """Every name at the end of its line, moved apart where they would touch, with a thin line to where it belongs."""
    ends = [(n, x(p[-1][0]), y(p[-1][1]), series_style(i)[0]) for i, n, p in drawn]
    if reference:
        ends.append((reference.name, x.end, y(reference.value), "currentColor"))
    places = spread([height for *_, height, _ in ends], GAP, y.end, y.start)
    marks = []
    for (name, right, height, colour), place in zip(ends, places, strict=True):
        marks.append(line(max(right + 4, x.end), height, x.end + 16, place, colour, 0.8))
        if right + 4 < x.end:
            marks.append(line(right + 4, height, x.end, height, colour, width=0.8, dash="1 3"))
        marks.append(text(x.end + 20, place + 3.8, shortened(name, room + 4), fill=colour))
    return marks


def _numbers(drawn: Drawn, reference: Reference | None, across: str) -> Numbers:
    rows = [
        (name, written(at), *(f"{v:.4g}" for v in (mean, low, high)))
        for _, name, points in drawn
        for at, mean, low, high in points[:: -(-len(points) // MOST_MARKED)]
    ]
    rows += [(reference.name, "any", f"{reference.value:.4g}", "", "")] if reference else []
    return Numbers(("name", across, "mean", "low", "high"), tuple(rows))


# --- rankings


def dots(
    ranking: Sequence[Dot],
    *,
    title: str,
    across: str,
    reference: Reference | None = None,
    note: str = "",
    width: float = 560.0,
) -> Figure:
    """A dot with its interval for each method, in the order given; the number stands at the right."""
    known = [Dot(d.name, d.value, _or(d.low, d.value), _or(d.high, d.value)) for d in ranking if math.isfinite(d.value)]
    reference = _drawable(reference)
    room = min(max((width_of(d.name) for d in known), default=0.0) + 12, 170.0)
    values, top = [v for d in known for v in (d.low, d.high)], 30.0
    if reference:
        values, top = [*values, reference.value], 46.0  # its name stands above the dots
    # At the left is room for the names, at the right for the numbers.
    scale = Scale.over(values, room, width - 62).widened(0.04)
    bottom = top + 24 * max(len(known), 1) + 4
    marks = [heading(title, width), *bottom_axis(scale, bottom, top)]
    marks += _mark(reference, scale, top, bottom)
    marks += [_dot(d, scale, top + 24 * i + 12, room, width) for i, d in enumerate(known)]
    marks.append(text((room + scale.end) / 2, bottom + 30, across, size=SMALL, anchor="middle", quiet=True))
    rows = tuple((d.name, *(f"{v:.4g}" for v in (d.value, d.low, d.high))) for d in known)
    said = f"{across} of {', '.join(d.name for d in known) or 'nothing'}. {note}".strip()
    return figure(marks, width, bottom + 38, title, said, Numbers(("name", "value", "low", "high"), rows))


def _mark(reference: Reference | None, scale: Scale, top: float, bottom: float) -> list[str]:
    if reference is None:
        return []
    place, half = scale(reference.value), width_of(reference.name, SMALL) / 2
    centre = min(max(place, scale.start + half - 20), max(scale.end + 40 - half, scale.start + half - 20))
    name = text(centre, top - 6, reference.name, size=SMALL, anchor="middle")
    return [line(place, top, place, bottom, "currentColor", width=1.2, dash="3 3"), name]


def _dot(dot: Dot, scale: Scale, y: float, room: float, width: float) -> str:
    colour = series_style(0)[0]
    marks = text(room - 8, y + 4, shortened(dot.name, room - 10), anchor="end")
    marks += line(scale(dot.low), y, scale(dot.high), y, colour, 2)
    marks += "".join(line(scale(v), y - 4, scale(v), y + 4, colour, 1.5) for v in (dot.low, dot.high))
    marks += element("circle", cx=scale(dot.value), cy=y, r=4.5, fill=colour)
    marks += text(width, y + 4, valued(dot.value), anchor="end")
    return tip(marks, f"{dot.name}: {dot.value:.4g} ({dot.low:.4g} to {dot.high:.4g})")


LEFT, TOP = 52.0, 46.0


@dataclass(frozen=True)
class Box:
    """The spread of one quantity over repetitions at one value of a parameter."""

    at: float
    least: float
    lower: float
    middle: float
    upper: float
    most: float

    @classmethod
    def of(cls, at: float, values: Sequence[float]) -> Box:
        """Least, quartiles and most of some values.

        >>> Box.of(1.0, [3.0, 1.0, 2.0]).middle
        2.0
        """
        return cls(at, *map(float, np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0))))

    @property
    def values(self) -> tuple[float, ...]:
        return (self.least, self.lower, self.middle, self.upper, self.most)


def boxes(found: Sequence[Box], *, title: str, across: str, up: str, width: float = 340.0) -> Figure:
    """A box for each value of the parameter, evenly spaced in the order given."""
    bottom, right = 250.0, width - 12
    pitch = (right - LEFT) / max(len(found), 1)
    y = Scale.over((v for box in found for v in box.values), bottom, TOP).widened(0.04)
    marks = [heading(title, width)]
    marks += [text(0, 34, up, size=SMALL, quiet=True), *left_axis(y, LEFT, right)]
    for i, box in enumerate(found):
        middle = LEFT + pitch * (i + 0.5)
        marks.append(_box(box, middle, min(pitch * 0.62, 26.0), y, across))
        marks.append(text(middle, bottom + 14, written(box.at), size=SMALL, anchor="middle", quiet=True))
    marks.append(text((LEFT + right) / 2, bottom + 30, across, size=SMALL, anchor="middle", quiet=True))
    rows = tuple((written(b.at), *(f"{v:.4g}" for v in b.values)) for b in found)
    header = (across, "least", "lower quartile", "median", "upper quartile", "most")
    said = f"{up} at {len(found)} values of {across}: least, quartiles and most of repeated draws."
    return figure(marks, width, bottom + 38, title, said, Numbers(header, rows))


def _box(box: Box, x: float, wide: float, y: Scale, across: str) -> str:
    colour = series_style(0)[0]
    marks = line(x, y(box.least), x, y(box.most), colour, 1.2)
    high, low = y(box.upper), y(box.lower)
    marks += element(
        "rect", x=x - wide / 2, y=high, width=wide, height=max(low - high, 1.0), fill=var("card"), stroke=colour,
        stroke_width=1.5,
    )  # fmt: skip
    marks += line(x - wide / 2, y(box.middle), x + wide / 2, y(box.middle), colour, 2.5)
    return tip(marks, f"{across} {written(box.at)}: median {box.middle:.4g} ({box.least:.4g} to {box.most:.4g})")


@dataclass(frozen=True)
class Band:
    """A density on a line: its mean, where nine of ten draws lie, and the truth beside it."""

    points: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    truth: tuple[float, ...]


def band(found: Band, *, title: str, up: str = "density", width: float = 340.0) -> Figure:
    """The truth as a filled shape, the mean as a line, and draws as a band."""
    bottom, right = 210.0, width - 8
    x = Scale.over(found.points, 40, right)
    y = Scale.over((0.0, *found.high, *found.truth), bottom, TOP)
    marks = [heading(title, width)]
    marks += [*_legend(), *left_axis(y, 40, right), *bottom_axis(x, bottom)]
    ground = [(x(p), y(t)) for p, t in zip(found.points, found.truth, strict=True)]
    edge = [(x(found.points[-1]), y(0.0)), (x(found.points[0]), y(0.0))]
    marks.append(element("path", d=path([*ground, *edge], closed=True), fill=var("real"), fill_opacity=0.35))
    tops = [(x(p), y(v)) for p, v in zip(found.points, found.high, strict=True)]
    floors = [(x(p), y(v)) for p, v in zip(found.points, found.low, strict=True)]
    marks.append(element("path", d=path([*tops, *floors[::-1]], closed=True), fill=var("synthetic"), fill_opacity=0.2))
    along = [(x(p), y(v)) for p, v in zip(found.points, found.mean, strict=True)]
    marks.append(element("path", d=path(along), fill="none", stroke=var("synthetic"), stroke_width=1.6))
    # About twenty rows: the table is read by people, and a curve of hundreds of points tells no more in it.
    rows = zip(found.points, found.mean, found.low, found.high, found.truth, strict=True)
    shown = tuple(tuple(f"{v:.4g}" for v in row) for row in list(rows)[:: max(1, len(found.points) // 20)])
    header = ("value", up, "low", "high", "truth")
    said = f"{up} of the predictive distribution, with the band of posterior draws, beside the true one."
    return figure(marks, width, bottom + 22, title, said, Numbers(header, shown))


def _legend() -> list[str]:
    return [
        element("rect", x=0, y=24, width=14, height=10, fill=var("real"), fill_opacity=0.35),
        text(19, 33, "truth", quiet=True),
        line(62, 29, 76, 29, var("synthetic"), 1.6),
        text(81, 33, "predictive", quiet=True),
        element("rect", x=150, y=24, width=14, height=10, fill=var("synthetic"), fill_opacity=0.2),
        text(169, 33, "nine of ten posterior draws", quiet=True),
    ]
