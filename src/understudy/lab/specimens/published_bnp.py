"""`published-bnp`: a printed Pitman–Yor urn (Mele et al. 2024). It has no finite ε, and a δ of about one half.

Each synthetic value is a copy of an earlier one with probability (count − σ)/(θ + n), and new from a base measure with
probability (θ + σk)/(θ + n), where k distinct values were seen. A base measure without atoms never makes a value that
a row has: a synthetic value that equals a row's tells that the row was there. For a row with a value of its own that
happens with probability 1 − Π_{i<m} (θ + n + i − 1 + σ)/(θ + n + i), which bounds δ from below for every ε.

In print the urn sorts its values anew after each new one, but not their counts, so that later copies may be of another
value than was drawn; here it is as it was meant. The bound is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.boundary.schema.schema import Schema
from understudy.inference.polya.pitman_yor import check_urn, least_delta, urn
from understudy.lab.specimens.points import Floats, Points
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.params import Params, parameter


def specimen(
    rows: Any,
    schema: Schema | None = None,
    *,
    theta: float = 1.0,
    sigma: float = 0.5,
    n: int | None = None,
    seed: int | None = None,
) -> Specimen:
    """Rows from the urn, as many as there are or `n`: copies of whole rows, or new ones.

    A new row has each number uniform between the smallest and the largest, and each category as likely as any other.
    """
    check_urn(theta, sigma)
    rng = np.random.Generator(np.random.PCG64(seed))
    points = Points.of(rows, schema)
    draws = len(points.values) if n is None else n
    # A row with a missing number is a value of its own, since missing numbers are not equal.
    _, first, counts = np.unique(points.values, axis=0, return_index=True, return_counts=True, equal_nan=False)
    picked = urn(counts, draws, theta, sigma, rng)
    fresh = np.array([_fresh(points.values[:, j], kinds, draws, rng) for j, kinds in enumerate(points.labels)]).T
    # The urn numbers the values that it began with, then the new ones in the order in which they came.
    made = np.concatenate([points.values[first], fresh])[picked]
    parameters = {
        "theta": theta,
        "sigma": sigma,
        "delta_at_least": least_delta(len(points.values), draws, theta, sigma),
    }
    return Specimen(SPECIMEN.name, points.table(made), parameters)


def _fresh(values: Floats, labels: Any, draws: int, rng: np.random.Generator) -> Floats:
    if labels:
        return rng.integers(0, len(labels), draws).astype(np.float64)
    return rng.uniform(np.nanmin(values), np.nanmax(values), draws)


@dataclass(frozen=True)
class UrnParams(Params):
    """The options of the urn."""

    theta: float = parameter(1.0, "how readily new values come, whatever was seen", low=0.0, high=1e9)
    sigma: float = parameter(
        0.5, "how readily they come where many values were seen", low=0.0, high=1.0, open_high=True
    )


SPECIMEN = SpecimenKind(
    name="published-bnp",
    good_for="studies: the Pitman–Yor urn as its document prints it",
    limits="no finite ε: it copies rows",
    # The urn has no ε: whatever is named, the rows are the same, which the auditor shows.
    make=lambda rows, schema, epsilon, stated: specimen(rows, schema, **stated),
    params=UrnParams,
)
