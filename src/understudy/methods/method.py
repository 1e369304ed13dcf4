"""The protocol of every method: recipe → calibrated → fit on a curator → model → sample.

A *recipe* holds public parameters. *Calibrating* it to a domain and an amount of budget settles every set of columns
and every share before anything is spent, so that impossible wishes are refused first. *Fitting* asks the curator.
Everything after the curator's answers must be a function of them and of `rng`: the same run on recorded answers
rebuilds the same model (`understudy replay`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.model import Model
from understudy.methods.parts.workload import PAIRS, Stated, stated_targets

NOISE, SAMPLING = "noise", "sampling"
"""Where the privacy of a method comes from: noise on its counts, or draws from a posterior."""

BINS, POLYA = "bins", "polya"
"""Where numbers get their bins from, if no schema has them: of one width, or from noisy counts of halves."""


class Calibrated(Protocol):
    """A recipe settled for one domain and one amount of budget."""

    def fit(self, curator: Curator, rng: np.random.Generator) -> Model: ...


class Recipe(Protocol):
    """The public parameters of a method."""

    def calibrate(self, domain: Domain, amount: Amount) -> Calibrated:
        """Settles what will be asked, or refuses with the reason; reads nothing and spends nothing."""
        ...


@dataclass(frozen=True)
class Options:
    """What a user may say about a method, whichever it is; a method takes what concerns it."""

    targets: ColumnSet = ()
    marginals: tuple[ColumnSet, ...] = ()
    weights: Stated = ()
    workload: str = PAIRS
    by: str = NOISE
    draws: int | None = None
    pool: str = ""
    """The method that makes the pool out of which rows are selected."""
    numeric: str = BINS

    def to_dict(self) -> dict[str, Any]:
        """As certificates have it: several targets are a list, one is its name, and none is null."""
        return (
            {
                "target": self.targets[0] if len(self.targets) == 1 else list(self.targets) or None,
                "marginals": [list(m) for m in self.marginals],
                "weights": [[list(columns), weight] for columns, weight in self.weights],
                "workload": self.workload,
            }
            | self._sampling()
            | self._further()
        )

    def _sampling(self) -> dict[str, Any]:
        """Only where it was asked for: most methods know no such thing."""
        stated = {"by": self.by, "draws": self.draws}
        return {} if (self.by, self.draws) == (NOISE, None) else stated

    def _further(self) -> dict[str, Any]:
        """Only where they were asked for, too."""
        return {n: v for n, v, usual in (("pool", self.pool, ""), ("numeric", self.numeric, BINS)) if v != usual}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Options:
        return cls(
            stated_targets(data.get("target")),
            tuple(tuple(m) for m in data.get("marginals", ())),
            tuple((tuple(columns), float(weight)) for columns, weight in data.get("weights", ())),
            data.get("workload", PAIRS),
            data.get("by", NOISE),
            data.get("draws"),
            data.get("pool", ""),
            data.get("numeric", BINS),
        )
