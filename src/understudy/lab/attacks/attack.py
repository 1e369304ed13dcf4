"""What an attack is, and what it finds: how it does on people in the table, beside people who were never in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from understudy.lab.attacks.confidence import LEVEL, Interval, newcombe

if TYPE_CHECKING:
    from understudy.lab.attacks.threat import Threat

ADVANTAGE, NO_ADVANTAGE, NOT_DEFINED = "advantage", "no advantage seen", "not defined"
SHARE, AREA, DISTANCE = "share", "area", "distance"
FEWEST = 10
"""Rows of the training table and of the hold-out, below which no interval says anything."""


@dataclass(frozen=True)
class Finding:
    """What an attack found, or the reason why it could not be made."""

    success: float | None
    """On rows of the training table."""
    baseline: float | None
    """Without knowing anything: on rows of the hold-out, or by guessing."""
    advantage: float | None
    """How much better the attack does on rows of the training table."""
    interval: Interval | None
    """Of the advantage."""
    reason: str = ""
    note: str = ""
    guessed: bool = False
    """Whether the success is over both kinds of rows, and the baseline that of guessing."""
    parts: Mapping[str, Finding] = field(default_factory=dict)

    @classmethod
    def undefined(cls, reason: str, note: str = "") -> Finding:
        return cls(None, None, None, None, reason, note)

    @classmethod
    def shares(
        cls, hits: int, trials: int, base_hits: int, base_trials: int, *, level: float = LEVEL, note: str = ""
    ) -> Finding:
        """From counts in two independent sets of rows."""
        success, baseline = hits / trials, base_hits / base_trials
        interval = newcombe(hits, trials, base_hits, base_trials, level)
        return cls(success, baseline, success - baseline, interval, note=note)

    @classmethod
    def beside_guessing(cls, success: float, interval: Interval, note: str = "") -> Finding:
        """From how often one of two kinds is told rightly, and the interval of that."""
        low, high = interval
        return cls(success, 0.5, success - 0.5, (low - 0.5, high - 0.5), note=note, guessed=True)

    @property
    def verdict(self) -> str:
        """An advantage is said to be there only where the whole interval lies above zero."""
        if self.interval is None:
            return NOT_DEFINED
        return ADVANTAGE if self.interval[0] > 0 else NO_ADVANTAGE

    def with_parts(self, parts: Mapping[str, Finding], note: str = "") -> Finding:
        return dataclasses.replace(self, parts=dict(parts), note=note or self.note)

    def to_dict(self) -> dict[str, Any]:
        """For programs, with the verdict."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {**plain, "verdict": self.verdict, "parts": {name: p.to_dict() for name, p in self.parts.items()}}


Compute = Callable[["Threat"], Finding]


@dataclass(frozen=True)
class Attack:
    """One way of learning about a person from a synthetic table. All read real rows: what they find is internal."""

    name: str
    title: str
    meaning: str
    """What success would mean for a person in the table."""
    counted: str
    """What the success rate is the rate of."""
    compute: Compute
    unit: str = SHARE

    def of(self, threat: Threat) -> Finding:
        """The finding, or why there can't be one."""
        fewest = min((threat.train, threat.holdout), key=lambda sample: sample.rows)
        if fewest.rows < FEWEST:
            return Finding.undefined(f"{fewest.name} has {fewest.rows} rows, and fewer than {FEWEST} say nothing")
        return self.compute(threat)
