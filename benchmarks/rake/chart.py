"""Lines on logarithmic axes as an SVG file, by hand: the project has no plotting library among its tools."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 96, 34, 36
PER_LINE = 2
COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#7d6608")
MARKS = (1, 2, 3, 5)
APART = 13.0
"""The least distance of two labels at the ends of lines."""


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    title: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Axis:
    """Positive numbers on a logarithmic line, and where they are drawn."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """A little longer than the values, and never empty."""
        return cls(min(values) / 1.2, max(values) * 1.2, start, end)

    def place(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def marks(self) -> list[float]:
        """Powers of ten, and where they would be few also some multiples of them."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [10.0**p for p in powers if self.low <= 10.0**p <= self.high]
        if len(found) < len(MARKS):
            found = [m * 10.0**p for p in powers for m in MARKS if self.low <= m * 10.0**p <= self.high]
        return found


def write(path: Path, panels: Sequence[Panel]) -> None:
    """Panels side by side, PER_LINE to a line; one without points is left empty."""
    deep = math.ceil(len(panels) / PER_LINE)
    size = f'width="{WIDTH * PER_LINE}" height="{HEIGHT * deep}" viewBox="0 0 {WIDTH * PER_LINE} {HEIGHT * deep}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">']
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for i, panel in enumerate(panels):
        parts.append(f'<g transform="translate({i % PER_LINE * WIDTH} {i // PER_LINE * HEIGHT})">')
        parts += [_text(LEFT, TOP - 14, panel.title, "start", "#222", "bold"), *(_drawn(panel) if panel.lines else [])]
        parts.append("</g>")
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _drawn(panel: Panel) -> Iterator[str]:
    points = [p for line in panel.lines for p in line.points]
    x = Axis.over([a for a, _ in points], LEFT, WIDTH - RIGHT)
    y = Axis.over([b for _, b in points], HEIGHT - BOTTOM, TOP)
    for mark in x.marks():
        yield _rule(x.place(mark), y.start, x.place(mark), y.end)
        yield _text(x.place(mark), HEIGHT - BOTTOM + 16, _number(mark), "middle")
    for mark in y.marks():
        yield _rule(x.start, y.place(mark), x.end, y.place(mark))
        yield _text(LEFT - 6, y.place(mark) + 4, _number(mark), "end")
    ends = _spread([y.place(line.points[-1][1]) for line in panel.lines])
    for line, colour, end in zip(panel.lines, COLOURS, ends, strict=False):
        places = " ".join(f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in line.points)
        yield f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (
            f'<circle cx="{x.place(a):.1f}" cy="{y.place(b):.1f}" r="3" fill="{colour}"/>' for a, b in line.points
        )
        yield _text(x.end + 6, end + 4, line.name, "start", colour, "bold")


def _spread(places: Sequence[float]) -> list[float]:
    """Labels that would cover each other are moved down, one after the other."""
    found = list(places)
    order = sorted(range(len(places)), key=lambda i: places[i])
    for upper, lower in itertools.pairwise(order):
        found[lower] = max(found[lower], found[upper] + APART)
    return found


def _number(value: float) -> str:
    for factor, unit in ((1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#444", weight: str = "normal") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="{colour}" font-weight="{weight}">{escape(text)}</text>'
