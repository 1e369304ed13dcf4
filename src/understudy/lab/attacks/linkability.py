"""Can two halves of what is known about a person be put together, because both lead to the same synthetic row?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.lab.attacks.attack import Attack, Finding
from understudy.lab.attacks.nearest_rows import Index, Places
from understudy.lab.attacks.threat import Threat, matrix, some
from understudy.lab.evaluation.row_features import Features
from understudy.lab.evaluation.sample import RowSample

NEAREST = 5
MOST_ROWS = 4_000
"""Of each kind."""
PURPOSE = 5


def linkability(threat: Threat) -> Finding:
    """The share of rows whose two halves have one of their nearest synthetic rows in common."""
    if len(threat.variables) == 1:
        return Finding.undefined(f"{threat.variables[0].name!r} is the only column, so there are no two halves")
    rng = threat.generator(PURPOSE)
    halves = _halves(threat, rng)
    train, holdout = (s.take(some(s.rows, MOST_ROWS, rng)) for s in (threat.train, threat.holdout))
    inside, outside = (linked(threat, halves, rows) for rows in (train, holdout))
    first, second = (", ".join(v.name for v in half.variables) for half in halves)
    note = f"{first} on one side, {second} on the other"
    return Finding.shares(int(inside.sum()), train.rows, int(outside.sum()), holdout.rows, note=note)


def _halves(threat: Threat, rng: np.random.Generator) -> tuple[Features, Features]:
    """The columns, divided at random."""
    names = [threat.variables[i].name for i in rng.permutation(len(threat.variables))]
    middle = (len(names) + 1) // 2
    return threat.features_of(names[:middle]), threat.features_of(names[middle:])


def linked(threat: Threat, halves: tuple[Features, Features], rows: RowSample) -> NDArray[np.bool_]:
    first, second = (
        Index.of(matrix(half, threat.synthetic)).nearest(matrix(half, rows), NEAREST).places for half in halves
    )
    return share_one(first, second)


def share_one(first: Places, second: Places) -> NDArray[np.bool_]:
    """Whether a line of one has a place in common with the same line of the other."""
    return (first[:, :, np.newaxis] == second[:, np.newaxis, :]).any(axis=(1, 2))


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "linkability",
        "Linkability",
        "Two lists, each with half of what is known about a person, could be joined because the person was in the "
        "table.",
        "Rows whose two halves, each by itself, lead to the same one of the five nearest synthetic rows.",
        linkability,
    ),
)
