"""Models that learn to predict the target: trained on one table, tested on another.

TSTR trains on synthetic rows and tests on held-out real ones, TRTR trains on real rows instead, and TRTS trains on
real rows and tests on synthetic ones. The models are trained once for all measures of a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import HELD_OUT, SYNTHETIC, Comparison, RowSample
from understudy.lab.evaluation.measure import (
    HIGHER,
    HOLDOUT,
    INFINITY,
    LOWER,
    TARGET,
    Measure,
    MeasurePart,
    MeasureResult,
)
from understudy.lab.evaluation.row_features import Features, Floats, SharedResult, Target, draw, quietly

SECTION = "Prediction"
LOGISTIC, LINEAR = "logistic regression", "linear regression"
TREE, FOREST, BOOSTING = "decision tree", "random forest", "gradient boosting"
# Depth 10 is that of the thesis on DP-Select, whose printed accuracies `studies.layout` puts beside ours.
DEPTH, TREES, LEAF, ROUNDS = 10, 60, 3, 100
MOST_TRAINED, MOST_TESTED = 20_000, 50_000
"""Rows; more are drawn from by the seed."""


@dataclass(frozen=True)
class Predictions:
    """What trained models say of the rows of another table."""

    rows: RowSample
    truth: NDArray[Any]
    said: Mapping[str, Floats]
    """By model: the probability of every class, or the number that is expected."""

    def chosen(self, model: str) -> NDArray[np.int64]:
        """The most likely classes."""
        return self.said[model].argmax(axis=1)


@dataclass(frozen=True)
class TrainingRows:
    """Models that learnt from one table, and what they say of others; or why they could not learn."""

    target: Target
    reason: str = ""
    answers: Mapping[str, Predictions] | None = None
    note: str = ""


def _train_on_real(comparison: Comparison) -> TrainingRows:
    # Trained once, and tested on both: TRTR and TRTS share these models.
    tested = {SYNTHETIC: comparison.synthetic}
    if comparison.holdout is not None:
        tested = {HELD_OUT: comparison.holdout, **tested}
    return _train(comparison, comparison.real, tested)


def _train_on_synthetic(comparison: Comparison) -> TrainingRows:
    return _train(comparison, comparison.synthetic, {HELD_OUT: comparison.test})


trained_on_real, trained_on_synthetic = SharedResult(_train_on_real), SharedResult(_train_on_synthetic)


def _train(comparison: Comparison, table: RowSample, tested: Mapping[str, RowSample]) -> TrainingRows:
    target, seed = Target.of(comparison), comparison.seed
    others = [v for v in comparison.variables if v.name != target.name]
    if not others:
        return TrainingRows(target, f"there is no column beside {target.name!r} to predict it from")
    known = target.known(table)
    # At most so many rows, since four models are trained on each table.
    rows = draw(known, MOST_TRAINED, seed)
    if reason := target.unlearnable(rows):
        return TrainingRows(target, reason)
    questions = {role: draw(target.known(t), MOST_TESTED, seed) for role, t in tested.items()}
    answers = _answers(target, Features.fit(others, rows), rows, questions, seed)
    return TrainingRows(target, answers=answers, note=_note(target, rows.rows, known.rows))


def _note(target: Target, learnt: int, known: int) -> str:
    notes = []
    if learnt < known:
        notes.append(f"models learnt from {learnt:,} of {known:,} rows")
    if target.pooled:
        notes.append(f"the rarest classes of {target.name!r} are taken as one")
    return "; ".join(notes)


def _answers(
    target: Target, features: Features, rows: RowSample, questions: Mapping[str, RowSample], seed: int
) -> dict[str, Predictions]:
    asked = {role: table for role, table in questions.items() if table.rows}
    said: dict[str, dict[str, Floats]] = {role: {} for role in questions}
    # Linear models need an indicator for every value; trees can split codes, and a hundred columns would slow them.
    for lay_out, models in ((features.one_hot, _linear(target)), (features.ordinal, _trees(target, seed))):
        learnt, matrices = lay_out(rows), {role: lay_out(table) for role, table in asked.items()}
        for name, model in models:
            with quietly():
                model.fit(learnt, target.read(rows))
                for role, matrix in matrices.items():
                    said[role][name] = _predicted(target, model, matrix)
    return {role: Predictions(table, target.read(table), said[role]) for role, table in questions.items()}


def _linear(target: Target) -> Iterator[tuple[str, Any]]:
    from sklearn.linear_model import LogisticRegression, Ridge

    if target.variable.on_line:
        yield LINEAR, Ridge()
    else:
        yield LOGISTIC, LogisticRegression(max_iter=200)


def _trees(target: Target, seed: int) -> Iterator[tuple[str, Any]]:
    from sklearn import ensemble, tree

    kind = "Regressor" if target.variable.on_line else "Classifier"
    seed %= 2**32  # scikit-learn takes no larger seeds
    yield TREE, getattr(tree, f"DecisionTree{kind}")(max_depth=DEPTH, random_state=seed)
    forest = getattr(ensemble, f"RandomForest{kind}")
    yield FOREST, forest(TREES, min_samples_leaf=LEAF, max_features="sqrt", random_state=seed)
    boosting = getattr(ensemble, f"HistGradientBoosting{kind}")
    # scikit-learn would stop early from 10,000 rows on, and so train on tables of two sizes in two ways.
    yield BOOSTING, boosting(max_iter=ROUNDS, early_stopping=False, random_state=seed)


def _predicted(target: Target, model: Any, matrix: NDArray[Any]) -> Floats:
    """A class that the model never saw has the probability 0."""
    if target.variable.on_line:
        return np.asarray(model.predict(matrix), dtype=np.float64)
    # Models number the classes that they saw; here every class of the real table has its column.
    probabilities = np.zeros((len(matrix), target.count))
    probabilities[:, model.classes_] = model.predict_proba(matrix)
    return probabilities


@dataclass(frozen=True)
class PredictionScore:
    """How well answers fit the truth; None where that can't be said, for the same reason for all models."""

    name: str
    title: str
    on_line: bool
    of: Callable[[Target, Predictions, str], float | None]
    lacking: str
    about: str
    low: float = 0.0


