"""Which sets of columns a round offers for selection where there are too many to look at all of them each time.

Up to half of those offered are *near*: their columns are joined by measured pairs, directly or through one other
column. There the model is most likely wrong still, since what the pairs in between leave out adds up. The others are a
random choice. Both follow from earlier answers and from a generator that knows nothing of the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet


def offered(
    sets: Sequence[ColumnSet],
    measured: Iterable[ColumnSet],
    always: Sequence[bool] | NDArray[np.bool_],
    most: int,
    rng: np.random.Generator,
) -> list[ColumnSet]:
    """At most so many of these sets, in their order, besides those that are always offered.

    >>> pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    >>> offered(pairs, [("a", "b"), ("b", "c")], [False] * 4, 6, np.random.default_rng(1)) == pairs
    True
    >>> offered(pairs, [("a", "b")], [False, False, False, True], 2, np.random.default_rng(1))
    [('a', 'b'), ('a', 'c'), ('c', 'd')]
    """
    if len(sets) <= most:
        return list(sets)
    chosen = np.array(always, dtype=np.bool_)
    near = _are_near(sets, measured) & ~chosen
    first = rng.permutation(np.flatnonzero(near))[: most // 2]
    others = rng.permutation(np.flatnonzero(~near & ~chosen))[: most - len(first)]
    chosen[first] = chosen[others] = True
    return [sets[i] for i in np.flatnonzero(chosen).tolist()]


def _are_near(sets: Sequence[ColumnSet], measured: Iterable[ColumnSet]) -> NDArray[np.bool_]:
    place = {c: i for i, c in enumerate(dict.fromkeys(c for s in sets for c in s))}
    linked = np.eye(len(place), dtype=np.float32)
    for columns in measured:
        for a, b in itertools.combinations([c for c in columns if c in place], 2):
            linked[place[a], place[b]] = linked[place[b], place[a]] = 1.0
    joined = linked @ linked > 0  # with itself on the diagonal, so that direct links are among them
    found = np.zeros(len(sets), dtype=np.bool_)
    by_length: dict[int, list[int]] = {}
    for i, columns in enumerate(sets):
        by_length.setdefault(len(columns), []).append(i)
    for length, members in by_length.items():
        places = np.array([[place[c] for c in sets[i]] for i in members])
        found[members] = np.all(
            [joined[places[:, a], places[:, b]] for a, b in itertools.combinations(range(length), 2)], axis=0
        )
    return found
