"""Pictures of a single thing: the parts of a whole as a ring, and a value on its range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.pages.axis import Scale, bottom_axis
from understudy.pages.curves import Reference
from understudy.pages.figure import (
    SMALL,
    Figure,
    Numbers,
    element,
    figure,
    heading,
    line,
    shortened,
    text,
    tip,
    width_of,
)
from understudy.pages.formatting import percent, valued, written
from understudy.pages.palette import SERIES, series_style, var

MOST_SLICES = 8
OUTER, INNER = 84.0, 48.0
DIRECT = 0.06
"""The share from which on a slice has room for its percentage."""


@dataclass(frozen=True)
class Slice:
    """A part of a whole, in any unit."""

    name: str
    amount: float


def donut(slices: Sequence[Slice], *, title: str, centre: str = "", note: str = "", width: float = 480.0) -> Figure:
    """A ring of shares from the top on clockwise, and a legend in the same order."""
    parts = _parts(slices)
    whole = math.fsum(s.amount for s in parts) or 1.0  # of nothing, an empty ring
    height = 34 + max(2 * OUTER + 8, 20.0 * len(parts) + 8)
    middle = (OUTER + 2, 34 + OUTER)
    marks, start = [heading(title, width)], 0.0
    for i, part in enumerate(parts):
        share = part.amount / whole
        marks.append(tip(_slice(middle, start, share, i), f"{part.name}: {percent(share)}"))
        start += share
    if not parts:
        marks.append(_ring(middle, var("track")))
    inside = shortened(centre, 2 * INNER - 8, 14)
    marks.append(text(middle[0], middle[1] + 5, inside, size=14, anchor="middle", bold=True))
    marks += [m for i, s in enumerate(parts) for m in _entry(s.name, s.amount / whole, i, width)]
    rows = tuple((s.name, percent(s.amount / whole)) for s in parts)
    said = ", ".join(f"{name} {share}" for name, share in rows) or "nothing"
    return figure(marks, width, height, title, f"Shares: {said}. {note}".strip(), Numbers(("part", "share"), rows))


def _parts(slices: Sequence[Slice]) -> list[Slice]:
    """Those that are there; of many, the first ones and one for the rest."""
    known = [s for s in slices if math.isfinite(s.amount) and s.amount > 0]
    if len(known) <= MOST_SLICES:
        return known
    # There are as many colours that can be told apart as slices.
    rest = known[MOST_SLICES - 1 :]
    return [*known[: MOST_SLICES - 1], Slice(f"{len(rest)} others", math.fsum(s.amount for s in rest))]


def _slice(middle: tuple[float, float], start: float, share: float, index: int) -> str:
    """A part of the ring, with its percentage where there is room."""
    colour = var(SERIES[index % len(SERIES)])
    radius = (OUTER + INNER) / 2
    # An arc whose ends are at the same place isn't drawn at all, so the whole ring is a circle.
    if share > 1 - 1e-9:
        return _ring(middle, colour) + _share_text(_on(middle, radius, 0.5), share)
    a, b = _on(middle, OUTER, start), _on(middle, OUTER, start + share)
    c, d = _on(middle, INNER, start + share), _on(middle, INNER, start)
    large = int(share > 0.5)  # SVG's large-arc flag: two arcs join any two points of a circle
    around = f"M{_at(a)}A{OUTER:g} {OUTER:g} 0 {large} 1 {_at(b)}L{_at(c)}A{INNER:g} {INNER:g} 0 {large} 0 {_at(d)}Z"
    marks = element("path", d=around, fill=colour, stroke=var("card"), stroke_width=1.5)
    if share >= DIRECT:
        marks += _share_text(_on(middle, radius, start + share / 2), share)
    return marks


def _ring(middle: tuple[float, float], colour: str) -> str:
    radius, width = (OUTER + INNER) / 2, OUTER - INNER
    return element("circle", cx=middle[0], cy=middle[1], r=radius, fill="none", stroke=colour, stroke_width=width)


def _share_text(place: tuple[float, float], share: float) -> str:
    return text(
        place[0], place[1] + 4, f"{100 * share:.0f} %", size=SMALL, anchor="middle", fill=var("card"), bold=True
    )


def _on(middle: tuple[float, float], radius: float, turn: float) -> tuple[float, float]:
    angle = 2 * math.pi * turn
    return middle[0] + radius * math.sin(angle), middle[1] - radius * math.cos(angle)


def _at(place: tuple[float, float]) -> str:
    return f"{place[0]:.2f} {place[1]:.2f}"


def _entry(name: str, share: float, index: int, width: float) -> list[str]:
    x, y = 2 * OUTER + 28, 40 + 20.0 * index
    return [
        element("rect", x=x, y=y, width=12, height=12, rx=2, fill=series_style(index)[0]),
        text(x + 18, y + 10, shortened(name, width - x - 76)),
        text(width, y + 10, percent(share), anchor="end", quiet=True),
    ]


def gauge(
    value: float | None,
    low: float,
    high: float,
    *,
    title: str,
    mark: Reference | None = None,
    interval: tuple[float, float] | None = None,
    note: str = "",
    width: float = 340.0,
) -> Figure:
    """A value on its range, with its interval and a mark to compare it with, such as that of guessing."""
    scale = Scale.over((low, high), 14, width - 14)
    shown = "not defined"
    if value is not None and math.isfinite(value):
        shown = valued(value)
    marks = [heading(title, width - width_of(shown) - 16)]
    marks.append(text(width, 14, shown, size=13.5, anchor="end", bold=True))
    marks.append(element("rect", x=14, y=42, width=width - 28, height=10, rx=5, fill=var("track")))
    marks += bottom_axis(scale, 54, at=scale.ticks(6)) + _gauge_mark(scale, mark)
    if interval and all(map(math.isfinite, interval)):
        a, b = (scale(v) for v in interval)
        marks.append(element("rect", x=a, y=42, width=b - a, height=10, rx=5, fill=var("series-1"), fill_opacity=0.35))
    if shown != "not defined" and value is not None:
        spot = {"fill": var("series-1"), "stroke": var("card")}
        marks.append(element("circle", cx=scale(value), cy=47, r=7, stroke_width=2, **spot))
    beside, rows = "", [("value", shown)]
    if mark is not None:
        beside = f", beside {mark.name or 'the mark'} at {written(mark.value)}"
        rows.append((mark.name or "mark", written(mark.value)))
    said = f"{title}: {shown} on a range from {written(low)} to {written(high)}{beside}. {note}".strip()
    return figure(marks, width, 74, title, said, Numbers(("what", "value"), tuple(rows)))


def _gauge_mark(scale: Scale, mark: Reference | None) -> list[str]:
    if mark is None or not math.isfinite(mark.value):
        return []
    place, half = scale(mark.value), width_of(mark.name, SMALL) / 2
    centre = min(max(place, half), scale.end + 14 - half)
    return [
        line(place, 36, place, 56, "currentColor", 2),
        text(centre, 32, mark.name, size=SMALL, anchor="middle", quiet=True),
    ]
