"""The predictors as people use them: from any table, in scikit-learn's tools, updated, saved, loaded and refused."""

from __future__ import annotations

import dataclasses
import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator

import understudy as us
from helpers.orchard import ADD_REMOVE, REPLACE_ONE, TARGET, frame, opened, people
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.curator import Curator
from understudy.errors import BudgetExhausted, CheckFailed, InputError, ReleaseError, SchemaError
from understudy.predictors import predictor as module
from understudy.predictors.classifiers import KINDS, PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.predictors.predictor import PrivatePredictor
from understudy.predictors.storage import from_json, to_json
from understudy.releases.certificate import FIRST_FORMAT

ROWS = people(600)
FRAME = frame(ROWS)
MANY = 200.0
EVERY = [
    PrivateDecisionTree(MANY, rows=600),
    PrivateForest(MANY, rows=600, trees=5, structure="random"),
    PrivateForest(MANY, rows=600),
    PrivateForest(MANY, 1e-6, rows=600, trees=3, voting="vote", shrink=False, seed=0),  # `grade` in every tree
    PrivateGreedyTree(MANY, rows=600),
    PrivateGreedyTree(MANY, rows=600, splits="noisy", depth=3),
]
"""With budgets at which noise is no matter, and all forms."""


def learned(predictor: PrivatePredictor) -> PrivatePredictor:
    fitted = clone(predictor).fit(opened(ROWS), target=TARGET)
    assert isinstance(fitted, PrivatePredictor)
    return fitted


@pytest.mark.parametrize("predictor", EVERY[2:], ids=str)
def test_greedy_predictors_find_the_rule(predictor: PrivatePredictor) -> None:
    """Nine in ten rows follow the rule, and one in three of the others by chance: 0.93, ± 0.02."""
    fitted = learned(predictor)
    assert fitted.score(FRAME, FRAME.column(TARGET).to_numpy()) > 0.85
    shares = fitted.predict_proba(FRAME)
    assert shares.shape == (600, 3) and np.allclose(shares.sum(axis=1), 1.0) and (shares >= 0).all()


@pytest.mark.parametrize("predictor", EVERY[:2], ids=str)
def test_random_predictors_beat_the_commonest_class(predictor: PrivatePredictor) -> None:
    classes = FRAME.column(TARGET).to_numpy()
    commonest = max((classes == c).mean() for c in "abc")
    assert np.mean([learned(predictor).score(FRAME, classes) for _ in range(3)]) > commonest + 0.03


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_only_the_budget_is_given_by_place(kind: type[PrivatePredictor]) -> None:
    """A parameter that is added later must not change what an older call means."""
    given = inspect.signature(kind).parameters.values()
    assert [p.name for p in given if p.kind is not inspect.Parameter.KEYWORD_ONLY] == ["epsilon", "delta"]


def test_the_same_from_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb
    import pyarrow.csv as pacsv

    monkeypatch.setattr(module.ExactRandomness, "system", classmethod(lambda cls: BestRandomness()))
    pacsv.write_csv(FRAME, tmp_path / "rows.csv")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.register("arrow", FRAME)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrow")
    sources = [FRAME, FRAME.to_pandas(), pl.from_arrow(FRAME), tmp_path / "rows.csv", f"{tmp_path}/rows.duckdb::people"]
    made = [PrivateGreedyTree(seed=3).fit(us.open(source, ADD_REMOVE), target=TARGET) for source in sources]
    made.append(PrivateGreedyTree(seed=3, schema=ADD_REMOVE, target=TARGET).fit(FRAME))
    made.append(
        PrivateGreedyTree(seed=3, schema=ADD_REMOVE).fit(FRAME.drop([TARGET]), FRAME.column(TARGET), target=TARGET)
    )
    for one in made:
        assert one.leaves_[0].tree == made[0].leaves_[0].tree
        assert (one.leaves_[0].counts == made[0].leaves_[0].counts).all()
        assert one.spends_ == made[0].spends_


@pytest.mark.parametrize("predictor", EVERY, ids=str)
def test_a_saved_predictor_is_learned_again_from_its_record(predictor: PrivatePredictor, tmp_path: Path) -> None:
    fitted = learned(predictor).update(opened(people(200, seed=9)), epsilon=3.0)
    fitted.save(tmp_path / "predictor.json")
    loaded = PrivateForest.load(tmp_path / "predictor.json")
    assert type(loaded) is type(fitted) and (loaded.predict_proba(FRAME) == fitted.predict_proba(FRAME)).all()
    assert loaded.spends_ == fitted.spends_ and loaded.guarantee_ == fitted.guarantee_
    assert to_json(loaded) == to_json(fitted)
    assert loaded.classes_.tolist() == ["a", "b", "c"]


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    content = to_json(learned(PrivateDecisionTree(MANY, rows=600, depth=2)))
    body = json.loads(content)
    with pytest.raises(CheckFailed, match="was changed"):
        from_json(content.replace('"epsilon": 200.0', '"epsilon": 100.0'))
    body["rounds"][0]["record"][0]["question"]["scale"] = 1.0  # another noise than the predictor asks for
    body.pop("digest")
    from understudy.predictors.storage import _digest

    with pytest.raises(CheckFailed, match="not the one that the method asks"):
        from_json(json.dumps(body | {"digest": _digest(body)}))
    with pytest.raises(ReleaseError, match="can't be read"):
        PrivateForest.load(tmp_path / "nothing.json")


