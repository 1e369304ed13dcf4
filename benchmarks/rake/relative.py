"""The error of a variant relative to another one, seed by seed: with the same noise they differ by little else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .summary import Results, Sample


@dataclass(frozen=True)
class Relative:
    """The mean of log(error of the variant / error of the baseline), and its standard error."""

    log: float
    error: float

    @classmethod
    def of(cls, results: Results, variant: str, baseline: str, figure: str = "tv2") -> Relative | None:
        """The mean over all ε; nothing where one of the two was not measured at one of them."""
        parts = []
        for epsilon in results.epsilons():
            ours, theirs = (results.of(epsilon=epsilon, variant=v).by_seed(figure) for v in (variant, baseline))
            logs = Sample([math.log(ours[seed] / theirs[seed]) for seed in ours.keys() & theirs.keys()])
            if not logs.values:
                return None
            parts.append(cls(logs.mean, logs.error))
        return cls.mean(parts) if parts else None

    @classmethod
    def mean(cls, parts: Sequence[Relative]) -> Relative:
        return cls(sum(p.log for p in parts) / len(parts), math.hypot(*(p.error for p in parts)) / len(parts))

    @property
    def ratio(self) -> float:
        return math.exp(self.log)

    def __str__(self) -> str:
        return f"{self.ratio:.3f}" + (f" ± {self.ratio * self.error:.3f}" if math.isfinite(self.error) else "")
