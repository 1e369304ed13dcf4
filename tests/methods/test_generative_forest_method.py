"""`generative-forest`: what it counts, what its trees begin with, and that relations get through to its rows."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.tuning import tune
from understudy.inference.generative_forest import GenerativeForest

SIZES = {"a": 4, "b": 4, "c": 3, "d": 2}
SCHEMA = us.Schema.loads(
    "\n".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = {n - 1}' for c, n in SIZES.items())
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    rake = {"particles": 2000, "final_particles": 3000, "most_picks": 6, "whole_domain": 0, "exchange_rounds": 20}
    tune(monkeypatch, "generative-forest", rake=rake)
    monkeypatch.setattr("understudy.methods.generative_forest.ROWS_TO_GROW", 2000)


def chain(rows: int = 4000) -> pa.Table:
    """b follows a, c follows b; d is true where a and c are even together or odd together."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, rows)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 4, rows))
    c = np.where(rng.random(rows) < 0.8, b % 3, rng.integers(0, 3, rows))
    return pa.table({"a": a, "b": b, "c": c, "d": (a + c) % 2})


def made(**options: Any) -> us.Release:
    named = {"epsilon": 5.0, "seed": 5, "test_only_noise_seed": 1, "ledger": False} | options
    return us.synthesize(us.open(chain(), SCHEMA), method="generative-forest", **named)


def forest_of(release: us.Release) -> GenerativeForest:
    assert isinstance(release.model, GenerativeForest)
    return release.model


def test_the_leaves_of_all_its_trees_are_counted_once():
    release = made(options={"trees": 4, "leaves": 6})
    trees = forest_of(release).trees
    counted = [a.question for a in release.record if a.question.get("kind") == "tree"]
    assert 1 < len(trees) == len(counted) <= 4 and all(tree.cells <= 6 for tree in trees)
    # With so much budget they are counted whole.
    assert [tree.describe()["splits"] for tree in trees] == [q["splits"] for q in counted]


def test_with_little_budget_only_the_first_splits_are_counted():
    release = made(epsilon=0.1, options={"leaves": 16})
    counted = [len(a.question["splits"]) for a in release.record if a.question.get("kind") == "tree"]
    assert max(counted) < max(len(tree.splits) for tree in forest_of(release).trees)


def test_every_second_tree_begins_with_a_target():
    trees = forest_of(made(target="d", options={"trees": 6, "leaves": 4})).trees
    roots = [tree.columns[tree.splits[0].column] for tree in trees]
    assert roots[1::2] == ["d"] * (len(trees) // 2)


def test_relations_get_through_to_the_rows():
    rows = {c: np.asarray(made(rows=4000).arrow.column(c)) for c in SIZES}
    real = {c: np.asarray(chain().column(c)) for c in SIZES}

    def shares(of: dict[str, np.ndarray], columns: tuple[str, ...]) -> np.ndarray:
        shape = tuple(SIZES[c] for c in columns)
        cells = np.ravel_multi_index([of[c] for c in columns], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))) / len(cells)

    for columns in (("a", "b"), ("b", "c"), ("a", "c", "d")):
        apart = np.abs(shares(rows, columns) - shares(real, columns)).sum() / 2
        alone = reduce(np.multiply.outer, [shares(real, (c,)) for c in columns]).ravel()
        assert apart < 0.35 * np.abs(alone - shares(real, columns)).sum() / 2, columns


def test_without_noise_the_density_is_that_of_the_table():
    release = made(epsilon=1000.0, options={"strength": 1.0})
    logs = release.log_density(chain())
    cells = np.ravel_multi_index([np.asarray(chain().column(c)) for c in SIZES], tuple(SIZES.values()))
    counts = np.bincount(cells)
    entropy = -np.log(counts[cells] / len(cells)).mean()
    assert -logs.mean() < entropy + 0.1


@pytest.mark.parametrize("columns", [("a",), ("a", "d")])
def test_few_columns_are_no_trouble(columns: tuple[str, ...]):
    frame = chain().select(columns)
    schema = us.Schema.loads(
        "\n".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = {SIZES[c] - 1}' for c in columns)
    )
    named = {"epsilon": 1.0, "seed": 1, "test_only_noise_seed": 1, "ledger": False, "rows": 50}
    release = us.synthesize(us.open(frame, schema), method="generative-forest", **named)
    assert release.arrow.num_rows == 50
    assert len(columns) > 1 or not forest_of(release).trees
