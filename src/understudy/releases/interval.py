"""`release.count`: how many private rows satisfy an expression, with an interval; from the release alone.

Every noisy table is summed over the cells that the expression can tell apart. Where tables hold all its columns, the
best linear unbiased estimate from these sums follows from the recorded noise, and its law with it. Where no table does,
what is unknown is an association of columns that nobody measured: it is taken from the model, and how wrong that may be
is judged by the associations that were measured (`observation.association`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from understudy.boundary.privacy.asks import Select, kind_of
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.expression import parse
from understudy.card import Card
from understudy.inference.declared import check_declared
from understudy.inference.model import CodeColumns, Model
from understudy.inference.rebuilding import with_rebuilt
from understudy.inference.values import decode, violations
from understudy.pages.formatting import counted
from understudy.parameters import number_between
from understudy.releases import observation
from understudy.releases.condition import Condition
from understudy.releases.observation import Array

if TYPE_CHECKING:
    from understudy.releases.release import Release

CONFIDENCE = 0.95
LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.9999
DRAWN = 100_000
"""Rows drawn from the model, to know what it expects; their own error is far below that of any release."""
UNBIASED = 1e-6
SHORTER = 2.0
"""How many times shorter an approximate interval must be to be preferred to one that follows from the noise alone.
This and `INSIDE` were chosen on adult and nursery; how they do elsewhere is in docs/concepts/intervals.md."""
LIMITS_MISS = 0.1
"""The part of the probability of a miss that is left to the limits, so that both together keep the confidence."""
ANYTHING = 2.0
"""The spread of the total and of single columns: so large that nothing is expected of them."""
INSIDE = 0.5
"""How far the share of a bin that is cut may be from even, in standard deviations of a single draw: 1.96 of it reach
over the whole bin where it is cut in the middle."""
NEVER_SINGULAR = 1e-13
ROUNDING = 0.01
"""What is this near to a whole number is meant to be it: a public total has no error but that of floating point."""
FEWEST_OBEDIENT = 1_000


@dataclass(frozen=True, repr=False)
class Count(Card):
    """An estimated number of private rows. With probability `confidence` the true one is from `low` to `high`.

    `exact_noise` says that this follows from the recorded noise alone. Otherwise a part of the interval rests on what
    is likely of columns that were not measured together, or of values inside a bin; `basis` says so in a sentence.
    """

    value: float
    low: int
    high: int
    confidence: float
    exact_noise: bool
    basis: str

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        interval = (f"{100 * self.confidence:g} % interval", f"{self.low:,} to {self.high:,}")
        return "Count", [("rows", f"about {self.value:,.0f}"), interval, ("basis", self.basis)]


@dataclass(frozen=True)
class Estimate:
    """A count with its error: of noise, of associations that nobody measured, and of values inside bins."""

    value: float
    noise: float
    fourth: float
    unmeasured: float = 0.0
    inside: float = 0.0

    @property
    def deviation(self) -> float:
        return math.sqrt(self.noise + self.unmeasured + self.inside)

    def reach(self, confidence: float) -> float:
        """Half the width of the interval: a normal quantile, corrected for the tails of the noise (Cornish–Fisher)."""
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        # A public total has no deviation to divide by.
        tails = self.fourth / max(self.deviation, 1e-9) ** 4
        return (z + (z**3 - 3 * z) * tails / 24) * self.deviation

    def highest(self, confidence: float) -> float:
        """The upper end. Never below one deviation: noise may make an estimate so negative that no count is left."""
        return max(self.value + self.reach(confidence), self.deviation)


@dataclass(frozen=True)
class Statistics:
    """All that the record and the model say of the cells of one condition."""

    condition: Condition
    seen: Sequence[observation.LinearObservation]
    whole: int
    """How many tables hold all columns of the condition."""
    masses: Sequence[Array]
    """For each column, the share of the rows in each class."""
    expected: Array
    """What the model expects in each cell."""
    total: float
    association: float

    @cached_property
    def design(self) -> Array:
        return np.concatenate([o.design for o in self.seen])

    @cached_property
    def counts(self) -> Array:
        return np.concatenate([o.counts for o in self.seen])

    @cached_property
    def variances(self) -> Array:
        return np.concatenate([o.variances for o in self.seen])

    @cached_property
    def fourths(self) -> Array:
        return np.concatenate([o.fourths for o in self.seen])

    @cached_property
    def _solver(self) -> Array:
        """From a share of each cell to the weights of the best linear unbiased estimate (Gauss and Markov)."""
        deviations = np.sqrt(self.variances)[:, None]
        # A pseudoinverse, since tables overlap: their sums are linearly dependent, and some cells are in none.
        return np.asarray(np.linalg.pinv(self.design / deviations, rcond=1e-11).T / deviations)

    def unbiased(self, share: Array) -> Estimate | None:
        """The estimate whose only error is noise, if the tables that were measured hold one."""
        weights = self._solver @ share
        # If no combination of the measured sums is this count, the pseudoinverse gives the nearest, which is biased.
        if np.abs(self.design.T @ weights - share).max() > UNBIASED:
            return None
        return self._weighed(weights)

    def assisted(self, share: Array) -> Estimate:
        """What the model expects, corrected by what was measured as far as that lessens the error."""
        # The best linear predictor of cells that scatter around the model's with this covariance.
        covariance = self._covariance
        spread = self.design @ covariance @ self.design.T
        known = spread + np.diag(self.variances + NEVER_SINGULAR * spread.diagonal().max())
        weights = np.linalg.solve(known, self.design @ (covariance @ share))
        rest = share - self.design.T @ weights
        noisy = self._weighed(weights)
        value = noisy.value + float(rest @ self.expected)
        return replace(noisy, value=value, unmeasured=float(rest @ covariance @ rest))

    def _weighed(self, weights: Array) -> Estimate:
        return Estimate(
            float(weights @ self.counts), float(weights**2 @ self.variances), float(weights**4 @ self.fourths)
        )

    @cached_property
    def _covariance(self) -> Array:
        """Of the counts of all cells beside what is expected: an association of a set of columns is a random one.

        Each set of columns deviates from independence by a random function that is white under the product of the
        columns' distributions. That of one column, or of the total, may be anything.
        """
        parts = [(np.outer(m, m), np.diag(m) - np.outer(m, m)) for m in self.masses]
        cells = self.expected.size
        whole = np.zeros((cells, cells))
        for inside in itertools.product((0, 1), repeat=len(parts)):
            spread = ANYTHING if sum(inside) < 2 else self.association
            product: Array = np.ones((1, 1))
            for part, i in zip(parts, inside, strict=True):
                product = np.kron(product, part[i])
            whole += spread**2 * product
        return self.total**2 * whole

    def limits(self, miss: float) -> tuple[float, float]:
        """No more rows than satisfy what the expression demands of some columns, and no fewer than where it must hold.

        Only for sets of columns that were measured together. All limits hold but for a probability of `miss`.
        """
        shape, share = self.condition.share.shape, self.condition.share
        low, high = [0.0], [math.inf]
        sets = {o.columns for o in self.seen}
        # A union bound over the sets; both sides of one interval miss with half of that each.
        each = 1 - miss / len(sets)
        for columns in sets:
            others = tuple(i for i, c in enumerate(self.condition.columns) if c not in columns)
            possible = np.broadcast_to((share > 0).any(axis=others, keepdims=True), shape).astype(np.float64)
            certain = np.broadcast_to((share == 1).all(axis=others, keepdims=True), shape).astype(np.float64)
            upper, lower = self.unbiased(possible.ravel()), self.unbiased(certain.ravel())
            if upper:
                high.append(upper.highest(each))
            if lower:
                low.append(lower.value - lower.reach(each))
        return max(low), min(high)


@dataclass(frozen=True)
class Counter:
    """What every count of one release needs: its noisy tables, rows of its model, and how strong associations are."""

    domain: Domain
    tables: Sequence[observation.RecordedTable]
    drawn: CodeColumns
    total: float
    association: float

    @classmethod
    def of(cls, release: Release) -> Counter:
        mechanism = release.certificate.asked.capacity.mechanism
        bought = frozenset(c.name for c in release.schema.private if not isinstance(c, Categorical))
        federation = release.certificate.federation
        noises = federation.noises if federation else 1.0
        tables = observation.tables_of(release.record, release.domain, bought, mechanism, noises)
        drawn = _drawn(release.model, release.domain, release.certificate.seed)
        selected = any(kind_of(a.question) is Select for a in release.record)
        total = release.model.total
        return cls(release.domain, tables, drawn, total, observation.association(tables, drawn, total, selected))

    def count(self, expression: str, confidence: float = CONFIDENCE) -> Count:
        number_between("confidence", confidence, LEAST_CONFIDENCE, MOST_CONFIDENCE)
        check_declared(parse(expression, self.domain.schema.kinds), self.domain.schema)
        condition = Condition.of(expression, self.domain)
        if not condition.share.any():
            return Count(0.0, 0, 0, confidence, condition.settled, "no row of the declared domain can satisfy it")
        statistics = self._statistics(condition)
        estimate, basis = _estimate(statistics)
        exact = basis.unbiased and condition.settled and not estimate.inside
        return _bounded(estimate, statistics, confidence, exact, str(basis))

    def _statistics(self, condition: Condition) -> Statistics:
        weights = [observation.weights_of(self.drawn[c], self.domain.size(c)) for c in condition.columns]
        fine, tables = observation.refine(condition.coarsened(weights, observation.MOST_CELLS), self.tables)
        masses = [observation.mass(np.asarray(np.bincount(k, w))) for k, w in zip(fine.classes, weights, strict=True)]
        rows = len(next(iter(self.drawn.values())))
        codes = [k[self.drawn[c]] for c, k in zip(fine.columns, fine.classes, strict=True)]
        # An expression that names no column has one cell, which holds every row.
        cells = np.zeros(rows, dtype=np.intp)
        if codes:
            cells = np.ravel_multi_index(codes, fine.share.shape)
        expected = observation.weights_of(cells, fine.share.size) * (self.total / rows)
        seen = [observation.observe(t, fine) for t in tables]
        whole = sum(o.columns == fine.columns for o in seen)
        return Statistics(
            fine,
            observation.pooled(seen),
            whole=whole,
            masses=masses,
            expected=expected,
            total=self.total,
            association=self.association,
        )


@dataclass(frozen=True)
class Basis:
    """What an estimate rests on."""

    columns: ColumnSet
    tables: int
    unbiased: bool
    cut: bool

    def __str__(self) -> str:
        if not self.columns:
            return f"the number of all rows, from {counted(self.tables, 'table')}"
        if not self.tables:
            return f"inferred by the model, since no table holds its {len(self.columns)} columns; approximate"
        together = " together" if len(self.columns) > 1 else ""
        measured = f"measured{together} in {counted(self.tables, 'table')}"
        if not self.unbiased:
            return f"{measured}, and steadied by the model since their noise is large; approximate"
        if self.cut:
            return f"{measured}; approximate inside the bins that it cuts"
        return measured


def _estimate(statistics: Statistics) -> tuple[Estimate, Basis]:
    """The unbiased estimate, unless there is none or the model makes it much shorter."""
    columns, share = statistics.condition.columns, statistics.condition.share.ravel()
    inside = (INSIDE * float(np.sqrt(share * (1 - share)) @ statistics.expected)) ** 2
    assisted, unbiased = statistics.assisted(share), statistics.unbiased(share)
    if unbiased is not None:
        much_shorter = unbiased.deviation > SHORTER * assisted.deviation
        # Of one column there is no association to lean on: the model knows it from the same counts.
        if not much_shorter or len(columns) < 2:
            return replace(unbiased, inside=inside), Basis(columns, statistics.whole, True, inside > 0)
    return replace(assisted, inside=inside), Basis(columns, statistics.whole, False, inside > 0)


def _bounded(estimate: Estimate, statistics: Statistics, confidence: float, exact: bool, basis: str) -> Count:
    """Rounded outwards, since rows are whole; and within the limits that measured tables set."""
    wide = confidence + LIMITS_MISS * (1 - confidence)
    least, most = statistics.limits(LIMITS_MISS * (1 - confidence))
    # The interval and its limits share the probability of a miss: 1 − LIMITS_MISS of it, and LIMITS_MISS of it.
    high = math.ceil(min(estimate.highest(wide), most) - ROUNDING)
    low = math.floor(min(max(estimate.value - estimate.reach(wide), least) + ROUNDING, high))
    return Count(float(min(max(estimate.value, low), high)), low, high, confidence, exact, basis)


def _drawn(model: Model, domain: Domain, seed: int) -> CodeColumns:
    """Codes of rows of the model that obey the schema's rules, where enough of them do."""
    # The seed of the release, so that the same question always gets the same answer.
    rng = np.random.Generator(np.random.PCG64(seed))
    codes = model.sample(DRAWN, rng)
    if not domain.schema.rules:
        return codes
    obedient = np.flatnonzero(
        ~violations(domain.schema, with_rebuilt(decode(codes, domain, rng), domain.schema), DRAWN)
    )
    if len(obedient) < FEWEST_OBEDIENT:
        return codes
    return {c: v[obedient] for c, v in codes.items()}
