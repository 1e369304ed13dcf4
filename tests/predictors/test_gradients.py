"""Gradients as whole numbers: their bounds, how far a row moves their sums and scores, and each row by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.grouped_sums import SumNeighbours
from understudy.boundary.schema.schema import Schema
from understudy.predictors.additive_model import STEPS, AdditiveModel, BoostedTree, shares_of, single_output
from understudy.predictors.boosting import newton_steps
from understudy.predictors.decision_tree import DecisionTree
from understudy.predictors.gradients import (
    GRAIN,
    GradientCells,
    GradientTable,
    HuberLoss,
    LeafSums,
    LogisticLoss,
    Pull,
    logistic_levels,
    residual_levels,
)
from understudy.predictors.splits import ColumnSplit

DOMAIN = Domain.of(
    Schema.loads(
        '[columns.x]\ntype = "integer"\nmin = 0\nmax = 3\n[columns.kind]\ntype = "categorical"\n'
        'values = ["a", "b", "c"]\nmissing = true'
    )
)
HALVES = DecisionTree.of_levels([ColumnSplit("x", (0, 0, 1, 1))])
MODEL = AdditiveModel(3).plus(BoostedTree.of(HALVES, np.array([[0.3, -2.0, 0.1], [-1.0, 1.5, 0.0]])))
LOSS = LogisticLoss(3, 1)
CELLS = GradientCells(MODEL, LOSS, "kind", HALVES)


def random_rows(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(0, 4, count), "kind": rng.integers(0, 4, count)}


@pytest.mark.parametrize("clip", [0.25, 0.5, 1.0])
def test_a_gradient_with_its_curvature_is_at_most_as_proved(clip: float) -> None:
    """|g| + h ≤ τ(2 − τ): with τ = 1 the curvature costs nothing beside the gradient."""
    levels = logistic_levels(clip)
    assert levels.largest <= clip * GRAIN
    most = np.abs(levels.pairs).sum(axis=0).max()
    assert 0.95 * clip * (2 - clip) * GRAIN < most <= clip * (2 - clip) * GRAIN
    assert (levels.pairs[:, levels.nothing] == 0).all()


def test_levels_are_the_derivatives_of_the_loss() -> None:
    scores = np.random.default_rng(1).integers(-4 * STEPS, 4 * STEPS, (500, 3))
    target = np.arange(500) % 3
    p, levels = shares_of(scores)[:, 1], logistic_levels(1.0)
    level = LogisticLoss(3, 1, 1.0).level_of(scores, target)
    # A band of a quarter in log-odds moves p by a sixteenth at most, half of it to either side.
    assert np.abs(levels.gradients[level] / GRAIN - ((target == 1) - p)).max() < 1 / 32
    assert np.abs(levels.curvatures[level] / GRAIN - p * (1 - p)).max() < 1 / 32


def test_a_residual_is_clipped_and_rounded() -> None:
    loss, scores = HuberLoss((-STEPS, 0, STEPS)), np.array([[0], [0], [100], [0]])
    level = loss.level_of(scores, np.array([0, 1, 1, 3]))
    gradients = residual_levels(0.5).gradients[level] / GRAIN
    assert gradients[[0, 1, 3]].tolist() == [-0.5, 0.0, 0.0]
    assert abs(gradients[2] + 100 / STEPS) <= 1 / 128
    assert level[3] == loss.levels.nothing


@pytest.mark.parametrize("levels", [logistic_levels(0.5), logistic_levels(1.0), residual_levels(0.5)])
def test_the_sensitivity_is_that_of_all_pairs_of_rows(levels) -> None:
    pairs = levels.pairs.T.astype(float)
    apart = [np.concatenate([a, -b]) for a, b in itertools.product(pairs, pairs)]
    together = [a - b for a, b in itertools.product(pairs, pairs)]
    for replaced, vectors in ((False, list(pairs)), (True, [*apart, *together])):
        l1, l2 = levels.sensitivity(SumNeighbours(1, replaced, 4, True))
        assert max(np.abs(v).sum() for v in vectors) == l1
        assert 0 <= l2 - max(np.linalg.norm(v) for v in vectors) < 1e-9 * l2
    three = levels.sensitivity(SumNeighbours(3, False, 4, True))
    assert three == tuple(3 * s for s in levels.sensitivity(SumNeighbours(1, False, 4, True)))


def test_each_row_is_read_by_itself() -> None:
    rows = random_rows(300)
    together = CELLS.assign(rows)
    alone = [int(CELLS.assign({c: v[i : i + 1] for c, v in rows.items()})[0]) for i in range(300)]
    assert together.tolist() == alone
    assert together.max() < CELLS.cells and CELLS.fits(DOMAIN)


def test_sums_are_those_of_the_rows() -> None:
    rows = random_rows(200)
    counts = np.bincount(CELLS.assign(rows), minlength=CELLS.cells)
    level = LOSS.level_of(MODEL.scores(rows), rows["kind"])
    leaf = HALVES.leaf_of(rows)
    expected = [LOSS.levels.pairs[:, level[leaf == i]].sum(axis=1).tolist() for i in range(2)]
    assert LeafSums(CELLS).sums(counts).reshape(2, 2).tolist() == expected


SPLITS = (ColumnSplit("x", (0, 0, 0, 0)), ColumnSplit("x", (0, 1, 1, 1)), ColumnSplit("x", (0, 1, 2, 3)))
PULL = Pull(GradientTable(CELLS, "x", 4), SPLITS, np.array([0.0, -0.5, -1.0]))


def pulls(rows: dict[str, np.ndarray]) -> np.ndarray:
    return PULL.scores(np.bincount(PULL.grid.assign(rows), minlength=PULL.grid.cells))


def test_a_pull_adds_up_what_each_branch_agrees_on() -> None:
    rows = random_rows(200)
    gradient = LOSS.levels.gradients[LOSS.level_of(MODEL.scores(rows), rows["kind"])]
    for split, offset, found in zip(SPLITS, PULL.offsets, pulls(rows), strict=True):
        cell = HALVES.leaf_of(rows) * 4 + np.array(split.groups)[rows["x"]]
        assert found == (np.abs(np.bincount(cell, gradient)).sum() / GRAIN) + offset


@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_no_row_moves_a_pull_by_more_than_its_gradient(count: int) -> None:
    rows = random_rows(count, seed=count)
    before, worst = pulls(rows), 0.0
    for x, kind in itertools.product(range(4), range(4)):
        after = pulls({"x": np.append(rows["x"], x), "kind": np.append(rows["kind"], kind)})
        worst = max(worst, np.abs(after - before).max())
    assert worst <= PULL.sensitivity(1, False) <= 0.5
    assert PULL.sensitivity(1, True) == 2 * PULL.sensitivity(1, False)
    assert worst > 0.49 * PULL.sensitivity(1, False)  # half of it would be refused


@pytest.mark.parametrize(
    "broken",
    [
        GradientCells(MODEL, LogisticLoss(5, 1), "kind", HALVES),
        GradientCells(MODEL, LogisticLoss(3, 3), "kind", HALVES),
        GradientCells(MODEL, LOSS, "kind", DecisionTree.of_levels([ColumnSplit("x", (0, 1))])),
        GradientCells(AdditiveModel(3, (BoostedTree(HALVES, ((1, 2, 3),)),)), LOSS, "kind", HALVES),
        GradientCells(AdditiveModel(3, (BoostedTree(HALVES, ((1, 2, 3), (1, 2, 0.5))),)), LOSS, "kind", HALVES),
        GradientCells(AdditiveModel(1), HuberLoss((0, 2 * STEPS)), "kind", HALVES),
    ],
)
def test_cells_that_do_not_fit_the_domain_are_seen(broken: GradientCells) -> None:
    assert not broken.fits(DOMAIN)


def test_without_noise_a_leaf_takes_its_newton_step() -> None:
    steps = newton_steps(HALVES, np.array([300.0, -100.0]), np.array([1000.0, 1000.0]), variances=(0.0, 0.0))
    assert np.allclose(steps, [0.3, -0.1], atol=0.01)


def test_with_much_noise_there_is_no_step() -> None:
    steps = newton_steps(HALVES, np.array([300.0, -100.0]), np.array([1000.0, 1000.0]), variances=(1e12, 1e12))
    assert np.abs(steps).max() < 1e-3


def test_log_odds_become_shares() -> None:
    scores = np.array([[0, STEPS, 2 * STEPS]])
    assert np.allclose(shares_of(scores), np.exp([[0, 1, 2]]) / np.exp([0, 1, 2]).sum())
    assert single_output([1.0, 2.0], 1, 3).tolist() == [[0, 1, 0], [0, 2, 0]]
