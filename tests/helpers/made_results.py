"""An evaluation made by hand, with what may go wrong in a report: hostile names, and figures without a value."""

from __future__ import annotations

import math

from understudy.lab.evaluation.evaluation import MEASURES, Evaluation, EvaluationFacts
from understudy.lab.evaluation.measure import Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.picture_data import (
    AssociationPicture,
    Column,
    CumulativePicture,
    DensityPicture,
    Pictures,
    RowsPicture,
    ScatterPicture,
    SharesPicture,
)
from understudy.lab.studies.study import Study, Trial
from understudy.methods.method import STATISTICS_FIRST

EVIL = "<script>alert('x')</script>"
QUOTES = "\"double\" & 'single' </svg></title>"
CONTROL = "a\x00b\x1b\ud800c"
NAMES = (EVIL, QUOTES, "age", "admitted", "income")
UNDEFINED = "tv3"
REASON = "the synthetic table has only one class of <income>"


def shares(column: str = "income", labels: int = 2, distance: float = 0.1) -> SharesPicture:
    real = tuple(2.0 ** -(i + 1) for i in range(labels))
    return SharesPicture(column, tuple(f"value {i}" for i in range(labels)), real, real[::-1], distance)


def density(column: str = "age", labels: tuple[str, ...] = ("0", "50", "100")) -> DensityPicture:
    points = tuple(100 * i / 127 for i in range(128))
    real, synthetic = (tuple(math.exp(-(((x - m) / 15) ** 2)) for x in points) for m in (40, 50))
    return DensityPicture(column, points, labels, real, synthetic, 0.2)


def matrix(columns: tuple[str, ...]) -> AssociationPicture:
    def cells(shift: float) -> tuple[tuple[float | None, ...], ...]:
        size = range(len(columns))
        return tuple(
            tuple(1.0 if i == j else math.cos(i + j + shift) if i + j != 3 else None for j in size) for i in size
        )

    return AssociationPicture("association", columns, cells(0.0), cells(0.3))


def cloud(rows: int = 50) -> ScatterPicture:
    real = tuple((math.cos(i), math.sin(2 * i)) for i in range(rows))
    return ScatterPicture(real, tuple((x + 0.1, y) for x, y in real), (0.4, 0.2))


def figures() -> dict[str, MeasureResult]:
    found = {m.name: MeasureResult(middle(m), parts=parts(), note="a note") for m in MEASURES}
    found[UNDEFINED] = MeasureResult.undefined(REASON)
    found["tv1"] = MeasureResult(0.0123, parts=parts())
    found["tstr-auc"], found["trtr-auc"] = MeasureResult(0.801), MeasureResult(0.907)
    return found


def middle(measure: Measure) -> float:
    ends = (max(measure.low, -3.0), min(measure.high, 3.0))
    return sum(ends) / 2


def parts() -> tuple[MeasurePart, ...]:
    known = tuple(MeasurePart(name, (i + 1) / 100, note=f"p = 0.{i}") for i, name in enumerate(NAMES))
    return (*known, MeasurePart("flat", None, "it is constant"))


def facts() -> EvaluationFacts:
    return EvaluationFacts(
        "real.csv", EVIL, "held.csv", 1000, 990, 500, NAMES, ("patient", QUOTES), "income", ("sex",), True
    )


def pictures() -> Pictures:
    evil = SharesPicture(EVIL, (QUOTES, EVIL, CONTROL), (0.5, 0.3, 0.2), (0.4, 0.4, 0.2), 0.3)
    dates = density("admitted", ("2019-01-01", "2021-07-02", "2024-12-31"))
    more = tuple(shares(f"column {i}", 3 + i) for i in range(12))
    curves = tuple(
        CumulativePicture(name, (0.0, 1.0), ("0", "1"), (0.1, 1.0), (0.3, 1.0), 0.2) for name in (EVIL, "age")
    )
    rows = RowsPicture((EVIL, QUOTES), ((EVIL, None), (CONTROL, "1")), ((QUOTES, EVIL),))
    columns: tuple[Column, ...] = (evil, density(), dates, shares(QUOTES, 24), *more)
    return Pictures(columns, matrix(NAMES), cloud(), cumulative=curves, rows=rows)


def evaluation(**changes: object) -> Evaluation:
    whole: dict[str, object] = {"facts": facts(), "figures": figures(), "pictures": pictures()}
    return Evaluation(**(whole | changes))  # type: ignore[arg-type]


# --- a study

METHODS = {"rake": 1.0, "mst": 2.0, EVIL: 3.0}
BUDGETS = (0.1, 0.5, 1.0)
INSURANCE = ("age", "bmi", "children", "charges")


def study_figures(scale: float) -> dict[str, MeasureResult]:
    """Errors that grow with the scale."""
    lines = tuple(MeasurePart(c, scale / 10, raw=scale) for c in INSURANCE)
    pair = MeasurePart("age × bmi", scale / 10, raw=scale / 10, reference=0.25)
    return {
        "tv1": MeasureResult(scale / 100, parts=lines),
        "tv2": MeasureResult(scale / 50),
        "pearson": MeasureResult(scale / 10, parts=(pair,)),
        "wasserstein-1": MeasureResult(scale / 10, parts=lines),
        "chi2-one-sided": MeasureResult(scale, parts=(MeasurePart("smoker", scale, raw=scale),)),
        "tstr-auc": MeasureResult(0.9 - scale / 100),
        "tstr-accuracy": MeasureResult(
            0.8, parts=(MeasurePart("decision tree", 0.8 - scale / 100), MeasurePart("random forest", 0.1))
        ),
        "trts-accuracy": MeasureResult(
            0.8, parts=(MeasurePart("logistic regression", 0.75), MeasurePart("decision tree", 0.1))
        ),
        "reconstruction": MeasureResult(
            5.0, parts=(MeasurePart("without smoker", 5.0), MeasurePart("numbers without charges", 1.5))
        ),
        "violations": MeasureResult.undefined("the schema has no constraints"),
    }


def trial(method: str, epsilon: float, seed: int, failed: str = "") -> Trial:
    scale = METHODS[method] / epsilon + seed / 100
    return Trial(
        method, epsilon, seed, METHODS[method], 100 * METHODS[method], {} if failed else study_figures(scale), failed
    )


def study(**changes: object) -> Study:
    trials = [trial(m, e, s) for s in range(3) for m in METHODS for e in BUDGETS]
    trials.append(trial("mst", 0.5, 3, failed="too large"))
    families = dict.fromkeys(METHODS, STATISTICS_FIRST)
    whole = {"table": "people.csv", "rows": 1000, "holdout_rows": 250, "delta": 1e-6, "target": "smoker"}
    whole |= {"trials": tuple(trials), "baseline": study_figures(0.0), "families": families}
    return Study(**(whole | changes))  # type: ignore[arg-type]
