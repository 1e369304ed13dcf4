"""The pictures of a release's report: the distribution of each synthetic column, and the curve of a training.

The curve is one of the recorded answers, made of noisy sums alone like the generator beside it; showing it is
post-processing, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Train, kind_of
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.schema.column import Column, Datetime, Integer, Number
from understudy.boundary.schema.domain import Coding
from understudy.boundary.schema.spelling import special_text
from understudy.pages.axis import Scale, bottom_axis, left_axis, ticks
from understudy.pages.figure import SMALL, TEXT, Figure, Numbers, element, figure, heading, path, text, tip, width_of
from understudy.pages.formatting import valued, written
from understudy.pages.palette import series_style
from understudy.releases.synthetic_table import without_special

MOST_BARS = 40
"""Of a column of many codes; neighbours are put together. More would be thinner than the gaps between them."""
MOST_TICKS = 5
WHOLE_AXIS, BESIDE_MISSING = 340.0, 276.0
"""Of the canvas: an axis is shorter where missing or special values have a bar of their own beside it."""
NARROWEST = 1e-9
"""Of the axis. A bin that floating point gives no width must not divide by zero."""
AT_END = 0.06
SECONDS_PER_DAY = 86_400
CALENDAR = (
    *(("D", n, 1.0) for n in (1, 2, 5, 10)),
    *(("M", n, 30.4) for n in (1, 2, 3, 6)),
    *(("Y", n, 365.25) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)
"""Units of the calendar, how many of them lie between two ticks, and how many days one has."""
MOST_NAMED_BARS = 10
"""Of a column of labels; the rarer ones share the last bar."""

PART = "curve"
TITLE, ACROSS, UP = "The critic's gap during the training", "step", "gap"
MEANING = (
    "The gap is how far pairs of values among made rows are from what the noisy sums say of them, as the critic prices "
    "it: it falls while the generator learns, and while noise averages out. The curve is as private as the rest of the "
    "release, since it is made of noisy sums alone."
)

Point = tuple[float, float]


# --- columns


@dataclass(frozen=True)
class ChartBar:
    """A bar of a chart: its share of all rows, and its height (or length) as a part of the tallest one."""

    label: str
    count: int
    share: float
    height: float
    absent: bool = False
    start: float = 0.0
    width: float = 1.0
    """Where a standing bar begins and how wide it is, as parts of the axis."""


@dataclass(frozen=True)
class Tick:
    """A label under the axis: where it is, as a part of it, and which part of the text stands there."""

    place: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class ColumnChart:
    """The distribution of a synthetic column. Named bars lie, with a label each; others stand on an axis."""

    bars: tuple[ChartBar, ...]
    named: bool
    ticks: tuple[Tick, ...] = ()
    missing: ChartBar | None = None
    middle: tuple[str, ...] = ()
    """Quartiles and median of the synthetic numbers: a skewed column is one thin bar on an axis that is to scale."""
    width: float = WHOLE_AXIS


def column_chart(coding: Coding, values: Any) -> ColumnChart:
    values = without_special(coding.column, values)
    counts, rows = _counts(coding, values), max(len(values), 1)
    if coding.labels is not None and (coding.levels <= MOST_NAMED_BARS or not coding.column.ordered):
        return _named_chart(coding, counts, values.null_count, rows)
    return replace(_standing_chart(coding, counts, values.null_count, rows), middle=_middle(coding.column, values))


def _counts(coding: Coding, values: Any) -> NDArray[np.int64]:
    """How many synthetic rows each code has, missing ones aside."""
    present = values.drop_null()
    if coding.labels is not None:
        tally = {entry["values"]: entry["counts"] for entry in present.value_counts().to_pylist()}
        return np.array([tally.get(label, 0) for label in coding.labels], dtype=np.int64)
    bins = np.searchsorted(np.array(coding.edges), _on_line(coding, present), side="right") - 1
    # The largest value lies on the last edge, which belongs to the last bin.
    return np.bincount(bins.clip(0, coding.levels - 1), minlength=coding.levels)


def _on_line(coding: Coding, present: Any) -> NDArray[Any]:
    """The values where the column's edges are: a datetime as units of its resolution since its `min`."""
    column = coding.column
    if not isinstance(column, Datetime):
        return present.to_numpy()
    seconds = present.to_numpy().astype("datetime64[s]") - np.datetime64(column.minimum, "s")
    return seconds.astype(np.int64) // column.unit_seconds


