"""What `rake` spends on single columns: as much as a first look at them says that they are worth. Decision 21."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.queryable import BudgetView, Queryable
from understudy.boundary.schema.domain import Domain
from understudy.inference.noisy_table import estimate_total
from understudy.methods.forecast.spending import PlannedBudget, Public, parted
from understudy.methods.parts.one_ways import NARROW, averaged, error_of, measure_each
from understudy.methods.rake.schedule import worthwhile_sets
from understudy.methods.rake.tuning import TUNING

GLANCE = 0.1
"""Of the budget, what is spent at first: enough to know how many rows there are."""
SHARE_PER_ERROR, POWER_OF_ERROR = 1.8, 0.32
"""What single columns are worth in all, by the error e that the whole budget would leave in them: 1.8·e^0.32. Pairs err
by about a multiple of e^0.68, on tables of all sizes, to which a share s of columns adds e/√s: the sum of squares is
least at such a power."""
POWER_OF_CELLS = 0.75
"""Noise in many values is smoothed away in part, so that what a column errs by grows less than they do. Decision 27."""
VALUES_OF_A_PAIR = 2.0
"""Each measured pair is news of both its columns as well, the more so the fewer values the other one has: of two
columns with two values nearly as much as of both together."""
LARGEST_SHARE = 0.9


def measure_columns(
    domain: Domain, curator: Queryable, amount: Amount, rows: Sequence[Measurement]
) -> list[Measurement]:
    """Every one-way marginal at a glance, and again with what it says that they are worth."""
    if len(domain.names) == 1:
        return measure_each(domain, curator, amount)
    one_ways = measure_each(domain, curator, amount.part(GLANCE), POWER_OF_CELLS)
    # What follows reads noisy counts alone, so that it may decide what is paid next (adaptive composition).
    sets = expected_sets(estimate_total([*rows, *one_ways]), curator, len(domain.names))
    sizes = [domain.size(name) for name in domain.names]
    share = share_of_columns(error_of(one_ways, rows), sizes, sets, pure=amount.pure)
    if share <= GLANCE:
        return one_ways
    again = measure_each(domain, curator, amount.part(share - GLANCE), POWER_OF_CELLS)
    return [averaged(a, b) for a, b in zip(one_ways, again, strict=True)]


def plan_columns(public: Public) -> tuple[Amount, Amount]:
    """What single columns are expected to get, and the rest."""
    error = float(public.noise_of_columns(public.amount.part(GLANCE), POWER_OF_CELLS).mean())
    sizes = [int(size) for size in public.sizes]
    left = PlannedBudget(public.amount.part(1.0 - GLANCE), public.change)
    sets = expected_sets(public.rows, left, len(sizes))
    return parted(public, share_of_columns(error, sizes, sets, pure=public.amount.pure))


def expected_sets(rows: float, curator: BudgetView, columns: int) -> float:
    """About how many sets will be worth measuring."""
    left = curator.remaining()
    signal = rows / left.noise_scale(curator.count_sensitivity(left))
    return min(worthwhile_sets(signal, columns, left.pure), TUNING.most_picks)


def share_of_columns(error: float, sizes: Sequence[int], sets: float, *, pure: bool) -> float:
    """The share of the budget for single columns of these sizes where GLANCE of it left so large an error in them.

    >>> [round(share_of_columns(e, [2, 9, 16, 40], 40, pure=False), 2) for e in (0.001, 0.01, 0.1, 1.0)]
    [0.12, 0.25, 0.52, 0.9]
    """
    whole = error * (GLANCE if pure else math.sqrt(GLANCE))
    # Of many columns few pairs can be measured, while the noise of single columns is in all pairs.
    wide = max(1.0, len(sizes) / NARROW)
    most = 1.0 - (1.0 - LARGEST_SHARE) / wide
    # Where there are fewer sets than columns, many a column is in none.
    told = min(1.0, 2.0 * sets / len(sizes)) * min(1.0, VALUES_OF_A_PAIR / float(np.mean(sizes)))
    share = (1.0 - told) * SHARE_PER_ERROR * (whole * wide) ** POWER_OF_ERROR
    return float(np.clip(share, GLANCE, most))
