"""Every measure on two tables, as one typed result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.errors import InputError
from understudy.lab.evaluation.all_measures import MEASURES
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import Figure, Measure
from understudy.lab.evaluation.picture import Pictures
from understudy.lab.evaluation.picture_data import draw

NOTICE = (
    "Internal: this was computed from real rows and has no privacy guarantee. Do not publish it. To choose a method, "
    "an epsilon or whether to release by it voids the claim of that release, unless these rows are public."
)
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Facts:
    """What was compared."""

    real: str
    synthetic: str
    holdout: str | None
    real_rows: int
    synthetic_rows: int
    holdout_rows: int | None
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    target: str | None
    groups: tuple[str, ...]
    drafted: bool
    """Whether the schema was drafted from the real rows, because none was given."""


@dataclass(frozen=True)
class Evaluation:
    """The figures of all measures, in their order. It is internal: it was computed from real rows."""

    facts: Facts
    figures: dict[str, Figure]
    pictures: Pictures

    def __getitem__(self, name: str) -> Figure:
        try:
            return self.figures[name]
        except KeyError:
            known = ", ".join(self.figures)
            raise InputError(f"measure {name!r} is not known; the measures are {known}", name) from None

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(m for m in MEASURES if m.name in self.figures)

    def to_dict(self) -> dict[str, Any]:
        """For programs: the facts, and every figure with its parts; no pictures."""
        figures = {name: dataclasses.asdict(figure) for name, figure in self.figures.items()}
        return {"notice": NOTICE, "facts": dataclasses.asdict(self.facts), "figures": figures}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def chosen(names: Sequence[str] | None) -> tuple[Measure, ...]:
    """The measures of these names, in their own order; all of them where nothing is named."""
    known = {m.name: m for m in MEASURES}
    strange = next((n for n in names or () if n not in known), None)
    if strange is not None:
        raise InputError(f"measure {strange!r} is not known; the measures are {', '.join(known)}", strange)
    return MEASURES if names is None else tuple(m for m in MEASURES if m.name in names)


def assess(comparison: Comparison, measures: Sequence[Measure], progress: Progress) -> Evaluation:
    """The figures of these measures, and the pictures."""
    figures = {}
    for measure in measures:
        progress(measure.title)
        figures[measure.name] = measure.of(comparison)
    progress("pictures")
    return Evaluation(_facts(comparison), figures, draw(comparison))


def _facts(comparison: Comparison) -> Facts:
    holdout = comparison.holdout
    return Facts(
        comparison.real.name,
        comparison.synthetic.name,
        holdout.name if holdout else None,
        comparison.real.rows,
        comparison.synthetic.rows,
        holdout.rows if holdout else None,
        tuple(v.name for v in comparison.variables),
        comparison.left_out,
        comparison.target,
        comparison.groups,
        comparison.drafted,
    )
