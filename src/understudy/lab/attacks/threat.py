"""What an attack is, what it has to work with, and what it finds on people in the table, beside others who were not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.lab.attacks.confidence import LEVEL, Interval, newcombe
from understudy.lab.attacks.nearest_rows import Index, Matrix, Neighbours, Places
from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable
from understudy.lab.evaluation.row_features import Features, join

Flags = NDArray[np.bool_]
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
    def hits(cls, train: Flags, holdout: Flags, *, level: float = LEVEL, note: str = "") -> Finding:
        """From the rows of both kinds that the attack succeeded on."""
        counts = int(train.sum()), len(train), int(holdout.sum()), len(holdout)
        return cls.shares(*counts, level=level, note=note)

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
        # Of a two-sided interval at 95 %: without any advantage its lower end is above 0 about once in forty attacks.
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


NEAREST = 3
"""Synthetic rows that are looked at around a real one, as in the printed reconstruction attack."""
AT_ONCE = 8_192
"""Rows that are laid out together, so that wide tables never stand in double precision."""


@dataclass(frozen=True)
class Threat:
    """The tables in common codes, and the columns that an attacker would like to learn."""

    comparison: Comparison
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, comparison: Comparison, secrets: Sequence[str] | None = None) -> Threat:
        """All columns are secrets, unless some are named."""
        names = [v.name for v in comparison.variables]
        strange = next((s for s in secrets or () if s not in names), None)
        if strange is not None:
            listing = ", ".join(names[:8])
            raise InputError(f"the secret {strange!r} is not a column of all tables; they share {listing}", strange)
        if comparison.seed < 0:
            raise InputError(f"seed ({comparison.seed}) must be 0 or more", comparison.seed)
        return cls(comparison, tuple(dict.fromkeys(names if secrets is None else secrets)))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.comparison.variables

    @property
    def train(self) -> RowSample:
        return self.comparison.real

    @property
    def holdout(self) -> RowSample:
        return self.comparison.test

    @property
    def synthetic(self) -> RowSample:
        return self.comparison.synthetic

    def generator(self, purpose: int) -> np.random.Generator:
        """Each attack has its own, so that none changes with another."""
        # Purposes are 1 to 6 and 8: a renumbered one draws other rows from the same seed, and gives other figures.
        return np.random.Generator(np.random.PCG64([self.comparison.seed, purpose]))

    @cached_property
    def features(self) -> Features:
        """Laid out by all real rows, so that those of the training table are treated like the others."""
        return Features.fit(self.variables, join(self.train, self.holdout))

    def features_of(self, names: Collection[str]) -> Features:
        """The same, of some columns."""
        chosen = tuple(v for v in self.variables if v.name in names)
        return Features(chosen, self.features.scales, self.features.places)

    @cached_property
    def near(self) -> tuple[Neighbours, Neighbours]:
        """The nearest synthetic rows of every training row, and of every row of the hold-out."""
        index = Index.of(matrix(self.features, self.synthetic))
        train, holdout = (index.nearest(matrix(self.features, s), NEAREST) for s in (self.train, self.holdout))
        return train, holdout


def matrix(features: Features, sample: RowSample) -> Matrix:
    """Numbers in standard deviations, an indicator for every category."""
    starts = range(0, sample.rows, AT_ONCE)
    blocks = (sample.take(np.arange(i, min(i + AT_ONCE, sample.rows))) for i in starts)
    return np.concatenate([features.one_hot(block).astype(np.float32) for block in blocks])


def some(rows: int, most: int, rng: np.random.Generator) -> Places:
    """At most so many places among the rows, in their order."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(rng.choice(rows, most, replace=False))
