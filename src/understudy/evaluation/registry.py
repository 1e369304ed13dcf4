"""Every measure, in the order in which a report shows them."""

from __future__ import annotations

from understudy.evaluation import (
    association,
    distances,
    fairness,
    marginals,
    moments,
    prediction,
    projection,
    propensity,
    queries,
    reconstruction,
    validity,
)
from understudy.evaluation.measure import Measure

MEASURES: tuple[Measure, ...] = (
    *marginals.MEASURES,
    *distances.MEASURES,
    *association.MEASURES,
    *moments.MEASURES,
    *validity.MEASURES,
    *projection.MEASURES,
    *queries.MEASURES,
    *propensity.MEASURES,
    *prediction.MEASURES,
    *fairness.MEASURES,
    *reconstruction.MEASURES,
)
