"""What every measure keeps: a full description, its range, 0 for identical tables, and a reason for bad input."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tables import BAD, compared, people, shuffled

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import MEASURES
from understudy.lab.evaluation.measure import HIGHER, LOWER, NEEDS, Measure, MeasureResult
from understudy.lab.evaluation.measures import prediction, propensity

ROUNDING = 1e-9
NOT_OF_LIKENESS = ("Prediction", "Reconstruction")
"""Sections about models and about rows, in which identical tables are not the best there can be."""
UNRELATED_ROWS = ("rmse-paired", "mae-paired", "tstr-gap-groups")
"""About rows in their order, and about people whom a model serves unequally even if it learnt from real rows."""
OF_SINGLE_COLUMNS = ("tv1", "js", "hellinger", "ks", "wasserstein-1", "mean", "group-size", "missingness")
OF_SEVERAL = ("tv2", "tv3", "association", "pearson", "query-error", "pca-variance", "tstr-gap", "group-tv")
SUITE = [pytest.param(m, id=m.name) for m in MEASURES]
LIKENESS = [m for m in MEASURES if m.section not in NOT_OF_LIKENESS and m.name not in UNRELATED_ROWS]
DIRECTED = [m for m in MEASURES if m.section != "Reconstruction" and m.name not in UNRELATED_ROWS]


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction, "TREES", 5)
        patch.setattr(prediction, "ROUNDS", 10)
        patch.setattr(propensity, "ROUNDS", 10)
        yield


@pytest.fixture(scope="module")
def real() -> pa.Table:
    return people(500)


@pytest.fixture(scope="module")
def identical(real: pa.Table) -> Comparison:
    return compared(real, real)


@pytest.fixture(scope="module")
def again(real: pa.Table) -> Comparison:
    return compared(real, real)


@pytest.fixture(scope="module")
def mixed(real: pa.Table) -> Comparison:
    return compared(real, shuffled(real))


@pytest.fixture(scope="module")
def other(real: pa.Table) -> Comparison:
    return compared(real, people(400, 5), target="age")


def test_names_and_titles_are_unique():
    assert len({m.name for m in MEASURES}) == len(MEASURES)
    assert len({m.title for m in MEASURES}) == len(MEASURES)


@pytest.mark.parametrize("measure", SUITE)
def test_every_field_is_filled(measure: Measure):
    assert measure.name == measure.name.lower().replace(" ", "-")
    assert measure.title.strip() == measure.title != ""
    assert measure.section
    assert measure.direction in (LOWER, HIGHER)
    assert measure.low < measure.high
    assert set(measure.needs) <= set(NEEDS)
    assert measure.explanation.endswith(".")


def failures(figure: MeasureResult, measure: Measure) -> list[str]:
    """A number that is one and lies in the range, or a reason; of the figure and of all its parts."""
    found = []
    for part in (figure, *figure.parts):
        numbers = [getattr(part, field, None) for field in ("value", "raw", "reference")]
        if not all(n is None or (isinstance(n, float) and math.isfinite(n)) for n in numbers):
            found.append(f"{measure.name}: {part} holds no finite number")
        if (part.value is None) == (not part.reason):
            found.append(f"{measure.name}: {part} needs either a value or a reason")
    if figure.value is not None and not measure.low - ROUNDING <= figure.value <= measure.high + ROUNDING:
        found.append(f"{measure.name}: {figure.value} is out of range")
    return found


@pytest.mark.parametrize("measure", SUITE)
def test_figures_lie_in_their_range(measure: Measure, identical: Comparison, mixed: Comparison, other: Comparison):
    for comparison in (identical, mixed, other):
        assert failures(measure.of(comparison), measure) == []


@pytest.mark.parametrize("measure", LIKENESS, ids=lambda m: m.name)
def test_identical_tables_are_the_best_there_can_be(measure: Measure, identical: Comparison):
    value = measure.of(identical).value
    if value is not None:
        assert value == pytest.approx(measure.low if measure.direction == LOWER else measure.high, abs=ROUNDING)


@pytest.mark.parametrize("measure", DIRECTED, ids=lambda m: m.name)
def test_the_direction_is_that_of_likeness(measure: Measure, identical: Comparison, mixed: Comparison):
    """Shuffling columns makes no measure better."""
    best, worse = measure.of(identical).value, measure.of(mixed).value
    if best is not None and worse is not None:
        assert (worse - best) * (1 if measure.direction == LOWER else -1) >= -ROUNDING


def test_shuffled_columns_are_good_by_themselves_and_bad_together(mixed: Comparison):
    by_name = {m.name: m for m in MEASURES}
    for name in OF_SINGLE_COLUMNS:
        assert by_name[name].of(mixed).value == pytest.approx(0.0, abs=ROUNDING), name
    for name in OF_SEVERAL:
        assert by_name[name].of(mixed).value > 0.01, name
    assert by_name["pca-overlap"].of(mixed).value < 0.75


@pytest.mark.slow_after(12)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_a_figure_or_a_reason(name: str):
    comparison = BAD[name].compared()
    assert [f for m in MEASURES for f in failures(m.of(comparison), m)] == []


@pytest.mark.parametrize("measure", SUITE)
def test_the_same_tables_give_the_same_figure(measure: Measure, identical: Comparison, again: Comparison):
    assert measure.of(again) == measure.of(identical)


def test_what_is_lacking_is_said():
    bare = compared(people(30), people(30, 5), holdout=None, target=None, groups=())
    for measure in MEASURES:
        if set(measure.needs) - {"schema"}:
            assert measure.of(bare).reason in NEEDS.values()


def test_figures_are_plain_numbers_that_json_can_hold(mixed: Comparison):
    for measure in MEASURES:
        value = measure.of(mixed).value
        assert json.loads(json.dumps(value, allow_nan=False)) == value
