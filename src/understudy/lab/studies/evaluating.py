"""`understudy.evaluate`: every measure on two tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import Progress, assess, chosen
from understudy.lab.studies.result import Evaluation


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
    progress: Progress | None = None,
) -> Evaluation:
    """Compares a synthetic table with the real one. The result is internal: it is computed from real rows.

    To decide by it whether to release, or to release again otherwise, voids the claim of that release.

    Tables are frames, paths, or what `understudy.open` returned. `holdout` are real rows that the method never saw,
    `target` a column to predict, `groups` columns that divide people. `measures` names some; by default all are taken.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 47, 52, 18], "smoker": ["yes", "no", "no", "yes"]})
    >>> evaluate(people, people, measures=["tv1"])["tv1"].value
    0.0
    """
    wanted = chosen(measures)
    step = progress or (lambda text: None)
    step("reading")
    comparison = Comparison.of(real, synthetic, holdout=holdout, schema=schema, target=target, groups=groups, seed=seed)
    found = assess(comparison, wanted, step)
    return Evaluation(found.facts, found.figures, found.pictures)
