"""A question asked of no rows at all, before any budget is spent: whatever would be refused half-way is refused now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.tally import GroupedSums
from understudy.errors import InternalError
from understudy.queries.query_plan import QueryPlan


def rehearse(plan: QueryPlan, budget: Budget) -> None:
    """Raises what asking would raise, as far as it follows from public facts; reads and spends nothing."""
    randomness = ExactRandomness.seeded(0)
    plan.ask(Curator.on(NoRows(plan.schema), budget, randomness=randomness, keys=plan.keys))


@dataclass(frozen=True)
class NoRows:
    """A table without rows, of which every total is zero; implements `tables.table.Table`."""

    schema: Schema
    kind: str = "none"
    name: str = "no rows"

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        return [np.zeros(domain.shape(tally.by), dtype=np.int64) for _ in tally.summands]

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        return [], np.zeros(0, dtype=np.int64)

    def has_rows(self, at_least: int) -> bool:
        return True  # that there are enough is a promise of every claim, and is checked on the rows themselves

    def check_readable(self) -> None:
        pass

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> NoReturn:
        raise InternalError("a query asks for tallies only", sets)

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> NoReturn:
        raise InternalError("a query asks for tallies only", partitions)

    def count_rows(self) -> NoReturn:
        raise InternalError("a query asks for tallies only", self)