def accuracy(target: Target, answers: Predictions, model: str) -> float | None:
    return float(np.mean(answers.chosen(model) == answers.truth))


def f1(target: Target, answers: Predictions, model: str) -> float | None:
    """Of the rarer of two classes; of more, the mean over those that are there or that the model names."""
    from sklearn.metrics import f1_score

    truth, chosen = answers.truth, answers.chosen(model)
    if target.count > 2:
        return float(f1_score(truth, chosen, average="macro", zero_division=0.0))
    here, named = truth == target.rarer, chosen == target.rarer
    either = int(here.sum() + named.sum())  # F1 = 2·TP / (2·TP + FP + FN), whose denominator this is
    if not either:
        return None
    return 2.0 * int((here & named).sum()) / either


def auc(target: Target, answers: Predictions, model: str) -> float | None:
    """Of one of two classes; of more, the mean over each class that is there against the rest."""
    from sklearn.metrics import roc_auc_score

    present = np.unique(answers.truth)
    if len(present) < 2:
        return None
    if target.count == 2:
        present = present[1:]  # either of two classes against the other gives the same
    likely = answers.said[model]
    return float(np.mean([roc_auc_score(answers.truth == c, likely[:, c]) for c in present]))


def r2(target: Target, answers: Predictions, model: str) -> float | None:
    if not np.ptp(answers.truth) > 0:
        return None
    left, whole = np.square(answers.truth - answers.said[model]), np.square(answers.truth - answers.truth.mean())
    return 1.0 - float(left.sum()) / float(whole.sum())


