"""What a question asks the curator, and how its answer follows from the curator's: the only code that does either.

The budget is split evenly over what is asked: a tally for every count and sum, two for an average (the sum around the
middle of the bounds, and the rows), three ranks for a quantile (itself, and one on either side for its interval).
Groups of a private column are bought first.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.boundary.privacy.asks import Ranks, Tally
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.score import MOST_EXPECTED, Rank, rank_reach
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.column import Categorical, Column
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums, PersonCount, RowCount, Summand, ValueSum
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import special_text
from understudy.errors import InputError, MethodError
from understudy.inference.discovery import with_values
from understudy.queries.aggregate_query import AVERAGE, COUNT, PERSONS, QUANTILE, SUM, Aggregate, AggregateQuery
from understudy.queries.answer import Group, IntervalEstimate, Key, average_estimates, count_estimates, sum_estimates
from understudy.queries.discretization import (
    bounds_of,
    centred_sum,
    fine_coding,
    first_value,
    last_value,
    middle_value,
    plain_sum,
)

KEYS_SHARE = 0.25
"""Of the budget, for the groups of private columns; the rest is for what is asked about them."""
RANK_SHARES = (2.0, 1.0, 1.0)
"""Of a quantile's budget, for the quantile itself and the two ends of its interval."""
MOST_GROUPS = 100_000
"""Groups are public: every one that there could be is answered, whether anybody is in it or not."""


