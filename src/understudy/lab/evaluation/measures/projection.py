"""Principal axes: whether the rows of both tables lie in the same places along which the real ones vary most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import HIGHER, LOWER, Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.row_features import Features, Floats, SharedResult

SECTION = "Columns together"
CELLS, LEADING = 12, 5
DECIMALS = 9
"""The same row has the same place in both tables, whatever the order in which a sum was taken."""
CONSTANT = "all columns of the real table are constant, so that it varies along no axis"


@dataclass(frozen=True)
class Axes:
    """The directions in which a table varies, the longest first."""

    middle: Floats
    directions: Floats
    """One in each column."""
    variances: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Axes:
        middle = matrix.mean(axis=0)
        centred = matrix - middle
        # `eigh` sorts upwards, and rounding may make the least ones negative.
        variances, directions = np.linalg.eigh(centred.T @ centred / len(matrix))
        return cls(middle, directions[:, ::-1], np.maximum(variances[::-1], 0.0))

    @property
    def shares(self) -> Floats:
        """Of the whole variance; all are 0 where nothing varies."""
        total = float(self.variances.sum())
        if not total > 10.0**-DECIMALS:
            return np.zeros_like(self.variances)
        return self.variances / total

    def place(self, matrix: Floats, axes: int = 2) -> Floats:
        return np.round((matrix - self.middle) @ self.directions[:, :axes], DECIMALS)


@dataclass(frozen=True)
class Projection:
    """Both tables on the first two axes of the real one, and the shares of variance of each."""

    real: Floats
    synthetic: Floats
    real_shares: Floats
    synthetic_shares: Floats

    @property
    def constant(self) -> bool:
        return not self.real_shares.any()


def _project(comparison: Comparison) -> Projection:
    features = Features.fit(comparison.variables, comparison.real)
    real, synthetic = (features.one_hot(table) for table in comparison.both)
    axes = Axes.of(real)
    return Projection(axes.place(real), axes.place(synthetic), axes.shares, Axes.of(synthetic).shares)


project = SharedResult(_project)


def pca_overlap(comparison: Comparison) -> MeasureResult:
    found = project(comparison)
    if found.constant:
        return MeasureResult.undefined(CONSTANT)
    # Cells with about as many real rows each: cells of equal width would hold nearly all rows in a few.
    inner = np.arange(1, CELLS) / CELLS
    cells = [np.unique(np.quantile(axis, inner, method="lower")) for axis in found.real.T]
    shares = [_histogram(places, cells) / len(places) for places in (found.real, found.synthetic)]
    return MeasureResult(max(0.0, 1.0 - float(np.abs(shares[0] - shares[1]).sum()) / 2))


def _histogram(places: Floats, cells: list[Floats]) -> NDArray[np.int64]:
    shape = tuple(len(bounds) + 1 for bounds in cells)
    codes = tuple(np.searchsorted(bounds, axis, side="right") for bounds, axis in zip(cells, places.T, strict=True))
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape)))


def pca_variance(comparison: Comparison) -> MeasureResult:
    found = project(comparison)
    if found.constant:
        return MeasureResult.undefined(CONSTANT)
    both = list(zip(found.real_shares[:LEADING], found.synthetic_shares[:LEADING], strict=True))
    parts = [
        MeasurePart(f"axis {i}", abs(float(real - synthetic)), note=f"real {real:.3f}, synthetic {synthetic:.3f}")
        for i, (real, synthetic) in enumerate(both, start=1)
    ]
    return MeasureResult.mean(parts, CONSTANT)


_measure = partial(Measure, section=SECTION, low=0.0, high=1.0)

MEASURES: tuple[Measure, ...] = (
    _measure("pca-overlap", "Overlap on the principal axes", direction=HIGHER, compute=pca_overlap,
             explanation="The part of both tables that falls into the same cells of the plane along which the real "
             "rows vary most."),
    _measure("pca-variance", "Variance along the principal axes", direction=LOWER, unit="axis", compute=pca_variance,
             explanation="How far the shares of variance on the five leading axes of each table differ, on average."),
)  # fmt: skip
