"""Every measure, in the order in which a report shows them."""

from __future__ import annotations

from understudy.lab.evaluation.measure import Measure
from understudy.lab.evaluation.measures import (
    association,
    distances,
    fairness,
    moments,
    prediction,
    projection,
    propensity,
    validity,
)
from understudy.lab.evaluation.measures import contingency as marginals
from understudy.lab.evaluation.measures import nearest_distances as reconstruction
from understudy.lab.evaluation.measures import range_queries as queries

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
