"""Trees as arrays: rows go where scikit-learn sends them, pruning keeps large leaves alone, boxes hold their rows."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.inference.forest.trees import LeafBoxes, Trees

NODES = {
    # 0 splits column 0 at 1.5; 1 is a leaf; 2 splits column 1 at 0.5 into the leaves 3 and 4.
    "left": np.array([1, -1, 3, -1, -1]),
    "right": np.array([2, -1, 4, -1, -1]),
    "feature": np.array([0, -2, 1, -2, -2]),
    "threshold": np.array([1.5, 0, 0.5, 0, 0]),
    "missing_left": np.array([0, 0, 1, 0, 0]),
}


def two_trees() -> Trees:
    """The tree above, twice."""
    return Trees.joined(np.array([5, 5]), {name: np.tile(v, 2) for name, v in NODES.items()})


def forest(rng: np.random.Generator, rows: int = 300, missing: bool = True):
    from sklearn.ensemble import RandomForestClassifier

    points = np.column_stack([rng.normal(size=rows), rng.integers(0, 5, rows), rng.exponential(size=rows)]).astype(
        float
    )
    if missing:
        points[rng.random(rows) < 0.2, 2] = np.nan
    truth = (points[:, 0] + points[:, 1] + rng.normal(size=rows) > 2).astype(int)
    grown = RandomForestClassifier(7, min_samples_leaf=3, random_state=int(rng.integers(99))).fit(points, truth)
    return points, grown


def test_rows_go_left_up_to_the_threshold_and_missing_values_go_as_the_split_says() -> None:
    points = np.array([[1.5, 9.0], [1.6, 0.5], [1.6, 0.6], [2.0, np.nan], [np.nan, 9.0]])
    assert two_trees().apply(points).tolist() == [[1, 6], [3, 8], [4, 9], [3, 8], [4, 9]]


@pytest.mark.parametrize("seed", range(5))
def test_rows_arrive_where_scikit_learn_sends_them(seed: int) -> None:
    points, grown = forest(np.random.default_rng(seed))
    trees = Trees.of(grown)
    assert np.array_equal(trees.apply(points), grown.apply(points) + trees.roots)


def test_a_small_leaf_gives_its_place_to_its_sibling() -> None:
    trees = two_trees()
    rows = np.array([0, 9, 0, 2, 9, 0, 9, 0, 9, 2])  # node 3 of the first tree and node 4 (9) of the second are small
    pruned = trees.pruned(rows, 5)
    points = np.array([[2.0, 0.0], [2.0, 1.0], [1.0, 0.0]])
    assert pruned.apply(points).tolist() == [[4, 8], [4, 8], [1, 6]]
    leaves = LeafBoxes.of(pruned, 2)
    assert len(leaves) == 4
    # The sibling has the parent's box: column 1 is not bounded any more.
    assert leaves.low[leaves.number[4]].tolist() == [1.5, -np.inf]
    assert leaves.high[leaves.number[4]].tolist() == [np.inf, np.inf]


def test_a_node_whose_children_are_both_small_goes_as_well() -> None:
    pruned = two_trees().pruned(np.array([0, 9, 0, 2, 2, 0, 1, 0, 2, 2]), 5)
    assert pruned.apply(np.array([[2.0, 1.0]])).tolist() == [[1, 5]]  # of the second tree only the root remains
    leaves = LeafBoxes.of(pruned, 2)
    assert leaves.tree.tolist() == [0, 1]
    assert np.isinf(leaves.low).all() and np.isinf(leaves.high).all()


def test_small_leaves_of_one_parent_can_be_merged() -> None:
    rows = np.array([0, 9, 0, 3, 2, 0, 1, 0, 2, 2])  # 3 + 2 are enough for one leaf; 1 and 2 + 2 for none but the root
    pruned = two_trees().pruned(rows, 5, merge=True)
    assert pruned.apply(np.array([[2.0, 0.0], [2.0, 1.0], [1.0, 0.0]])).tolist() == [[2, 5], [2, 5], [1, 5]]
    leaves = LeafBoxes.of(pruned, 2)
    assert leaves.low[leaves.number[2]].tolist() == [1.5, -np.inf]


def plain_pruned(trees: Trees, rows: np.ndarray, fewest: int, node: int) -> int | None:
    """The node that stands in the place of one after pruning, by recursion; None where nothing does."""
    if trees.is_leaf[node]:
        return node if rows[node] >= fewest else None
    sides = [plain_pruned(trees, rows, fewest, int(child[node])) for child in (trees.left, trees.right)]
    kept = [side for side in sides if side is not None]
    return node if len(kept) == 2 else kept[0] if kept else None


@pytest.mark.parametrize("seed", range(5))
def test_pruning_agrees_with_recursion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, grown = forest(rng)
    trees = Trees.of(grown)
    nodes = trees.apply(points)
    rows = np.bincount(nodes.ravel(), minlength=len(trees.left)) * rng.integers(0, 2, len(trees.left))
    pruned = trees.pruned(rows, 6)

    def walk(row: np.ndarray, root: int) -> int:
        node = plain_pruned(trees, rows, 6, root)
        if node is None:
            return root
        while not trees.is_leaf[node]:
            x = np.float32(row[trees.feature[node]])
            left = trees.missing_left[node] if np.isnan(x) else x <= trees.threshold[node]
            child = int((trees.left if left else trees.right)[node])
            other = int((trees.right if left else trees.left)[node])
            stands = plain_pruned(trees, rows, 6, child)
            node = stands if stands is not None else plain_pruned(trees, rows, 6, other)
            assert node is not None
        return node

    expected = [[walk(row, int(root)) for root in trees.roots] for row in points[:60]]
    assert pruned.apply(points[:60]).tolist() == expected
    assert np.array_equal(pruned.rerouted(points, nodes), pruned.apply(points))


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_boxes_of_a_tree_are_disjoint_and_each_row_is_in_its_own(seed: int, merge: bool) -> None:
    rng = np.random.default_rng(seed)
    points, grown = forest(rng, missing=False)
    points = points.astype(np.float32).astype(np.float64)
    trees = Trees.of(grown)
    nodes = trees.apply(points)
    pruned = trees.pruned(np.bincount(nodes.ravel(), minlength=len(trees.left)), 8, merge=merge)
    assert np.array_equal(pruned.rerouted(points, nodes), pruned.apply(points))
    leaves = LeafBoxes.of(pruned, 3)
    inside = ((points[:, None] > leaves.low) & (points[:, None] <= leaves.high)).all(axis=2)
    by_tree = np.add.reduceat(inside, np.flatnonzero(np.diff(leaves.tree, prepend=-1)), axis=1)
    assert (by_tree == 1).all()
    number = leaves.number[pruned.apply(points)]
    assert inside[np.arange(len(points))[:, None], number].all()
    assert (np.bincount(number.ravel(), minlength=len(leaves)) >= 8).all()


def test_codes_in_a_box() -> None:
    low, high = np.array([[-np.inf], [0.5], [2.5], [4.5]]), np.array([[0.5], [2.5], [np.inf], [np.inf]])
    leaves = LeafBoxes(np.zeros(4, dtype=int), low, high, np.arange(4))
    first, inside = leaves.levels(0, 5)
    assert first.tolist() == [0, 1, 3, 5]
    assert inside.tolist() == [1, 2, 2, 0]
