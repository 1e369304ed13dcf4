"""Pictures of a column, or of rows, in both tables at once: what is real is filled, what is synthetic is outlined."""

from __future__ import annotations

import math
from collections.abc import Sequence

from understudy.lab.evaluation.picture_data import (
    CumulativePicture,
    CurvePicture,
    DensityPicture,
    ScatterPicture,
    SharesPicture,
)
from understudy.pages.axis import Scale, bottom_axis, ticks
from understudy.pages.figure import (
    SMALL,
    Figure,
    Numbers,
    element,
    figure,
    heading,
    line,
    path,
    rotation,
    shortened,
    text,
    tip,
    width_of,
)  # fmt: skip
from understudy.pages.formatting import percent, round_percent, written
from understudy.pages.palette import var

WIDTH = 340.0
MOST_BARS, ROOMY_BARS = 16, 10
MARGIN = 14.0
RARE = 0.01
"""The share up to which one value of many has no bar of its own."""
MOST_POINTS = 2000
HEAD = 46.0
"""Room for the title and the legend."""
REAL, SYNTHETIC = var("real"), var("synthetic")
Row = tuple[str, float, float]
"""A value, and its share of the real and of the synthetic rows."""
OUTLINE: dict[str, str | float] = {"fill": SYNTHETIC, "fill_opacity": 0.12, "stroke": SYNTHETIC, "stroke_width": 1.5}


def head(title: str, distance: float | None = None, width: float = WIDTH) -> list[str]:
    """The title, how far apart the two are, and which is which."""
    side = ""
    if distance is not None and math.isfinite(distance):
        side = f"distance {distance:.3f}"
    marks = [heading(title, width - width_of(side) - 12)]
    if side:
        marks.append(text(width, 14, side, anchor="end", quiet=True))
    marks.append(element("rect", x=0, y=24, width=14, height=10, rx=1.5, fill=REAL))
    marks.append(text(19, 33, "real", quiet=True))
    marks.append(element("rect", x=54.75, y=24.75, width=12.5, height=8.5, rx=1.5, **OUTLINE))
    marks.append(text(73, 33, "synthetic", quiet=True))
    return marks


def bars(shares: SharesPicture) -> Figure:
    """Two bars for each value: the share of the real rows, filled, over that of the synthetic ones, outlined."""
    every = [
        (label, _share(real), _share(other))
        for label, real, other in zip(shares.labels, shares.real, shares.synthetic, strict=True)
    ]
    rows = _shown(every)
    room = min(max((width_of(label) for label, *_ in rows), default=0.0) + 8, 150.0)
    pitch = 25.0 if len(rows) <= ROOMY_BARS else 17.0
    bottom = HEAD + pitch * max(len(rows), 1)
    scale = Scale(0.0, _top(rows), room, WIDTH - 18)
    at = ticks(0.0, scale.high, 5)
    marks = head(shares.column, shares.distance) + bottom_axis(scale, bottom, HEAD, at=at, name=round_percent)
    for i, row in enumerate(rows):
        marks.append(_pair(row, HEAD + pitch * i, pitch, room, scale))
    marks.append(line(room, HEAD, room, bottom, var("quiet")))
    numbers = Numbers(
        ("value", "real", "synthetic"), tuple((label, percent(real), percent(other)) for label, real, other in every)
    )
    return figure(marks, WIDTH, bottom + 20, shares.column, _bars_words(shares, every), numbers)


def _shown(rows: list[Row]) -> list[Row]:
    """All rows; of many, the long ones in their order, and one for the rest."""
    if len(rows) <= MOST_BARS:
        return rows
    lengths = [max(real, other) for _, real, other in rows]
    # The longest in either table: a value that only the synthetic rows have in plenty must be seen.
    least = max(sorted(lengths)[-MOST_BARS], RARE)
    kept = [row for row, length in zip(rows, lengths, strict=True) if length > least]
    rest = [row for row, length in zip(rows, lengths, strict=True) if length <= least]
    return [*kept, ("all others", math.fsum(r for _, r, _ in rest), math.fsum(s for *_, s in rest))]


