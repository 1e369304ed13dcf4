"""A decision tree as a public fact: which column is cut where. What was counted in its leaves is no part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.tables.counting import cell_type
from understudy.predictors.split import Split

LEAF = -1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tree:
    """Nodes level by level from the root; `nodes[i]` is the place of its split among `splits`, or LEAF.

    The children of a node follow those of the nodes before it, so nothing else has to be kept.

    >>> tree = Tree((Split("sex", (0, 1)),), (0, LEAF, LEAF))
    >>> tree.leaf_of({"sex": np.array([1, 0, 1])})
    array([1, 0, 1])
    """

    splits: tuple[Split, ...]
    nodes: tuple[int, ...]

    @classmethod
    def single_leaf(cls) -> Tree:
        return cls((), (LEAF,))

    @classmethod
    def of_levels(cls, levels: Sequence[Split]) -> Tree:
        """The tree in which every node of a level has the same split."""
        nodes, width = [], 1
        for place, split in enumerate(levels):
            nodes += [place] * width
            width *= split.branches
        return cls(tuple(levels), (*nodes, *[LEAF] * width))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """A tree of thousands of nodes is a key of many look-ups."""
        return hash((self.splits, self.nodes))

    @cached_property
    def columns(self) -> ColumnSet:
        return tuple(dict.fromkeys(s.column for s in self.splits))

    @cached_property
    def branches(self) -> Ints:
        """How many children each node has."""
        arity = np.array([*(s.branches for s in self.splits), 0])
        return arity[list(self.nodes)]

    @cached_property
    def first_child(self) -> Ints:
        """Of every node; of a leaf it says nothing."""
        return 1 + np.cumsum(self.branches) - self.branches

    @cached_property
    def parent(self) -> Ints:
        """Of every node; the root is its own."""
        return np.concatenate([[0], np.repeat(np.arange(len(self.nodes)), self.branches)])

    @cached_property
    def level(self) -> Ints:
        levels = np.zeros(len(self.nodes), dtype=np.int64)
        start, end, depth = 1, 1 + int(self.branches[0]), 1
        while start < end:
            levels[start:end] = depth
            start, end, depth = end, end + int(self.branches[start:end].sum()), depth + 1
        return levels

    @property
    def depth(self) -> int:
        return int(self.level[-1])

    @cached_property
    def leaf_nodes(self) -> Ints:
        """The nodes that are leaves, in the order in which leaves are numbered."""
        return np.flatnonzero(np.array(self.nodes) == LEAF)

    @property
    def leaves(self) -> int:
        return len(self.leaf_nodes)

    @cached_property
    def uniform(self) -> tuple[Split, ...] | None:
        """The split of each level where all nodes of a level have the same one; else None."""
        nodes, levels = np.array(self.nodes), []
        for depth in range(self.depth):
            here = nodes[self.level == depth]
            if (here != here[0]).any():
                return None
            levels.append(self.splits[here[0]])
        return tuple(levels)

    def leaf_of(self, codes: Mapping[str, NDArray[np.integer]]) -> Ints:
        """The leaf of each row, by its number."""
        return self.assign(codes).astype(np.int64)

    def assign(self, codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.integer]:
        """The leaf of each row, in whichever type was fastest to find it."""
        if not self.splits:
            return np.zeros(len(next(iter(codes.values()), ())), dtype=np.uint16)
        return self._walked(codes) if self.uniform is None else self._numbered(self.uniform, codes)

    def _numbered(self, levels: Sequence[Split], codes: Mapping[str, NDArray[np.integer]]) -> NDArray[np.integer]:
        """Where levels have one split each, the branches that a row takes are the digits of its leaf's number."""
        wide = cell_type(self.leaves)
        leaf: NDArray[np.integer] = levels[0].branch_of(codes[levels[0].column]).astype(wide)
        for split in levels[1:]:
            leaf *= wide.type(split.branches)
            np.add(leaf, split.branch_of(codes[split.column]), out=leaf, casting="unsafe")
        return leaf

    def _walked(self, codes: Mapping[str, NDArray[np.integer]]) -> Ints:
        """From node to node. A leaf leads to itself, so that all rows walk the same number of steps.

        Two look-ups a step: the row's code of the node's column, and the child for that code. Codes stay as narrow as
        they come, which keeps them in the cache; what look-ups are made with is as wide as they need it.
        """
        walk = self._walk
        flat = np.concatenate([np.asarray(codes[c]) for c in self.columns])
        rows = len(flat) // len(self.columns)
        place, node = np.arange(rows, dtype=np.intp), np.zeros(rows, dtype=np.intp)
        start = walk.column * rows
        for _ in range(self.depth):
            at = start.take(node, mode="clip")
            at += place
            node *= walk.width
            node += flat.take(at, mode="clip")
            node = walk.child.take(node, mode="clip")
        return walk.leaf[node]

    @cached_property
    def _walk(self) -> _Walk:
        return _Walk.of(self)

    def describe(self) -> dict[str, Any]:
        return {"splits": [[s.column, list(s.groups)] for s in self.splits], "nodes": list(self.nodes)}

    @classmethod
    def from_description(cls, data: Mapping[str, Any]) -> Tree:
        splits = tuple(Split(column, tuple(groups)) for column, groups in data["splits"])
        return cls(splits, tuple(data["nodes"]))


@dataclass(frozen=True)
class _Walk:
    """What a step from a node to its child needs: its column, and the child for each code, `width` codes to a node."""

    column: NDArray[np.intp]
    child: NDArray[np.intp]
    width: int
    leaf: Ints

    @classmethod
    def of(cls, tree: Tree) -> _Walk:
        names = {name: place for place, name in enumerate(tree.columns)}
        width = max(len(s.groups) for s in tree.splits)
        groups = np.zeros((len(tree.splits) + 1, width), dtype=np.intp)  # the last one is that of leaves
        for place, split in enumerate(tree.splits):
            groups[place, : len(split.groups)] = split.groups
        nodes = np.array(tree.nodes)
        column = np.array([*(names[s.column] for s in tree.splits), 0], dtype=np.intp)
        first = np.where(nodes == LEAF, np.arange(len(nodes)), tree.first_child).astype(np.intp)
        child = (first[:, None] + groups[nodes]).ravel()
        return cls(column[nodes], child, width, np.cumsum(nodes == LEAF) - 1)


def sums_of_children(tree: Tree, leaf_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What every node holds when it is the sum of its children: from one row of values for each leaf."""
    sums = np.zeros((len(tree.nodes), leaf_values.shape[1]))
    sums[tree.leaf_nodes] = leaf_values
    for depth in range(tree.depth, 0, -1):
        here = np.flatnonzero(tree.level == depth)
        np.add.at(sums, tree.parent[here], sums[here])
    return sums


def merged(columns: Iterable[ColumnSet]) -> ColumnSet:
    """All columns, each once."""
    return tuple(dict.fromkeys(c for names in columns for c in names))
