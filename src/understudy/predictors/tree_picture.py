"""A decision tree as a picture: from the root at the left to its leaves at the right, each with what it predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy.errors import InputError
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, line, shortened, text, tip, width_of
from understudy.pages.palette import series_style, var
from understudy.predictors.export import Branch, branches
from understudy.predictors.predictor import PrivatePredictor

LINE, INDENT, HEAD = 22.0, 26.0, 34.0
BAR, MOST_WORDS = 90.0, 340.0
MOST_LINES = 400
"""A larger tree is cut short, and says so."""


@dataclass(frozen=True)
class _Line:
    """One branch, where it is drawn."""

    branch: Branch
    place: int
    above: int | None


def tree_figure(predictor: PrivatePredictor, tree: int = 0) -> Figure:
    """One tree of a fitted predictor; save it as .svg or .png."""
    predictor._demand_fitted()
    if not 0 <= tree < len(predictor.leaves_):
        raise InputError(f"tree ({tree}) must be from 0 to {len(predictor.leaves_) - 1}", tree)
    labels = [str(c) for c in predictor.classes_.tolist()]
    leaves = predictor.leaves_[tree]
    shown = branches(predictor.task_.domain, leaves, predictor._shares()[tree], labels)
    lines = _lines(shown)
    what = f"{type(predictor).__name__} for {predictor.target_}"
    return _draw(lines[:MOST_LINES], len(lines), labels, what, tree)


def _lines(shown: Mapping[int, Sequence[Branch]]) -> list[_Line]:
    """All branches from above to below, each after its parent, without recursion."""
    found: list[_Line] = []
    waiting: list[tuple[Branch, int | None]] = [(b, None) for b in reversed(shown[-1])]
    while waiting:
        branch, above = waiting.pop()
        found.append(_Line(branch, len(found), above))
        waiting += [(child, len(found) - 1) for child in reversed(shown.get(branch.node, ()))]
    return found


def _draw(lines: Sequence[_Line], whole: int, labels: Sequence[str], what: str, tree: int) -> Figure:
    words = max(_left(each) + min(width_of(_words(each.branch)), MOST_WORDS) for each in lines) + 14
    label_room = max(width_of(label, SMALL) for label in labels) + 90
    width, height = words + BAR + label_room, HEAD + LINE * (len(lines) + 1)
    marks = [text(0, 14, f"{what}, tree {tree + 1}", size=13.5, bold=True)]
    for each in lines:
        marks += _joint(each)
        marks.append(text(_left(each), _y(each.place), shortened(_words(each.branch), MOST_WORDS)))
        if each.branch.leaf is not None:
            marks += _leaf(each, labels, words)
    if whole > len(lines):
        marks.append(text(0, height - 6, f"and {whole - len(lines):,} more branches", quiet=True))
    return figure(marks, width, height, f"{what}, tree {tree + 1}", _said(lines, whole), _numbers(lines))


def _y(place: int) -> float:
    return HEAD + LINE * (place + 0.75)


def _left(each: _Line) -> float:
    return 4 + INDENT * each.branch.depth


def _words(branch: Branch) -> str:
    return branch.words or "all rows"


def _joint(each: _Line) -> list[str]:
    """The line from a branch up to its parent."""
    if each.above is None:
        return []
    x, y = _left(each) - INDENT + 8, _y(each.place) - 4
    return [line(x, _y(each.above) + 4, x, y, var("rule")), line(x, y, _left(each) - 4, y, var("rule"))]


def _leaf(each: _Line, labels: Sequence[str], x: float) -> list[str]:
    branch, y = each.branch, _y(each.place)
    colour, _ = series_style(labels.index(branch.label))
    track = element("rect", x=x, y=y - 10, width=BAR, height=12, fill=var("track"))
    bar = element("rect", x=x, y=y - 10, width=BAR * branch.share, height=12, fill=colour)
    said = f"{branch.label} {branch.share:.0%}"
    about = f"about {max(branch.rows, 0):,.0f} rows"
    return [tip(track + bar, f"{_words(branch)}: {said} of {about}"), text(x + BAR + 8, y, said, size=SMALL)]


def _said(lines: Sequence[_Line], whole: int) -> str:
    leaves = sum(each.branch.leaf is not None for each in lines)
    return f"A decision tree of {whole} branches, of which {leaves} shown ones end in a leaf. Row counts are noisy."


def _numbers(lines: Sequence[_Line]) -> Numbers:
    rows = tuple(
        (_path(lines, each), each.branch.label, f"{each.branch.share:.3f}", f"{each.branch.rows:,.0f}")
        for each in lines
        if each.branch.leaf is not None
    )
    return Numbers(("leaf", "class", "share", "noisy rows"), rows)


def _path(lines: Sequence[_Line], each: _Line) -> str:
    """All conditions from the root down."""
    words = []
    at: _Line | None = each
    while at is not None:
        words.append(_words(at.branch))
        at = lines[at.above] if at.above is not None else None
    return " and ".join(reversed(words[:-1])) or words[0]
