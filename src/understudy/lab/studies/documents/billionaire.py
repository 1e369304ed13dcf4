"""The billionaire example: why a mean can't be private and useful at once where a median can.

(Bambauer, Muralidhar & Sarathy 2014, in Hanisch.) A town of a hundred people with small incomes, made up here; then a
billionaire moves in. Noise that hides a billionaire drowns the town's mean. One person moves a median by one place.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Quantile
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.entropy import SeededEntropy
from understudy.boundary.privacy.mechanisms.noise import discrete_laplace
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.column import Integer
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sources import open as open_table
from understudy.lab.studies.documents.prediction_page import IncomeExample

RESIDENTS, TYPICAL, SPREAD = 100, 20_000.0, 0.6
LARGEST = 1_000_000_000
EPSILON, REPEATS = 0.5, 200
CUTS = (*range(1_000, 100_000, 1_000), *(d * 10**e for e in range(5, 9) for d in (1, 2, 5)))
"""Public: a thousand apart up to a hundred thousand, then ever wider."""
SCHEMA = Schema((Integer("income", minimum=0, maximum=LARGEST, cuts=tuple(float(c) for c in CUTS)),))


def town(epsilon: float = EPSILON, repeats: int = REPEATS, seed: int = 0) -> IncomeExample:
    """Both towns, asked `repeats` times for their mean and their median; the noise is seeded, for a study."""
    incomes = np.round(np.random.default_rng(seed).lognormal(math.log(TYPICAL), SPREAD, RESIDENTS)).astype(np.int64)
    with_one = np.append(incomes, LARGEST)
    means = tuple(_noisy_means(people, epsilon, repeats, seed) for people in (incomes, with_one))
    medians = tuple(_medians(people, epsilon, repeats, seed) for people in (incomes, with_one))
    return IncomeExample(
        epsilon,
        RESIDENTS,
        (float(incomes.mean()), float(with_one.mean())),
        (float(np.median(incomes)), float(np.median(with_one))),
        math.sqrt(2.0) * LARGEST / epsilon / RESIDENTS,
        (means[0], means[1]),
        (medians[0], medians[1]),
    )


def _noisy_means(incomes: NDArray[np.int64], epsilon: float, repeats: int, seed: int) -> tuple[float, ...]:
    """The sum with Laplace noise for a sensitivity of the largest income, over a number of people taken as public."""
    noise = discrete_laplace(LARGEST / epsilon, repeats, SeededEntropy(seed))
    return tuple(((int(incomes.sum()) + noise) / len(incomes)).tolist())


def _medians(incomes: NDArray[np.int64], epsilon: float, repeats: int, seed: int) -> tuple[float, ...]:
    """By the exponential mechanism over public cuts; one curator has the budget of all repeats, and each gets ε."""
    table, domain = open_table(pa.table({"income": incomes}), SCHEMA), Domain.of(SCHEMA)
    budget = Budget(epsilon * repeats, 0.0)
    curator = Curator.on(table, budget, randomness=ExactRandomness.seeded(seed))
    each = budget.capacity.split([1.0] * repeats)
    return tuple(curator.ask(Quantile(domain, "income", 0.5, amount)) for amount in each)
