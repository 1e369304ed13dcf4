"""The adversarial loop: who is told from whom, when it ends, and which forest it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.inference.forest import adversarial_forest as adversary
from understudy.inference.forest.adversarial_forest import Growth, TrainedForest, grow, made_up


def points(rows: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    first = rng.normal(size=rows)
    return np.column_stack([first, first + 0.1 * rng.normal(size=rows), rng.integers(0, 3, rows)])


def test_made_up_rows_take_every_column_from_the_leaf_and_not_from_one_row() -> None:
    group = np.repeat([0, 1, 2], 200)
    values = np.column_stack([10 * group + np.arange(600) % 7, 10 * group + np.arange(600) % 5]).astype(np.float32)
    made = made_up(values, group[:, None].astype(np.intp), np.random.default_rng(1))
    assert made.shape == values.shape
    assert np.array_equal(made[:, 0] // 10, made[:, 1] // 10)
    # In a leaf all 35 pairs of values are equally likely, as columns are drawn apart.
    assert len(np.unique(made[made[:, 0] < 10], axis=0)) > 30


def test_leaves_are_drawn_by_the_rows_in_them() -> None:
    values = np.repeat([0.0, 1.0], [100, 900])[:, None].astype(np.float32)
    nodes = np.repeat([3, 8], [100, 900])[:, None].astype(np.intp)
    drawn = sum(int(made_up(values, nodes, np.random.default_rng(seed)).sum()) for seed in range(20))
    # 20,000 draws: by Hoeffding the share is off by more than .024 once in 10⁹ runs.
    assert abs(drawn / 20_000 - 0.9) < 0.024


def test_accuracy_is_that_of_scikit_learn_out_of_bag() -> None:
    from sklearn.ensemble import RandomForestClassifier

    real, growth = points().astype(np.float32), Growth(num_trees=40, forest={"random_state": 5})
    synthetic = np.random.default_rng(2).permuted(real, axis=0)
    found = adversary._teach(real, synthetic, growth, np.random.default_rng(3))
    forest = RandomForestClassifier(40, min_samples_leaf=5, random_state=5, oob_score=True)
    forest.fit(np.vstack([real, synthetic]), np.repeat([0, 1], 300))
    assert found.accuracy == pytest.approx(forest.oob_score_)
    assert np.array_equal(found.nodes - found.trees.roots, forest.apply(real))


def rounds(monkeypatch: pytest.MonkeyPatch, accuracies: list[float]) -> list[TrainedForest]:
    """Lets the loop meet these accuracies, and records its rounds."""
    met: list[TrainedForest] = []
    teach = adversary._teach

    def pretend(*arguments: object) -> TrainedForest:
        found = teach(*arguments)  # type: ignore[arg-type]
        met.append(TrainedForest(found.trees, found.nodes, found.unseen, accuracies[len(met)]))
        return met[-1]

    monkeypatch.setattr(adversary, "_teach", pretend)
    return met


@pytest.mark.parametrize(
    ("accuracies", "growth", "kept"),
    [
        ([0.9, 0.7, 0.6, 0.5], Growth(num_trees=2), 2),  # the round that can't be told apart was made by the third
        ([0.9, 0.7, 0.8], Growth(num_trees=2), 1),  # a plateau
        ([0.9, 0.7, 0.8, 0.4], Growth(num_trees=2, early_stop=False), 2),
        ([0.9, 0.7, 0.65], Growth(num_trees=2, max_iters=2), 1),
        ([0.9], Growth(num_trees=2, max_iters=0), 0),
        ([0.6], Growth(num_trees=2, delta=0.2), 0),
        ([0.5], Growth(num_trees=2), 0),
    ],
)
def test_when_the_loop_ends_and_which_forest_it_keeps(
    monkeypatch: pytest.MonkeyPatch, accuracies: list[float], growth: Growth, kept: int
) -> None:
    met = rounds(monkeypatch, accuracies)
    found = grow(points(60), growth, np.random.default_rng(4))
    assert found.accuracy == tuple(accuracies)
    assert found.trees.threshold is met[kept].trees.threshold


def test_every_leaf_holds_enough_rows_and_each_row_is_in_one_leaf_of_each_tree() -> None:
    found = grow(points(), Growth(num_trees=6, min_node_size=9), np.random.default_rng(5))
    assert (np.bincount(found.leaf.ravel(), minlength=len(found.leaves)) >= 9).all()
    assert np.array_equal(found.leaves.tree[found.leaf], np.tile(np.arange(6), (300, 1)))
    assert np.array_equal(found.locate(points()), found.leaf)


def test_unseen_rows_are_about_a_third_and_differ_from_tree_to_tree() -> None:
    found = grow(points(), Growth(num_trees=6), np.random.default_rng(6))
    assert found.unseen.shape == (300, 6)
    # Each row misses a bootstrap sample of 600 with probability .368; 300 of them stay within ±.19 but once in 10⁹.
    assert (np.abs(found.unseen.mean(axis=0) - (1 - 1 / 600) ** 600) < 0.19).all()
    assert len(np.unique(found.unseen, axis=1).T) == 6


def test_the_same_generator_grows_the_same_forest() -> None:
    one, other = (grow(points(), Growth(num_trees=3), np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one.leaf, other.leaf)
    assert one.accuracy == other.accuracy


@pytest.mark.parametrize(
    ("option", "value"),
    [("num_trees", 0), ("max_iters", -1), ("min_node_size", 0), ("delta", 0.6), ("num_trees", 2.5), ("delta", -0.1)],
)
def test_options_out_of_range_are_refused_by_name(option: str, value: float) -> None:
    with pytest.raises(InputError, match=option):
        Growth(**{option: value})  # type: ignore[arg-type]