SCORES = (
    PredictionScore("accuracy", "accuracy", on_line=False, of=accuracy, lacking="",
                    about="The share of rows whose class is predicted rightly"),
    PredictionScore("f1", "F1", on_line=False, of=f1,
                    lacking="neither a tested row nor an answer is of the rarer class",
                    about="The balance of found and rightly named rows of the rarer class (with more than two classes, "
                    "of all)"),
    PredictionScore("auc", "AUC", on_line=False, of=auc, lacking="the tested rows are all of one class",
                    about="How often a row of a class is ranked before one of another, where 0.5 is chance"),
    PredictionScore("r2", "R²", on_line=True, of=r2, lacking="the target is the same in all tested rows", low=-INFINITY,
                    about="The part of the target's variance that is predicted, where 0 is no better than the mean"),
)  # fmt: skip


@dataclass(frozen=True)
class Route:
    """Which table is learnt from, and on which the models are tested."""

    name: str
    title: str
    train: SharedResult[TrainingRows]
    tested: str
    about: str


# TSTR and TRTS are those of Esteban, Hyland & Rätsch (2017). TRTS alone says little: a few easy rows, repeated, do well
# in it; TSTR shows what they lack.
ROUTES = (
    Route("tstr", "Train on synthetic, test on real", trained_on_synthetic, HELD_OUT,
          "by models that learnt from synthetic rows, on held-out real ones"),
    Route("trtr", "Train on real, test on real", trained_on_real, HELD_OUT,
          "by models that learnt from the real rows, on held-out ones: what synthetic rows are up against"),
    Route("trts", "Train on real, test on synthetic", trained_on_real, SYNTHETIC,
          "by models that learnt from the real rows, on synthetic ones"),
)  # fmt: skip


def scored(comparison: Comparison, route: Route, score: PredictionScore) -> MeasureResult:
    """The mean over the models; the parts are the models."""
    assert comparison.target is not None
    if comparison[comparison.target].on_line != score.on_line:
        return MeasureResult.undefined(_other_kind(comparison.target, score.on_line))
    training = route.train(comparison)
    if training.answers is None:
        return MeasureResult.undefined(training.reason)
    answers = training.answers[route.tested]
    if not answers.said:
        return MeasureResult.undefined(f"no row of {answers.rows.name} has a value of {comparison.target!r}")
    found = {model: score.of(training.target, answers, model) for model in answers.said}
    parts = [MeasurePart(model, value, "" if value is not None else score.lacking) for model, value in found.items()]
    return MeasureResult.mean(parts, score.lacking, training.note)


def _other_kind(name: str, on_line: bool) -> str:
    if on_line:
        return f"the target {name!r} is a category; accuracy, F1 and AUC say how well it is predicted"
    return f"the target {name!r} is a number; R² says how well it is predicted"


def tstr_gap(comparison: Comparison) -> MeasureResult:
    """The loss of every model; that of gradient boosting, mostly the best of them, is the figure."""
    with_real, with_synthetic = (scored(comparison, route, AUC) for route in (TRTR, TSTR))
    for figure in (with_real, with_synthetic):
        if figure.value is None:
            return MeasureResult.undefined(figure.reason)
    # Both have the same models in the same order.
    both = zip(with_real.parts, with_synthetic.parts, strict=True)
    gaps = {a.name: a.value - b.value for a, b in both if a.value is not None and b.value is not None}
    return MeasureResult(
        gaps[BOOSTING], parts=tuple(MeasurePart(name, gap) for name, gap in gaps.items()), note=with_real.note
    )


TSTR, TRTR, TRTS = ROUTES
AUC = SCORES[2]


_measure = partial(Measure, section=SECTION, high=1.0, unit="model")

MEASURES: tuple[Measure, ...] = (
    *(_measure(f"{route.name}-{score.name}", f"{route.title}: {score.title}", direction=HIGHER, low=score.low,
               needs=(HOLDOUT, TARGET) if route.tested == HELD_OUT else (TARGET,),
               compute=partial(scored, route=route, score=score), explanation=f"{score.about}: {route.about}.")
      for route in ROUTES for score in SCORES),
    _measure("tstr-gap", "AUC lost by training on synthetic rows", direction=LOWER, low=-1.0, needs=(HOLDOUT, TARGET),
             compute=tstr_gap,
             explanation="The AUC of gradient boosting that learnt from real rows, less that of the same model on "
             "synthetic ones."),
)  # fmt: skip
