"""What a table will be used for: sets of columns, and how much each of them matters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy.errors import MethodError
from understudy.schema.domain import ColumnSet, Domain

TARGET_WEIGHT = 3.0


@dataclass(frozen=True)
class Workload:
    """Weighted sets of columns; the order of columns in a set does not matter."""

    weights: Mapping[frozenset[str], float]

    @classmethod
    def pairs(cls, domain: Domain, target: str | None, stated: Sequence[tuple[ColumnSet, float]] = ()) -> Workload:
        """Every pair with weight 1, those with the target with more; and whatever the user states."""
        if target is not None:
            domain[target]
        weights = {frozenset(p): TARGET_WEIGHT if target in p else 1.0 for p in itertools.combinations(domain.names, 2)}
        for columns, weight in stated:
            for column in columns:
                domain[column]
            if not 0 < weight <= 1e6:
                raise MethodError(
                    f"the weight ({weight}) of {', '.join(columns)} must be above 0 and at most 1e6", columns
                )
            weights[frozenset(columns)] = weight
        return cls(weights)

    def weight(self, columns: Sequence[str]) -> float:
        return self.weights.get(frozenset(columns), 1.0)
