"""Moments as evidence: a log-factor θ·f over the cells of a grid, whose few θ are raked to noisy sums of f.

Of all distributions whose mean of f is what was measured, the one nearest to the model so far (in relative entropy) is
the model times exp(θ·f) for some θ (Csiszár 1975): one number to learn where a table of counts has one per cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from understudy.inference.grouping import Floats
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.particles.particles import NEWTON_STEPS, LogFactor

SPREAD = 1.0
"""The prior variance of θ, where f is between −1 and 1: with a tenth of it, correlations were shrunk by a third."""
LARGEST_STEP, LARGEST_THETA = 0.5, 3.0
LEAST_SQUARES = 1e-9


@dataclass(eq=False)
class MomentFactor(LogFactor):
    """One θ for each total: of all cells, or of those of each group of the last column (`by_last`)."""

    values: Floats = field(default_factory=lambda: np.zeros(0))
    """f, for each cell."""
    by_last: bool = False

    @classmethod
    def of(cls, seen: NoisyTable, values: Floats, *, by_last: bool) -> MomentFactor:
        """`seen` are the noisy sums of `values` over the rows."""
        zero = np.zeros(values.shape)
        return cls(seen.columns, seen.groups, zero, seen, spread=SPREAD, values=values, by_last=by_last)

    def sums(self, cells: Floats) -> Floats:
        """The totals of a table of cells."""
        totals = self.values.shape[-1] if self.by_last else 1
        return np.asarray(cells.reshape(-1, totals).sum(axis=0))

    def loss(self, expected: Floats, noise: float) -> float:
        assert self.seen is not None
        chance = noise * self.sums(expected * self.values**2)
        error = self.seen.counts - self.sums(expected * self.values)
        return float((error**2 / (self.seen.variance + chance)).mean())

    def step(self, expected: Floats, noise: float) -> Floats:
        """Newton's method for the largest posterior density of θ, with all else fixed."""
        assert self.seen is not None
        # θ is read back off its table, since that is what a snapshot keeps.
        held = np.maximum(self.sums(self.values**2), LEAST_SQUARES)
        theta = self.sums(self.theta * self.values) / held
        old, moved = self.theta, expected
        for _ in range(NEWTON_STEPS):
            found, slope = self.sums(moved * self.values), self.sums(moved * self.values**2)
            slope = np.maximum(slope, LEAST_SQUARES)
            weight = slope / (self.seen.variance + noise * slope)
            change = ((self.seen.counts - found) * weight - theta / self.spread) / (slope * weight + 1.0 / self.spread)
            theta = np.clip(theta + np.clip(change, -LARGEST_STEP, LARGEST_STEP), -LARGEST_THETA, LARGEST_THETA)
            self.theta = self.values * (theta if self.by_last else theta[0])
            moved = expected * np.exp(self.theta - old)
        return np.exp(self.theta - old)
