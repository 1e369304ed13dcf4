"""Specimens, as subjects of an audit: they read rows without a curator, so that only what they show is looked at."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.attacks.audit import BLACK_BOX
from understudy.audits.features import features
from understudy.audits.pair import Pair
from understudy.privacy.budget import Budget
from understudy.schema.schema import Schema
from understudy.specimens import bnp, published_arf

if TYPE_CHECKING:
    import pyarrow as pa

Make = Callable[["pa.Table", Schema, float, int], "pa.Table"]
"""From rows, their schema, ε and a seed to synthetic rows."""
SPECIMENS: dict[str, Make] = {
    "published-dp-arf": lambda rows, schema, epsilon, seed: published_arf.synthesize(rows, schema, epsilon, seed=seed),
    "published-bnp": lambda rows, schema, epsilon, seed: bnp.synthesize(rows, schema, epsilon, seed=seed),
}


@dataclass(frozen=True)
class SpecimenPlayer:
    """Plays rounds of one pair with a specimen."""

    name: str
    pair: Pair
    budget: Budget

    def play(self, view: str, second: bool) -> dict[str, float]:
        assert view == BLACK_BOX
        rows = self.pair.tables[second]
        shown = SPECIMENS[self.name](rows, self.pair.schema, self.budget.epsilon, secrets.randbelow(2**31))
        return features(shown.to_pydict(), self.pair.extra)
