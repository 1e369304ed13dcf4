"""Whether the synthetic values may be at all, and whether the real ones occur: coverage, bounds, lists and rules."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Boolean, Categorical, Column, Datetime, Integer, Number
from understudy.boundary.schema.expression import Kind
from understudy.boundary.schema.schema import Rule
from understudy.inference.values import Values, violated
from understudy.lab.evaluation.comparison import Comparison, RowSample, Variable
from understudy.lab.evaluation.measure import HIGHER, LOWER, SCHEMA, Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.measures.distances import NoFigureError, over_all, over_lines, over_lists, present_values

SECTION = "Validity"


def _covered_categories(comparison: Comparison, variable: Variable) -> MeasurePart:
    """A missing value is no category."""
    real, synthetic = (np.asarray(s.counts([variable])[: len(variable.labels)] > 0) for s in comparison.both)
    if not real.any():
        raise NoFigureError("all values are missing in the real table")
    found = int((real & synthetic).sum())
    return MeasurePart(variable.name, found / int(real.sum()), note=f"{found:,} of {int(real.sum()):,}")


def _covered_range(comparison: Comparison, variable: Variable) -> MeasurePart:
    real, synthetic = ((float(v.min()), float(v.max())) for v in present_values(comparison, variable))
    if not np.isfinite(real).all():
        raise NoFigureError("the real table has infinite values")
    if real[0] == real[1]:
        raise NoFigureError("the real column is constant, so it has no range")
    # In halves, since the difference of two finite numbers may be infinite.
    span = min(real[1] / 2, synthetic[1] / 2) - max(real[0] / 2, synthetic[0] / 2)
    return MeasurePart(variable.name, max(span, 0.0) / (real[1] / 2 - real[0] / 2))


def _outside(comparison: Comparison, variable: Variable) -> MeasurePart:
    low, high = _bounds(_declaration(comparison, variable))
    if low is None and high is None:
        raise NoFigureError("the schema declares no bounds of it")
    values = _synthetic_values(comparison, variable)
    outside = np.zeros(len(values), dtype=bool)
    if low is not None:
        outside |= values < low
    if high is not None:
        outside |= values > high
    return _share(variable.name, outside)


def _declaration(comparison: Comparison, variable: Variable) -> Column:
    """What the schema says of a column; special values that are compared beside it are no column of the schema."""
    if variable.name in comparison.schema:
        return comparison.schema[variable.name]
    return variable.column


def _bounds(column: Column) -> tuple[float | None, float | None]:
    """The least and the greatest value that the column may have; of a date in whole units since its start."""
    match column:
        case Integer() | Number():
            return column.minimum, column.maximum
        case Datetime() if column.minimum is not None:
            if column.maximum is None:
                return 0.0, None
            return 0.0, float((column.maximum - column.start) // timedelta(seconds=column.unit_seconds))
    return None, None


def _synthetic_values(comparison: Comparison, variable: Variable) -> NDArray[np.float64]:
    values = comparison.synthetic.present(variable.name)
    if not len(values):
        raise NoFigureError("all values are missing in the synthetic table")
    return np.floor(values) if variable.is_date else values  # 23:59 of the last day is within a bound of days


def _share(name: str, mask: NDArray[np.bool_]) -> MeasurePart:
    return MeasurePart(name, float(mask.mean()), note=f"{int(mask.sum()):,} of {len(mask):,}")


def _unlisted(comparison: Comparison, variable: Variable) -> MeasurePart:
    declared = _declared(_declaration(comparison, variable))
    codes = comparison.synthetic.codes[variable.name]
    codes = codes[codes < len(variable.labels)]
    if not len(codes):
        raise NoFigureError("all values are missing in the synthetic table")
    # Looked up for each label once, and not for each row.
    strange = np.array([label not in declared for label in variable.labels], dtype=bool)
    return _share(variable.name, strange[codes])


def _declared(column: Column) -> frozenset[str]:
    if isinstance(column, Boolean):
        return frozenset(("true", "false"))
    if not isinstance(column, Categorical) or column.values is None:
        raise NoFigureError("the schema declares no values of it")
    return frozenset(map(str, column.labels))


def _violations(comparison: Comparison) -> MeasureResult:
    schema, rows = comparison.schema, comparison.synthetic.rows
    if not schema.rules:
        return MeasureResult.undefined("the schema has no constraints")
    values = {v.name: expressed(v, comparison.synthetic) for v in comparison.variables}
    broken, parts = np.zeros(rows, dtype=bool), []
    for rule, constraint in zip(schema.rules, schema.constraints, strict=True):
        lacking = sorted(constraint.columns - set(values))
        if lacking:
            parts.append(MeasurePart(_written(rule), None, f"the tables do not share {', '.join(map(repr, lacking))}"))
            continue
        breaking = violated(constraint, values, rows)
        broken |= breaking
        parts.append(_share(_written(rule), breaking))
    if all(p.value is None for p in parts):
        return MeasureResult.undefined("no constraint can be checked; each says why", parts)
    whole = _share("rows", broken)
    return MeasureResult(whole.value, parts=tuple(parts), note=f"{whole.note} rows")


def _written(rule: Rule) -> str:
    if rule.condition is None:
        return rule.then
    return f"if {rule.condition} then {rule.then}"


def expressed(variable: Variable, sample: RowSample) -> Values:
    """The values of a column as an expression reads them."""
    match variable.column.kind:
        case Kind.DATETIME:
            return Values(_moments(variable.column, sample.values[variable.name]))
        case Kind.NUMBER if variable.on_line:
            return Values(sample.values[variable.name])
        case Kind.NUMBER:
            # A column without any value has the label "none", which is no number.
            labels = ("nan",) if variable.labels == ("none",) else variable.labels
            return Values(np.array([*map(float, labels), np.nan])[sample.codes[variable.name]])
        case Kind.BOOLEAN:
            truths = np.array([label == "true" for label in (*variable.labels, "")])
            known = np.array([label in ("true", "false") for label in (*variable.labels, "")])
            codes = sample.codes[variable.name]
            return Values(truths[codes], ~known[codes])
    return Values(np.array([*variable.labels, None], dtype=object)[sample.codes[variable.name]])


def _moments(column: Column, units: NDArray[np.float64]) -> NDArray[np.datetime64]:
    assert isinstance(column, Datetime)
    known = np.isfinite(units)
    # Whole microseconds, rounded: a product of floats may lie just below the moment that is meant.
    steps = np.rint(np.where(known, units, 0.0) * column.unit_seconds * 1e6).astype("timedelta64[us]")
    return np.where(known, np.datetime64(column.start, "us") + steps, np.datetime64("NaT", "us"))


def _missing_difference(comparison: Comparison, variable: Variable) -> MeasurePart:
    real, synthetic = (float((s.codes[variable.name] == len(variable.labels)).mean()) for s in comparison.both)
    note = ""
    if variable.missing:
        note = f"{real:.1%} real, {synthetic:.1%} synthetic"
    return MeasurePart(variable.name, abs(real - synthetic), note=note, raw=synthetic, reference=real)


_measure = partial(Measure, section=SECTION, low=0.0, high=1.0, unit="column")

MEASURES: tuple[Measure, ...] = (
    _measure("category-coverage", "Categories that occur", direction=HIGHER,
             compute=partial(over_lists, compute=_covered_categories),
             explanation="The share of the categories of the real column, rare ones too, that the synthetic one has."),
    _measure("range-coverage", "Ranges that are spanned", direction=HIGHER,
             compute=partial(over_lines, compute=_covered_range),
             explanation="The share of the real range, from the least to the greatest value, that the synthetic "
             "values span."),
    _measure("out-of-range", "Values out of bounds", direction=LOWER, needs=(SCHEMA,),
             compute=partial(over_lines, compute=_outside),
             explanation="The share of synthetic numbers and dates outside the bounds that the schema declares."),
    _measure("undeclared", "Categories not declared", direction=LOWER, needs=(SCHEMA,),
             compute=partial(over_lists, compute=_unlisted),
             explanation="The share of synthetic categories that are not among the values that the schema declares."),
    _measure("violations", "Rows that break a constraint", direction=LOWER, needs=(SCHEMA,), unit="constraint",
             compute=_violations,
             explanation="The share of synthetic rows that break at least one constraint of the schema."),
    _measure("missingness", "Difference of missing values", direction=LOWER,
             compute=partial(over_all, compute=_missing_difference),
             explanation="The mean difference of the shares of missing values of a column."),
)  # fmt: skip
