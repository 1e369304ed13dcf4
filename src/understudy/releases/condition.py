"""An expression as it looks from the codes of a release: which share of each cell satisfies it.

The literals of an expression cut every column into *atoms* in which its truth can't change: the values below 40, 40
itself, those above. It is evaluated once for each combination of atoms. A code is one atom, or a bin that a literal
cuts into several; then only a share of the bin satisfies the expression, and which one is not recorded.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Datetime, Label, Number
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.boundary.schema.expression import Predicate, parse
from understudy.boundary.schema.spelling import special_name, special_text
from understudy.errors import InputError
from understudy.inference.values import Values, decimals_of, evaluate

MOST_COMBINATIONS = 4_000_000
"""Of atoms, for which an expression is evaluated at once."""
POINTS = 5
"""How many values stand for a bin where columns are compared or computed with each other."""

Shares: TypeAlias = NDArray[Any]
Classes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class Condition:
    """The codes of each column put into classes that the expression can't tell apart, and its share of each cell."""

    columns: ColumnSet
    classes: tuple[Classes, ...]
    """For each column, the class of each of its codes."""
    share: Shares
    """For each cell of classes, which share of it satisfies the expression: 0 or 1, but for bins that it cuts."""
    settled: bool
    """Whether the shares 0 and 1 are certain. Bins that are computed with are tried at some points only."""

    @classmethod
    def of(cls, text: str, domain: Domain) -> Condition:
        predicate = parse(text, domain.schema.kinds)
        literals = Literals.of(predicate)
        columns = tuple(c for c in domain.names if c in predicate.columns)
        # Before their facets are built: columns that are computed with have at least one atom for each code.
        _check_combinations(text, math.prod(domain.size(c) for c in literals.entangled))
        facets = [_facet(domain[c], literals) for c in columns]
        _check_combinations(text, math.prod(f.atoms for f in facets))
        share = _truth(predicate, columns, facets).astype(np.float64)
        for axis, facet in enumerate(facets):
            share = _along(facet.shares, share, axis)
        share = share.round(12)  # sums of shares: what is 1 must be 1
        settled = all(f.single for c, f in zip(columns, facets, strict=True) if c in literals.entangled)
        return cls(columns, tuple(f.classes for f in facets), share, settled).merged()

    def merged(self) -> Condition:
        """The same, with classes put together for which the shares are the same everywhere; in the order of codes."""
        condition = self
        for axis, classes in enumerate(self.classes):
            share = condition.share
            slices = np.moveaxis(share, axis, 0).reshape(share.shape[axis], -1)
            alike = np.unique(slices, axis=0, return_inverse=True)[1].ravel()[classes]
            condition = condition.refined(axis, alike)
        # A column of one class makes no difference: "pay <= 100" where that is the bound, and none is missing.
        kept = [i for i, size in enumerate(condition.share.shape) if size > 1]
        columns, remaining = tuple(self.columns[i] for i in kept), tuple(condition.classes[i] for i in kept)
        return Condition(columns, remaining, condition.share.squeeze(), self.settled)

    def refined(self, axis: int, finer: Classes) -> Condition:
        """The same with other classes of one column, in none of which the shares differ."""
        first, place = np.unique(finer, return_index=True, return_inverse=True)[1:]
        # Numbered by their first code, so that neighbouring classes hold neighbouring values (see `coarsened`).
        order = np.argsort(first)
        share = self.share.take(self.classes[axis][first[order]], axis)
        return self._with(axis, np.argsort(order)[place.ravel()], share)

    def coarsened(self, weights: Sequence[Shares], most: int) -> Condition:
        """Neighbouring classes put together, where there are most, until there are at most so many cells."""
        condition = self
        while condition.share.size > most:
            axis = int(np.argmax(condition.share.shape))
            condition = condition._halved(axis, np.asarray(np.bincount(condition.classes[axis], weights[axis])))
        return condition

    def _halved(self, axis: int, weights: Shares) -> Condition:
        """Each class put together with the next one; the share of both is their weighted mean."""
        size = len(weights)
        joining = np.zeros((-(-size // 2), size))
        # Above 0, so that two classes of which the model draws no row have a mean too.
        joining[np.arange(size) // 2, np.arange(size)] = np.maximum(weights, 1e-9)
        joining /= joining.sum(axis=1, keepdims=True)
        return self._with(axis, self.classes[axis] // 2, _along(joining, self.share, axis))

    def _with(self, axis: int, classes: Classes, share: Shares) -> Condition:
        return Condition(self.columns, (*self.classes[:axis], classes, *self.classes[axis + 1 :]), share, self.settled)


@dataclass(frozen=True)
class Literals:
    """What an expression compares columns with."""

    numbers: tuple[float, ...]
    texts: frozenset[str]
    moments: tuple[datetime, ...]
    entangled: frozenset[str]
    """Columns that are computed with or compared with each other: literals don't tell where their truth changes."""

    @classmethod
    def of(cls, predicate: Predicate) -> Literals:
        from sqlglot import exp

        tree = predicate.sql()
        dated = [c for c in tree.find_all(exp.Cast) if c.to.this.name == "TIMESTAMP" and c.this.key == "literal"]
        moments = {datetime.fromisoformat(c.this.this) for c in dated}
        plain = [x for x in tree.find_all(exp.Literal) if not any(x is c.this for c in dated)]
        numbers = {_signed(x) for x in plain if not x.is_string or _is_double(x)}
        texts = frozenset(x.this for x in plain if x.is_string and not _is_double(x))
        return cls(tuple(sorted(numbers)), texts, tuple(sorted(moments)), _entangled(tree))

    def on_line_of(self, coding: Coding) -> list[float]:
        """Those that can be compared with a column of numbers or of moments."""
        column = coding.column
        if isinstance(column, Datetime):
            return [(m - column.start).total_seconds() / column.unit_seconds for m in self.moments]
        return list(self.numbers)


def _is_double(literal: Any) -> bool:
    """A number that is written as a cast of a string, so that databases don't take it for a decimal."""
    return literal.parent is not None and literal.parent.key == "cast" and literal.parent.to.this.name == "DOUBLE"


def _signed(literal: Any) -> float:
    negative = literal.parent is not None and literal.parent.key == "neg"  # sqlglot reads -5 as a negated 5
    return -float(literal.this) if negative else float(literal.this)


def _entangled(tree: Any) -> frozenset[str]:
    from sqlglot import exp

    comparisons = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)
    found: set[str] = set()
    for node in tree.find_all(*comparisons):
        columns = {c.this.this for c in node.find_all(exp.Column)}
        if len(columns) > 1 or any(node.find_all(exp.Add, exp.Sub, exp.Mul)):
            found |= columns
    return frozenset(found)


def _check_combinations(text: str, combinations: int) -> None:
    if combinations > MOST_COMBINATIONS:
        raise InputError(
            f"the expression compares {combinations:,} combinations of values and may compare at most "
            f"{MOST_COMBINATIONS:,}; name fewer columns in it",
            text,
        )


@dataclass(frozen=True)
class Facet:
    """One column: a value for each atom, the class of each code, and the atoms' shares of each class."""

    points: Values
    classes: Classes
    shares: Shares
    single: bool
    """Whether every code stands for one value only."""
    special: Values | None = None
    """Of a column that has special values: these as texts, beside the points."""

    @property
    def atoms(self) -> int:
        return len(self.points.data)


@dataclass(frozen=True)
class _Piece:
    """The part of a code that lies in one atom: how the atom is known, a value in it, and its share of the code."""

    atom: object
    value: Any
    share: float


def _facet(coding: Coding, literals: Literals) -> Facet:
    codes = list(_pieces(coding, literals))
    # Any value will do: it is marked as no number, and never compared.
    special: dict[object, str] = {("special", text): text for text in map(special_text, coding.special)}
    codes += [[_Piece(atom, codes[0][0].value, 1.0)] for atom in special]
    if coding.column.missing:
        codes.append([_Piece(None, codes[0][0].value, 1.0)])
    values = {piece.atom: piece.value for pieces in codes for piece in pieces}
    places = {atom: i for i, atom in enumerate(values)}
    shares = np.zeros((len(codes), len(places)))
    for code, pieces in enumerate(codes):
        for piece in pieces:
            shares[code, places[piece.atom]] += piece.share
    shares, classes = np.unique(shares, axis=0, return_inverse=True)
    points = Values(_typed(coding, list(values.values())), np.array([a is None or a in special for a in values]))
    texts = np.array([special.get(atom, "") for atom in values], dtype=object)
    beside = Values(texts, np.array([atom is None for atom in values])) if special else None
    return Facet(points, classes.ravel(), shares, _is_single(coding), beside)


def _typed(coding: Coding, values: list[Any]) -> NDArray[Any]:
    """As an expression reads them; moments stand on the line of their column, in units since its start."""
    if isinstance(coding.column, Datetime):
        seconds = np.rint(np.array(values, dtype=np.float64) * coding.column.unit_seconds)
        return np.asarray(np.datetime64(coding.column.start, "s") + seconds.astype("timedelta64[s]"))
    kinds: dict[type, Any] = {bool: np.bool_, str: object}
    return np.array(values, dtype=kinds.get(type(values[0]), np.float64))


def _is_single(coding: Coding) -> bool:
    if coding.edges is None:
        return True
    return not isinstance(coding.column, Number) and bool(np.all(np.diff(coding.edges) == 1))


def _pieces(coding: Coding, literals: Literals) -> Iterator[list[_Piece]]:
    """For each code that stands for values, its parts."""
    entangled = coding.name in literals.entangled
    if coding.labels is not None:
        yield from ([_Piece(_atom_of(label, entangled, literals), label, 1.0)] for label in coding.labels)
        return
    assert coding.edges is not None
    marks = literals.on_line_of(coding)
    for low, high in itertools.pairwise(map(float, coding.edges)):
        if entangled:
            values = _spaced(coding, low, high)
            yield [_Piece((low, value), value, 1 / len(values)) for value in values]
        elif bisect_left(marks, low) == bisect_right(marks, high):  # by far the commonest bin: no mark is in it
            yield [_Piece(_place(low, marks), low, 1.0)]
        else:
            yield _cut(coding, low, high, marks)


def _cut(coding: Coding, low: float, high: float, marks: Sequence[float]) -> list[_Piece]:
    """The parts of a bin below, on, between and above the marks, by size: its values are held to be equally likely."""
    if isinstance(coding.column, Number):
        parts = list(_real_parts(coding, low, high, marks))
    else:
        parts = list(_whole_parts(low, high, marks))
    size = sum(length for _, length in parts)
    return [_Piece(_place(value, marks), value, length / size) for value, length in parts]


def _atom_of(label: Label | bool, entangled: bool, literals: Literals) -> object:
    """Labels that an expression doesn't name are alike to it."""
    if entangled or isinstance(label, bool):
        return label, None
    if isinstance(label, str):
        named = label if label in literals.texts else None
        return named, "text"
    return _place(label, literals.numbers)


def _place(value: float, marks: Sequence[float]) -> tuple[int, int]:
    """Between which marks, or on which, a value lies."""
    return bisect_left(marks, value), bisect_right(marks, value)


def _spaced(coding: Coding, low: float, high: float) -> list[float]:
    if isinstance(coding.column, Number):
        return sorted({float(x) for x in np.linspace(low, high, POINTS)})
    return sorted({float(round(x)) for x in np.linspace(low, high - 1, POINTS)})


def _whole_parts(low: float, high: float, marks: Sequence[float]) -> Iterator[tuple[float, float]]:
    """A value and the number of values of each part of low … high − 1 below, on, between and above the marks."""
    start = low
    for mark in (m for m in marks if low <= m <= high - 1):
        if mark > start:
            yield start, math.ceil(mark) - start
        if mark == math.floor(mark):
            yield mark, 1.0
        start = math.floor(mark) + 1
    if start < high:
        yield start, high - start


def _real_parts(coding: Coding, low: float, high: float, marks: Sequence[float]) -> Iterator[tuple[float, float]]:
    """The same for real numbers, by length; a mark itself is as long as one step of the column's decimals."""
    start, step = low, 10.0 ** -decimals_of(coding)
    last = high == (coding.edges or ())[-1]  # bins are half open, but for the last, which holds the column's maximum
    for mark in (m for m in marks if low <= m < high or (last and m == high)):
        if mark > start:
            yield (start + mark) / 2, mark - start
        yield mark, step
        start = mark
    if start < high or start == low == high:
        yield (start + high) / 2, max(high - start, step)


def _truth(predicate: Predicate, columns: ColumnSet, facets: Sequence[Facet]) -> NDArray[np.bool_]:
    shape = tuple(f.atoms for f in facets)
    size = math.prod(shape)
    places: tuple[NDArray[np.intp], ...] = ()
    if shape:  # numpy unravels nothing into no dimensions, as of an expression that names no column
        places = np.unravel_index(np.arange(size), shape)
    values: dict[str, Values] = {}
    for column, facet, i in zip(columns, facets, places, strict=True):
        values[column] = Values(facet.points.data[i], facet.points.absent()[i])
        if facet.special is not None:
            values[special_name(column)] = Values(facet.special.data[i], facet.special.absent()[i])
    # As in SQL, a comparison with a missing value is unknown, which is not true.
    return evaluate(predicate, values, size).true.reshape(shape)


def _along(matrix: Shares, tensor: Shares, axis: int) -> Shares:
    """The matrix applied to one axis."""
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)
