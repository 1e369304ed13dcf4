"""How every two columns go together: in the real table, in the synthetic one, and what is different."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.distribution_figures import head
from understudy.lab.evaluation.picture_data import AssociationPicture
from understudy.pages.axis import Scale, bottom_axis
from understudy.pages.figure import (
    SMALL,
    Figure,
    Numbers,
    element,
    figure,
    line,
    rotation,
    shortened,
    text,
    tip,
    width_of,
)
from understudy.pages.formatting import written
from understudy.pages.palette import var

MOST_COLUMNS = 40
MOST_PAIRS = 300
MOST_DUMBBELLS = 20
"""Pairs of columns that are drawn one under the other."""
MOST_TIPS = 20
"""Columns up to which every cell says what it is to whoever points at it; a page should stay small."""
WIDTH, LABEL_ROOM = 334.0, 96.0
HEAD, LEGEND = 26.0, 154.0
ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

Cells = NDArray[np.float64]


@dataclass(frozen=True)
class _Panel:
    """One of the three: what it is called, its cells, and the value that has the full colour."""

    title: str
    columns: tuple[str, ...]
    cells: Cells
    end: float

    @cached_property
    def side(self) -> float:
        """Of a cell: wide enough for a number where there are few, and for a name in any case."""
        return max(13.0, min(34.0, (WIDTH - self.room) / max(len(self.columns), 1)))

    @cached_property
    def room(self) -> float:
        return min(max((width_of(c, SMALL) for c in self.columns), default=0.0) + 8, LABEL_ROOM)


def heatmaps(matrix: AssociationPicture) -> tuple[Figure, Figure, Figure]:
    """Real, synthetic, and synthetic minus real. Colour tells the sign, its strength the size."""
    shown = matrix.columns[:MOST_COLUMNS]
    real, synthetic = _shown(matrix.real), _shown(matrix.synthetic)
    differences = synthetic - real
    largest = np.nanmax(np.abs(differences), initial=0.0)
    # A round end of the scale, by the largest difference: on that of the associations small ones would all look empty.
    end = next((e for e in ENDS if largest <= e), 2.0)
    panels = (("Real", real, 1.0), ("Synthetic", synthetic, 1.0), ("Synthetic minus real", differences, end))
    first, second, third = (_draw(_Panel(title, shown, cells, most), matrix) for title, cells, most in panels)
    return first, second, third


def _shown(cells: Sequence[Sequence[float | None]]) -> Cells:
    """The first columns; NaN where there is no value."""
    matrix = np.array([row[:MOST_COLUMNS] for row in cells[:MOST_COLUMNS]], dtype=np.float64)
    return np.where(np.isfinite(matrix), matrix, np.nan)


def _draw(panel: _Panel, matrix: AssociationPicture) -> Figure:
    size = panel.side * len(panel.columns)
    upright = panel.side < 18
    # A name that slants by 45° is as deep as 0.71 of its length, and its letters add a little.
    depth = panel.room + 6 if upright else 0.75 * panel.room + 10
    below = HEAD + size + depth
    width = panel.room + max(size, LEGEND) + 8
    ground = {"x": panel.room, "y": HEAD, "width": size, "height": size}
    marks = [text(0, 14, panel.title, size=13.5, bold=True)]
    marks.append(element("rect", **ground, fill=var("track"), fill_opacity=0.45))
    marks += [m for (i, j), v in np.ndenumerate(panel.cells) for m in _cell(panel, i, j, v)]
    marks += _names(panel, HEAD + size, upright)
    marks += _legend(panel, below)
    title = f"{matrix.name.capitalize()}: {panel.title.lower()}"
    return figure(marks, width, below + 34, title, _said(panel, matrix), _numbers(panel))


def _cell(panel: _Panel, i: int, j: int, value: float) -> list[str]:
    side = panel.side
    x, y = panel.room + j * side, HEAD + i * side
    about = f"{panel.columns[i]} and {panel.columns[j]}"
    box = {"x": x + 0.5, "y": y + 0.5, "width": side - 1, "height": side - 1}
    if math.isnan(value):
        cross = line(x + 3, y + side - 3, x + side - 3, y + 3, var("quiet"))
        return [tip(element("rect", **box, fill=var("card")) + cross, f"{about}: no value")]
    strength = min(abs(value) / panel.end, 1.0)
    marks = element("rect", **box, fill=_colour(value), fill_opacity=round(strength, 3))
    if side >= 30:
        ink = var("card") if strength > 0.68 else "currentColor"
        marks += text(x + side / 2, y + side / 2 + 4, _short(value), size=SMALL, anchor="middle", fill=ink)
    if len(panel.columns) <= MOST_TIPS:
        marks = tip(marks, f"{about}: {value:.3f}")
    return [marks]


def _colour(value: float) -> str:
    return var("positive") if value >= 0 else var("negative")


def _short(value: float) -> str:
    """Two decimals without the zero before them.

    >>> _short(0.314), _short(-1.0), _short(-0.001)
    ('.31', '−1', '0')
    """
    shown = f"{abs(value):.2f}"
    if float(shown) == 0:
        return "0"
    if shown == "1.00":
        shown = "1"
    sign = "−" if value < 0 else ""
    return sign + shown.removeprefix("0")


def _names(panel: _Panel, bottom: float, upright: bool) -> list[str]:
    """Of the rows at the left, of the columns below: slanting, or upright where the cells are small."""
    right, down, turn = (3.5, 6, -90) if upright else (4.0, 11, -45)
    marks = []
    for i, column in enumerate(panel.columns):
        at = (i + 0.5) * panel.side
        name = shortened(column, panel.room - 6, SMALL)
        marks.append(text(panel.room - 5, HEAD + at + 3.5, name, size=SMALL, anchor="end"))
        x, y = panel.room + at + right, bottom + down
        marks.append(text(x, y, name, size=SMALL, anchor="end", transform=rotation(turn, x, y)))
    return marks


def _legend(panel: _Panel, y: float) -> list[str]:
    """From the least value to the most, in eleven steps."""
    step, marks = LEGEND / 11, []
    for k in range(-5, 6):
        x = panel.room + (k + 5) * step
        marks.append(element("rect", x=x, y=y, width=step, height=9, fill=var("track"), fill_opacity=0.45))
        marks.append(element("rect", x=x, y=y, width=step, height=9, fill=_colour(k), fill_opacity=abs(k) / 5))
    for place, value in ((0.5, -panel.end), (5.5, 0.0), (10.5, panel.end)):
        marks.append(text(panel.room + place * step, y + 22, _signed(value), size=SMALL, anchor="middle", quiet=True))
    return marks


def _pairs(panel: _Panel) -> list[tuple[str, str, float]]:
    names = panel.columns
    return [(names[i], names[j], float(panel.cells[i, j])) for i in range(len(names)) for j in range(i)]


def _numbers(panel: _Panel) -> Numbers:
    """The pairs that are furthest from zero first."""
    pairs = _pairs(panel)
    known = sorted(((a, b, v) for a, b, v in pairs if not math.isnan(v)), key=lambda pair: -abs(pair[2]))
    rows = [(a, b, f"{v:.3f}".replace("-", "−")) for a, b, v in known]
    rows += [(a, b, "no value") for a, b, v in pairs if math.isnan(v)]
    return Numbers(("column", "column", panel.title.lower()), tuple(rows[:MOST_PAIRS]))


def _said(panel: _Panel, matrix: AssociationPicture) -> str:
    known = [p for p in _pairs(panel) if not math.isnan(p[2])]
    if not known:
        return f"{matrix.name.capitalize()} of {len(panel.columns)} columns; no two of them have a value."
    first, second, value = max(known, key=lambda p: abs(p[2]))
    among = f"{len(panel.columns)}"
    if len(panel.columns) < len(matrix.columns):
        among = f"the first {among}"
    return (
        f"{matrix.name.capitalize()} of every two of {among} columns. "
        f"It is furthest from zero, {value:.3f}, between {first} and {second}."
    )


# --- pairs of columns one under the other


def pairs(matrix: AssociationPicture) -> Figure:
    """The pairs that go together most in either table: a dot for the real rows, a ring for the synthetic ones."""
    shown = _strongest(matrix)
    width, top = 560.0, HEAD + 22.0
    room = min(max((width_of(name, SMALL) for name, *_ in shown), default=0.0) + 10, 240.0)
    low = min([0.0, *(min(real, made) for _, real, made in shown)])
    scale = Scale(-1.0 if low < 0 else 0.0, 1.0, room, width - 14)
    bottom = top + 17.0 * max(len(shown), 1)
    title = "Pairs of columns that go together most"
    marks = head(title, width=width) + bottom_axis(scale, bottom, top - 6, name=_signed)
    for i, (name, real, made) in enumerate(shown):
        y = top + 17.0 * i + 6
        marks.append(text(room - 8, y + 3.5, shortened(name, room - 10, SMALL), size=SMALL, anchor="end"))
        ends = line(scale(real), y, scale(made), y, var("quiet"), 1.2)
        ends += element("circle", cx=scale(real), cy=y, r=4, fill=var("real"))
        ends += element("circle", cx=scale(made), cy=y, r=4.5, fill="none", stroke=var("synthetic"), stroke_width=1.8)
        marks.append(tip(ends, f"{name}: {real:.3f} real, {made:.3f} synthetic"))
    rows = tuple((n, *(f"{v:.3f}".replace("-", "−") for v in (real, made, made - real))) for n, real, made in shown)
    numbers = Numbers(("pair", "real", "synthetic", "synthetic minus real"), rows)
    return figure(marks, width, bottom + 20, title, _pairs_said(matrix, shown), numbers)


def _signed(value: float) -> str:
    return written(value).replace("-", "−")


def _strongest(matrix: AssociationPicture) -> list[tuple[str, float, float]]:
    """By the larger of both tables: a relation that was made up must be seen as well as one that was lost."""
    names, found = matrix.columns, list[tuple[str, float, float]]()
    for i in range(len(names)):
        for j in range(i):
            real, made = matrix.real[i][j], matrix.synthetic[i][j]
            if real is not None and made is not None and math.isfinite(real) and math.isfinite(made):
                found.append((f"{names[j]} and {names[i]}", real, made))
    return sorted(found, key=lambda pair: -max(abs(pair[1]), abs(pair[2])))[:MOST_DUMBBELLS]


def _pairs_said(matrix: AssociationPicture, shown: Sequence[tuple[str, float, float]]) -> str:
    if not shown:
        return "No two columns have an association in both tables."
    name, real, made = max(shown, key=lambda pair: abs(pair[1] - pair[2]))
    return (
        f"{matrix.name.capitalize()} of {len(shown)} pairs of columns in the real and the synthetic table. "
        f"They differ most for {name}: {real:.3f} real, {made:.3f} synthetic."
    )
