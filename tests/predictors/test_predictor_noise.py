"""Noise conformance: residuals of the leaves' counts, through the curator, against the scale that the spend declares.

Each check is a Chernoff bound, as for all noise here: P[Σx ≥ s] ≤ exp(n·ln M(t) − t·s) for every t ≥ 0. Up to four
trees with two sides each are refused below 1.25·10⁻¹⁰: false alarms are rarer than 10⁻⁹ a run, over the randomness of
the operating system. Mutants draw the same noise in every run.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.orchard import ADD_REMOVE, TARGET, opened, people
from helpers.randomness import SilentRandomness
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.lab.audits.checks.conformance import rounded
from understudy.predictors.tasks import ClassificationTask
from understudy.predictors.tree_induction import EXPONENTIAL, RANDOM, Hyperparameters, learn

FALSE_ALARM, TREES = 1e-9, 4
SIDE = FALSE_ALARM / (2 * TREES)
BUDGETS = {"discrete-laplace": Budget(0.5, 0.0), "rounded-gaussian": Budget(0.5, 1e-6)}
SETTINGS = {
    "random": Hyperparameters(RANDOM, trees=TREES, depth=7, leaves=4000, rows=300),
    "greedy": Hyperparameters(EXPONENTIAL, trees=1, depth=1, leaves=2000, rows=300),
}
ROWS = people(300)


class Scaled:
    """Honest choices and noise, but at a wrong scale."""

    secure = True

    def __init__(self, factor: float) -> None:
        self._honest, self._factor = ExactRandomness.system(), factor

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self._honest.noise(mechanism, scale * self._factor, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return self._honest.choose(scores, exponent, k)


def log_moments(mechanism: str, scale: float, t: float) -> float:
    """ln E[exp(t·size)] of |x|/b (Laplace), exactly, and of (x/σ)² (Gaussian, rounded), no less than the truth."""
    if mechanism == "rounded-gaussian":
        return rounded(scale).size_moments(t)
    r = math.exp(-1 / scale)
    tail = r * math.exp(t / scale)
    return math.log((1 - r) / (1 + r) * (1 + 2 * tail / (1 - tail))) if tail < 1 else math.inf


def refused(residuals: NDArray[np.float64], mechanism: str, scale: float) -> bool:
    gaussian = mechanism == "rounded-gaussian"
    size = (residuals / scale) ** 2 if gaussian else np.abs(residuals) / scale
    total, count = float(size.sum()), size.size
    sides = [
        min(count * log_moments(mechanism, scale, t) - t * total for t in sign * np.geomspace(1e-4, 0.49, 100))
        for sign in (1.0, -1.0)
    ]
    return min(sides) < math.log(SIDE)


def residuals_of(budget: Budget, chosen: Hyperparameters, factor: float) -> list[tuple[NDArray[np.float64], float]]:
    """What was added to each tree's leaves: the same trees are counted again without noise."""
    task = ClassificationTask(Domain.of(ADD_REMOVE), TARGET)
    curator = Curator.on(opened(ROWS), budget, randomness=Scaled(factor))
    leaves = learn(curator, task, chosen, np.random.default_rng(7))
    scales = [s.scale for s in curator.spends][-len(leaves) :]
    exact = Curator.on(opened(ROWS), budget, randomness=SilentRandomness())
    from understudy.predictors.tree_induction import count_leaves

    counted = count_leaves(exact, task, [each.tree for each in leaves])
    return [((a.counts - b.counts).ravel(), s) for a, b, s in zip(leaves, counted, scales, strict=True)]


@pytest.mark.noise(false_alarm=FALSE_ALARM, why="a Chernoff bound for each side of each of at most four trees")
@pytest.mark.parametrize("mechanism", BUDGETS)
@pytest.mark.parametrize("chosen", SETTINGS)
def test_leaves_have_the_declared_noise(mechanism: str, chosen: str) -> None:
    for residuals, scale in residuals_of(BUDGETS[mechanism], SETTINGS[chosen], 1.0):
        assert not refused(residuals, mechanism, scale)


@pytest.mark.parametrize("mechanism", BUDGETS)
@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_the_same_check_refuses_another_scale(mechanism: str, factor: float) -> None:
    found = residuals_of(BUDGETS[mechanism], SETTINGS["random"], factor)
    assert any(refused(residuals, mechanism, scale) for residuals, scale in found)
