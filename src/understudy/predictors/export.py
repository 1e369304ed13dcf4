"""A tree in words: which rows take which branch, and what the leaves predict."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime
from understudy.boundary.schema.domain import Coding, Domain
from understudy.predictors.leaves import Leaves
from understudy.predictors.tree import LEAF

MOST_NAMED = 4
MISSING = "missing"


@dataclass(frozen=True)
class Branch:
    """A node as it is drawn: how one gets there from its parent, and what it says if it is a leaf."""

    node: int
    parent: int
    depth: int
    words: str
    leaf: int | None
    label: str = ""
    share: float = 0.0
    rows: float = 0.0


def branches(
    domain: Domain, leaves: Leaves, shares: NDArray[np.float64], labels: Sequence[str]
) -> dict[int, list[Branch]]:
    """The children of each node; the root is the only child of -1. Branches that no row can take are left out."""
    found: dict[int, list[Branch]] = {-1: [_branch(0, -1, 0, "", leaves, shares, labels)]}
    open_codes: dict[int, dict[str, NDArray[np.bool_]]] = {0: {}}
    tree = leaves.tree
    for node, place in enumerate(tree.nodes):
        if place == LEAF or node not in open_codes:
            continue
        split, codes = tree.splits[place], open_codes[node]
        left = codes.get(split.column, np.ones(domain.size(split.column), dtype=bool))
        for branch in range(split.branches):
            taken = left & (np.array(split.groups) == branch)
            if taken.any():
                child = int(tree.first_child[node]) + branch
                open_codes[child] = codes | {split.column: taken}
                words = said(domain[split.column], taken)
                depth = int(tree.level[child])
                found.setdefault(node, []).append(_branch(child, node, depth, words, leaves, shares, labels))
    return found


def _branch(
    node: int,
    parent: int,
    depth: int,
    words: str,
    leaves: Leaves,
    shares: NDArray[np.float64],
    labels: Sequence[str],
) -> Branch:
    if leaves.tree.nodes[node] != LEAF:
        return Branch(node, parent, depth, words, None)
    leaf = int(np.searchsorted(leaves.tree.leaf_nodes, node))
    best = int(shares[leaf].argmax())
    rows = float(leaves.counts[leaf, : len(labels)].sum())
    return Branch(node, parent, depth, words, leaf, labels[best], float(shares[leaf, best]), rows)


def tree_text(domain: Domain, leaves: Leaves, shares: NDArray[np.float64], labels: Sequence[str]) -> str:
    """Indented text, a line for each branch."""
    children = branches(domain, leaves, shares, labels)
    return "\n".join(_lines(children, children[-1][0], 0))


def _lines(children: dict[int, list[Branch]], branch: Branch, indent: int) -> Iterator[str]:
    says = f"{branch.label} ({branch.share:.0%} of about {max(branch.rows, 0):,.0f})" if branch.leaf is not None else ""
    here = ": ".join(t for t in (branch.words, says) if t)
    deeper = indent
    if here:
        yield "  " * indent + here
        deeper += 1
    for child in children.get(branch.node, ()):
        yield from _lines(children, child, deeper)


def said(coding: Coding, taken: NDArray[np.bool_]) -> str:
    """The values that take a branch, as people would say it."""
    codes = np.flatnonzero(taken).tolist()
    missing = coding.column.missing and coding.levels in codes
    codes = [c for c in codes if c < coding.levels]
    parts = [_range(coding, codes)] if coding.edges is not None and codes else _names(coding, codes)
    return f"{coding.name} {' or '.join([*parts, *([f'is {MISSING}'] if missing else [])])}"


def _range(coding: Coding, codes: Sequence[int]) -> str:
    """Of a column on a line, whose branches are always whole stretches or single bins."""
    edges = coding.edges or ()
    low, high = min(codes), max(codes) + 1
    if low == 0 and high == coding.levels:
        return "has any value"
    if low == 0:
        return f"< {_edge(coding, edges[high])}"
    if high == coding.levels:
        return f"≥ {_edge(coding, edges[low])}"
    return f"from {_edge(coding, edges[low])} to below {_edge(coding, edges[high])}"


def _edge(coding: Coding, edge: float) -> str:
    if isinstance(coding.column, Datetime):
        return str(coding.column.start + timedelta(seconds=edge * coding.column.unit_seconds)).removesuffix(" 00:00:00")
    return f"{edge:,.10g}"


def _stretch(labels: Sequence[str], first: bool, last: bool) -> str:
    """Neighbours in the order of their column."""
    if first:
        return f"is at most {labels[-1]}"
    return f"is at least {labels[0]}" if last else f"is from {labels[0]} to {labels[-1]}"


def _names(coding: Coding, codes: Sequence[int]) -> list[str]:
    labels = [str((coding.labels or ())[c]) for c in codes]
    if not labels:
        return []
    if coding.column.ordered and 1 < len(codes) == codes[-1] - codes[0] + 1 < coding.levels:
        return [_stretch(labels, codes[0] == 0, codes[-1] == coding.levels - 1)]
    if len(labels) > MOST_NAMED and len(labels) > coding.levels / 2:
        others = [str(v) for i, v in enumerate(coding.labels or ()) if i not in codes]
        return [f"is not {' or '.join(others[:MOST_NAMED])}{'' if len(others) <= MOST_NAMED else ' …'}"]
    shown = list(itertools.islice(labels, MOST_NAMED))
    return [f"is {' or '.join(shown)}{'' if len(labels) <= MOST_NAMED else f' or {len(labels) - MOST_NAMED} others'}"]
