"""The page on adversarial forests: tables beside printed figures, densities of numbers and clouds of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.lab.evaluation.distribution_figures import scatter
from understudy.lab.evaluation.evaluation import NOTICE
from understudy.lab.evaluation.picture_data import OverlayPicture, Pictures
from understudy.lab.studies.layout import TextTable
from understudy.pages.curves import Series, curves
from understudy.pages.figure import Figure
from understudy.pages.page import fill

WIDTH = 520


@dataclass(frozen=True)
class Gallery:
    """What all methods make of the numbers and of the rows, at one ε."""

    epsilon: float
    overlays: tuple[Figure, ...]
    clouds: tuple[Figure, ...]


@dataclass(frozen=True)
class ForestsChapter:
    """One table of the study."""

    title: str
    facts: str
    """How many rows, which target, how many seeds."""
    grids: tuple[TextTable, ...]
    galleries: tuple[Gallery, ...] = ()


def render(chapters: Sequence[ForestsChapter], remarks: Sequence[str] = ()) -> str:
    """One self-contained page; same input, same bytes."""
    return fill("forests.html.j2", notice=NOTICE, remarks=remarks, chapters=chapters)


def overlaid(found: OverlayPicture) -> Figure:
    """Real rows and every method in one picture, as the document draws them."""
    series = [Series.line(name, found.points, heights) for name, heights in found.curves.items()]
    up, what = "density", "Density"
    if found.cumulative:
        up, what = "share of the rows up to the value", "Distribution"
    return curves(series, title=f"{what} of {found.column}", across=found.column, up=up, width=WIDTH, logarithmic=False)


def cloud_of(pictures: Pictures, method: str) -> Figure | None:
    """Rows of a method over real ones."""
    if pictures.cloud is None:
        return None
    return scatter(pictures.cloud, f"Real rows and those of {method}")
