"""What is predicted, and from which columns: public facts, checked before anything is spent."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Coding, Domain
from understudy.errors import InputError


@dataclass(frozen=True)
class PredictionTask:
    """A target, and the columns that it is predicted from."""

    domain: Domain
    target: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.domain if c.name != self.target and c.size > 1)

    @property
    def coding(self) -> Coding:
        return self.domain[self.target]

    def check(self) -> None:
        """Refuses a target that can't be predicted."""
        if not self.columns:
            raise InputError(f"nothing is left to predict {self.target!r} from; declare another column", self.target)


@dataclass(frozen=True)
class ClassificationTask(PredictionTask):
    """A target of classes."""

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels, in the order of the schema; a missing value is no class."""
        coding = self.coding
        if coding.labels is not None:
            return coding.labels
        edges = coding.edges or ()
        return tuple(int(e) for e in edges[:-1])

    def check(self) -> None:
        """Refuses a target that has no classes."""
        coding, edges = self.coding, self.coding.edges
        wide = edges is not None and any(b - a != 1 for a, b in itertools.pairwise(edges))
        if coding.column.type in ("number", "datetime") or wide:
            raise InputError(
                f"the target {self.target!r} must be a column of classes, not of bins; PrivateBoostingRegressor learns "
                "numbers",
                self.target,
            )
        super().check()


@dataclass(frozen=True)
class RegressionTask(PredictionTask):
    """A target that is a number, known to its bin."""

    @property
    def middles(self) -> tuple[float, ...]:
        """What each code of the target stands for: the middle of its bin."""
        edges, whole = self.coding.edges or (), self.coding.column.type == "integer"
        # A bin of whole numbers ends one below the edge.
        return tuple((a + b - whole) / 2 for a, b in itertools.pairwise(edges))

    @property
    def bounds(self) -> tuple[float, float]:
        edges = self.coding.edges or (0.0, 1.0)
        return float(edges[0]), float(edges[-1])

    @property
    def scaled(self) -> tuple[float, ...]:
        """The same, from −1 at the lower bound to 1 at the upper."""
        low, high = self.bounds
        return tuple((2.0 * v - low - high) / (high - low) for v in self.middles)

    def unscaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions as numbers again, which never leave the bounds."""
        low, high = self.bounds
        return low + (np.clip(values, -1.0, 1.0) + 1.0) / 2.0 * (high - low)

    def check(self) -> None:
        """Refuses a target that is no number."""
        if self.coding.edges is None or self.coding.column.type not in ("number", "integer"):
            raise InputError(
                f"the target {self.target!r} must be a number with declared bounds; a column of classes is for "
                "PrivateBoosting",
                self.target,
            )
        super().check()
