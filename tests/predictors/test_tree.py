"""Trees as public facts: against a second, naive way to walk them; random trees keep to their bounds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.orchard import ADD_REMOVE, TARGET
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import CrossTable, Partition
from understudy.inference.noisy_table import NoisyTable
from understudy.predictors.decision_tree import LEAF, DecisionTree, LeafClasses, LeafCounts, sums_of_children
from understudy.predictors.random_trees import RandomSplits, draw_trees
from understudy.predictors.splits import ColumnSplit, below_and_above, cuts, every_value, options
from understudy.predictors.tree_picture import branches, condition, tree_text

DOMAIN = Domain.of(ADD_REMOVE)
FEATURES = [c for c in DOMAIN if c.name != TARGET]
SPLITS = RandomSplits.of(FEATURES)


def draw_tree(depth: int, leaves: int, rng: np.random.Generator) -> DecisionTree:
    return draw_trees(SPLITS, 1, depth=depth, leaves=leaves, rng=rng)[0]


def walk(tree: DecisionTree, row: dict[str, int]) -> int:
    """The naive way: from the root, child lists built by hand, leaves counted as they are met in a queue."""
    children: dict[int, list[int]] = {}
    queue, fresh = [0], 1
    for node in queue:
        arity = tree.splits[tree.nodes[node]].branches if tree.nodes[node] != LEAF else 0
        children[node] = list(range(fresh, fresh + arity))
        queue += children[node]
        fresh += arity
    node = 0
    while children[node]:
        split = tree.splits[tree.nodes[node]]
        node = children[node][split.groups[row[split.column]]]
    return [n for n in queue if not children[n]].index(node)


def rebuilt(data: dict[str, Any]) -> DecisionTree:
    """The tree that a certificate's description determines."""
    splits = tuple(ColumnSplit(column, tuple(groups)) for column, groups in data["splits"])
    return DecisionTree(splits, tuple(data["nodes"]))


def random_codes(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    return {c.name: rng.integers(0, c.size, rows) for c in DOMAIN}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(1, 300))
def test_a_random_tree_is_walked_as_by_hand_and_keeps_to_its_bounds(seed: int, depth: int, leaves: int) -> None:
    rng = np.random.default_rng(seed)
    tree = draw_tree(depth, leaves, rng)
    codes = random_codes(rng, 40)
    expected = [walk(tree, {c: int(v[i]) for c, v in codes.items()}) for i in range(40)]
    assert tree.leaf_of(codes).tolist() == expected
    assert tree.depth <= depth and tree.leaves <= max(leaves, 1)
    assert rebuilt(tree.describe()) == tree


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_a_path_uses_a_category_once_and_a_cut_only_where_there_is_room(seed: int) -> None:
    tree = draw_tree(6, 4000, np.random.default_rng(seed))
    shares = np.full((tree.leaves, 3), 1 / 3)
    shown = branches(DOMAIN, leaf_counts(tree, np.zeros((tree.leaves, 3))), shares, ["a", "b", "c"])
    assert sum(len(found) for found in shown.values()) == len(tree.nodes)  # so that no branch is impossible


def test_several_trees_are_drawn_apart() -> None:
    trees = draw_trees(SPLITS, 50, depth=4, leaves=30, rng=np.random.default_rng(2))
    assert len(trees) == 50 and len(set(trees)) > 45
    assert all(tree.leaves == len(tree.nodes) - sum(n != LEAF for n in tree.nodes) for tree in trees)
    assert all(tree.branches.sum() == len(tree.nodes) - 1 for tree in trees)


def test_levels_with_one_split_each() -> None:
    grade, well = DOMAIN["grade"], DOMAIN["well"]
    tree = DecisionTree.of_levels([every_value(grade), every_value(well)])
    assert (tree.depth, tree.leaves, tree.columns) == (2, 6, ("grade", "well"))
    assert tree.leaf_of({"grade": np.array([0, 2, 1]), "well": np.array([1, 0, 1])}).tolist() == [1, 4, 3]
    assert tree.level.tolist() == [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert tree.parent.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]


def test_nodes_hold_the_sums_of_their_leaves() -> None:
    tree = DecisionTree((ColumnSplit("well", (0, 1)), ColumnSplit("grade", (0, 1, 1))), (0, LEAF, 1, LEAF, LEAF))
    sums = sums_of_children(tree, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert sums.tolist() == [[9, 12], [1, 2], [8, 10], [3, 4], [5, 6]]


@pytest.mark.parametrize("make", ["leaves", "branches"])
def test_every_row_is_in_exactly_one_cell(make: str) -> None:
    rng = np.random.default_rng(5)
    tree = draw_tree(4, 100, rng)
    job = DOMAIN["job"].size
    cells: Any = LeafClasses(tree, TARGET, 3) if make == "leaves" else CrossTable(tree, "job", job, TARGET, 3)
    codes = random_codes(rng, 200)
    assigned = cells.assign(codes)
    assert isinstance(cells, Partition) and cells.cells == np.prod(cells.shape)
    leaf = tree.leaf_of(codes)
    by_leaf, by_value = leaf * 3 + codes[TARGET], (codes["job"] * 3 + codes[TARGET]) * tree.leaves + leaf
    assert (assigned == (by_leaf if make == "leaves" else by_value)).all() and assigned.max() < cells.cells
    assert hash(cells) == hash(type(cells)(**{f: getattr(cells, f) for f in cells.__dataclass_fields__}))


def test_missing_values_have_a_branch_of_their_own() -> None:
    pay = DOMAIN["pay"]
    assert below_and_above(pay, 3).groups == (0, 0, 0, 1, 1, 1, 1, 1, 2)
    assert below_and_above(DOMAIN["age"], 1).groups == (0, *[1] * 10)


def test_cuts_are_rising_and_inside() -> None:
    for coding in FEATURES:
        places = cuts(coding)
        assert all(a < b for a, b in pairwise(places)) and all(0 < c < coding.levels for c in places)
        for split in options(coding):
            assert sorted(set(split.groups)) == list(range(split.branches)) and len(split.groups) == coding.size


def leaf_counts(tree: DecisionTree, counts: np.ndarray) -> LeafCounts:
    return LeafCounts(tree, NoisyTable(tree.columns, counts, 1.0))


def test_words_for_branches() -> None:
    assert condition(DOMAIN["age"], np.array([True] * 3 + [False] * 8)) == "age < 39"
    assert condition(DOMAIN["job"], np.array([True, False, True, False, True])) == "job is clerk or nurse or is missing"
    assert condition(DOMAIN["grade"], np.array([True, True, False])) == "grade is at most middle"
    assert condition(DOMAIN["grade"], np.array([False, True, True])) == "grade is at least middle"
    assert condition(DOMAIN["grade"], np.array([True, False, True])) == "grade is low or high"
    tree = DecisionTree.of_levels([every_value(DOMAIN["well"])])
    counts = np.array([[8.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    text = tree_text(DOMAIN, leaf_counts(tree, counts), counts / counts.sum(axis=1)[:, None], ["a", "b", "c"])
    assert text.splitlines() == ["well is False: a (80% of about 10)", "well is True: c (100% of about 5)"]
