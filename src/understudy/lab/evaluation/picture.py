"""What the pictures of a report are drawn from: shares, densities, matrices and points, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SharesPicture:
    """A column of categories: the share of each in the real and in the synthetic table, most frequent first."""

    column: str
    labels: tuple[str, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float
    """Total variation between the two, by which the worst come first."""


@dataclass(frozen=True)
class DensityPicture:
    """A column on a line: its density in the real and in the synthetic table over the same points."""

    column: str
    points: tuple[float, ...]
    labels: tuple[str, ...]
    """What a few of the points are called, as (first, middle, last): dates are not numbers."""
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float


@dataclass(frozen=True)
class AssociationPicture:
    """Association of every two columns, from -1 to 1; NaN becomes None, where a column is constant."""

    name: str
    columns: tuple[str, ...]
    real: tuple[tuple[float | None, ...], ...]
    synthetic: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class ScatterPicture:
    """Rows of both tables on the two axes along which the real table varies most."""

    real: tuple[tuple[float, float], ...]
    synthetic: tuple[tuple[float, float], ...]
    explained: tuple[float, float]
    """The share of the real variance on each axis."""


Column = SharesPicture | DensityPicture


@dataclass(frozen=True)
class Pictures:
    """Columns come worst first; a picture that can't be had is None, and `reasons` says why."""

    columns: tuple[Column, ...]
    matrix: AssociationPicture | None
    cloud: ScatterPicture | None
    reasons: tuple[tuple[str, str], ...] = ()

    def worst(self, most: int) -> Sequence[Column]:
        return self.columns[:most]
