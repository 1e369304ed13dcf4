"""Moments of pairs of numbers: where rows are few, one number knows a relation in which the noise of a grid drowns.

With z and z′ the two values in standard deviations of the model, a moment is the sum of z·z′ over all rows, each
product cut off at ±1: its noise is that of one count. Where some other column settles much of either number, the moment
is taken within each of its values, in their own standard deviations: bills of smokers follow their weight, those of the
others hardly do, and all that both together show is a little of it.

Which moments there are, and what each cell adds, follows from the domain and from earlier answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Moments
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import BudgetView
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.moment import Moment
from understudy.boundary.schema.partition import Grid
from understudy.inference.grouping import Floats, Groups
from understudy.inference.noisy_table import NoisyTable, settled
from understudy.inference.particles.moment_factor import MomentFactor
from understudy.methods.rake.tuning import Tuning

if TYPE_CHECKING:
    from understudy.methods.rake.rake import RakeState

STEPS = 64
"""A product of 1 is so many whole steps."""
GROUPS = 8
"""The most groups of each number: a product is cut off and noisy, so finer ones would not be seen."""
MOST_VALUES = 8
"""Of a column within which moments may be taken."""
MUCH = 0.25
"""The share of a number's variance that such a column has to settle."""
LEAST = 1e-9
NOISE_PER_CORRELATION = 1.25
"""A correlation of r moves the mean of products that are cut off at 1 by about r/1.25, if both are about normal."""


def numbers(domain: Domain) -> ColumnSet:
    """The columns along a line with more than two places on it."""
    return tuple(c.name for c in domain if c.edges is not None and c.levels > 2)


def pairs(domain: Domain) -> list[ColumnSet]:
    return list(itertools.combinations(numbers(domain), 2))


def share_of(domain: Domain, rows: float, curator: BudgetView, tuning: Tuning) -> float:
    """The part of what is left of a budget that moments get; 0 where they would say too little, or are none.

    Where the most that they may get lets a correlation err by what is wanted, they get that. With more rows or budget
    they get less, and err by less all the same: as the signal grows, the share falls with it, and the error with its
    root.
    """
    count, left = len(pairs(domain)), curator.remaining()
    if not 0 < count <= tuning.most_moments:
        return 0.0
    signal = rows / left.noise_scale(curator.count_sensitivity(left))
    error = NOISE_PER_CORRELATION / (signal * tuning.moment_error)
    # Gaussian noise falls with the root of its share, Laplace noise (of deviation √2·b) with the share itself.
    wanted, bearable = (math.sqrt(2.0) * error, 2.0) if left.pure else (error**2, 4.0)
    most = tuning.most_moments_share
    share = min(most, math.sqrt(most * count * wanted))
    too_few_rows = count * wanted > bearable * most
    return 0.0 if too_few_rows or share < tuning.least_moments_share else share


@dataclass(frozen=True, eq=False)
class _Scored:
    """The groups of a pair of numbers, perhaps those of a third column, and what each cell adds, in whole steps."""

    columns: ColumnSet
    groups: tuple[Groups, ...]
    steps: NDArray[np.int64]
    by_last: bool

    @property
    def values(self) -> Floats:
        return self.steps / STEPS

    @property
    def moment(self) -> Moment:
        grid = Grid(self.columns, tuple(tuple(g.tolist()) for g in self.groups))
        return Moment(grid, tuple(self.steps.ravel().tolist()), self.by_last)


def learn(state: RakeState, amount: Amount) -> None:
    """Measures the moments of all pairs of numbers, and fits the model to them."""
    domain = state.plan.domain
    few = [c.name for c in domain if c.size <= MOST_VALUES]
    shares = {(n, c): _share_between(state, n, c) for n in numbers(domain) for c in few if c != n}
    # Where the model holds a column for constant, all cells would add the same, and there is nothing to ask.
    every = [_scored(state, a, b, shares) for a, b in pairs(domain)]
    scored = [s for s in every if s.steps.min() < s.steps.max()]
    if not scored:
        return
    measured = state.curator.ask(Moments(domain, [s.moment for s in scored], amount))
    for s, answer in zip(scored, measured, strict=True):
        seen = NoisyTable(s.columns, answer.counts / STEPS, answer.variance / STEPS**2, s.groups)
        state.particles.add(MomentFactor.of(seen, s.values, by_last=s.by_last))
    state.particles.rake(state.tuning.passes, sampling=not state.whole)
    state.refresh(state.count, state.tuning.refresh_passes)


def _scored(state: RakeState, a: str, b: str, shares: Mapping[tuple[str, str], float]) -> _Scored:
    """z·z′ for each cell of two numbers, within the values of the column that settles most of either, if it is much.

    `shares`: how much of each number each column of few values settles.
    """
    domain = state.plan.domain
    settles = {c: max(shares[a, c], shares[b, c]) for c in domain.names if (a, c) in shares and (b, c) in shares}
    by = [c for c in settles if settles[c] >= MUCH and settles[c] == max(settles.values())][:1]
    left, right = _deviations(state, a, by), _deviations(state, b, by)
    products = np.stack([np.outer(z, w) for z, w in zip(left.T, right.T, strict=True)], axis=-1)
    steps = np.rint(np.clip(products, -1.0, 1.0) * STEPS).astype(np.int64)
    groups = [state.resolutions.groups((c,), GROUPS)[0] for c in (a, b)]
    groups += [np.arange(domain.size(c)) for c in by]
    return _Scored((a, b, *by), tuple(groups), steps if by else steps[:, :, 0], bool(by))


def _deviations(state: RakeState, number: str, by: Sequence[str]) -> Floats:
    """How far each group of a number lies from the mean, in standard deviations, for each value of another column."""
    (groups,) = state.resolutions.groups((number,), GROUPS)
    places, table = _line(state, number, by)
    mass = np.stack([np.bincount(groups[: len(places)], t, groups.max() + 1) for t in table.T], -1)
    sums = np.stack([np.bincount(groups[: len(places)], t * places, groups.max() + 1) for t in table.T], -1)
    means = np.divide(sums, mass, out=np.zeros(mass.shape), where=mass > 0)
    total = np.maximum(mass.sum(axis=0), LEAST)
    centre = sums.sum(axis=0) / total
    spread = np.sqrt((mass * (means - centre) ** 2).sum(axis=0) / total)
    # A group without a row, as that of missing values is here, lies nowhere.
    return np.where(mass > 0, (means - centre) / np.maximum(spread, LEAST), 0.0)


def _line(state: RakeState, number: str, by: Sequence[str]) -> tuple[Floats, Floats]:
    """The middle of each bin of a number, and the model's rows there, for each value of another column."""
    domain = state.plan.domain
    edges = np.array(domain[number].edges)
    columns = (number, *by)
    table = state.particles.histogram(columns, tuple(np.arange(domain.size(c)) for c in columns))
    # Settled: what is asked must be the same when a release is replayed on another processor.
    table = settled(table.reshape(domain.size(number), -1)[: domain[number].levels])
    return (edges[:-1] + edges[1:]) / 2, table


def _share_between(state: RakeState, number: str, by: str) -> float:
    """The share of the variance of a number that lies between the values of another column, by the model."""
    places, table = _line(state, number, [by])
    mass = np.maximum(table.sum(axis=0), LEAST)
    means, centre = places @ table / mass, float(places @ table.sum(axis=1) / mass.sum())
    whole = float((places - centre) ** 2 @ table.sum(axis=1))
    return float(mass @ (means - centre) ** 2) / max(whole, LEAST)
