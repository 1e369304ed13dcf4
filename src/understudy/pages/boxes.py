"""Pictures of random quantities: boxes over a parameter, and densities with the band that draws of them fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.pages.axis import Scale, bottom_axis, left_axis, written
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, line, path, shortened, text, tip
from understudy.pages.palette import series_style, var

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
        ordered = sorted(values)

        def quantile(share: float) -> float:
            place = share * (len(ordered) - 1)
            below = min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0
            above = min(below + 1, len(ordered) - 1)
            return ordered[below] + (place - below) * (ordered[above] - ordered[below])

        return cls(at, ordered[0], quantile(0.25), quantile(0.5), quantile(0.75), ordered[-1])

    @property
    def values(self) -> tuple[float, ...]:
        return (self.least, self.lower, self.middle, self.upper, self.most)


def boxes(found: Sequence[Box], *, title: str, across: str, up: str, width: float = 340.0) -> Figure:
    """A box for each value of the parameter, evenly spaced in the order given."""
    bottom, right = 250.0, width - 12
    pitch = (right - LEFT) / max(len(found), 1)
    y = Scale.over((v for box in found for v in box.values), bottom, TOP).widened(0.04)
    marks = [text(0, 14, shortened(title, width, 14), size=13.5, bold=True)]
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
    marks = [text(0, 14, shortened(title, width, 14), size=13.5, bold=True)]
    marks += [*_legend(), *left_axis(y, 40, right), *bottom_axis(x, bottom)]
    ground = [(x(p), y(t)) for p, t in zip(found.points, found.truth, strict=True)]
    edge = [(x(found.points[-1]), y(0.0)), (x(found.points[0]), y(0.0))]
    marks.append(element("path", d=path([*ground, *edge], closed=True), fill=var("real"), fill_opacity=0.35))
    tops = [(x(p), y(v)) for p, v in zip(found.points, found.high, strict=True)]
    floors = [(x(p), y(v)) for p, v in zip(found.points, found.low, strict=True)]
    marks.append(element("path", d=path([*tops, *floors[::-1]], closed=True), fill=var("synthetic"), fill_opacity=0.2))
    along = [(x(p), y(v)) for p, v in zip(found.points, found.mean, strict=True)]
    marks.append(element("path", d=path(along), fill="none", stroke=var("synthetic"), stroke_width=1.6))
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
