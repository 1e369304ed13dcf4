"""What an attacker faces: a synthetic table, and real rows of which some were in the training table and some not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.errors import InputError
from understudy.lab.attacks.nearest_rows import Index, Matrix, Neighbours, Places
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.row_features import Features, join
from understudy.lab.evaluation.sample import RowSample, Variable

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
    return np.arange(rows) if rows <= most else np.sort(rng.choice(rows, most, replace=False))