def _share(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _top(rows: Sequence[Row]) -> float:
    """Where the axis ends: at the first round share that no bar is longer than."""
    longest = max((max(real, other) for _, real, other in rows), default=0.0)
    return next((t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if longest <= t), max(longest, 1.0))


def _pair(row: Row, y: float, pitch: float, room: float, scale: Scale) -> str:
    label, real, other = row
    thick, middle = 0.36 * pitch, y + pitch / 2
    marks = text(room - 6, middle + 4, shortened(label, room - 8), anchor="end")
    marks += element("rect", x=room, y=middle - thick, width=scale(real) - room, height=thick, fill=REAL)
    marks += element("rect", x=room, y=middle + 1, width=scale(other) - room, height=thick - 1.5, **OUTLINE)
    return tip(marks, f"{label}: {percent(real)} real, {percent(other)} synthetic")


def _bars_words(shares: SharesPicture, rows: Sequence[Row]) -> str:
    if not rows:
        return f"{shares.column} has no values."
    label, real, other = max(rows, key=lambda row: abs(row[1] - row[2]))
    return (
        f"Shares of the values of {shares.column} in the real and the synthetic table. "
        f"They differ most at {label}: {percent(real)} real, {percent(other)} synthetic."
    )


def density(curve: DensityPicture) -> Figure:
    """Two curves over the same line: the real one filled, the synthetic one outlined and dashed."""
    found = _finite(curve)
    bottom = HEAD + 128.0
    across = Scale.over((x for x, *_ in found), MARGIN, WIDTH - MARGIN)
    up = Scale(0.0, max((max(r, s) for _, r, s in found), default=0.0) or 1.0, bottom, HEAD + 4)
    real = [(across(x), up(r)) for x, r, _ in found]
    synthetic = [(across(x), up(s)) for x, _, s in found]
    marks = head(curve.column, curve.distance) + _line_axis(curve, across, bottom)
    marks += _curve(real, bottom, fill=REAL, fill_opacity=0.5) + _edge(real, stroke=REAL, stroke_width=1.5)
    marks += _curve(synthetic, bottom, fill=SYNTHETIC, fill_opacity=0.08)
    marks += _edge(synthetic, stroke=SYNTHETIC, stroke_width=2, stroke_dasharray="6 3")
    marks.append(line(across.start, bottom, across.end, bottom, var("quiet")))
    numbers = Numbers(("at", "real density", "synthetic density"), _thinned(curve, found))
    ends = f" from {curve.labels[0]} to {curve.labels[-1]}" if curve.labels else ""
    said = f"Density of {curve.column}{ends} in the real and the synthetic table, over the same line."
    return figure(marks, WIDTH, bottom + 20, curve.column, said, numbers)


def _finite(curve: CurvePicture) -> list[tuple[float, float, float]]:
    every = zip(curve.points, curve.real, curve.synthetic, strict=True)
    return [point for point in every if all(map(math.isfinite, point))]


def cumulative(curve: CumulativePicture) -> Figure:
    """The share of the rows up to each value: the real one filled, the synthetic one dashed; a mark where they are
    furthest apart."""
    found = _finite(curve)
    bottom = HEAD + 128.0
    across = Scale.over((x for x, *_ in found), 40.0, WIDTH - MARGIN)
    up = Scale(0.0, 1.0, bottom, HEAD + 4)
    real, synthetic = ([(across(p[0]), up(p[i])) for p in found] for i in (1, 2))
    marks = head(curve.column, curve.distance) + _line_axis(curve, across, bottom)
    for share in (0.0, 0.5, 1.0):
        marks.append(line(across.start, up(share), across.end, up(share), var("rule")))
        marks.append(
            text(across.start - 5, up(share) + 3.5, round_percent(share), size=SMALL, anchor="end", quiet=True)
        )
    marks += _curve(real, bottom, fill=REAL, fill_opacity=0.25) + _edge(real, stroke=REAL, stroke_width=1.5)
    marks += _edge(synthetic, stroke=SYNTHETIC, stroke_width=2, stroke_dasharray="6 3")
    said = f"Share of the rows up to each value of {curve.column} in the real and the synthetic table."
    if found:
        widest = max(range(len(found)), key=lambda i: abs(found[i][1] - found[i][2]))
        x, first, second = found[widest]
        marks.append(line(across(x), up(first), across(x), up(second), "currentColor", width=1.2, dash="2 2"))
        at = _place(curve, widest, found, _are_numbers(curve))
        said += f" They are furthest apart at {at}: {percent(first)} real, {percent(second)} synthetic."
    numbers = Numbers(("up to", "real share", "synthetic share"), _thinned(curve, found))
    return figure(marks, WIDTH, bottom + 20, curve.column, said, numbers)


def _curve(points: Sequence[tuple[float, float]], bottom: float, **style: str | float) -> list[str]:
    if len(points) < 2:
        return []
    ends = [(points[0][0], bottom), *points, (points[-1][0], bottom)]
    return [element("path", d=path(ends, closed=True), **style)]


def _edge(points: Sequence[tuple[float, float]], **style: str | float) -> list[str]:
    """The line of a curve; of a single point, a stalk."""
    if not points:
        return []
    if len(points) == 1:
        points = [(points[0][0], HEAD + 128.0), points[0]]
    return [element("path", d=path(points), fill="none", stroke_linejoin="round", **style)]


def _line_axis(curve: CurvePicture, across: Scale, bottom: float) -> list[str]:
    """Round numbers where the points are what their labels say; else the labels, such as dates."""
    if _are_numbers(curve):
        return bottom_axis(across, bottom, HEAD + 4)
    marks, last = [], len(curve.labels) - 1
    for i, label in enumerate(curve.labels):
        x, anchor = (across.start + across.end) / 2, "middle"
        if last:
            # The first and the last label start and end with the axis, or they would reach beyond the picture.
            x = across.start + i / last * (across.end - across.start)
            anchor = {0: "start", last: "end"}.get(i, "middle")
        content = shortened(label, (across.end - across.start) / (last + 1) - 6, SMALL)
        marks.append(text(x, bottom + 14, content, size=SMALL, anchor=anchor, quiet=True))
    return marks


def _are_numbers(curve: CurvePicture) -> bool:
    try:
        first, last = (float(curve.labels[i].replace(",", "")) for i in (0, -1))
    except (ValueError, IndexError):
        return False
    # A label is rounded to about a hundredth of what is shown, so it may be a little off its point.
    near = 0.02 * (max(curve.points) - min(curve.points)) + 1e-9
    return abs(first - curve.points[0]) <= near and abs(last - curve.points[-1]) <= near


def _thinned(curve: CurvePicture, found: Sequence[tuple[float, float, float]]) -> tuple[tuple[str, ...], ...]:
    """About twenty of the points, as the table of a picture shows them."""
    named = _are_numbers(curve)
    step = max(1, math.ceil(len(found) / 20))
    places = range(0, len(found), step)
    return tuple((_place(curve, i, found, named), f"{found[i][1]:.3g}", f"{found[i][2]:.3g}") for i in places)


def _place(curve: CurvePicture, index: int, found: Sequence[tuple[float, float, float]], named: bool) -> str:
    if named or not curve.labels or len(found) < 2:
        return written(found[index][0])
    way = f"{100 * index / (len(found) - 1):.0f} %"
    return f"{way} of the way from {curve.labels[0]} to {curve.labels[-1]}"


def scatter(cloud: ScatterPicture, title: str = "Rows of both tables") -> Figure:
    """Real rows as dots, synthetic ones as rings, on the two axes along which the real rows vary most."""
    width, size = 560.0, 400.0
    rows = [(x, y) for x, y in (*cloud.real, *cloud.synthetic) if math.isfinite(x) and math.isfinite(y)]
    across = Scale.over((x for x, _ in rows), 44, width - 8).widened(0.03)
    up = Scale.over((y for _, y in rows), HEAD + size - 40, HEAD).widened(0.03)
    first, second = (f"{percent(share)} of the variance" for share in cloud.explained)
    marks = head(title, width=width)
    marks.append(element("rect", x=44, y=HEAD, width=width - 52, height=size - 40, fill="none", stroke=var("rule")))
    marks.append(_dots(cloud.real, across, up))
    marks.append(_rings(cloud.synthetic, across, up))
    marks.append(text((44 + width) / 2, HEAD + size - 22, f"first axis, {first}", anchor="middle", quiet=True))
    x, y = 34, HEAD + size / 2 - 20
    upwards = rotation(-90, x, y)
    marks.append(text(x, y, f"second axis, {second}", anchor="middle", quiet=True, transform=upwards))
    said = (
        f"{len(cloud.real):,} real and {len(cloud.synthetic):,} synthetic rows "
        "on the two axes along which the real rows vary most."
    )
    return figure(marks, width, HEAD + size - 12, title, said, _cloud_numbers(cloud))


def _some(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    known = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    return known[:: max(1, math.ceil(len(known) / MOST_POINTS))]  # every so many: the rows come in random order


def _dots(points: Sequence[tuple[float, float]], across: Scale, up: Scale) -> str:
    spots = "".join(f"{path([(across(x), up(y))])}h0" for x, y in _some(points))
    # A line of length zero with round ends is a dot: one path of many is far smaller than an element for each row.
    return _cloud(spots, stroke=REAL, stroke_width=5, stroke_linecap="round", stroke_opacity=0.55)


def _rings(points: Sequence[tuple[float, float]], across: Scale, up: Scale) -> str:
    ring = "a2.4 2.4 0 1 0 4.8 0a2.4 2.4 0 1 0-4.8 0"
    spots = "".join(path([(across(x) - 2.4, up(y))]) + ring for x, y in _some(points))
    return _cloud(spots, stroke=SYNTHETIC, stroke_width=1.1, stroke_opacity=0.75)


def _cloud(spots: str, **style: str | float) -> str:
    if not spots:
        return ""
    return element("path", d=spots, fill="none", **style)


def _cloud_numbers(cloud: ScatterPicture) -> Numbers:
    """Single rows are no use in a table; where each cloud lies is."""
    rows = []
    for name, points in (("real", cloud.real), ("synthetic", cloud.synthetic)):
        known = _some(points)
        if not known:
            continue
        for axis in (0, 1):
            along = sorted(p[axis] for p in known)
            ends = (along[0], along[len(along) // 2], along[-1])
            rows.append((name, ("first", "second")[axis], *(f"{v:.3g}" for v in ends)))
    return Numbers(("table", "axis", "least", "middle", "most"), tuple(rows))
