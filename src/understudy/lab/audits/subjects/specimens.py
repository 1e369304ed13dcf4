"""Specimens, as subjects of an audit: they read rows without a curator, so that only what they show is looked at."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from understudy.boundary.privacy.budget import Budget
from understudy.lab.audits.games.features import features
from understudy.lab.audits.pairs.pair import Pair
from understudy.lab.audits.result import BLACK_BOX
from understudy.lab.specimens.all_specimens import SPECIMENS as KINDS
from understudy.lab.specimens.all_specimens import specimen

SPECIMENS = tuple(kind.name for kind in KINDS.values() if kind.claims)
"""Those that claim an ε; a method that claims nothing has nothing to refute."""


@dataclass(frozen=True)
class SpecimenPlayer:
    """Plays rounds of one pair with a specimen."""

    name: str
    pair: Pair
    budget: Budget

    def play(self, view: str, second: bool) -> dict[str, float]:
        assert view == BLACK_BOX
        rows = self.pair.tables[second]
        shown = specimen(
            rows, self.pair.schema, method=self.name, epsilon=self.budget.epsilon, seed=secrets.randbelow(2**31)
        )
        return features(shown.arrow.to_pydict(), self.pair.extra)
