"""Pictures of several methods: curves over a budget, and a ranking of dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.pages.axis import Scale, bottom_axis, left_axis, spread, valued, written
from understudy.pages.figure import (
    SMALL,
    Figure,
    Numbers,
    element,
    figure,
    line,
    path,
    shortened,
    text,
    tip,
    width_of,
)
from understudy.pages.palette import series_style

Point = tuple[float, float, float, float]
GAP = 14.5
"""Between the baselines of two labels."""


@dataclass(frozen=True)
class Series:
    """A named curve: at each x the mean, and the interval from low to high about it."""

    name: str
    points: tuple[Point, ...]

    @property
    def drawable(self) -> tuple[Point, ...]:
        """The points that a logarithmic axis has a place for, by x; an interval that is unknown is its mean."""
        known = [p for p in self.points if p[0] > 0 and math.isfinite(p[0]) and math.isfinite(p[1])]
        return tuple((x, mean, _or(low, mean), _or(high, mean)) for x, mean, low, high in sorted(known))


def _or(value: float, other: float) -> float:
    return value if math.isfinite(value) else other


@dataclass(frozen=True)
class Reference:
    """A value to compare with, such as that of the real rows."""

    name: str
    value: float


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
) -> Figure:
    """A line for each series over a logarithmic axis, with its interval as a band and its name at its end."""
    drawn = [(i, s.name, s.drawable) for i, s in enumerate(series) if s.drawable]
    reference = reference if reference and math.isfinite(reference.value) else None
    labels = len(drawn) + (reference is not None)
    bottom = 44 + max(230.0, GAP * labels)
    room = min(max((width_of(name) for _, name, _ in drawn), default=0.0), 150.0)
    room = max(room, min(width_of(reference.name), 150.0) if reference else 0.0)
    x, y = _scales(drawn, reference, width - room - 34, bottom)
    marks = [text(0, 14, shortened(title, width, 14), size=13.5, bold=True)]
    marks += left_axis(y, x.start, x.end) + _budget_axis(drawn, x, bottom)
    marks.append(text(0, 34, up, size=SMALL, quiet=True))
    marks.append(text((x.start + x.end) / 2, bottom + 30, across, size=SMALL, anchor="middle", quiet=True))
    marks += [_band(p, x, y, i) for i, _, p in drawn] + [_line(n, p, x, y, i) for i, n, p in drawn]
    marks += _reference_line(reference, x, y) + _end_labels(drawn, reference, x, y, room)
    said = f"{up} over {across} for {', '.join(n for _, n, _ in drawn) or 'nothing'}. {note}".strip()
    return figure(marks, width, bottom + 38, title, said, _numbers(drawn, reference, across))


Drawn = Sequence[tuple[int, str, tuple[Point, ...]]]


def _scales(drawn: Drawn, reference: Reference | None, right: float, bottom: float) -> tuple[Scale, Scale]:
    values = [v for *_, points in drawn for p in points for v in p[1:]]
    values += [reference.value] if reference else []
    x = Scale.over((p[0] for *_, points in drawn for p in points), 52, right, logarithmic=True)
    return x.widened(0.03), Scale.over(values, bottom, 46).widened(0.04)


def _budget_axis(drawn: Drawn, x: Scale, bottom: float) -> list[str]:
    """At the budgets themselves, where there are few."""
    places = sorted({p[0] for *_, points in drawn for p in points})
    return bottom_axis(x, bottom, at=places if 1 <= len(places) <= 9 else x.ticks(7))


def _band(points: Sequence[Point], x: Scale, y: Scale, index: int) -> str:
    if len(points) < 2 or all(low == high for *_, low, high in points):
        return ""
    outline = [(x(p[0]), y(p[3])) for p in points] + [(x(p[0]), y(p[2])) for p in reversed(points)]
    return element("path", d=path(outline, closed=True), fill=series_style(index)[0], fill_opacity=0.13)


def _line(name: str, points: Sequence[Point], x: Scale, y: Scale, index: int) -> str:
    colour, dash = series_style(index)
    along = [(x(p[0]), y(p[1])) for p in points]
    marks = element("path", d=path(along), fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash or None)
    if len(points) == 1:
        marks = line(along[0][0], y(points[0][2]), along[0][0], y(points[0][3]), colour, 1.5)
    for (place, height), (at, mean, low, high) in zip(along, points, strict=True):
        dot = element("circle", cx=place, cy=height, r=3, fill=colour)
        marks += tip(dot, f"{name} at {written(at)}: {mean:.4g} ({low:.4g} to {high:.4g})")
    return marks


def _reference_line(reference: Reference | None, x: Scale, y: Scale) -> list[str]:
    if reference is None:
        return []
    height = y(reference.value)
    return [line(x.start, height, x.end, height, "currentColor", 1.2, "3 3")]


def _end_labels(drawn: Drawn, reference: Reference | None, x: Scale, y: Scale, room: float) -> list[str]:
    """Every name at the end of its line, moved apart where they would touch, with a thin line to where it belongs."""
    ends = [(n, x(p[-1][0]), y(p[-1][1]), series_style(i)[0]) for i, n, p in drawn]
    ends += [(reference.name, x.end, y(reference.value), "currentColor")] if reference else []
    places = spread([height for *_, height, _ in ends], GAP, y.end, y.start)
    marks = []
    for (name, right, height, colour), place in zip(ends, places, strict=True):
        marks.append(line(max(right + 4, x.end), height, x.end + 16, place, colour, 0.8))
        if right + 4 < x.end:
            marks.append(line(right + 4, height, x.end, height, colour, 0.8, "1 3"))
        marks.append(text(x.end + 20, place + 3.8, shortened(name, room + 4), fill=colour))
    return marks


def _numbers(drawn: Drawn, reference: Reference | None, across: str) -> Numbers:
    rows = [
        (name, written(at), *(f"{v:.4g}" for v in (mean, low, high)))
        for _, name, points in drawn
        for at, mean, low, high in points
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
    reference = reference if reference and math.isfinite(reference.value) else None
    room = min(max((width_of(d.name) for d in known), default=0.0) + 12, 170.0)
    values = [v for d in known for v in (d.low, d.high)] + ([reference.value] if reference else [])
    scale = Scale.over(values, room, width - 62).widened(0.04)
    top = 46.0 if reference else 30.0
    bottom = top + 24 * max(len(known), 1) + 4
    marks = [text(0, 14, shortened(title, width, 14), size=13.5, bold=True), *bottom_axis(scale, bottom, top)]
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
    return [line(place, top, place, bottom, "currentColor", 1.2, "3 3"), name]


def _dot(dot: Dot, scale: Scale, y: float, room: float, width: float) -> str:
    colour = series_style(0)[0]
    marks = text(room - 8, y + 4, shortened(dot.name, room - 10), anchor="end")
    marks += line(scale(dot.low), y, scale(dot.high), y, colour, 2)
    marks += "".join(line(scale(v), y - 4, scale(v), y + 4, colour, 1.5) for v in (dot.low, dot.high))
    marks += element("circle", cx=scale(dot.value), cy=y, r=4.5, fill=colour)
    marks += text(width, y + 4, valued(dot.value), anchor="end")
    return tip(marks, f"{dot.name}: {dot.value:.4g} ({dot.low:.4g} to {dot.high:.4g})")
