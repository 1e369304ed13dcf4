"""Boosted predictors: what they learn, what one person can change, and the mistakes that these checks refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone, is_regressor

import understudy as us
from helpers.orchard import ADD_REMOVE, SCHEMAS, TARGET, Compared, Row, frame, opened, people, twins
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, InputError
from understudy.predictors.boosting import BoostingSize, boost_classes, boost_numbers
from understudy.predictors.gradients import CLIP, GRAIN, GradientLevels, LogisticLoss, logistic_levels, residual_levels
from understudy.predictors.storage import from_json, to_json
from understudy.predictors.tasks import ClassificationTask, RegressionTask

ROWS = people(150)
MANY = 200.0
BUDGETS = {"pure": Budget(2.0, 0.0), "approximate": Budget(2.0, 1e-6)}
SIZE = BoostingSize(rounds=3, depth=2, rows=150)
EXTREME = {"age": 10**6, "pay": float("inf"), "grade": "none", "job": "?", "well": None, "kind": "z"}


def learn_classes(curator: Curator) -> None:
    boost_classes(curator, ClassificationTask(Domain.of(curator.schema), TARGET), SIZE)


def learn_numbers(curator: Curator) -> None:
    boost_numbers(curator, RegressionTask(Domain.of(curator.schema), "pay"), SIZE)


LEARNING: dict[str, Callable[[Curator], None]] = {"classes": learn_classes, "numbers": learn_numbers}


def neighbours(relation: str, person: Row) -> tuple[list[Row], list[Row]]:
    if relation == "replace-one":
        return ROWS, [*ROWS[1:], person]
    copies = 5 if relation == "person" else 1
    return ROWS, [*ROWS, *[person | {"name": "new"}] * copies]


def compared(relation: str, learning: str, budget: Budget, person: Row) -> tuple[Curator, list[Compared]]:
    schema = SCHEMAS[relation]
    curator, found = twins(*neighbours(relation, person), schema, budget, BestRandomness())
    LEARNING[learning](curator)
    return curator, found


def change(found: Compared, pure: bool) -> float:
    if found.question["ask"] == "select":
        return float(np.abs(found.moved).max())
    return float(np.abs(found.moved).sum() if pure else np.sqrt((found.moved**2).sum()))


def violations(curator: Curator, found: list[Compared], declared: float = 1.0) -> set[str]:
    """The asks that a neighbour changes by more than `declared` times what the spend says."""
    return {
        each.question["ask"]
        for each, spend in zip(found, curator.spends, strict=True)
        if change(each, curator.budget.pure) > declared * spend.sensitivity * (1 + 1e-12)
    }


def loss_of(found: list[Compared], curator: Curator) -> float:
    """ε of a pure budget, from the questions alone: Δ/b for each of them, with k rows of the largest |g| + h."""
    worst, total = curator.schema.rows_per_unit * (2 if curator.public_rows else 1), 0.0
    for each in found:
        if each.question["ask"] == "select":
            total += each.question["epsilon"]
        elif each.question["scale"] > 0:
            levels = residual_levels(CLIP) if each.question.get("loss") == "huber" else logistic_levels(CLIP)
            moment = np.abs(levels.pairs).sum(axis=0).max()
            total += worst * (moment if each.question["ask"] == "moment" else 1.0) / each.question["scale"]
    return total


@pytest.mark.parametrize("relation", SCHEMAS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("learning", LEARNING)
def test_no_neighbour_changes_more_than_is_declared(relation: str, budget: str, learning: str) -> None:
    for person in (ROWS[0] | EXTREME, ROWS[0] | {"kind": "b", "pay": 99.0}, ROWS[7] | {"kind": "c", "pay": 0.0}):
        curator, found = compared(relation, learning, BUDGETS[budget], person)
        assert violations(curator, found) == set()
        assert curator.guarantee[0] <= 2.0
        if budget == "pure":
            assert loss_of(found, curator) <= 2.0 * (1 + 1e-6)
    assert {f.question["ask"] for f in found} - {"total", "partition"} == {"select", "moment"}


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("learning", LEARNING)
def test_the_same_check_refuses_half_the_sensitivity(relation: str, learning: str) -> None:
    curator, found = compared(relation, learning, BUDGETS["pure"], ROWS[5] | {"kind": "b", "grade": "low", "pay": 99.9})
    assert "moment" in violations(curator, found, declared=0.33)
    assert "select" in violations(curator, found, declared=0.33)


# --- mutants


def test_mutant_gradients_that_are_not_clipped_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sums are those of whole gradients, and their price that of clipped ones."""
    honest = GradientLevels.pairs.func
    whole = logistic_levels(1.0)
    monkeypatch.setattr(GradientLevels, "pairs", property(lambda levels: honest(whole)))
    monkeypatch.setattr(GradientLevels, "sensitivity", lambda levels, near: (CLIP * (2 - CLIP) * GRAIN, CLIP * GRAIN))
    curator, found = compared("add-remove", "classes", BUDGETS["pure"], ROWS[0] | {"kind": "b", "grade": "low"})
    assert "moment" in violations(curator, found)


def test_mutant_curvatures_that_are_not_paid_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GradientLevels, "sensitivity", lambda levels, near: (CLIP * GRAIN / 2, CLIP * GRAIN / 2))
    curator, found = compared("add-remove", "classes", BUDGETS["pure"], ROWS[0] | {"kind": "b", "grade": "low"})
    assert "moment" in violations(curator, found)
    assert loss_of(found, curator) > 2.0