def test_updates_add_rows_or_count_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ExactRandomness, "system", classmethod(lambda cls: BestRandomness()))
    fitted = PrivateDecisionTree(1.0, rows=600, depth=2, seed=1).fit(opened(ROWS), target=TARGET)
    before = fitted.leaves_[0]
    fitted.update(opened(ROWS), epsilon=0.5)
    assert (fitted.leaves_[0].counts == 2 * before.counts).all()
    fitted.update(FRAME, epsilon=0.25, again=True)
    assert fitted.leaves_[0].variance < before.variance + 8.5
    assert fitted.guarantee_ == (1.75, 0.0)
    with pytest.raises(InputError, match="schema that the predictor was fitted with"):
        fitted.update(opened(ROWS, REPLACE_ONE), epsilon=1.0)


def test_the_certificate_holds_every_spend_and_its_sum() -> None:
    fitted = learned(PrivateGreedyTree(1.5, depth=2))
    certificate = fitted.certificate_
    mechanisms = [s.mechanism for s in certificate.spends]
    assert mechanisms[0] == "discrete-laplace" and mechanisms[-1] == "discrete-laplace"  # the rows, and the leaves
    assert mechanisms[1:-1] == ["exponential"] * (len(mechanisms) - 2)
    assert 1.49 < certificate.composed[0] <= certificate.epsilon == 1.5 and certificate.guarantee is not None
    assert learned(PrivateGreedyTree(1.5, depth=2, noise_seed=1)).certificate_.stamp == "TEST-ONLY"


