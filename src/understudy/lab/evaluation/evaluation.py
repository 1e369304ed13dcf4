"""`understudy.evaluate`: every measure on two tables, as one typed result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import Measure, MeasureResult
from understudy.lab.evaluation.measures import (
    association,
    contingency,
    distances,
    fairness,
    moments,
    nearest_distances,
    prediction,
    projection,
    propensity,
    range_queries,
    validity,
)
from understudy.lab.evaluation.picture_data import Pictures, draw
from understudy.pages.page import Rendered, Report
from understudy.progress import Listener, listening

NOTICE = (
    "Internal: this was computed from real rows and has no privacy guarantee. Do not publish it. To choose a method, "
    "an epsilon or whether to release by it voids the claim of that release, unless these rows are public."
)
# In the order in which results and reports show them: counts first, and last the figures that say little.
_MODULES = (
    contingency, distances, association, moments, validity, projection, range_queries, propensity, prediction, fairness,
    nearest_distances,
)  # fmt: skip
MEASURES: tuple[Measure, ...] = tuple(measure for module in _MODULES for measure in module.MEASURES)


@dataclass(frozen=True)
class EvaluationFacts:
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
class Evaluation(Rendered):
    """The figures of all measures on two tables. It is internal: it was computed from real rows."""

    facts: EvaluationFacts
    figures: dict[str, MeasureResult]
    pictures: Pictures

    def __getitem__(self, name: str) -> MeasureResult:
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
        # NaN and infinity are no JSON: a measure without a number has None and a reason.
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        """Without the figures, some of which name values of real rows; the report has them."""
        facts = self.facts
        return f"<Evaluation of {facts.synthetic} against {facts.real}, {len(self.measures)} measures, internal>"

    def _report(self) -> Report:
        from understudy.lab.evaluation import report

        return report


def chosen(names: Sequence[str] | None) -> tuple[Measure, ...]:
    """The measures of these names, in their own order; all of them where nothing is named."""
    known = {m.name: m for m in MEASURES}
    strange = next((n for n in names or () if n not in known), None)
    if strange is not None:
        raise InputError(f"measure {strange!r} is not known; the measures are {', '.join(known)}", strange)
    if names is None:
        return MEASURES
    return tuple(m for m in MEASURES if m.name in names)


def evaluate(
    real: Any,
    synthetic: Any,
    *,
    holdout: Any = None,
    target: str | None = None,
    groups: Sequence[str] = (),
    schema: Schema | str | Path | None = None,
    measures: Sequence[str] | None = None,
    seed: int = 0,
    progress: Listener | None = None,
) -> Evaluation:
    """Compares a synthetic table with the real one. The result is internal: it is computed from real rows.

    To decide by it whether to release, or to release again otherwise, voids the claim of that release.

    Args:
        real: The real rows: a frame, a path, or what `understudy.open` returned.
        synthetic: The rows to compare with them, likewise.
        holdout: Real rows that the method never saw.
        target: A column to predict.
        groups: Columns that divide people.
        schema: The public facts; by default those of the real table, or a draft.
        measures: The names of some measures; by default all are taken.
        seed: Of random queries, splits and the like.
        progress: A function of the name of each part as it begins, or an `understudy.progress.Progress`.

    Returns:
        An `Evaluation`, with a figure for each measure, and a report to `save`.

    Raises:
        InputError: A table can't be read, or a measure, target or group is not known.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 47, 52, 18], "smoker": ["yes", "no", "no", "yes"]})
    >>> evaluate(people, people, measures=["tv1"])["tv1"].value
    0.0
    """
    wanted = chosen(measures)
    step = listening(progress)
    step("reading")
    # Read and encoded once for all measures; what several of them train is kept by `SharedResult`.
    comparison = Comparison.of(real, synthetic, holdout=holdout, schema=schema, target=target, groups=groups, seed=seed)
    figures = {}
    for measure in wanted:
        step(measure.title)
        figures[measure.name] = measure.of(comparison)
    step("pictures")
    return Evaluation(_facts(comparison), figures, draw(comparison))


def _facts(comparison: Comparison) -> EvaluationFacts:
    holdout = comparison.holdout
    return EvaluationFacts(
        comparison.real.name,
        comparison.synthetic.name,
        holdout=holdout.name if holdout else None,
        real_rows=comparison.real.rows,
        synthetic_rows=comparison.synthetic.rows,
        holdout_rows=holdout.rows if holdout else None,
        columns=tuple(v.name for v in comparison.variables),
        left_out=comparison.left_out,
        target=comparison.target,
        groups=comparison.groups,
        drafted=comparison.drafted,
    )
