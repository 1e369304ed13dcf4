"""Figures of groups, by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from tables import changed, compared, people, shuffled

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import NEEDS, MeasureResult
from understudy.lab.evaluation.measures import prediction
from understudy.lab.evaluation.measures.fairness import FEWEST, MEASURES
from understudy.lab.evaluation.row_features import Features

BY_NAME = {m.name: m for m in MEASURES}


def figure(name: str, comparison: Comparison) -> MeasureResult:
    return BY_NAME[name].of(comparison)


def parts(name: str, comparison: Comparison) -> dict[str, float | None]:
    return {p.name: p.value for p in figure(name, comparison).parts}


def table(counts: dict[tuple[str, str], int]) -> pa.Table:
    """So many rows of each group and class; the column c is the class again."""
    rows = [key for key, count in counts.items() for _ in range(count)]
    classes = [c for _, c in rows]
    return pa.table({"g": [g for g, _ in rows], "y": classes, "c": classes})


def of(real: dict, synthetic: dict, **given) -> Comparison:
    usual = {"target": "y", "groups": ("g",)} | given
    return Comparison.of(table(real), table(synthetic), **usual)


REAL = {("a", "no"): 60, ("a", "yes"): 40, ("b", "no"): 45, ("b", "yes"): 5}
SYNTHETIC = {("a", "no"): 30, ("a", "yes"): 20, ("b", "no"): 35, ("b", "yes"): 15}


def test_distance_within_groups_by_hand():
    """Group a has the same shares (0.4); in group b they are 0.1 and 0.3."""
    comparison = of(REAL, SYNTHETIC)
    assert parts("group-tv", comparison) == pytest.approx({"g = a": 0.0, "g = b": 0.2})
    assert figure("group-tv", comparison).value == pytest.approx(0.2)


def test_shares_of_groups_by_hand():
    comparison = of(REAL, SYNTHETIC)
    assert parts("group-size", comparison) == pytest.approx({"g = a": 1 / 6, "g = b": 1 / 6})


def test_parity_by_hand():
    """The rate of yes differs by 0.3 between real groups, by 0.1 between synthetic ones."""
    comparison = of(REAL, SYNTHETIC)
    assert figure("parity-gap", comparison).value == pytest.approx(0.2)
    assert figure("parity-gap", comparison).parts[0].note == "real 0.3000, synthetic 0.1000"


def test_parity_of_three_classes_is_about_all_but_the_commonest():
    real = {("a", "no"): 60, ("a", "yes"): 30, ("a", "maybe"): 10, ("b", "no"): 45, ("b", "maybe"): 5}
    synthetic = {("a", "no"): 20, ("a", "yes"): 20, ("b", "no"): 20}
    assert figure("parity-gap", of(real, synthetic)).value == pytest.approx(0.5 - 0.3)


def test_small_groups_and_groups_without_synthetic_rows_have_reasons():
    real = REAL | {("few", "no"): FEWEST - 1, ("gone", "no"): FEWEST}
    synthetic = SYNTHETIC | {("few", "no"): 5, ("new", "yes"): 5}
    comparison = of(real, synthetic)
    found = {p.name: p for p in figure("group-tv", comparison).parts}
    assert found["g = few"].reason == "the group has 29 real rows, and at least 30 are needed"
    assert found["g = gone"].reason == "the group has no synthetic rows"
    assert found["g = new"].reason == "the group has 0 real rows, and at least 30 are needed"
    assert figure("group-tv", comparison).value == pytest.approx(0.2)
    assert figure("parity-gap", comparison).value == pytest.approx(0.2)
    assert parts("group-size", comparison)["g = gone"] == pytest.approx(30 / 209)


def test_no_group_large_enough():
    few = {("a", "no"): 10, ("b", "yes"): 10}
    comparison = of(few, few, holdout=table(few))
    assert "no group has 30 real rows" in figure("group-tv", comparison).reason
    assert "fewer than two groups" in figure("parity-gap", comparison).reason
    assert "fewer than two groups" in figure("tstr-gap-groups", comparison).reason


def test_missing_groups_are_a_group():
    real = changed(people(400), job=[None, "cook"] * 200)
    assert set(parts("group-tv", compared(real, real, groups=("job",)))) == {"job = cook", "job = missing"}


def test_identical_and_shuffled_tables():
    real = people(600)
    same, mixed = compared(real, real), compared(real, shuffled(real))
    for name in ("group-tv", "group-size", "parity-gap"):
        assert figure(name, same).value == 0.0
    assert figure("group-size", mixed).value == 0.0
    assert figure("group-tv", mixed).value > 0.03


def test_accuracy_by_group_is_that_of_a_second_pipeline():
    comparison = compared(people(400), people(300, 5), groups=("sex",))
    others = [v for v in comparison.variables if v.name != "rich"]
    accuracies = []
    for trained in (comparison.synthetic, comparison.real):
        features = Features.fit(others, trained)
        model = HistGradientBoostingClassifier(max_iter=prediction.ROUNDS, early_stopping=False, random_state=0)
        model.fit(features.ordinal(trained), trained.codes["rich"])
        right = model.predict(features.ordinal(comparison.test)) == comparison.test.codes["rich"]
        accuracies.append([right[comparison.test.codes["sex"] == s].mean() for s in (0, 1)])
    found = figure("tstr-gap-groups", comparison)
    assert found.value == pytest.approx(np.ptp(accuracies[0]))
    assert found.note == f"trained on real rows, the largest difference is {np.ptp(accuracies[1]):.4f}"
    assert found.parts[0].note == f"f {accuracies[0][0]:.4f}, m {accuracies[0][1]:.4f}"


@pytest.mark.parametrize("name", ["parity-gap", "tstr-gap-groups"])
def test_targets_that_have_no_rates(name: str):
    real = people(60)
    assert "is a number" in figure(name, compared(real, real, target="age")).reason
    assert figure(name, compared(real, real, groups=("rich",))).reason == "it is the target itself"
    unknown = changed(real, rich=pa.nulls(60, pa.bool_()))
    assert "has a value of 'rich'" in figure(name, compared(unknown, unknown)).reason


def test_one_class_in_the_real_table_only_lacks_the_note():
    real = changed(people(60), rich=[True] * 60)
    found = figure("tstr-gap-groups", compared(real, people(60, 5)))
    assert found.value is not None
    assert found.note == ""


def test_groups_are_needed():
    assert figure("group-tv", compared(people(9), people(9), groups=())).reason == NEEDS["groups"]