def test_the_ledger_is_debited_once_for_each_fit(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    PrivateDecisionTree(0.5, ledger=path).fit(opened(ROWS), target=TARGET)
    PrivateDecisionTree(0.5, ledger=str(path)).fit(opened(ROWS), target=TARGET)
    entries = us.Ledger.open(path).entries()
    assert [e.purpose for e in entries] == ["fit PrivateDecisionTree on people"] * 2


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = {
    "no schema": ({}, {"target": TARGET}, ValueError, "needs a schema"),
    "no target": ({"schema": ADD_REMOVE}, {}, ValueError, "requires y"),
    "an unknown target": ({"schema": ADD_REMOVE}, {"target": "height"}, SchemaError, "'height' is not in the schema"),
    "a target of bins": ({"schema": ADD_REMOVE}, {"target": "age"}, InputError, "column of classes"),
    "no budget": ({"schema": ADD_REMOVE, "epsilon": 0.0}, {"target": TARGET}, InputError, "epsilon"),
    "no trees": ({"schema": ADD_REMOVE, "trees": 0}, {"target": TARGET}, InputError, "trees"),
    "another structure": ({"schema": ADD_REMOVE, "structure": "odd"}, {"target": TARGET}, InputError, "structure"),
    "another voting": ({"schema": ADD_REMOVE, "voting": "odd"}, {"target": TARGET}, ValueError, "voting"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_spent(case: str, tmp_path: Path) -> None:
    parameters, arguments, error, words = REFUSED[case]
    ledger = tmp_path / "people.ledger"
    with pytest.raises(error, match=words):
        PrivateForest(**({"ledger": ledger} | parameters)).fit(FRAME, **arguments)
    assert not ledger.exists()


def test_a_ledger_that_is_empty_refuses(tmp_path: Path) -> None:
    ledger = us.Ledger.open(tmp_path / "people.ledger")
    ledger.set_limit(us.Budget(0.6, 0.0), ADD_REMOVE.neighbours)
    PrivateDecisionTree(0.5, ledger=ledger).fit(opened(ROWS), target=TARGET)
    with pytest.raises(BudgetExhausted):
        PrivateDecisionTree(0.5, ledger=ledger).fit(opened(ROWS), target=TARGET)


# --- scikit-learn

EXCEPTIONS = {
    "check_supervised_y_no_nan": "a class that is missing or infinite must not raise: who has it would be told",
}
"""Checks that privacy forbids. All others pass for a schema drafted from the rows, which the caller must accept."""


@pytest.mark.parametrize("kind", KINDS)
def test_clone_parameters_and_tags(kind: str) -> None:
    made = KINDS[kind](0.3, depth=2)
    copied = clone(made)
    assert copied.get_params() == made.get_params() and copied is not made
    assert is_classifier(made) != is_regressor(made)
    assert copied.set_params(depth=4).get_params()["depth"] == 4
    with pytest.raises(ValueError, match="'height' must be one of"):
        made.set_params(height=1)
    with pytest.raises(NotFittedError):
        made.predict(FRAME)


def test_grid_search_and_arrays() -> None:
    features, classes = FRAME.drop([TARGET, "name"]).to_pandas(), FRAME.column(TARGET).to_pandas()
    schema = us.Schema(tuple(c for c in ADD_REMOVE if c.name != "name"), missing_values=("?",))
    search = GridSearchCV(PrivateGreedyTree(MANY, schema=schema, target=TARGET), {"depth": [1, 3]}, cv=2)
    search.fit(features, classes)
    assert search.best_params_ == {"depth": 3} and search.best_score_ > 0.7
    by_array = PrivateGreedyTree(MANY, schema=schema, target=TARGET).fit(features.to_numpy(), classes.to_numpy())
    assert by_array.score(features.to_numpy(), classes) > 0.8


def drafting(kind: str) -> PrivatePredictor:
    made = KINDS[kind](100.0, accept_draft_as_public=True, noise_seed=0)
    if "seed" in made.get_params():
        made.set_params(seed=0)
    return made


def checks(kind: str) -> list[Any]:
    made = drafting(kind)
    with warnings.catch_warnings():  # it says that the class is none of scikit-learn's own, which keeps imports light
        warnings.simplefilter("ignore", UserWarning)
        return [check for _, check in estimator_checks_generator(made)]


def name_of(check: Any) -> str:
    return check.func.__name__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("check", checks("PrivateDecisionTree"), ids=name_of)
def test_scikit_learn_checks(check: Any) -> None:
    run_check("PrivateDecisionTree", check)


SOME = ("check_estimators_fit_returns_self", "check_dict_unchanged", "check_n_features_in")


@pytest.mark.parametrize("kind", ["PrivateBoosting", "PrivateForest", "PrivateGreedyTree"])
@pytest.mark.parametrize("name", SOME)
def test_scikit_learn_checks_of_the_others(kind: str, name: str) -> None:
    for check in checks(kind):
        if name_of(check) == name:
            run_check(kind, check)


def run_check(kind: str, check: Any) -> None:
    from unittest import SkipTest

    made = drafting(kind)
    try:
        if name_of(check) in EXCEPTIONS:
            with pytest.raises(AssertionError):
                check(made)
        else:
            check(made)
    except SkipTest as reason:
        pytest.skip(str(reason))


PRIVATE_JOB = us.Schema.loads("""
[columns.job]
type = "categorical"
values = "private"
[columns.old]
type = "boolean"
[columns.ill]
type = "boolean"
""")
WORKERS = pa.table({"job": ["cook", "nurse"] * 200, "old": [True, False] * 200, "ill": [True, False] * 200})


def test_an_update_sets_no_delta_aside_for_keys(tmp_path):
    """Its trees know the values already: only the fit asks for keys, and only the fit spends δ for good."""
    ledger = us.Ledger.open(tmp_path / "ledger")
    rows = us.open(WORKERS, PRIVATE_JOB)
    fitted = us.PrivateDecisionTree(epsilon=1.0, delta=1e-6, ledger=ledger).fit(rows, target="ill")
    fitted.update(rows, epsilon=1.0, delta=1e-6)
    fit, update = ledger.entries()
    assert fit.cost.delta > 0 and update.cost.delta == 0
    assert [c.ledger.entry for c in (r.certificate for r in fitted.rounds_)] == [1, 2]
    assert fitted.guarantee_ == (ledger.standing().epsilon, 1e-6)
    fitted.save(tmp_path / "tree.json")
    loaded = us.PrivateDecisionTree.load(tmp_path / "tree.json")
    assert loaded.guarantee_ == fitted.guarantee_ and loaded.spends_ == fitted.spends_


class CuratorOfAllKeys(Curator):
    @classmethod
    def on(cls, *arguments: Any, keys: Any, **options: Any) -> Curator:
        return super().on(*arguments, **options)


def test_an_update_of_the_first_format_is_still_read(monkeypatch):
    """It set δ aside for keys that nobody asked for, and its record was made with what was left."""
    rows = us.open(WORKERS, PRIVATE_JOB)
    fitted = us.PrivateDecisionTree(epsilon=1.0, delta=1e-6).fit(rows, target="ill")
    monkeypatch.setattr(module, "Curator", CuratorOfAllKeys)
    fitted.update(rows, epsilon=1.0, delta=1e-6)
    first, later = fitted.rounds_
    old = dataclasses.replace(later.certificate, format=FIRST_FORMAT)
    fitted.rounds_ = (first, dataclasses.replace(later, certificate=old))
    assert from_json(to_json(fitted)).spends_ == fitted.spends_