def _named_chart(coding: Coding, counts: NDArray[np.int64], missing: int, rows: int) -> ColumnChart:
    """A bar for each value; of many, the most frequent ones (ties in the order of the schema) and one for the rest."""
    labels = list(map(str, coding.labels or ()))
    shown = list(range(len(counts)))
    if len(counts) > MOST_NAMED_BARS:
        shown = [int(i) for i in np.argsort(-counts, kind="stable")[: MOST_NAMED_BARS - 1]]
    named = [(labels[i], int(counts[i])) for i in shown]
    if len(named) < len(labels):
        named.append((f"{len(labels) - len(named):,} other values", int(counts.sum()) - sum(n for _, n in named)))
    entries = [(label, n, False) for label, n in named]
    if coding.column.missing:
        entries.append(("missing", missing, True))
    tallest = max(1, *(n for _, n, _ in entries))
    bars = tuple(ChartBar(label, n, n / rows, n / tallest, absent) for label, n, absent in entries)
    return ColumnChart(bars, True)


def _standing_chart(coding: Coding, counts: NDArray[np.int64], missing: int, rows: int) -> ColumnChart:
    """Neighbouring codes merged to at most MOST_BARS bars, each over its own part of the axis."""
    step = math.ceil(coding.levels / MOST_BARS)
    groups = [(a, min(a + step, coding.levels)) for a in range(0, coding.levels, step)]
    places = _places(coding)
    totals = [int(counts[a:b].sum()) for a, b in groups]
    widths = [max(float(places[b] - places[a]), NARROWEST) for a, b in groups]
    # As in a histogram, by area: a wide bin must not look fuller than a narrow one with as many rows per value.
    heights = [n / width for n, width in zip(totals, widths, strict=True)]
    tallest = max(heights) or 1.0
    bars = tuple(
        ChartBar(_range(coding, a, b), n, n / rows, h / tallest, start=float(places[a]), width=w)
        for (a, b), n, h, w in zip(groups, totals, heights, widths, strict=True)
    )
    absent, width = None, WHOLE_AXIS
    if coding.apart:
        width = BESIDE_MISSING
        names = [*map(special_text, coding.special), *["missing"] * coding.column.missing]
        absent = ChartBar(" or ".join(names), missing, missing / rows, missing / rows, True)
    return ColumnChart(bars, False, _ticks(coding, width), missing=absent, width=width)


def _middle(column: Column, values: Any) -> tuple[str, ...]:
    """A quarter, half and three quarters of the numbers lie at or below these; nothing of dates and labels."""
    if not isinstance(column, Integer | Number) or len(values) == values.null_count:
        return ()
    found = np.quantile(values.drop_null().to_numpy(), (0.25, 0.5, 0.75), method="inverted_cdf")
    return tuple(plain(float(at)) for at in found)


def _places(coding: Coding) -> NDArray[np.float64]:
    """Where each code begins, and where the last one ends, as parts of the axis; labels are evenly apart."""
    if coding.edges is None:
        return np.linspace(0.0, 1.0, coding.levels + 1)
    halves = np.array(coding.edges, dtype=np.float64) / 2  # the difference of two finite numbers may be infinite
    return (halves - halves[0]) / ((halves[-1] - halves[0]) or 1.0)


def _ticks(coding: Coding, width: float) -> tuple[Tick, ...]:
    """Round numbers or dates along the axis; where there is no room for two, what stands at its ends."""
    ends = (Tick(0.0, first_point(coding, 0), "start"), Tick(1.0, last_point(coding), "end"))
    if coding.edges is None:
        return ends
    low, high = float(coding.edges[0]), float(coding.edges[-1])
    column = coding.column
    for most in range(MOST_TICKS, 1, -1):
        if isinstance(column, Datetime):
            marks = _round_moments(column, high, most)
        else:
            whole = isinstance(column, Integer)
            # A whole number has the room up to the next one, and is named at the middle of it.
            last, within = (high - 1, 0.5) if whole else (high, 0.0)
            found = [t for t in ticks(low, last, most) if not whole or t.is_integer()]
            marks = [(t + within, written(t)) for t in found]
        named = tuple(_tick((at / 2 - low / 2) / (high / 2 - low / 2), label) for at, label in marks)
        if len(named) > 1 and not _touch(named, width):
            return named
    return ends


