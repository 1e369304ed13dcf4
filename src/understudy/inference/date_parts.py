"""Dates that have the weekday, month, year and hour of their rows.

Bins of a date keep its season at most: inside of them all weekdays are alike. Where a part is modelled beside the date,
the date is drawn again inside its bin, until it has the part. So the bins keep their shares, and a bin's days follow
the density inside it. Where noise has put a bin and a part together that no date has, the date stands, and the part is
taken from it: no row contradicts itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime
from understudy.boundary.schema.derived import DerivedPart
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.encoding import codes_of_numbers

ROUNDS, AT_ONCE = 60, 20
"""Draws of a date inside its bin; twenty at once cost what one costs.

One month and weekday of two years, 1 in 168 days, is missed once in a thousand times.
"""
SECONDS_OF_DAY = 86_400

Codes = Mapping[str, NDArray[np.integer]]
Draw = Callable[[NDArray[np.integer]], NDArray[Any]]
"""Dates inside the bins of these codes."""


def parts_among(domain: Domain, codes: Codes) -> dict[str, list[Coding]]:
    """The parts among the coded columns, by the date that they are parts of."""
    found: dict[str, list[Coding]] = {}
    for coding in domain:
        if isinstance(coding.column, DerivedPart) and coding.name in codes and coding.column.date in codes:
            found.setdefault(coding.column.date, []).append(coding)
    return found


def with_parts(dates: NDArray[Any], coding: Coding, parts: Sequence[Coding], codes: Codes, draw: Draw) -> NDArray[Any]:
    """The dates, those drawn again that have not the parts of their rows."""
    data, own = dates.copy(), codes[coding.name]
    left = np.flatnonzero((own < coding.levels) & ~_fitting(data, parts, codes, np.arange(len(data))))
    left = left[_possible(coding, parts, codes, left)]
    for _ in range(ROUNDS):
        if not len(left):
            break
        rows = left.repeat(AT_ONCE)
        drawn = _at_its_hour(draw(own[rows]), coding, parts, codes, rows=rows)
        fits = _fitting(drawn, parts, codes, rows).reshape(-1, AT_ONCE)
        found, first = fits.any(axis=1), fits.argmax(axis=1)
        data[left[found]] = drawn.reshape(-1, AT_ONCE)[found, first[found]]
        left = left[~found]
    return data


def part_of(dates: NDArray[Any], coding: Coding) -> NDArray[np.float64]:
    """Of dates as numpy has them what `DerivedPart.value_of` is of one."""
    assert isinstance(coding.column, DerivedPart)
    days = dates.astype("datetime64[D]")
    match coding.column.part:
        case "year":
            found = days.astype("datetime64[Y]").astype(np.int64) + 1970
        case "month":
            found = days.astype("datetime64[M]").astype(np.int64) % 12 + 1
        case "weekday":  # the first of January 1970 was a Thursday
            found = (days.astype(np.int64) + 3) % 7 + 1
        case _:
            found = (dates - days) // np.timedelta64(3600, "s")
    return found.astype(np.float64)


def _fitting(dates: NDArray[Any], parts: Sequence[Coding], codes: Codes, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each date has the parts of its row; a part that is missing says nothing."""
    fits = np.ones(len(dates), dtype=bool)
    for part in parts:
        wanted = codes[part.name][rows]
        fits &= (wanted >= part.levels) | (codes_of_numbers(part, part_of(dates, part)) == wanted)
    return fits


def _possible(coding: Coding, parts: Sequence[Coding], codes: Codes, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether some day of a row's bin has the row's year, month and weekday; half of a noisy model's have none."""
    edges, long = _edges(coding), [p for p in parts if not _is_hour(p)]
    first, last = edges[[0, -1]].astype("datetime64[D]")
    days = np.arange(first, last + 1).astype("datetime64[s]")
    own = [codes_of_numbers(p, part_of(days, p)).astype(np.int64) for p in long]
    sizes = (coding.size, *(p.size for p in long))
    known: list[NDArray[np.int64]] = []
    for end in (0, SECONDS_OF_DAY - 1):  # a day may begin in one bin and end in the next
        bins = np.searchsorted(edges[1:-1], days + np.timedelta64(end, "s"), side="right")
        known.append(np.unique(_numbered([bins, *own], sizes)))
    wanted = [codes[c.name][rows] for c in (coding, *long)]
    untold = np.zeros(len(rows), dtype=bool)
    for part, values in zip(long, wanted[1:], strict=True):
        untold |= values >= part.levels
    return untold | np.isin(_numbered(wanted, sizes), np.concatenate(known))


def _numbered(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """One number for each combination of codes."""
    found = np.zeros(len(codes[0]), dtype=np.int64)
    for values, size in zip(codes, sizes, strict=True):
        found = found * size + values
    return found


def _at_its_hour(
    dates: NDArray[Any], coding: Coding, parts: Sequence[Coding], codes: Codes, *, rows: NDArray[np.intp]
) -> NDArray[Any]:
    """Dates moved to the hour of their row, unless that is outside their bin."""
    hour = next((p for p in parts if _is_hour(p)), None)
    if hour is None:
        return dates
    wanted = np.minimum(codes[hour.name][rows], hour.levels - 1)
    moved = dates + (wanted - part_of(dates, hour).astype(np.int64)) * np.timedelta64(3600, "s")
    edges, bins = _edges(coding), codes[coding.name][rows]
    return np.asarray(np.where((moved >= edges[bins]) & (moved < edges[bins + 1]), moved, dates))


def _is_hour(part: Coding) -> bool:
    return isinstance(part.column, DerivedPart) and part.column.part == "hour"


def _edges(coding: Coding) -> NDArray[Any]:
    """The edges of a date's bins as points in time."""
    assert isinstance(coding.column, Datetime)
    units = np.array(coding.edges, dtype=np.int64) * np.timedelta64(coding.column.unit_seconds, "s")
    return np.asarray(np.datetime64(coding.column.start, "s") + units)
