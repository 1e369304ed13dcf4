"""Which candidates score highest, by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Description, Price, Question, check_cells, choose
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.admission import Admission, first_admissible
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.score import Scored
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Bundle, shape_of
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table
from understudy.errors import MethodError


@dataclass(frozen=True, eq=False)
class Select(Ask[list[int]]):
    """The k candidates (by index, in order) that score highest by the exponential mechanism.

    A candidate of several choices stands for as many indices, one after the other.

    One set of Gumbels gives the law of k draws without replacement (Durfee & Rogers 2019), so k draws are paid.
    `rule` is asked in that order, and passes over a candidate for good (one that closes a cycle, or is too large).
    It may depend on public facts, earlier answers and what was picked before, and what it admits must only shrink:
    then each draw is the exponential mechanism among those that are still admissible, since the race of
    exponential clocks behind the Gumbels has no memory (`mechanisms.admission`, which checks it).
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

    @property
    def choices(self) -> int:
        return sum(c.choices for c in self.candidates)

    def spends(self, facts: PublicFacts) -> list[Spend]:
        self._check()
        # Every candidate's score has at most this sensitivity, whichever is drawn.
        sensitivity = max(c.sensitivity(facts.rows, facts.replaced) for c in self.candidates)
        epsilon = self.amount.split([1.0] * self.k)[0].selection_epsilon()
        among = "sets of columns" if self.choices == len(self.candidates) else "splits"
        asked = f"{self.k} of {self.choices} {among}"
        return [Spend("exponential", asked, sensitivity, epsilon, cells=self.choices) for _ in range(self.k)]

    def _check(self) -> None:
        if not 1 <= self.k <= self.choices:
            raise MethodError(
                f"k ({self.k}) of a selection must be from 1 to its {self.choices} candidates; ask for fewer", self.k
            )
        for candidate in self.candidates:
            if isinstance(candidate.grid, Bundle):
                for part in candidate.grid.parts:
                    check_cells(part.columns, part.cells)
            elif candidate.grid:
                check_cells(candidate.grid.columns, candidate.grid.cells)
            else:
                check_cells(candidate.columns, self.domain.cells(candidate.columns))

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

    def exact(self, table: Table) -> NDArray[np.float64]:
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

    def draw(self, hidden: NDArray[np.float64], price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        """With a rule, all are put in order, and those that it admits are handed out; only these are ever seen."""
        ranked = self.choices if self.rule else self.k
        order = choose(hidden, price.spends[0], ranked, randomness)
        return [np.array(self.picked(order), dtype=np.int64)]

    def picked(self, order: list[int]) -> list[int]:
        """Those of an order that are handed out."""
        return first_admissible(order, self.rule, self.k) if self.rule else order

    def answer(self, values: Arrays, price: Price) -> list[int]:
        (chosen,) = values
        return [int(i) for i in chosen]
