"""Axes: from values to places on the canvas, where the ticks are, and what they are called."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from understudy.pages.figure import SMALL, line, text, width_of
from understudy.pages.formatting import written
from understudy.pages.palette import var

OVERHANG = 16.0
"""How far a label may reach beyond the axis."""
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """From the values low…high to the places start…end; constant data gets a range around its value."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, logarithmic: bool = False) -> Scale:
        """Over the values that can be drawn."""
        known = [v for v in values if math.isfinite(v) and (v > 0 or not logarithmic)]
        low, high = 0.0, 1.0  # where there is nothing to draw, the axes are drawn all the same
        if known:
            low, high = min(known), max(known)
        elif logarithmic:
            low, high = 1.0, 1.0
        if low == high and logarithmic:
            low, high = low / 2, high * 2  # a logarithmic axis has no room to add, but factors
        elif low == high:
            slack = max(0.5, abs(low) * 0.05)
            low, high = low - slack, high + slack
        return cls(low, high, start, end, logarithmic)

    def __call__(self, value: float) -> float:
        """Its place; what lies outside is put on the border."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            # In halves, since the difference of two finite numbers may be infinite.
            share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return self.start + share * (self.end - self.start)

    def widened(self, share: float) -> Scale:
        """With room at both ends."""
        if self.logarithmic:
            factor = (self.high / self.low) ** share
            return Scale(self.low / factor, self.high * factor, self.start, self.end, True)
        room = share * (self.high - self.low)
        return Scale(self.low - room, self.high + room, self.start, self.end)

    def ticks(self, most: int = 6) -> tuple[float, ...]:
        if self.logarithmic:
            return log_ticks(self.low, self.high, most)
        return ticks(self.low, self.high, most)


def ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Round numbers from low to high, evenly spaced: steps of 1, 2, 2.5 or 5 times a power of ten.

    >>> ticks(17, 90), ticks(0, 1, 5)
    ((20.0, 40.0, 60.0, 80.0), (0.0, 0.25, 0.5, 0.75, 1.0))
    """
    # Divided before it is subtracted: the span of two very large numbers may be infinite.
    least = (high / most - low / most) or 1.0
    power = 10.0 ** math.floor(math.log10(least))
    fits = [power * s for s in STEPS if _number_of_ticks(low, high, power * s) <= most] or [power * 10]
    # The slack of 1e-9 keeps a tick that rounding has put just beyond an end; adding zero takes the sign off a zero.
    first = math.ceil(low / fits[0] - 1e-9)
    return tuple(i * fits[0] + 0.0 for i in range(first, first + _number_of_ticks(low, high, fits[0])))


def _number_of_ticks(low: float, high: float, step: float) -> int:
    return math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1


def log_ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Powers of ten, with 2 and 5 times them, or 3 times them, between where there is room.

    >>> log_ticks(0.1, 10)
    (0.1, 0.3, 1.0, 3.0, 10.0)
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(1, math.ceil(len(powers) / most))
    for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        # Through their text: 3 * 10.0**-1 is 0.30000000000000004, which would be shown.
        found = [float(f"{f}e{p}") for p in powers for f in factors]
        inside = [t for t in found if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]
        if 2 <= len(inside) <= most:
            return tuple(inside)
    return tuple(t for t in (float(f"1e{p}") for p in powers[::every]) if low <= t <= high) or (low, high)


def bottom_axis(
    scale: Scale,
    y: float,
    top: float | None = None,
    *,
    at: Sequence[float] | None = None,
    name: Callable[[float], str] = written,
) -> list[str]:
    """Ticks under the canvas, with faint lines up to `top`; a label that would touch the one before is left out."""
    marks, free = [], -math.inf
    if at is None:
        at = scale.ticks(5)
    for value in at:
        place, label = scale(value), name(value)
        if top is not None:
            marks.append(line(place, top, place, y, var("rule")))
        half = width_of(label, SMALL) / 2
        # A long label at an end is moved inwards, or the picture would cut it off.
        centre = min(max(place, scale.start + half - OVERHANG), max(scale.end + OVERHANG - half, scale.start))
        if centre - half > free:
            marks.append(text(centre, y + 14, label, size=SMALL, anchor="middle", quiet=True))
            free = centre + half + 4
    return marks


def left_axis(scale: Scale, x: float, right: float, *, name: Callable[[float], str] = written) -> list[str]:
    """Ticks at the left of the canvas, with faint lines to `right`."""
    marks = []
    for value in scale.ticks(6):
        place = scale(value)
        marks.append(line(x, place, right, place, var("rule")))
        marks.append(text(x - 6, place + 3.5, name(value), size=SMALL, anchor="end", quiet=True))
    return marks


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near to the wanted ones as a gap between any two allows, within low…high where they fit.

    >>> spread([10, 11, 50], 10, 0, 100)
    [5.5, 15.5, 50.0]
    """
    # Isotonic regression by pooling adjacent violators (Ayer et al. 1955): without the gaps, places may not decrease.
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[float]] = []  # sum of the wanted starts, and how many labels share it
    for place, i in enumerate(order):
        blocks.append([wanted[i] - place * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1]]
    starts = list(itertools.chain.from_iterable([total / n] * int(n) for total, n in blocks))
    # Where all don't fit they keep their gaps, and the last ones reach beyond the end.
    most = high - gap * (len(wanted) - 1)
    placed = [0.0] * len(wanted)
    for place, i in enumerate(order):
        placed[i] = max(min(starts[place], most), low) + place * gap
    return placed
