"""How far real rows are from the nearest synthetic ones, as it has been printed of synthetic tables."""

from __future__ import annotations

from functools import partial

import numpy as np

from understudy.lab.evaluation.comparison import Comparison, RowSample
from understudy.lab.evaluation.measure import HIGHER, INFINITY, Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.measures.distances import deviation
from understudy.lab.evaluation.row_features import Features, Floats, draw

SECTION = "Reconstruction"
# Three neighbours on columns as they are, without the target: the "reconstruction attack" of Merchant (2024).
NEAREST = 3
MOST_REAL, MOST_SYNTHETIC = 2_000, 10_000
"""Rows; more are drawn from by the seed."""
LARGEST = 1e150
"""Of a number whose square can be computed."""
MOST_NUMBERS = 100_000
"""Synthetic rows of which numbers alone are looked at: few columns are quick, and fewer rows would lie further off."""


def reconstruction(comparison: Comparison, scaled: bool) -> MeasureResult:
    """On all columns but the target; and, as a part, on all but the number that spreads widest, which outweighs all.

    In their own units there are parts on numbers alone, too, as the printed figure has lost the columns of text.
    """
    left_out = [comparison.target]
    if not scaled:
        left_out += _widest(comparison)
    left_out = list(dict.fromkeys(left_out))
    found = {name: _distance(comparison, name, scaled) for name in left_out}
    value = found[comparison.target]
    if value is None:
        return MeasureResult.undefined(f"there is no column beside {comparison.target!r} to measure a distance on")
    parts = tuple(MeasurePart(f"without {n}" if n else "all columns", v) for n, v in found.items() if v is not None)
    if not scaled:
        alone = {name: _distance_of_numbers(comparison, name) for name in left_out}
        parts += tuple(MeasurePart(numbers_without(n), v) for n, v in alone.items() if v is not None)
    real, synthetic = (min(s.rows, most) for s, most in _drawn_from(comparison))
    return MeasureResult(value, parts=parts, note=f"{real:,} real rows against {synthetic:,} synthetic ones")


def numbers_without(name: str | None) -> str:
    """What the part on numbers alone is called."""
    return f"numbers without {name}" if name else "all numbers"


def _distance_of_numbers(comparison: Comparison, without: str | None) -> float | None:
    """Of rows in which no number is missing."""
    names = [v.name for v in comparison.on_line if not v.is_date and v.name != without]
    if not names:
        return None
    drawn_from = ((comparison.real, MOST_REAL), (comparison.synthetic, MOST_NUMBERS))
    samples = (draw(sample, most, comparison.seed) for sample, most in drawn_from)
    real, synthetic = (np.column_stack([s.values[n] for n in names]) for s in samples)
    real, synthetic = (rows[np.isfinite(rows).all(axis=1)] for rows in (real, synthetic))
    if not len(real) or not len(synthetic) or max(np.abs(real).max(), np.abs(synthetic).max()) > LARGEST:
        return None
    return float(nearest(real, synthetic, min(NEAREST, len(synthetic))).mean())


def _widest(comparison: Comparison) -> list[str]:
    """The number that spreads widest; nothing where no column holds numbers."""
    spreads = {}
    for variable in comparison.on_line:
        values = comparison.real.values[variable.name]
        finite = values[np.isfinite(values)]
        spreads[variable.name] = deviation(finite) if len(finite) else 0.0
    return sorted(spreads, key=lambda n: -spreads[n])[:1]


def _drawn_from(comparison: Comparison) -> tuple[tuple[RowSample, int], tuple[RowSample, int]]:
    return (comparison.real, MOST_REAL), (comparison.synthetic, MOST_SYNTHETIC)


def _distance(comparison: Comparison, without: str | None, scaled: bool) -> float | None:
    others = [v for v in comparison.variables if v.name != without]
    if not others:
        return None
    features = Features.fit(others, comparison.real)
    real, synthetic = (draw(sample, most, comparison.seed) for sample, most in _drawn_from(comparison))
    found = nearest(features.one_hot(real, scaled), features.one_hot(synthetic, scaled), min(NEAREST, synthetic.rows))
    return float(found.mean())


def nearest(rows: Floats, among: Floats, count: int) -> Floats:
    """The distances of each row to so many of the others.

    The neighbours are found on centred rows by a fast formula that loses digits; their distances are then taken anew.
    """
    from sklearn.neighbors import NearestNeighbors

    # |x − y|² = |x|² − 2xy + |y|² cancels badly far from the origin, as years or identifiers are.
    middle = rows.mean(axis=0)
    rows, among = rows - middle, among - middle
    found = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(among).kneighbors(rows, return_distance=False)
    distances = [np.sqrt(np.square(rows - among[found[:, i]]).sum(axis=1)) for i in range(count)]
    return np.column_stack(distances)


_measure = partial(Measure, section=SECTION, direction=HIGHER, low=0.0, high=INFINITY)

MEASURES: tuple[Measure, ...] = (
    _measure("reconstruction", "Distance to the nearest synthetic rows",
             compute=partial(reconstruction, scaled=False),
             explanation="Mean distance from a real row to its three nearest synthetic ones, numbers in their own "
             "units. It has been printed as a risk of reconstruction, but it is no measure of privacy."),
    _measure("reconstruction-scaled", "The same distance, standardised", compute=partial(reconstruction, scaled=True),
             explanation="The same with numbers in standard deviations, so that no column counts for its unit; it is "
             "no measure of privacy either."),
)  # fmt: skip
