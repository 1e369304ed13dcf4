"""Taint: with silent noise and pinned selections, a hostile row changes the counts of the leaves and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helpers.orchard import ADD_REMOVE, TARGET, Row, opened, people
from helpers.randomness import SilentRandomness
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.predictors import predictor as module
from understudy.predictors.boosting_predictors import PrivateBoosting
from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.predictors.predictor import PrivatePredictor
from understudy.predictors.storage import to_json

ROWS = people(150)
HOSTILE: dict[str, Row] = {
    "a category never seen": {"job": "astronaut", "kind": "z"},
    "numbers out of range": {"age": 10**6, "pay": -1e12},
    "missing where none is declared": {"age": None, "grade": None, "kind": None, "well": None},
    "not a number": {"pay": float("nan")},
    "infinity": {"pay": float("inf")},
    "missing markers": {"job": "?", "kind": "?"},
    "a very long text": {"job": "x" * 5000, "name": "y" * 5000},
}
PREDICTORS = {
    "random tree": PrivateDecisionTree(2.0, rows=150, depth=3, seed=4),
    "random forest": PrivateForest(2.0, rows=150, trees=3, structure="random", seed=4),
    "greedy forest": PrivateForest(2.0, rows=150, trees=2, depth=2, seed=4),
    "greedy tree": PrivateGreedyTree(2.0, rows=150, depth=3, seed=4),
    "boosting": PrivateBoosting(2.0, rows=150, rounds=2, depth=2),
}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ExactRandomness, "system", classmethod(lambda cls: SilentRandomness()))


def outside(predictor: PrivatePredictor) -> dict[str, Any]:
    """Everything that a saved predictor shows, but for the values of its answers."""
    body = json.loads(to_json(predictor))
    for each in body["rounds"]:
        for answer in each["record"]:
            answer["value"] = len(answer["value"])
        each["certificate"].pop("created")
        each["certificate"].pop("digest")
    body.pop("digest")
    return {
        "file": body,
        "trees": predictor.trees_,
        "classes": predictor.classes_.tolist(),
    }


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("name", PREDICTORS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_one_row_changes_nothing_but_answers(name: str, hostile: str) -> None:
    shown = []
    for rows in (ROWS, [*ROWS, ROWS[0] | HOSTILE[hostile]]):
        made = PREDICTORS[name].__sklearn_clone__()
        assert isinstance(made, PrivatePredictor)
        shown.append(outside(made.fit(opened(rows), target=TARGET)))
    assert shown[0] == shown[1]


@pytest.mark.usefixtures("silent")
def test_the_same_check_sees_a_domain_that_follows_the_rows() -> None:
    """Mutant: a schema drafted from the rows, accepted as public. A new category then shows."""
    from helpers.orchard import frame

    made = [
        PrivateDecisionTree(2.0, rows=150, depth=3, seed=4, target=TARGET, accept_draft_as_public=True).fit(frame(rows))
        for rows in (ROWS, [*ROWS, ROWS[0] | {"kind": "z"}])
    ]
    assert outside(made[0]) != outside(made[1])


def test_system_noise_is_used_where_no_seed_is_given() -> None:
    first, second = (PrivateDecisionTree(0.1, seed=1).fit(opened(ROWS), target=TARGET) for _ in range(2))
    assert (
        first.leaves_[0].tree != second.leaves_[0].tree or (first.leaves_[0].counts != second.leaves_[0].counts).any()
    )
    assert first.certificate_.guarantee is not None and ExactRandomness.system().secure
    assert first.schema_ == ADD_REMOVE