def test_mutant_levels_that_follow_the_other_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores centred over all rows: a row more changes the levels of the others."""
    honest = LogisticLoss.level_of

    def centred(self: LogisticLoss, scores: Any, target: Any) -> Any:
        shift = np.zeros(3, dtype=np.int64)
        shift[0] = 3000 * (len(target) % 2)
        return honest(self, scores + shift, target)

    monkeypatch.setattr(LogisticLoss, "level_of", centred)
    curator, found = compared("add-remove", "classes", BUDGETS["pure"], ROWS[0])
    assert violations(curator, found) == {"select", "moment"}


# --- what they learn


def test_a_classifier_finds_the_rule() -> None:
    table = frame(people(600))
    fitted = us.PrivateBoosting(MANY, rows=600).fit(opened(people(600)), target=TARGET)
    assert fitted.score(table, table.column(TARGET).to_numpy()) > 0.85
    shares = fitted.predict_proba(table)
    assert shares.shape == (600, 3) and np.allclose(shares.sum(axis=1), 1.0)
    assert fitted.guarantee_ == (MANY, 0.0) and len(fitted.trees_) > 1


def test_rounds_mend_what_the_first_tree_gets_wrong() -> None:
    """A sum of columns, which one small tree can't be."""
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.integers(0, 2, 4000) for i in range(9)}
    many = sum(columns.values()) > 4
    text = "".join(f'[columns.x{i}]\ntype = "integer"\nmin = 0\nmax = 1\n' for i in range(9))
    schema = Schema.loads(text + '[columns.many]\ntype = "boolean"\n')
    table = pa.table({**columns, "many": many})
    scores = {
        rounds: us.PrivateBoosting(20.0, rounds=rounds, depth=3, noise_seed=1)
        .fit(us.open(table, schema), target="many")
        .score(table, many)
        for rounds in (0, 12)
    }
    assert scores[12] > 0.9 and scores[12] >= scores[0]


NUMBERS = Schema.loads(
    '[columns.x]\ntype = "integer"\nmin = 0\nmax = 9\n[columns.z]\ntype = "boolean"\n'
    '[columns.pay]\ntype = "number"\nmin = 0\nmax = 100\nbins = 50\nmissing = true'
)


def paid(count: int = 2000) -> pa.Table:
    rng = np.random.default_rng(0)
    x, z = rng.integers(0, 10, count), rng.integers(0, 2, count).astype(bool)
    pay = np.where(rng.random(count) < 0.1, None, np.clip(20 + 5 * x + 10 * z + rng.normal(0, 2, count), 0, 100))
    return pa.table({"x": x, "z": z, "pay": pa.array(pay.tolist(), pa.float64())})


def test_a_regressor_finds_the_sum() -> None:
    table = paid()
    fitted = us.PrivateBoostingRegressor(50.0, rounds=10).fit(us.open(table, NUMBERS), target="pay")
    known = table.filter(table.column("pay").is_valid())
    assert fitted.score(known, known.column("pay").to_numpy()) > 0.9
    assert is_regressor(fitted) and is_regressor(clone(fitted))


def test_with_little_budget_a_regressor_stays_within_the_bounds() -> None:
    table = paid()
    fitted = us.PrivateBoostingRegressor(0.001, rounds=3).fit(us.open(table, NUMBERS), target="pay")
    assert ((fitted.predict(table) >= 0) & (fitted.predict(table) <= 100)).all()


@pytest.mark.parametrize("kind", [us.PrivateBoosting, us.PrivateBoostingRegressor])
def test_a_saved_predictor_is_learned_again_from_its_record(kind: Any, tmp_path: Path) -> None:
    target = TARGET if kind is us.PrivateBoosting else "pay"
    fitted = kind(5.0, rounds=2).fit(opened(ROWS), target=target)
    fitted.save(tmp_path / "predictor.json")
    loaded = us.PrivateForest.load(tmp_path / "predictor.json")
    assert type(loaded) is kind and (loaded.predict(frame(ROWS)) == fitted.predict(frame(ROWS))).all()
    assert loaded.model_ == fitted.model_ and to_json(loaded) == to_json(fitted)


def test_a_record_of_another_model_is_refused() -> None:
    from understudy.predictors.storage import _digest

    body = json.loads(to_json(us.PrivateBoosting(50.0, rounds=2).fit(opened(ROWS), target=TARGET)))
    (moment, *_) = [a for a in body["rounds"][0]["record"] if a["question"]["ask"] == "moment"]
    moment["value"][0] += 10**6  # the next round would ask about another model
    body.pop("digest")
    with pytest.raises(CheckFailed):
        from_json(json.dumps(body | {"digest": _digest(body)}))


def test_targets_that_cannot_be_predicted_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(InputError, match="must be a column of classes"):
        us.PrivateBoosting(1.0).fit(opened(ROWS), target="pay")
    with pytest.raises(InputError, match="must be a number with declared bounds"):
        us.PrivateBoostingRegressor(1.0).fit(opened(ROWS), target=TARGET)
    with pytest.raises(InputError, match="rounds"):
        us.PrivateBoosting(1.0, rounds=-1).fit(opened(ROWS), target=TARGET)


def test_the_same_from_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.csv as pacsv

    from understudy.predictors import predictor

    monkeypatch.setattr(predictor.ExactRandomness, "system", classmethod(lambda cls: BestRandomness()))
    pacsv.write_csv(frame(ROWS), tmp_path / "rows.csv")
    sources = [frame(ROWS), frame(ROWS).to_pandas(), tmp_path / "rows.csv"]
    made = [us.PrivateBoosting(2.0, rounds=2).fit(us.open(s, ADD_REMOVE), target=TARGET).model_ for s in sources]
    assert made[0] == made[1] == made[2]
