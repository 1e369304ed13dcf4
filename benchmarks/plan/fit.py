"""The numbers of a forecast, fitted to measured releases: of the error, and of time and memory.

Methods are fitted on tables of which it is known how closely their columns are related and how unequal their values
are; so that what is learned of a method is not what is peculiar to a table. Forecasts know neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.methods.forecast.forecast import Setting, Shape, cost_facts, effective_sizes, expected_error, pairs_of

from .cells import Cell, Key
from .truth import truth_of

Floats = NDArray[np.float64]

SHAPE_BEFORE, SHAPE_SPREAD = np.array([1.5, 1.4, 1.4]), np.array([0.5, 0.3, 0.4])
METHOD_BEFORE, METHOD_SPREAD = np.array([0.0, math.log(0.1)]), np.array([1.0, 2.0])
"""Logarithms of what a method wastes and of what it does not reach, and how far methods may be from them."""
FIRMNESS, OUTLYING = 0.5, 0.2
"""How firmly that is held where little was measured; misses beyond the second count less than by their square."""
COST_RIDGE, COST_OUTLYING, SWEEPS = 0.3, 0.3, 8


@dataclass(frozen=True)
class ErrorFit:
    """What all methods have in common, each one's coefficients, and how related tables are: mean and spread of logs."""

    shape: Floats
    methods: dict[str, Floats]
    related: tuple[float, float]

    def forecast(self, cell: Cell, related: float | None = None, skewed: bool = False) -> float:
        """What would be said of it; `related` and `skewed` tell it what it can't know."""
        waste, unreached = (np.array([math.exp(c)]) for c in self.methods[cell.method])
        level = math.exp(self.related[0] if related is None else related)
        return float(
            expected_error(_setting(cell.key, skewed), Shape(*self.shape), np.array([level]), waste, unreached)
        )


@lru_cache
def _setting(key: Key, skewed: bool) -> Setting:
    cell = Cell(key, {})
    public = Setting.of(cell.facts, cell.bought)
    return Setting(public.columns, _real_pairs(key.table), public.rows, public.noise) if skewed else public


@lru_cache
def _real_pairs(table: str) -> Floats:
    return pairs_of(truth_of(table).effective)


def family_of(table: str) -> str:
    """Adult in another coding is the same table."""
    return table.removesuffix("_coded")


def fit_error(cells: Sequence[Cell], known: ErrorFit | None = None) -> ErrorFit:
    """With what is known already, what methods have in common stays as it is, and each is fitted to it."""
    from scipy.optimize import least_squares

    methods = sorted({c.method for c in cells})
    settings = [_setting(c.key, True) for c in cells]
    stacked = Setting(*(np.array([getattr(s, n) for s in settings]) for n in ("columns", "pairs", "rows", "noise")))
    which = np.array([methods.index(c.method) for c in cells])
    related = np.array([[truth_of(c.table).related] for c in cells])
    measured = np.log([c.figures["error"] for c in cells])

    def misses(numbers: Floats) -> Floats:
        shape, each = numbers[:3], numbers[3:].reshape(-1, 2)
        if known is not None:
            shape = known.shape
        waste, unreached = np.exp(each[which]).T[:, :, None]
        z = (np.log(expected_error(stacked, Shape(*shape), related, waste, unreached)) - measured) / OUTLYING
        held = [(shape - SHAPE_BEFORE) / SHAPE_SPREAD, ((each - METHOD_BEFORE) / METHOD_SPREAD).ravel()]
        # The pseudo-Huber loss, as a square.
        return np.concatenate([np.sign(z) * np.sqrt(2 * (np.sqrt(1 + z * z) - 1)), *(FIRMNESS * h for h in held)])

    start = np.concatenate([SHAPE_BEFORE, np.tile(METHOD_BEFORE, len(methods))])
    numbers = least_squares(misses, start).x
    shape, related = (numbers[:3], relations(cells)) if known is None else (known.shape, known.related)
    return ErrorFit(shape, dict(zip(methods, numbers[3:].reshape(-1, 2), strict=True)), related)


def relations(cells: Sequence[Cell]) -> tuple[float, float]:
    """Mean and spread, over tables, of the logarithm of how closely columns are related."""
    by_family: dict[str, list[float]] = {}
    for table in sorted({c.table for c in cells}):
        by_family.setdefault(family_of(table), []).append(math.log(truth_of(table).related))
    logs = [float(np.mean(v)) for v in by_family.values()]
    return float(np.mean(logs)), float(np.std(logs, ddof=1))


def fit_costs(name: str, cells: Sequence[Cell]) -> dict[str, Floats]:
    """Regressions of the logarithm, one for each method; what is far off counts less."""
    found = {}
    for method in sorted({c.method for c in cells}):
        mine = [c for c in cells if c.method == method and name in c.figures]
        if mine:
            facts = np.array([cost_facts(c.facts, c.bought) for c in mine])
            found[method] = _growing(facts, np.log([c.figures[name] for c in mine]))
    return found


def _growing(facts: Floats, wanted: Floats) -> Floats:
    """Counting never makes anything cheaper: where it seems to, it is left out."""
    found = _regression(facts, wanted)
    return found if found[1] >= 0 else _regression(facts * (np.arange(facts.shape[1]) > 0), wanted)


def _regression(facts: Floats, wanted: Floats) -> Floats:
    centre, spread = facts.mean(axis=0), facts.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(facts)), (facts - centre) / spread])
    penalty, weights = np.diag([1e-6, *[COST_RIDGE] * facts.shape[1]]), np.ones(len(facts))
    for _ in range(SWEEPS):
        slopes = np.linalg.solve((design.T * weights) @ design + penalty, (design.T * weights) @ wanted)
        weights = 1 / np.sqrt(1 + ((wanted - design @ slopes) / COST_OUTLYING) ** 2)
    steep = np.where(spread > 1e-6, slopes[1:] / spread, 0.0)
    return np.concatenate([[slopes[0] - steep @ centre], steep])


def cost_of(coefficients: Floats, cell: Cell) -> float:
    return math.exp(float(np.concatenate([[1.0], cost_facts(cell.facts, cell.bought)]) @ coefficients))


def skew_of(cells: Sequence[Cell]) -> float:
    """How far effective sizes are from those that forecasts take: the root mean square of the logarithm."""
    truths = [truth_of(t) for t in sorted({c.table for c in cells})]
    misses = [np.mean(np.log(t.effective / effective_sizes(t.sizes))[t.sizes > 1] ** 2) for t in truths]
    return float(np.sqrt(np.mean(misses)))
