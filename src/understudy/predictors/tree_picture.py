"""A decision tree for people to read: as indented text, and as a picture from the root at the left to the leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.spelling import special_text
from understudy.errors import InputError
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, line, shortened, text, tip, width_of
from understudy.pages.palette import series_style, var
from understudy.predictors.decision_tree import LEAF, LeafCounts

if TYPE_CHECKING:
    from understudy.predictors.tree_predictors import PrivateTrees

MOST_NAMED = 4
"""Values of a branch that are named; of more, only their number is given."""

LINE, INDENT, HEAD = 22.0, 26.0, 34.0
BAR, MOST_WORDS = 90.0, 340.0
"""Pixels of the picture: height of a line, indent of a level, height of the title, width of a bar and of a text."""
MOST_LINES = 400
"""A larger tree is cut short, and says so."""


@dataclass(frozen=True)
class Leaf:
    """What a leaf predicts, with which share of its rows; their number is noisy."""

    label: str
    share: float
    rows: float


@dataclass(frozen=True)
class Branch:
    """A node as it is shown: the condition that leads to it from its parent, and what it predicts if it is a leaf."""

    node: int
    depth: int
    condition: str
    leaf: Leaf | None


def branches(
    domain: Domain, counted: LeafCounts, shares: NDArray[np.float64], labels: Sequence[str]
) -> dict[int, list[Branch]]:
    """The children of each node; the root is the only child of -1. Branches that no row can take are left out."""
    tree = counted.tree
    leaves = {}
    for leaf, node in enumerate(tree.leaf_nodes.tolist()):
        best = int(shares[leaf].argmax())
        rows = float(counted.counts[leaf, : len(labels)].sum())
        leaves[node] = Leaf(labels[best], float(shares[leaf, best]), rows)
    found = {-1: [Branch(0, 0, "", leaves.get(0))]}
    open_codes: dict[int, dict[str, NDArray[np.bool_]]] = {0: {}}
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
                shown = Branch(child, int(tree.level[child]), condition(domain[split.column], taken), leaves.get(child))
                found.setdefault(node, []).append(shown)
    return found


def tree_text(domain: Domain, counted: LeafCounts, shares: NDArray[np.float64], labels: Sequence[str]) -> str:
    """Indented text, a line for each branch."""
    children = branches(domain, counted, shares, labels)
    return "\n".join(_text_lines(children, children[-1][0], 0))


def _text_lines(children: dict[int, list[Branch]], branch: Branch, indent: int) -> Iterator[str]:
    parts = [branch.condition] if branch.condition else []
    if branch.leaf is not None:
        parts.append(f"{branch.leaf.label} ({branch.leaf.share:.0%} of about {max(branch.leaf.rows, 0):,.0f})")
    if parts:
        yield "  " * indent + ": ".join(parts)
        indent += 1
    for child in children.get(branch.node, ()):
        yield from _text_lines(children, child, indent)


def condition(coding: Coding, taken: NDArray[np.bool_]) -> str:
    """Which values of a column take a branch, in words."""
    codes = [c for c in np.flatnonzero(taken).tolist() if c < coding.levels]
    parts = [_values(coding, codes)] if codes else []
    special = [special_text(value) for value, code in coding.special_codes.items() if taken[code]]
    if special:
        parts.append(f"is {' or '.join(special)}")
    if coding.column.missing and taken[coding.size - 1]:
        parts.append("is missing")
    return f"{coding.name} {' or '.join(parts)}"


def _values(coding: Coding, codes: Sequence[int]) -> str:
    if coding.edges is None:
        return _names(coding, codes)
    # The branches of a column with bins are always ranges of bins or single ones.
    edges = coding.edges
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


def _names(coding: Coding, codes: Sequence[int]) -> str:
    labels = [str((coding.labels or ())[c]) for c in codes]
    if coding.column.ordered and 1 < len(codes) == codes[-1] - codes[0] + 1 < coding.levels:
        if codes[0] == 0:
            return f"is at most {labels[-1]}"
        if codes[-1] == coding.levels - 1:
            return f"is at least {labels[0]}"
        return f"is from {labels[0]} to {labels[-1]}"
    shown = " or ".join(labels[:MOST_NAMED])
    if len(labels) <= MOST_NAMED:
        return f"is {shown}"
    if len(labels) > coding.levels / 2:
        others = [str(v) for i, v in enumerate(coding.labels or ()) if i not in codes]
        more = " …" if len(others) > MOST_NAMED else ""
        return f"is not {' or '.join(others[:MOST_NAMED])}{more}"
    return f"is {shown} or {len(labels) - MOST_NAMED} others"


@dataclass(frozen=True)
class _Line:
    """One branch, where it is drawn."""

    branch: Branch
    place: int
    above: int | None

    @property
    def x(self) -> float:
        return 4 + INDENT * self.branch.depth

    @property
    def y(self) -> float:
        return _y(self.place)

    @property
    def words(self) -> str:
        return self.branch.condition or "all rows"


def _y(place: int) -> float:
    return HEAD + LINE * (place + 0.75)


def tree_figure(predictor: PrivateTrees, tree: int = 0) -> Figure:
    """One tree of a fitted predictor; save it as .svg or .png."""
    predictor._demand_fitted()
    if not 0 <= tree < len(predictor.leaves_):
        raise InputError(f"tree ({tree}) must be from 0 to {len(predictor.leaves_) - 1}", tree)
    labels = [str(c) for c in predictor.classes_.tolist()]
    shown = branches(predictor.task_.domain, predictor.leaves_[tree], predictor._shares()[tree], labels)
    title = f"{type(predictor).__name__} for {predictor.target_}, tree {tree + 1}"
    return _draw(_lines(shown), labels, title)


def _lines(shown: Mapping[int, Sequence[Branch]]) -> list[_Line]:
    """All branches from above to below, each after its parent, without recursion."""
    found: list[_Line] = []
    # A stack, reversed so that the first child is drawn first: deep trees would exceed Python's recursion.
    waiting: list[tuple[Branch, int | None]] = [(b, None) for b in reversed(shown[-1])]
    while waiting:
        branch, above = waiting.pop()
        found.append(_Line(branch, len(found), above))
        waiting += [(child, len(found) - 1) for child in reversed(shown.get(branch.node, ()))]
    return found


def _draw(whole: Sequence[_Line], labels: Sequence[str], title: str) -> Figure:
    lines = whole[:MOST_LINES]
    words = max(each.x + min(width_of(each.words), MOST_WORDS) for each in lines) + 14
    label_room = max(width_of(label, SMALL) for label in labels) + 90
    width, height = words + BAR + label_room, HEAD + LINE * (len(lines) + 1)
    marks = [text(0, 14, title, size=13.5, bold=True)]
    for each in lines:
        marks += _connector(each)
        marks.append(text(each.x, each.y, shortened(each.words, MOST_WORDS)))
        if each.branch.leaf is not None:
            marks += _bar(each, each.branch.leaf, labels, words)
    if len(whole) > len(lines):
        marks.append(text(0, height - 6, f"and {len(whole) - len(lines):,} more branches", quiet=True))
    leaves = sum(each.branch.leaf is not None for each in lines)
    about = f"A decision tree of {len(whole)} branches; {leaves} of those shown end in a leaf. Row counts are noisy."
    return figure(marks, width, height, title, about, _numbers(lines))


def _connector(each: _Line) -> list[str]:
    """The line from a branch up to its parent."""
    if each.above is None:
        return []
    x, y = each.x - INDENT + 8, each.y - 4
    return [line(x, _y(each.above) + 4, x, y, var("rule")), line(x, y, each.x - 4, y, var("rule"))]


def _bar(each: _Line, leaf: Leaf, labels: Sequence[str], x: float) -> list[str]:
    colour, _ = series_style(labels.index(leaf.label))
    track = element("rect", x=x, y=each.y - 10, width=BAR, height=12, fill=var("track"))
    bar = element("rect", x=x, y=each.y - 10, width=BAR * leaf.share, height=12, fill=colour)
    predicted = f"{leaf.label} {leaf.share:.0%}"
    hover = f"{each.words}: {predicted} of about {max(leaf.rows, 0):,.0f} rows"
    return [tip(track + bar, hover), text(x + BAR + 8, each.y, predicted, size=SMALL)]


def _numbers(lines: Sequence[_Line]) -> Numbers:
    found = ((each, each.branch.leaf) for each in lines)
    rows = [(_path(lines, each), leaf.label, f"{leaf.share:.3f}", f"{leaf.rows:,.0f}") for each, leaf in found if leaf]
    return Numbers(("leaf", "class", "share", "noisy rows"), tuple(rows))


def _path(lines: Sequence[_Line], each: _Line) -> str:
    """All conditions from the root down."""
    words = [each.words]
    while each.above is not None:
        each = lines[each.above]
        words.append(each.words)
    return " and ".join(reversed(words[:-1])) or words[0]
