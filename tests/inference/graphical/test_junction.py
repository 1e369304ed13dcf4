"""Junction trees over every named shape of graph: they cover it, share along paths, and are the same every time."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graphs import SHAPES, SIZES, shapes
from understudy.inference.graphical.graphical_model import JunctionTree


def faults(tree: JunctionTree, sets: list[tuple[str, ...]], columns: list[str]) -> set[str]:
    """What keeps this from being a junction tree of these sets and columns."""
    cliques = [set(c) for c in tree.cliques]
    found = set()
    if any(not any(set(s) <= c for c in cliques) for s in [*sets, *((c,) for c in columns)]):
        found.add("a set is not covered")
    if any(a <= b for a, b in itertools.permutations(cliques, 2)):
        found.add("a clique lies in another")
    visited = {0}
    for link in tree.links:
        if link.parent not in visited or link.child in visited:
            found.add("a link comes before its parent, or twice")
        visited.add(link.child)
        if set(link.shared) != cliques[link.child] & cliques[link.parent]:
            found.add("a link does not share what its ends share")
    if visited != set(range(len(cliques))):
        found.add("a clique is not linked")
    if any(_pieces(tree, column) != 1 for column in columns):
        found.add("the cliques of a column are not connected")
    return found


def _pieces(tree: JunctionTree, column: str) -> int:
    """Cliques that hold the column less the links that do: in a tree, the number of connected pieces."""
    return sum(column in c for c in tree.cliques) - sum(column in link.shared for link in tree.links)


@shapes
def test_every_shape_gets_a_junction_tree(shape: str):
    assert faults(JunctionTree.over(SHAPES[shape], SIZES), SHAPES[shape], list(SIZES)) == set()


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_random_graphs_get_junction_trees_whatever_the_order(data: st.DataObject):
    columns = list("abcdefgh")
    sizes = {c: data.draw(st.integers(1, 9)) for c in columns}
    one_set = st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True).map(tuple)
    sets = data.draw(st.lists(one_set, max_size=10))
    tree = JunctionTree.over(sets, sizes)
    assert faults(tree, sets, columns) == set()
    assert JunctionTree.over(data.draw(st.permutations(sets)), sizes) == tree


def test_mutants_are_found():
    tree = JunctionTree.over(SHAPES["chain"], SIZES)
    columns = list(SIZES)
    crossed = JunctionTree(tree.cliques, (*tree.links[:-1], type(tree.links[0])(tree.links[-1].child, 0, ())))
    assert faults(crossed, SHAPES["chain"], columns) == {"the cliques of a column are not connected"}
    assert "a clique is not linked" in faults(JunctionTree(tree.cliques, tree.links[1:]), SHAPES["chain"], columns)
    assert "a set is not covered" in faults(tree, SHAPES["cycle"], columns)


def test_trees_of_pairs_keep_their_pairs():
    for shape in ("chain", "star", "tree"):
        tree = JunctionTree.over(SHAPES[shape], SIZES)
        assert {frozenset(c) for c in tree.cliques} == {frozenset(s) for s in SHAPES[shape]}


def test_a_cycle_is_triangulated():
    tree = JunctionTree.over(SHAPES["cycle"], SIZES)
    assert sorted(map(len, tree.cliques)) == [3, 3, 3]


def test_cells_and_home():
    tree = JunctionTree.over(SHAPES["disconnected"], SIZES)
    assert tree.cliques == (("a", "b"), ("c",), ("d", "e"))
    assert tree.cells(SIZES) == 2 * 3 + 2 + 4 * 3
    assert [tree.home(s) for s in (("b", "a"), ("c",), ("e",))] == [0, 1, 2]
    assert [link.shared for link in tree.links] == [(), ()]


def test_large_columns_are_kept_apart():
    """Of the two chords of a square, the one that joins the small columns."""
    square = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    tree = JunctionTree.over(square, {"a": 50, "b": 2, "c": 50, "d": 2})
    assert set(tree.cliques) == {("a", "b", "d"), ("b", "c", "d")}
