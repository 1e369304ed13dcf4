"""Training on one table and testing on another: scores against scikit-learn, models against a second pipeline."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, r2_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from tables import changed, compared, people, shuffled

from understudy.lab.evaluation.comparison import Comparison, RowSample
from understudy.lab.evaluation.measure import NEEDS, MeasureResult
from understudy.lab.evaluation.measures import prediction
from understudy.lab.evaluation.measures.prediction import (
    BOOSTING,
    FOREST,
    LINEAR,
    LOGISTIC,
    MEASURES,
    TREE,
    Predictions,
)
from understudy.lab.evaluation.row_features import Standardisation, Target

BY_NAME = {m.name: m for m in MEASURES}
CLASSES = ("accuracy", "f1", "auc")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "TREES", 20)
    monkeypatch.setattr(prediction, "ROUNDS", 30)


def figure(name: str, comparison: Comparison) -> MeasureResult:
    return BY_NAME[name].of(comparison)


def part(name: str, model: str, comparison: Comparison) -> float | None:
    return {p.name: p.value for p in figure(name, comparison).parts}[model]


def target(classes: int, rarer: int = 0) -> Target:
    return Target(None, np.arange(classes), rarer, Standardisation())  # type: ignore[arg-type]


def answers(truth: np.ndarray, said: np.ndarray) -> Predictions:
    return Predictions(RowSample("rows", len(truth), {}, {}), truth, {"model": said})


def random_answers(classes: int) -> Predictions:
    rng = np.random.default_rng(classes)
    truth = rng.integers(0, classes, 300)
    likely = rng.random((300, classes)) + np.eye(classes)[truth] / 2
    return answers(truth, (likely / likely.sum(axis=1, keepdims=True)).round(2))


@pytest.mark.parametrize("classes", [3, 5])
def test_scores_of_several_classes_are_those_of_scikit_learn(classes: int):
    found = random_answers(classes)
    likely = found.said["model"]
    each = [roc_auc_score(found.truth == c, likely[:, c]) for c in range(classes)]
    assert prediction.auc(target(classes), found, "model") == pytest.approx(np.mean(each))
    macro = f1_score(found.truth, likely.argmax(axis=1), average="macro")
    assert prediction.f1(target(classes), found, "model") == pytest.approx(macro)
    assert prediction.accuracy(target(classes), found, "model") == np.mean(likely.argmax(axis=1) == found.truth)


@pytest.mark.parametrize("rarer", [0, 1])
def test_scores_of_two_classes_are_those_of_scikit_learn(rarer: int):
    found = random_answers(2)
    likely = found.said["model"]
    assert prediction.auc(target(2), found, "model") == pytest.approx(roc_auc_score(found.truth, likely[:, 1]))
    other = f1_score(found.truth, likely.argmax(axis=1), pos_label=rarer)
    assert prediction.f1(target(2, rarer), found, "model") == pytest.approx(other)


def test_r2_is_that_of_scikit_learn():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=50)
    said = truth + rng.normal(size=50)
    assert prediction.r2(target(2), answers(truth, said), "model") == pytest.approx(r2_score(truth, said))


def test_scores_by_hand():
    found = answers(np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]]))
    assert prediction.accuracy(target(2), found, "model") == 0.5
    assert prediction.f1(target(2, 1), found, "model") == 0.5
    assert prediction.auc(target(2), found, "model") == 0.75


def test_a_class_that_no_training_row_has_counts_as_chance():
    found = answers(np.array([0, 0, 1, 1, 2]), np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0.5, 0.5, 0]]))
    assert prediction.auc(target(3), found, "model") == pytest.approx((1 + 1 + 0.5) / 3)


def test_what_can_not_be_scored_is_none():
    single = answers(np.zeros(3, dtype=int), np.array([[1.0, 0.0]] * 3))
    assert prediction.auc(target(2), single, "model") is None
    assert prediction.f1(target(2, 1), single, "model") is None
    assert prediction.r2(target(2), answers(np.ones(3), np.zeros(3)), "model") is None


def one_hot(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas().drop(columns=["rich"])
    frame["no hours"] = frame.hours.isna().astype(float)
    frame["job"] = frame.job.fillna("none")
    return pd.get_dummies(frame, columns=["grade", "job", "sex"], dtype=float)


def test_logistic_regression_agrees_with_a_second_pipeline():
    real, synthetic = people(300), people(300, 5)
    learnt, tested = one_hot(real), one_hot(synthetic)
    numbers = ["age", "hours"]
    scaler = StandardScaler().fit(learnt[numbers])
    for frame in (learnt, tested):
        frame[numbers] = np.nan_to_num(scaler.transform(frame[numbers]))
    model = LogisticRegression(max_iter=200).fit(learnt, real["rich"].to_numpy())
    comparison = compared(real, synthetic, holdout=None)
    truth, likely = synthetic["rich"].to_numpy(), model.predict_proba(tested[learnt.columns])[:, 1]
    assert part("trts-accuracy", LOGISTIC, comparison) == np.mean((likely > 0.5) == truth)
    assert part("trts-auc", LOGISTIC, comparison) == pytest.approx(roc_auc_score(truth, likely), abs=1e-4)


def test_models_learn_once_from_each_table(monkeypatch: pytest.MonkeyPatch):
    fits: list[int] = []
    fit = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda *a: fits.append(1) or fit(*a))
    comparison = compared(people(100), people(100, 5))
    assert figure("tstr-auc", comparison).value is not None
    assert len(fits) == 1
    for measure in MEASURES:
        measure.of(comparison)
    assert len(fits) == 2


def test_the_figure_is_the_mean_over_four_models():
    found = figure("tstr-auc", compared(people(200), people(200, 5)))
    assert [p.name for p in found.parts] == [LOGISTIC, TREE, FOREST, BOOSTING]
    assert found.value == pytest.approx(np.mean([p.value for p in found.parts]))


def test_the_real_table_in_place_of_the_synthetic_one_loses_nothing():
    real = people(300)
    comparison = compared(real, real)
    for score in CLASSES:
        assert figure(f"tstr-{score}", comparison) == figure(f"trtr-{score}", comparison)
    assert {p.value for p in figure("tstr-gap", comparison).parts} == {0.0}


def test_a_table_without_associations_teaches_nothing():
    real = people(600)
    comparison = compared(real, shuffled(real))
    assert figure("tstr-auc", comparison).value < 0.7 < 0.85 < figure("trtr-auc", comparison).value
    assert abs(figure("trts-auc", comparison).value - 0.5) < 0.1
    gap = part("trtr-auc", BOOSTING, comparison) - part("tstr-auc", BOOSTING, comparison)
    assert figure("tstr-gap", comparison).value == pytest.approx(gap)


def test_a_number_is_predicted_with_r2_alone():
    real = people(400)
    comparison = compared(real, people(400, 5), target="age")
    found = figure("tstr-r2", comparison)
    assert [p.name for p in found.parts] == [LINEAR, TREE, FOREST, BOOSTING]
    assert 0.4 < found.value < 0.95
    assert figure("tstr-r2", compared(real, shuffled(real), target="age")).value < 0.2
    for name in ("tstr-auc", "trts-f1", "tstr-gap"):
        assert "is a number" in figure(name, comparison).reason
    assert "is a category" in figure("trtr-r2", compared(real, real)).reason


def test_r2_does_not_depend_on_the_unit():
    def scaled(table: pa.Table) -> pa.Table:
        return changed(table, hours=[None if h is None else h / 1000 + 7 for h in table["hours"].to_pylist()])

    first, second, third = people(150), people(150, 5), people(150, 6)
    plain = compared(first, second, holdout=third, target="hours")
    other = compared(scaled(first), scaled(second), holdout=scaled(third), target="hours")
    assert part("tstr-r2", LINEAR, plain) == pytest.approx(part("tstr-r2", LINEAR, other))


def test_rows_without_a_target_do_not_count():
    real, synthetic, held = people(200), people(150, 5), people(100, 6)
    blank = changed(real.slice(0, 40), rich=pa.nulls(40, pa.bool_()))
    without = compared(real, synthetic, holdout=held)
    with_blanks = compared(pa.concat_tables([real, blank]), synthetic, holdout=pa.concat_tables([held, blank]))
    for name in ("tstr-auc", "trtr-auc", "tstr-accuracy"):
        assert figure(name, with_blanks).value == figure(name, without).value


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("tstr-auc", {"synthetic": changed(people(50), rich=[True] * 50)}, "single class of 'rich'"),
        ("trts-auc", {"synthetic": changed(people(50), rich=[True] * 50)}, "all of one class"),
        ("trtr-auc", {"real": changed(people(50), rich=[True] * 50)}, "single class of 'rich'"),
        ("trtr-auc", {"holdout": changed(people(50), rich=[True] * 50)}, "all of one class"),
        ("tstr-gap", {"holdout": changed(people(50), rich=[True] * 50)}, "all of one class"),
        ("trts-f1", {"synthetic": changed(people(50), rich=pa.nulls(50, pa.bool_()))}, "has a value of 'rich'"),
        ("tstr-f1", {"synthetic": changed(people(50), rich=pa.nulls(50, pa.bool_()))}, "has a value of 'rich'"),
        ("tstr-r2", {"holdout": changed(people(50), hours=[4.0] * 50), "target": "hours"}, "same in all tested rows"),
        ("tstr-auc", {"real": people(50).select(["rich"]), "groups": ()}, "no column beside 'rich'"),
        ("tstr-auc", {"holdout": None}, NEEDS["hold-out"]),
        ("trts-auc", {"target": None}, NEEDS["target"]),
    ],
)
def test_what_can_not_be_learnt_or_tested_has_a_reason(name: str, given: dict, says: str):
    usual = {"real": people(60), "synthetic": people(60, 5)} | given
    found = figure(name, compared(usual.pop("real"), usual.pop("synthetic"), **usual))
    assert found.value is None
    assert says in found.reason


def test_a_class_of_one_table_alone_is_scored():
    real = changed(people(60), rich=["no", "yes"] * 30)
    synthetic = changed(people(60, 5), rich=["no", "yes", "perhaps"] * 20)
    comparison = compared(real, synthetic, holdout=people(50, 6))
    for name in ("tstr-auc", "tstr-f1", "trts-accuracy"):
        assert 0 <= figure(name, comparison).value <= 1
    assert figure("trts-accuracy", comparison).value <= 2 / 3


def test_more_rows_than_are_needed_are_drawn_from(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prediction, "MOST_TRAINED", 120)
    found = figure("tstr-auc", compared(people(200), people(150, 5)))
    assert found.note == "models learnt from 120 of 150 rows"
    assert found == figure("tstr-auc", compared(people(200), people(150, 5)))


def test_a_target_of_many_classes_says_that_the_rarest_are_one():
    rng = np.random.default_rng(0)
    table = pa.table({"letter": rng.choice(list("abcdefghijklmnop"), 300), "x": rng.normal(size=300)})
    found = BY_NAME["trts-auc"].of(Comparison.of(table, table, target="letter"))
    assert found.note == "the rarest classes of 'letter' are taken as one"
    assert found.value > 0.5
