"""Predictors that learn from a table on a server: without noise they learn the same as from a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import understudy as us
from helpers.orchard import ADD_REMOVE, TARGET, frame, people
from helpers.postgres_cluster import cluster, load, skip_without_server
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.tables.postgres import PostgresTable
from understudy.boundary.tables.table import Table
from understudy.errors import BudgetExhausted
from understudy.predictors.boosting_predictors import PrivateBoosting
from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.predictors.predictor import PrivatePredictor

ROWS = people(400, seed=3)
PREDICTORS = {
    "forest": lambda: PrivateForest(3.0, depth=3),
    "several greedy trees": lambda: PrivateForest(3.0, trees=3, depth=2),
    "random forest": lambda: PrivateForest(3.0, structure="random", trees=4, depth=3),
    "random tree": lambda: PrivateDecisionTree(3.0, depth=4),
    "greedy tree": lambda: PrivateGreedyTree(3.0, depth=4),
    "boosting": lambda: PrivateBoosting(3.0, rounds=2, depth=2),
    "private id3": lambda: PrivateGreedyTree(3.0, splits="noisy", depth=2),
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that writes down every statement that it gets."""
    with cluster(skip_without_server(), "log_statement=all", "log_line_prefix=") as url:
        yield url


@pytest.fixture(scope="module")
def address(server: str) -> str:
    return load(server, "people", frame(ROWS))


@pytest.fixture(scope="module", params=[False, True], ids=["streamed", "pushdown"])
def on_server(address: str, request: pytest.FixtureRequest) -> Table:
    return us.open(address, ADD_REMOVE, pushdown=request.param)


def learned(kind: str, table: Table) -> PrivatePredictor:
    """Without noise, and with the best split of every level."""
    predictor = PREDICTORS[kind]()
    predictor.schema_, predictor.target_, predictor.seed_ = table.schema, TARGET, 7
    curator = Curator.on(table, Budget(3.0, 0.0), randomness=BestRandomness())
    predictor._learn(curator, predictor.hyperparameters())
    return predictor


def same(one: PrivatePredictor, other: PrivatePredictor) -> bool:
    if isinstance(one, PrivateBoosting):
        return one.model_ == other.model_
    pairs = zip(one.leaves_, other.leaves_, strict=True)
    return all(a.tree == b.tree and (a.counts == b.counts).all() for a, b in pairs)


@pytest.mark.parametrize("kind", PREDICTORS)
def test_the_same_as_from_a_frame(kind: str, on_server: Table) -> None:
    assert isinstance(on_server, PostgresTable)
    from_frame, from_server = (learned(kind, t) for t in (us.open(frame(ROWS), ADD_REMOVE), on_server))
    assert same(from_frame, from_server)
    if kind != "boosting":
        assert sum(leaves.counts.sum() for leaves in from_server.leaves_) == len(ROWS) * len(from_server.leaves_)
    without_a_row = learned(kind, us.open(frame(ROWS[1:]), ADD_REMOVE))
    assert not same(without_a_row, from_server)  # a row more or less would be seen


def test_with_noise_and_a_ledger(on_server: Table, tmp_path: Path) -> None:
    ledger = us.Ledger.open(tmp_path / "people.ledger")
    ledger.set_limit(Budget(2.0, 0.0), ADD_REMOVE.neighbours)
    forest = PrivateForest(1.5, target=TARGET, ledger=ledger).fit(on_server)
    assert forest.guarantee_[0] <= 1.5 and len(forest.predict(frame(ROWS[:5]))) == 5
    with pytest.raises(BudgetExhausted):
        PrivateForest(1.5, target=TARGET, ledger=ledger).fit(on_server)


def test_a_server_that_counts_is_asked_for_counts_alone(server: str, address: str) -> None:
    on_server = us.open(address, ADD_REMOVE, pushdown=True)
    folder = Path(parse_qs(urlsplit(server).query)["host"][0])
    before = len((folder / "log").read_text())
    learned("greedy tree", on_server)
    log = (folder / "log").read_text()[before:]
    asked = [s for s in re.split(r"\nLOG:  ", log) if '"people"' in s and "FROM" in s]
    assert asked and all("count(*)" in s for s in asked)
