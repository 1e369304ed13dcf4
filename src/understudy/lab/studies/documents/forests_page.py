"""The page on adversarial forests: tables beside printed figures, densities of numbers and clouds of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from understudy.lab.evaluation.distribution_figures import bars, density, scatter
from understudy.lab.evaluation.evaluation import NOTICE
from understudy.lab.evaluation.picture_data import Pictures, SharesPicture
from understudy.lab.studies.layout import TextTable
from understudy.pages.figure import Figure
from understudy.pages.page import fill


@dataclass(frozen=True)
class ForestsChapter:
    """One table of the study."""

    title: str
    facts: str
    """How many rows, which target, how many seeds."""
    numbers: tuple[str, ...]
    """The columns that the document draws: those of numbers."""
    grids: tuple[TextTable, ...]
    pictures: Mapping[tuple[float, str], Pictures]
    """By ε and method; ε is 0 for a method that knows none."""


@dataclass(frozen=True)
class Gallery:
    """What one method makes of the numbers and of the rows, at one ε."""

    epsilon: float
    method: str
    figures: tuple[Figure, ...]


def render(chapters: Sequence[ForestsChapter], remarks: Sequence[str] = ()) -> str:
    """One self-contained page; same input, same bytes."""
    galleries = [list(_galleries(chapter)) for chapter in chapters]
    return fill("forests.html.j2", notice=NOTICE, remarks=remarks, chapters=list(zip(chapters, galleries, strict=True)))


def _galleries(chapter: ForestsChapter) -> Iterator[Gallery]:
    for (epsilon, method), pictures in sorted(chapter.pictures.items(), key=lambda item: item[0][0]):
        yield Gallery(epsilon, method, tuple(_figures(chapter, pictures)))


def _figures(chapter: ForestsChapter, pictures: Pictures) -> Iterator[Figure]:
    """In the order of the table, so that two methods are compared picture by picture."""
    known = {column.column: column for column in pictures.columns}
    for name in chapter.numbers:
        column = known[name]
        if isinstance(column, SharesPicture):  # a number with few values, or heavy ones: a curve would hide them
            yield bars(column)
        else:
            yield density(column)
    if pictures.cloud:
        yield scatter(pictures.cloud)
