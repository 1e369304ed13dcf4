"""What the curator hands out: noisy counts, with all that is needed to know how noisy they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.partition import Partition

LEAST_VARIANCE = 1e-100
"""Of noise that is as good as never there; its inverse is still a number to weight with."""

KINDS_OF_ANSWER: dict[str, type[np.generic]] = {"i": np.int64, "f": np.float64, "U": np.str_}
"""By numpy's letter, what an answer may be made of."""


@dataclass(frozen=True)
class Measurement:
    """Noisy counts of a set of columns, or of the cells of a public partition."""

    columns: ColumnSet
    counts: NDArray[np.int64]
    mechanism: str
    scale: float
    partition: Partition | None = None
    noises: float = 1.0
    """How many times the noise of that scale is in it; several sites may each have added theirs."""

    @property
    def variance(self) -> float:
        """The noise variance of one cell; of a discrete Gaussian σ², which it is at most."""
        return self.noises * self._variance

    @property
    def _variance(self) -> float:
        if self.mechanism == "public":
            return 0.0
        if self.mechanism in ("rounded-gaussian", "shared-gaussian"):
            return rounded_variance(self.scale)
        if self.mechanism != "discrete-laplace":
            return self.scale**2
        # For P[k] ∝ r^|k| with r = exp(−1/b), the variance is 2r/(1−r)². Where r underflows it must not become 0,
        # which means public, and which nobody can divide by.
        ratio = math.exp(-1.0 / self.scale)
        return max(2.0 * ratio / math.expm1(-1.0 / self.scale) ** 2, LEAST_VARIANCE)

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self.variance))


def rounded_variance(sigma: float) -> float:
    """Of a normal draw of deviation σ, rounded: σ² + 1/12 (Sheppard 1898) but for less than 4·exp(−2π²σ²) of it.

    >>> round(rounded_variance(3.0), 3)
    9.083
    """
    if sigma >= 1.0:
        return sigma**2 + 1.0 / 12.0
    # E[k²] = Σ (2j − 1)·P[|k| ≥ j]; beyond ten deviations nothing is left.
    tails = ((2 * j - 1) * math.erfc((j - 0.5) / (sigma * math.sqrt(2.0))) for j in range(1, 12))
    return max(math.fsum(tails), LEAST_VARIANCE)


@dataclass(frozen=True)
class RecordedAnswer:
    """One line of the record: what was asked, and the noisy answer. Together they are enough to replay a release."""

    question: dict[str, Any]
    value: NDArray[Any]

    def to_dict(self) -> dict[str, Any]:
        """As ledgers and files of predictors keep it, in JSON."""
        return {"question": self.question, "kind": self.value.dtype.kind, "value": self.value.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RecordedAnswer:
        """Reads back what `to_dict` made; of another kind of array it is a KeyError."""
        value = np.array(data["value"], dtype=KINDS_OF_ANSWER[data["kind"]])
        if data["kind"] == "U":
            # Keys and their counts, two texts a line: a list without lines has forgotten that.
            value = value.reshape(len(value), 2)
        return cls(data["question"], value)


@dataclass(frozen=True)
class FoundValues:
    """Values of a private column that enough people share, and their noisy counts."""

    values: tuple[str, ...]
    counts: NDArray[np.int64]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, no longer writable."""
    array.setflags(write=False)
    return array
