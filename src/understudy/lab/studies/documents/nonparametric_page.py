"""The page on nonparametric Bayes: what a Polya tree learns, what its draws cost, and what simulating that cost misses.

It holds results of made-up data alone, so it may be shown to anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy.lab.studies.layout import TextTable
from understudy.pages.curves import Band, Box, Series, band, boxes, curves
from understudy.pages.figure import Figure
from understudy.pages.formatting import valued
from understudy.pages.page import fill

WIDTH = 520


@dataclass(frozen=True)
class Supremum:
    """The largest log ratio of densities over one parameter: exactly, and as far as random tables show it."""

    parameter: str
    at: tuple[float, ...]
    exact: tuple[float, ...]
    simulated: tuple[float, ...]
    setting: str


@dataclass(frozen=True)
class Failures:
    """δ over ε: of random neighbours by simulation, and of the worst neighbours exactly."""

    title: str
    epsilons: tuple[float, ...]
    curves: Mapping[str, tuple[float, ...]]
    note: str


@dataclass(frozen=True)
class NonparametricStudy:
    """All that the page shows."""

    bands: Mapping[str, Sequence[tuple[float, Band]]]
    """For each law of the data: c, and what was learned with it."""
    distances: Mapping[str, Sequence[Box]]
    """Box plots by their titles, which name the quantity, the law and the parameter."""
    suprema: Sequence[Supremum]
    failures: Sequence[Failures]
    prices: Sequence[tuple[float, int, float]]
    """ε, depth, and the c per draw that it needs."""
    missed: str
    """What the simulation missed, in a sentence."""
    rows: int
    depth: int
    columns: TextTable | None = None
    """How trees fare on real columns, beside other ways to bin them; where somebody has measured it."""


def render(study: NonparametricStudy) -> str:
    """One self-contained page; same input, same bytes."""
    return fill(
        "nonparametric.html.j2",
        study=study,
        bands=[(law, [_band(law, c, b) for c, b in found]) for law, found in study.bands.items()],
        distances=[_boxes(title, found) for title, found in study.distances.items()],
        suprema=[_supremum(s) for s in study.suprema],
        failures=[_failures(f) for f in study.failures],
        prices=_prices(study),
    )


def pictures(study: NonparametricStudy) -> list[Figure]:
    """Every picture of the page, in its order."""
    found = [_band(law, c, b) for law, some in study.bands.items() for c, b in some]
    found += [_boxes(title, some) for title, some in study.distances.items()]
    return [*found, *map(_supremum, study.suprema), *map(_failures, study.failures)]


def _band(law: str, c: float, found: Band) -> Figure:
    return band(found, title=f"{law}, c = {c:g}")


def _boxes(title: str, found: Sequence[Box]) -> Figure:
    quantity, law, parameter = title.split(" | ")
    return boxes(found, title=f"{quantity}, {law}", across=parameter, up=f"{quantity}, lower is better")


def _supremum(found: Supremum) -> Figure:
    series = [_line("exact ε", found.at, found.exact), _line("simulated", found.at, found.simulated)]
    return curves(
        series, title=f"Largest log ratio over {found.parameter}", across=found.parameter,
        up="ln of the largest density ratio", note=found.setting, width=WIDTH,
    )  # fmt: skip


def _failures(found: Failures) -> Figure:
    series = [_line(name, found.epsilons, deltas) for name, deltas in found.curves.items()]
    return curves(series, title=found.title, across="ε", up="δ", note=found.note, width=WIDTH)


def _line(name: str, across: Sequence[float], up: Sequence[float]) -> Series:
    """A curve without intervals: both of their ends are at the value."""
    return Series(name, tuple((x, y, y, y) for x, y in zip(across, up, strict=True)))


def _prices(study: NonparametricStudy) -> TextTable:
    rows = tuple((f"{e:g}", str(d), valued(c), f"{100 * 2 * c / (2 * c + 1):.0f} %") for e, d, c in study.prices)
    return TextTable(
        "What as many draws as rows need",
        ("ε", "depth", "c per draw", "prior's weight at the root"),
        rows,
        "The weight of the prior in the first split, 2c/(2c + n), where every row is replaced by a draw.",
    )
