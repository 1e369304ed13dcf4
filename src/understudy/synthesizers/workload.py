"""What a table will be used for: sets of columns, and how much each of them matters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

from understudy.errors import MethodError
from understudy.privacy.score import STEP
from understudy.schema.domain import ColumnSet, Domain

PAIRS, TRIPLES = "pairs", "triples"
KINDS = (PAIRS, TRIPLES)
TARGET_WEIGHT = 3.0
MOST_WEIGHT = 1e6
MOST_TRIPLES = 20_000
"""Every candidate is counted: beyond this a pass over the table takes minutes, and there are many passes."""

Stated = tuple[tuple[ColumnSet, float], ...]
"""The weights that a user states, as they travel: sets of columns in the order they were given."""


@dataclass(frozen=True)
class Workload:
    """Weighted sets of columns; the order of columns in a set does not matter.

    Weights are relative: the largest of all is 1. A selection divides its scores by their sensitivity, which is the
    largest weight times what a neighbour changes, so a common factor cancels; and it follows from public facts alone.
    """

    columns: ColumnSet
    weights: Mapping[frozenset[str], float]
    unnamed: float = 1.0
    kind: str = PAIRS

    @classmethod
    def of(cls, domain: Domain, target: str | None = None, stated: Stated = (), kind: str = PAIRS) -> Workload:
        """Every pair with weight 1, those with the target with more, any other set with 1; and whatever is stated."""
        if target is not None:
            domain[target]
        _check_kind(kind, len(domain.names))
        weights = {frozenset(p): TARGET_WEIGHT if target in p else 1.0 for p in itertools.combinations(domain.names, 2)}
        weights |= _checked(domain, stated)
        largest = max([1.0, *weights.values()])
        # The grid of the scores would round a smaller weight to nothing.
        relative = {columns: max(weight / largest, STEP) for columns, weight in weights.items()}
        return cls(domain.names, relative, 1.0 / largest, kind)

    def weight(self, columns: Sequence[str]) -> float:
        return self.weights.get(frozenset(columns), self.unnamed)

    def triples(self) -> tuple[ColumnSet, ...]:
        """The sets of three columns that are wanted: all of them, or those with a weight; in the domain's order."""
        if self.kind == TRIPLES:
            return tuple(itertools.combinations(self.columns, 3))
        place = {c: i for i, c in enumerate(self.columns)}
        found = [sorted(place[c] for c in columns) for columns in self.weights if len(columns) == 3]
        return tuple(tuple(self.columns[i] for i in places) for places in sorted(found))


def stated_weights(weights: Mapping[str | ColumnSet, float]) -> Stated:
    """A user's mapping of column sets (tuples, or names with commas between them) to weights.

    >>> stated_weights({("age", "income"): 5, "age, sex, income": 2})
    ((('age', 'income'), 5.0), (('age', 'sex', 'income'), 2.0))
    """
    if not isinstance(weights, Mapping):
        raise MethodError('weights must map columns to numbers, such as {("age", "income"): 5}', weights)
    return tuple((_columns(key), _number(_columns(key), weight)) for key, weight in weights.items())


def parse_weight(text: str) -> tuple[ColumnSet, float]:
    """One weight as it is typed on a command line; a column's name may hold an equals sign, a number can't.

    >>> parse_weight("age,income=5")
    (('age', 'income'), 5.0)
    """
    names, _, number = text.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        raise MethodError(f"weight ({text!r}) must be columns, = and a number, such as age,income=5", text) from None
    return _columns(names), weight


def _columns(key: str | ColumnSet) -> ColumnSet:
    columns = tuple(name.strip() for name in key.split(",")) if isinstance(key, str) else key
    if not (isinstance(columns, tuple) and all(isinstance(c, str) and c for c in columns)):
        raise MethodError(f"the weighted set ({key!r}) must be column names, such as age,income", key)
    return columns


def _number(columns: ColumnSet, weight: float) -> float:
    if isinstance(weight, bool) or not isinstance(weight, Real):
        raise MethodError(f"the weight ({weight!r}) of {', '.join(columns)} must be a number", weight)
    _check_weight(columns, weight)
    return float(weight)


def _check_weight(columns: ColumnSet, weight: float) -> None:
    if not 0 < weight <= MOST_WEIGHT:
        raise MethodError(f"the weight ({weight}) of {', '.join(columns)} must be above 0 and at most 1e6", columns)


def _checked(domain: Domain, stated: Stated) -> dict[frozenset[str], float]:
    found: dict[frozenset[str], float] = {}
    for columns, weight in stated:
        for column in columns:
            domain[column]
        if len(columns) not in (2, 3) or len(set(columns)) < len(columns):
            raise MethodError(
                f"the weighted set ({', '.join(columns)}) must be two or three columns, each once", columns
            )
        _check_weight(columns, weight)
        if frozenset(columns) in found:
            raise MethodError(
                f"the set ({', '.join(columns)}) is weighted twice; weigh it once, in any order of columns", columns
            )
        found[frozenset(columns)] = weight
    return found


def _check_kind(kind: str, columns: int) -> None:
    if kind not in KINDS:
        raise MethodError(f"workload ({kind!r}) must be one of {', '.join(KINDS)}", kind)
    triples = math.comb(columns, 3)
    if kind == TRIPLES and triples > MOST_TRIPLES:
        raise MethodError(
            f"workload 'triples' over {columns} columns has {triples:,} sets of three and may have at most "
            f"{MOST_TRIPLES:,}; give weights to the triples that you need instead",
            kind,
        )
