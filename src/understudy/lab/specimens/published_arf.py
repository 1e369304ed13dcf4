"""`published-dp-arf`: a private adversarial forest as it is printed (Merchant 2024). It has no finite ε.

What is printed (§4.3, appendix A.1): the forest is grown on raw rows; in each leaf the mean of a number gets Laplace
noise of scale (largest − smallest)/(n·ε), the deviation is taken anew around that mean, and the probabilities p of the
categories become exp(ε·p/2), scaled to sum to 1. Why that is not private:

- the noise's scale is taken from the rows, and one row can move it without limit;
- where all values of a leaf are the same, its mean is released with noise of 1e-6/ε, that is exactly;
- deviations are recomputed from the raw values, and the share of rows in each leaf is released as it is;
- exp(ε·p/2) is the law of an exponential mechanism over categories, but it is released itself, without any draw; and
  only categories that occur in the leaf have one;
- the splits are half-way between raw values;
- 30 trees × all columns × all leaves each spend ε, and nothing adds it up.

It serves the study, and the auditor as prey.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.inference.forest.adversarial_forest import FittedForest, Growth, grow
from understudy.inference.forest.density import CategoryShares, ForestDensity, Normal, forge
from understudy.lab.specimens.arf import TRUNCATED_NORMAL, ForestParams, counted_leaf, estimate
from understudy.lab.specimens.points import Floats, Points
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind

SMALLEST = 1e-6
"""Stands in for a sensitivity of 0."""


def specimen(
    rows: Any,
    schema: Schema | None = None,
    epsilon: float = 1.0,
    *,
    dist: str = TRUNCATED_NORMAL,
    oob: bool = False,
    alpha: float = 0.0,
    n: int | None = None,
    seed: int | None = None,
    **options: Any,
) -> Specimen:
    """Rows as the printed method makes them; the other options are those of `Growth`, whose defaults it shares.

    Numbers are rounded as the schema says, but not kept inside its bounds: the printed method has none.
    """
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon ({epsilon}) must be a positive number", epsilon)
    # As in arfpy, on which the printed method is built, small leaves are dropped: merging them is ours.
    growth = Growth(**options, merge=False)
    rng = np.random.Generator(np.random.PCG64(seed))
    points = Points.of(rows, schema)
    grown = grow(points.values, growth, rng)
    density = perturbed(points, grown, estimate(points, grown, dist, oob, alpha), epsilon, oob, rng)
    made = forge(density, len(points.values) if n is None else n, rng)
    parameters = dataclasses.asdict(growth) | {"epsilon": epsilon, "dist": dist, "oob": oob, "alpha": alpha}
    return Specimen(SPECIMEN.name, points.table(made), parameters)


def perturbed(
    points: Points, grown: FittedForest, density: ForestDensity, epsilon: float, oob: bool, rng: np.random.Generator
) -> ForestDensity:
    """The density with the printed noise."""
    leaf = counted_leaf(grown, oob)
    found: list[Normal | CategoryShares] = []
    for j, column in enumerate(density.columns):
        if isinstance(column, Normal):
            found.append(_noisy(column, points.values[:, j], leaf, epsilon, rng))
        else:
            found.append(_flattened(column, density, j, epsilon))
    return density.with_columns(found)


def _noisy(normal: Normal, values: Floats, leaf: Any, epsilon: float, rng: np.random.Generator) -> Normal:
    """Steps 2 to 9 of §4.3.1.1: the observed range by the number of rows is taken for the sensitivity."""
    count, width = _observed(values, leaf, len(normal.mean))
    sensitivity = width / np.maximum(count, 1)
    # The leaf that most needs noise gets next to none: all of its rows have the same value.
    sensitivity = np.where(sensitivity == 0, SMALLEST, sensitivity)
    mean = normal.mean + rng.laplace(0.0, sensitivity / epsilon)
    # `deviation` is that of a sample, over n − 1. Around another centre m the mean square is the variance plus
    # (m − mean)²: so the printed deviation, taken anew around the noisy mean, needs no second look at the rows.
    around = normal.deviation**2 * (np.maximum(count, 1) - 1) / np.maximum(count, 1)
    return dataclasses.replace(normal, mean=mean, deviation=np.sqrt(around + (mean - normal.mean) ** 2))


def _observed(values: Floats, leaf: Any, leaves: int) -> tuple[Floats, Floats]:
    """The number of values in each leaf, and how far they lie apart."""
    row, tree = np.nonzero((leaf >= 0) & ~np.isnan(values)[:, None])
    at, seen = leaf[row, tree], values[row]
    low, high = np.full(leaves, np.inf), np.full(leaves, -np.inf)
    np.minimum.at(low, at, seen)
    np.maximum.at(high, at, seen)
    count = np.bincount(at, minlength=leaves).astype(np.float64)
    return count, np.where(count > 0, high - low, 0.0)


def _flattened(shares: CategoryShares, density: ForestDensity, column: int, epsilon: float) -> CategoryShares:
    """Steps 1 to 6 of §4.3.1.2: p becomes exp(ε·p/2), for the categories that have a p."""
    # With α every category of a leaf's box has a p; without, a category that is released tells that it occurs.
    if shares.alpha:
        shares = shares.filled(density.leaves, column)
    leaf = shares.keys // shares.size
    weights = np.exp(epsilon * shares.weights / shares.totals[leaf] / 2)
    return CategoryShares.of(shares.keys, weights, density.leaves, column, shares.size, 0.0)


SPECIMEN = SpecimenKind(
    name="published-dp-arf",
    good_for="studies: the private forest as its document prints it",
    limits="no finite ε: its noise is scaled by the rows that it should hide",
    make=lambda rows, schema, epsilon, stated: specimen(rows, schema, epsilon, **stated),
    params=ForestParams,
)