def _touch(named: Sequence[Tick], width: float) -> bool:
    """Whether two labels beside each other would run into one another."""
    reach = {"start": 0.0, "middle": 0.5, "end": 1.0}
    wide = [width_of(t.label, TEXT) for t in named]
    starts = [width * t.place - reach[t.anchor] * w for t, w in zip(named, wide, strict=True)]
    return any(at + w > after for at, w, after in zip(starts, wide, starts[1:], strict=False))


def _tick(place: float, label: str) -> Tick:
    """A label that would reach beyond an end of the axis stands beside its place instead."""
    if place < AT_END:
        return Tick(place, label, "start")
    return Tick(place, label, "end" if place > 1 - AT_END else "middle")


def _round_moments(column: Datetime, units: float, most: int) -> list[tuple[float, str]]:
    """The first days of some years or months, or some days, as units of the resolution since the column's `min`."""
    if column.minimum is None:
        return []
    first = np.datetime64(column.minimum, "s")
    days = units * column.unit_seconds / SECONDS_PER_DAY
    unit, step = next(((u, n) for u, n, length in CALENDAR if days / (n * length) <= most), ("Y", 1000))
    start, end = (int(m.astype(f"datetime64[{unit}]").astype(np.int64)) for m in (first, first + int(days * 86_400)))
    epoch = 1970 if unit == "Y" else 0  # years are counted from there, and round ones from zero
    counts = np.arange(start, end + 1)
    moments = counts.astype(f"datetime64[{unit}]")
    since = (moments.astype("datetime64[s]") - first).astype(np.int64) / column.unit_seconds
    fits = ((counts + epoch) % step == 0) & (since >= 0) & (since < units)
    return [(float(at), str(moment)) for at, moment in zip(since[fits], moments[fits], strict=True)]


def first_point(coding: Coding, code: int) -> str:
    """Where a code begins, as its column writes it."""
    if coding.labels is not None:
        return str(coding.labels[code])
    return _written(coding, (coding.edges or ())[code])


def last_point(coding: Coding) -> str:
    return _end_point(coding, coding.levels)


def _end_point(coding: Coding, end: int) -> str:
    """The last value before code `end`; a number's bin has its upper edge for want of a last value."""
    if coding.labels is not None:
        return str(coding.labels[end - 1])
    whole = isinstance(coding.column, Integer | Datetime)
    return _written(coding, (coding.edges or ())[end] - whole)


def _written(coding: Coding, at: float) -> str:
    column = coding.column
    if not isinstance(column, Datetime) or column.minimum is None:
        return plain(at)
    moment = column.minimum + timedelta(seconds=int(at) * column.unit_seconds)
    if column.resolution == "day":
        return moment.date().isoformat()
    return moment.isoformat(" ")


def _range(coding: Coding, first: int, end: int) -> str:
    low, high = first_point(coding, first), _end_point(coding, end)
    if low == high:
        return low
    return f"{low} to {high}"


def plain(value: float) -> str:
    """A number in full (a bound's last decimal may tell where it came from), with commas where they help to read it.

    >>> plain(2019), plain(1484705), plain(27.0), plain(0.5)
    ('2019', '1,484,705', '27', '0.5')
    """
    if float(value).is_integer() and abs(value) < 1e15:
        value = int(value)
    if abs(value) >= 10_000:
        return f"{value:,}"
    return f"{value}"


# --- the training


def curve_of(record: Sequence[RecordedAnswer]) -> tuple[Point, ...]:
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
    marks = [heading(TITLE, width), text(0, 34, UP, size=SMALL, quiet=True)]
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
