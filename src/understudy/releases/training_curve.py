"""The curve of a training: how far made rows were from the noisy sums, step by step.

The curve is one of the recorded answers, made of noisy sums alone like the generator beside it; showing it is
post-processing, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from understudy.boundary.privacy.asks import Train, kind_of
from understudy.boundary.privacy.measurement import Answer
from understudy.pages.axis import Scale, bottom_axis, left_axis, valued
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, path, shortened, text, tip
from understudy.pages.palette import series_style

PART = "curve"
TITLE, ACROSS, UP = "The critic's gap during the training", "step", "gap"
MEANING = (
    "The gap is how far pairs of values among made rows are from what the noisy sums say of them, as the critic prices "
    "it: it falls while the generator learns, and while noise averages out. The curve is as private as the rest of the "
    "release, since it is made of noisy sums alone."
)

Point = tuple[float, float]


def curve_of(record: Sequence[Answer]) -> tuple[Point, ...]:
    """Steps and gaps, where something was trained; nothing elsewhere."""
    found = [a.value for a in record if kind_of(a.question) is Train and a.question.get("part") == PART]
    points = [(float(step), float(gap)) for values in found for step, gap in values]
    return tuple((step, gap) for step, gap in points if math.isfinite(gap))


def training_curve(points: Sequence[Point], *, width: float = 400.0) -> Figure:
    """A line from report to report, above the steps; the gap counts from zero."""
    bottom, (colour, _) = 200.0, series_style(0)
    across = Scale.over([0.0, *(step for step, _ in points)], 44, width - 14)
    up = Scale.over([0.0, *(gap for _, gap in points)], bottom, 46)
    places = [(across(step), up(gap)) for step, gap in points]
    marks = [text(0, 14, shortened(TITLE, width, 14), size=13.5, bold=True), text(0, 34, UP, size=SMALL, quiet=True)]
    marks += left_axis(up, across.start, across.end) + bottom_axis(across, bottom)
    marks.append(text((across.start + across.end) / 2, bottom + 30, ACROSS, size=SMALL, anchor="middle", quiet=True))
    marks.append(element("path", d=path(places), fill="none", stroke=colour, stroke_width=2))
    marks += [
        tip(element("circle", cx=x, cy=y, r=3, fill=colour), f"step {step:,.0f}: {gap:.4g}")
        for (x, y), (step, gap) in zip(places, points, strict=True)
    ]
    rows = tuple((f"{step:,.0f}", valued(gap)) for step, gap in points)
    first, last = points[0], points[-1]
    said = f"It went from {first[1]:.3g} at step {first[0]:,.0f} to {last[1]:.3g} at step {last[0]:,.0f}."
    return figure(marks, width, bottom + 38, TITLE, said, Numbers((ACROSS, UP), rows))