@dataclass(frozen=True)
class QueryPlan:
    """A question about a table of this schema, to be answered with intervals of this confidence."""

    question: AggregateQuery
    schema: Schema
    confidence: float

    @property
    def public(self) -> bool:
        """Whether nothing needs noise: the number of all rows, where it is public."""
        q = self.question
        counted = all(a.kind == COUNT for a in q.aggregates)
        return counted and not q.keys and q.where is None and self.schema.public_rows

    @property
    def keys(self) -> ColumnSet:
        """The columns whose values must be bought first; only these cost a part of δ."""
        return tuple(k for k in self.question.keys if self.schema[k].private)

    def ask(self, curator: Queryable) -> tuple[Group, ...]:
        """The figures of every group that there could be."""
        domain = self._domain(self._keys(curator))
        tallied = self._summands
        quantiles = [a for a in self.question.aggregates if a.kind == QUANTILE]
        weights = [1.0] * len(quantiles)
        if tallied:
            weights.insert(0, sum(tallied.values()))
        parts = curator.remaining().split(weights)
        found: dict[Aggregate, list[IntervalEstimate]] = {}
        if tallied:
            sums = GroupedSums(self.question.keys, self.question.where, tuple(tallied))
            measured = curator.ask(Tally(domain, sums, parts.pop(0), list(tallied.values())))
            totals = dict(zip(tallied, measured, strict=True))
            found = {a: self._figures(a, totals) for a in self.question.aggregates if a.kind != QUANTILE}
        # Tallies before ranks: recorded answers are replayed in the order in which they were asked for.
        for aggregate, part in zip(quantiles, parts, strict=True):
            found[aggregate] = self._quantiles(curator, domain, aggregate, part)
        figures = [found[a] for a in self.question.aggregates]
        keys = itertools.product(*(key_labels(domain[k]) for k in self.question.keys))
        return tuple(Group(k, f) for k, f in zip(keys, zip(*figures, strict=True), strict=True))

    def _keys(self, curator: Queryable) -> list[Column]:
        """The columns that are grouped by, with the values of private ones bought."""
        private = self.keys
        bought: dict[str, Column] = {}
        if private:
            parts = curator.remaining().part(KEYS_SHARE).split([1.0] * len(private))
            for name, part in zip(private, parts, strict=True):
                column = self.schema[name]
                assert isinstance(column, Categorical)
                bought[name] = with_values(column, curator, part)
        return [bought.get(k, self.schema[k]) for k in self.question.keys]

    def _domain(self, columns: Sequence[Column]) -> Domain:
        """The groups, as long as there are not too many of them."""
        if not columns:
            return Domain(self.schema, ())
        # Only the columns of the groups: a rule or the unit may name columns that are left out here.
        narrow = dataclasses.replace(self.schema, columns=tuple(columns), unit=None, rules=())
        domain, keys = Domain(self.schema, Domain.of(narrow).codings), self.question.keys
        if domain.cells(keys) > MOST_GROUPS:
            raise InputError(
                f"the query has {domain.cells(keys):,} groups by {', '.join(keys)}, and may have at most "
                f"{MOST_GROUPS:,}; leave a column out, or give one fewer bins",
                keys,
            )
        return domain

    @property
    def _summands(self) -> dict[Summand, float]:
        """Every distinct total that is needed, with its weight in the budget."""
        weights: dict[Summand, float] = {}
        for aggregate in self.question.aggregates:
            needed = self._needed(aggregate)
            # Two aggregates that need the same total share it, and its part of the budget is that of both.
            for summand in needed:
                weights[summand] = weights.get(summand, 0.0) + 1.0 / len(needed)
        return weights

    def _needed(self, aggregate: Aggregate) -> list[Summand]:
        match aggregate:
            case Aggregate(kind="count"):
                return [RowCount()]
            case Aggregate(kind="persons"):
                return [PersonCount()]
            case Aggregate(kind="sum", column=str(name)):
                return [plain_sum(self.schema[name])]
            case Aggregate(kind="avg", column=str(name)):
                return [centred_sum(self.schema[name]), RowCount(name)]
        return []

    def _figures(self, aggregate: Aggregate, totals: dict[Summand, Measurement]) -> list[IntervalEstimate]:
        needed = self._needed(aggregate)
        first = totals[needed[0]]
        if aggregate.kind in (COUNT, PERSONS):
            return count_estimates(first, self.confidence)
        assert isinstance(needed[0], ValueSum)
        if aggregate.kind == SUM:
            return sum_estimates(first, needed[0], self.confidence)
        assert aggregate.kind == AVERAGE
        bounds = bounds_of(self.schema[needed[0].column])
        return average_estimates(first, totals[needed[1]], needed[0], bounds, self.confidence)

    def _quantiles(
        self, curator: Queryable, groups: Domain, aggregate: Aggregate, amount: Amount
    ) -> list[IntervalEstimate]:
        """The bin that holds the wanted rank, and two bins that enclose it with the wanted probability."""
        assert aggregate.column is not None and aggregate.probability is not None
        coding = fine_coding(self.schema[aggregate.column])
        domain = Domain(self.schema, (*groups.codings, coding))
        part, grouped = amount.split(RANK_SHARES)[1], bool(self.question.keys)
        # How far the ranks of the ends lie out follows from the noise that they will be drawn with, not from the rows.
        exponent = curator.facts.rank_exponent(part, aggregate.probability, grouped=grouped)
        moved = rank_reach(exponent, coding.levels + 2, (1 - self.confidence) / 2)
        if moved > MOST_EXPECTED:
            raise MethodError(
                f"the interval around a quantile of {coding.name!r} would reach {moved:.4g} rows to either side and "
                f"may reach {MOST_EXPECTED:.4g}, beyond which scores are not exact; ask with a larger epsilon",
                coding.name,
            )
        ranks = [Rank(aggregate.probability, m) for m in (0, -moved, moved)]
        sums = GroupedSums((*self.question.keys, coding.name), self.question.where, (RowCount(),))
        chosen = curator.ask(Ranks(domain, sums, ranks, amount, RANK_SHARES))
        return [_quantile(coding, *(int(c) - 1 for c in bins)) for bins in zip(*chosen, strict=True)]


def _quantile(coding: Coding, at: int, low: int, high: int) -> IntervalEstimate:
    """Bins count from 0 here; −1 and one past the last are the ends of the column."""
    least, most = first_value(coding, low), last_value(coding, high)
    middle = middle_value(coding, at)
    return IntervalEstimate(middle, min(least, middle), max(most, middle))


def key_labels(coding: Coding) -> list[Key]:
    """What stands for each code of a column: its label, its value or its range, and None for a missing value."""
    keys: list[Key] = list(coding.labels or ())
    if coding.labels is None:
        keys += [_range(first_value(coding, i), last_value(coding, i)) for i in range(coding.levels)]
    keys += [special_text(value) for value in coding.special]
    if coding.column.missing:
        keys.append(None)
    return keys


def _range(first: object, last: object) -> Key:
    if first != last:
        return f"{first} to {last}"
    if isinstance(first, int):
        return first
    return str(first)
