"""What the reports share: groups of results, means with their errors, and Markdown tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .case import Result

NOTHING = "–"
STANDARD_ERRORS = 2.0
"""A difference of fewer than so many standard errors is noise of the seeds."""


@dataclass(frozen=True)
class Sample:
    """One figure over several seeds."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite where a single seed leaves it unknown."""
        few = len(self.values) < 2
        return math.inf if few else statistics.stdev(self.values) / math.sqrt(len(self.values))

    def __str__(self) -> str:
        if not self.values:
            return NOTHING
        return f"{self.mean:.4f}" + (f" ± {statistics.stdev(self.values):.4f}" if len(self.values) > 1 else "")

    def against(self, other: Sample) -> str:
        """Whether these figures, of which small ones are good, are beyond the seeds' noise worse or better."""
        if len(self.values) < 2 or len(other.values) < 2:
            return NOTHING
        difference, noise = self.mean - other.mean, STANDARD_ERRORS * math.hypot(self.error, other.error)
        return "**worse**" if difference > noise else "better" if difference < -noise else "same"


class Results:
    """Results to be asked for by what they are of."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = list(results)

    def of(self, **wanted: object) -> Results:
        return Results(r for r in self._results if wanted.items() <= r.items())

    def names(self, field: str) -> list[str]:
        """Every value of a field, in the order in which it first occurs."""
        return list(dict.fromkeys(r[field] for r in self._results))

    def epsilons(self) -> list[float]:
        return sorted({r["epsilon"] for r in self._results})

    def sample(self, figure: str) -> Sample:
        return Sample([r[figure] for r in self._results if figure in r])

    def by_seed(self, figure: str) -> dict[int, float]:
        return {r["seed"]: r[figure] for r in self._results if figure in r}

    def having(self, field: str) -> list[Result]:
        return [r for r in self._results if field in r]

    def conditions(self) -> str:
        """The code, the days and the load of all of them."""
        if not self._results:
            return "Nothing was measured yet."
        codes = ", ".join(sorted({r["code"] for r in self._results}))
        days, loads = sorted(r["date"][:10] for r in self._results), [r["load"] for r in self._results]
        when = " to ".join(dict.fromkeys((days[0], days[-1])))
        return f"{len(self._results):,} releases; code {codes}; {when}; load {min(loads):.1f} to {max(loads):.1f}."


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
