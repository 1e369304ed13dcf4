"""Asks that choose by the exponential mechanism: among candidates, cut points of a column, or ranks by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy.boundary.privacy.asks.ask import (
    Arrays,
    Ask,
    Counts,
    Description,
    Price,
    Question,
    Scores,
    is_whole,
)
from understudy.boundary.privacy.asks.checks import check_cells, check_kinds, check_partition, is_known
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.exponential import Admission, AskedInOrder, first_admissible
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import Rank, Scored, rank_exponent, rank_scores
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums, RowCount
from understudy.boundary.schema.magnitude import check_tally
from understudy.boundary.schema.partition import Bundle, shape_of
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table
from understudy.errors import InternalError, MethodError


def choose(scores: Scores, spend: Spend, k: int, randomness: Randomness) -> list[int]:
    """The k best by the exponential mechanism, in order, at the ε and the sensitivity of this spend."""
    # 2Δ, and not Δ, since a row may raise one score and lower another (docs/mechanisms/selection-scores.md).
    return randomness.choose(scores, rank_exponent(spend.scale, spend.sensitivity), k)


@dataclass(frozen=True, eq=False)
class Select(Ask[list[int]]):
    """The k candidates (by index, in order) that score highest by the exponential mechanism.

    A candidate of several choices stands for as many indices, one after the other.

    One set of Gumbels gives the law of k draws without replacement (Durfee & Rogers 2019), so k draws are paid.
    `rule` is asked in that order, and passes over a candidate for good (one that closes a cycle, or is too large).
    It may depend on public facts, earlier answers and what was picked before, and what it admits must only shrink:
    then each draw is the exponential mechanism among those that are still admissible, since the race of
    exponential clocks behind the Gumbels has no memory (`mechanisms.exponential.first_admissible`, which checks it).
    """

    domain: Domain
    candidates: Sequence[Scored]
    amount: Amount
    k: int = 1
    rule: Admission | None = None

    name = "select"
    description = Description(
        "which of several sets of columns a model gets most wrong, or which splits make purer leaves",
        "L∞ of the scores",
        "exponential mechanism",
        "[selection scores](../mechanisms/selection-scores.md), "
        "[several picks](../mechanisms/exponential.md#several-picks-by-a-rule)",
    )

    @cached_property
    def choices(self) -> int:
        return sum(c.choices for c in self.candidates)

    def spends(self, facts: PublicFacts) -> list[Spend]:
        if not 1 <= self.k <= self.choices:
            raise MethodError(
                f"k ({self.k}) of a selection must be from 1 to its {self.choices} candidates; ask for fewer", self.k
            )
        check_kinds(*self.candidates)
        for candidate in self.candidates:
            if candidate.grid is None:
                check_cells(candidate.columns, self.domain.cells(candidate.columns))
            else:
                check_partition(self.domain, candidate.grid)
        # Every candidate's score has at most this sensitivity, whichever is drawn.
        sensitivity = max(c.sensitivity(facts.rows, facts.replaced) for c in self.candidates)
        # All k draws are paid, also where the rule admits fewer in the end (docs/mechanisms/exponential.md).
        epsilon = self.amount.split([1.0] * self.k)[0].selection_epsilon()
        among = "sets of columns" if self.choices == len(self.candidates) else "splits"
        asked = f"{self.k} of {self.choices} {among}"
        return [Spend("exponential", asked, sensitivity, epsilon, cells=self.choices) for _ in range(self.k)]

    def questions(self, price: Price) -> list[Question]:
        question: Question = {
            "ask": self.name,
            "candidates": [list(c.columns) for c in self.candidates],
            "k": self.k,
            "epsilon": price.spends[0].scale,
        }
        if self.choices > len(self.candidates):
            question["choices"] = [c.choices for c in self.candidates]
        return [question]

    def exact(self, table: Table) -> Scores:
        return np.concatenate([c.scores(n) for c, n in zip(self.candidates, self._counts(table), strict=True)])

    def _counts(self, table: Table) -> Iterator[Any]:
        """The exact counts of each candidate, by group where it merges values, by cell where it has a partition."""
        merged = [c.grid for c in self.candidates if c.grid and not isinstance(c.grid, Bundle)]
        whole = [c.columns for c in self.candidates if not c.grid]
        # One pass over the rows for all grids, and one for all sets; none where there is nothing to count.
        by_group = zip(merged, table.count_cells(self.domain, merged) if merged else (), strict=True)
        by_code = iter(table.count_by(self.domain, whole) if whole else ())
        for candidate in self.candidates:
            if isinstance(candidate.grid, Bundle):
                remembering = table if isinstance(table, CachedTable) else CachedTable(table)
                yield remembering.count_bundle(self.domain, candidate.grid)
            elif candidate.grid:
                grid, counts = next(by_group)
                yield counts.reshape(shape_of(grid))
            else:
                yield next(by_code).reshape(self.domain.shape(candidate.columns))

    def draw(self, hidden: Scores, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        """With a rule, all are put in order, and those that it admits are handed out; only these are ever seen."""
        # The rule sees the whole order, since nobody knows beforehand how many it passes over.
        ranked = self.choices if self.rule else self.k
        order = choose(hidden, price.spends[0], ranked, randomness)
        return [np.array(self.picked(order), dtype=np.int64)]

    def picked(self, order: list[int]) -> list[int]:
        """Those of an order that are handed out."""
        if self.rule is None:
            return order
        rule = self.rule if is_known(type(self.rule)) else AskedInOrder(self.rule, self.choices)
        return first_admissible(order, rule, self.k)

    def fits(self, values: Arrays, price: Price) -> bool:
        (chosen,) = values
        within = is_whole(chosen, 0, self.choices - 1) and len(set(chosen.tolist())) == len(chosen)
        # A rule may admit fewer than were paid for.
        return within and (len(chosen) == self.k or (self.rule is not None and len(chosen) < self.k))

    def answer(self, values: Arrays, price: Price) -> list[int]:
        (chosen,) = values
        return [int(i) for i in chosen]


@dataclass(frozen=True)
class Quantile(Ask[float]):
    """A cut point of the column's public bins that has about this share of its (not missing) values below it.

    The score of a cut is minus the rows by which it misses the share (Smith 2011); `rank_sensitivity` proves how
    far a person moves it.
    """

    domain: Domain
    column: str
    probability: float
    amount: Amount

    name = "quantile"
    description = Description(
        "a cut point of a column's public bins",
        "L∞ of the scores: max(p, 1 − p) for each row of a person, 1 for a replaced one",
        "exponential mechanism",
        "[quantiles](../mechanisms/quantiles-and-bounds.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        edges = self.domain[self.column].edges
        if edges is None or not 0 <= self.probability <= 1:
            raise MethodError(
                f"a quantile ({self.probability}) of {self.column!r} needs a column of numbers and a share from 0 to 1",
                self.column,
            )
        asked = f"quantile {self.probability:g} of {self.column}"
        moved = facts.rank_sensitivity(self.probability)
        return [Spend("exponential", asked, moved, self.amount.selection_epsilon(), cells=len(edges))]

    def questions(self, price: Price) -> list[Question]:
        epsilon = price.spends[0].scale
        return [{"ask": self.name, "column": self.column, "probability": self.probability, "epsilon": epsilon}]

    def exact(self, table: Table) -> Scores:
        (counts,) = table.count_by(self.domain, [(self.column,)])
        return rank_scores(counts[: self.domain[self.column].levels], self.probability)

    def draw(self, hidden: Scores, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return [np.array(choose(hidden, price.spends[0], 1, randomness), dtype=np.int64)]

    def fits(self, values: Arrays, price: Price) -> bool:
        return is_whole(values[0], 0, len(self.domain[self.column].edges or ()) - 1, (1,))

    def answer(self, values: Arrays, price: Price) -> float:
        edges = self.domain[self.column].edges
        assert edges is not None  # `spends` refused it
        return float(edges[int(values[0][0])])


@dataclass(frozen=True)
class Ranks(Ask[list[Counts]]):
    """For each wanted rank and each group, the bin of the last column of `sums` that holds the row of that rank.

    Bins count from 1; 0 and one past the last stand for ranks beyond the rows. Groups are disjoint: a person moves
    the scores of a group in proportion to the rows that they have there, so that by parallel composition the losses
    of all groups add up to those of one group that holds all rows (add-remove), or two with half of it each
    (replace-one).
    """

    domain: Domain
    sums: GroupedSums
    ranks: Sequence[Rank]
    amount: Amount
    weights: Sequence[float]

    name = "rank"
    description = Description(
        "by group, the bin that holds the row of a rank",
        "L∞ of the scores, added up over groups",
        "exponential mechanism",
        "[ranks by group](../mechanisms/quantiles-and-bounds.md#ranks-by-group)",
    )

    @property
    def _coding(self) -> Coding:
        return self.domain[self.sums.by[-1]]

    def spends(self, facts: PublicFacts) -> list[Spend]:
        *groups, column = self.sums.by
        check_kinds(*self.ranks, *filter(None, [self.sums.where]))
        check_tally(self.sums, facts.schema)
        if any(type(summand) is not RowCount for summand in self.sums.summands):
            raise InternalError(f"a rank of {column!r} must be one of rows: others move it further.", column)
        # One spend for all groups of a rank, by parallel composition: what a person moves in each is added up in Δ.
        moved = [facts.rank_sensitivity(rank.probability, grouped=bool(groups)) for rank in self.ranks]
        check_cells(self.sums.by, self.domain.cells(self.sums.by))
        epsilons = [part.selection_epsilon() for part in self.amount.split(self.weights)]
        return [
            Spend("exponential", f"rank {r.probability:g} of {column}", m, e, cells=self._coding.levels + 2)
            for r, m, e in zip(self.ranks, moved, epsilons, strict=True)
        ]

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **self.sums.describe(), **rank.describe(), "epsilon": spend.scale}
            for rank, spend in zip(self.ranks, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> Counts:
        (counts,) = table.count_tally(self.domain, self.sums)
        return counts.reshape(-1, self._coding.size)[:, : self._coding.levels]

    def draw(self, hidden: Counts, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return [
            np.array([choose(rank.scores(counts), spend, 1, randomness)[0] for counts in hidden])
            for rank, spend in zip(self.ranks, price.spends, strict=True)
        ]

    def fits(self, values: Arrays, price: Price) -> bool:
        groups = self.domain.cells(self.sums.by[:-1])
        return all(is_whole(v, 0, self._coding.levels + 1, (groups,)) for v in values)
