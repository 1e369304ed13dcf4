"""What a table will be used for: sets of columns, and how much each of them matters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

from understudy.boundary.privacy.mechanisms.score import STEP
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.errors import MethodError
from understudy.parameters import one_of

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
    def of(cls, domain: Domain, targets: ColumnSet = (), stated: Stated = (), kind: str = PAIRS) -> Workload:
        """Every pair with weight 1, those with a target with more, any other set with 1; and whatever is stated.

        A pair of two targets weighs no more than one with one of them: the largest weight does not grow with them.
        """
        for target in targets:
            domain[target]
        _check_kind(kind, len(domain.names))
        pairs = map(frozenset, itertools.combinations(domain.names, 2))
        weights = {pair: 1.0 if pair.isdisjoint(targets) else TARGET_WEIGHT for pair in pairs}
        # What is stated comes last: a user knows better than the rule for targets.
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


def stated_targets(target: str | Sequence[str] | None) -> ColumnSet:
    """A user's target or targets, in the order they were given.

    >>> stated_targets("income"), stated_targets(["income", "age"]), stated_targets(None)
    (('income',), ('income', 'age'), ())
    """
    # A text is a sequence of letters in Python: it has to be told from a list of names first.
    names: Sequence[str] = () if target is None else target
    if isinstance(names, str):
        names = (names,)
    if not (isinstance(names, Sequence) and all(isinstance(name, str) and name for name in names)):
        raise MethodError(f"target ({target!r}) must be the name of a column, or a list of such names", target)
    for name in names:
        if names.count(name) > 1:
            raise MethodError(f"target ({name!r}) is named {names.count(name)} times; name it once", target)
    return tuple(names)


def triples_with(columns: ColumnSet, targets: ColumnSet) -> tuple[ColumnSet, ...]:
    """Every set of three columns that holds a target, once, in the order of the columns."""
    wanted = set(targets)
    return tuple(t for t in itertools.combinations(columns, 3) if not wanted.isdisjoint(t))


def check_target_triples(columns: int, targets: int, most: int) -> None:
    """Refuses several targets that have too many triples to count; by public facts alone. One target may have any."""
    # All triples but those without any target.
    triples = math.comb(columns, 3) - math.comb(columns - targets, 3)
    if targets > 1 and triples > most:
        raise MethodError(
            f"{targets} targets among {columns} columns have {triples:,} sets of three and may have at most {most:,}; "
            "name fewer targets",
            targets,
        )


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
    one_of("workload", kind, KINDS, error=MethodError)
    triples = math.comb(columns, 3)
    if kind == TRIPLES and triples > MOST_TRIPLES:
        raise MethodError(
            f"workload 'triples' over {columns} columns has {triples:,} sets of three and may have at most "
            f"{MOST_TRIPLES:,}; give weights to the triples that you need instead",
            kind,
        )
