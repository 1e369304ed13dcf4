"""Are there rows of the table, or nearly such, among the synthetic ones?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.lab.attacks.attack import Attack, Finding
from understudy.lab.attacks.nearest_rows import Index, Places
from understudy.lab.attacks.threat import Threat, matrix, some
from understudy.lab.evaluation.sample import RowSample

NEAR = 0.01
"""A near copy is nearer than all but this share of the training rows are to one another."""
MOST_ROWS = 4_000
PURPOSE = 3


def copies(threat: Threat) -> Finding:
    """The share of rows that have a copy, in both kinds; equal rows are counted apart too."""
    equal = equal_rows([threat.train, threat.holdout], threat.synthetic)
    radius = near_radius(threat)
    either = [e | (n.distances[:, 0] < radius) for e, n in zip(equal, threat.near, strict=True)]
    parts = {"equal rows": _shares(*equal), "equal or near rows": _shares(*either)}
    note = f"near means within {radius:.3g}, as the nearest {NEAR:.0%} of training rows are to each other"
    return _shares(*either).with_parts(parts, note)


def _shares(train: NDArray[np.bool_], holdout: NDArray[np.bool_]) -> Finding:
    return Finding.shares(int(train.sum()), len(train), int(holdout.sum()), len(holdout))


def near_radius(threat: Threat) -> float:
    """The first percentile of the distances from training rows to the nearest other one."""
    rows = matrix(threat.features, threat.train)
    chosen = some(len(rows), MOST_ROWS, threat.generator(PURPOSE))
    distances = Index.of(rows).nearest(rows[chosen], 1, own=chosen).distances[:, 0]
    return float(np.quantile(distances, NEAR))


def equal_rows(asked: Sequence[RowSample], among: RowSample) -> list[NDArray[np.bool_]]:
    """Which rows of each table are equal to one of these, in all columns and in full precision."""
    tables = [*asked, among]
    numbered = np.zeros(sum(t.rows for t in tables), dtype=np.int64)
    for name in among.codes:
        column = np.concatenate([t.values.get(name, t.codes[name]) for t in tables])
        value, place = np.unique(column, return_inverse=True)
        numbered = np.unique(numbered * len(value) + place, return_inverse=True)[1]
    *parts, theirs = np.split(numbered, np.cumsum([t.rows for t in tables])[:-1])
    return [_among(part, theirs) for part in parts]


def _among(numbers: Places, theirs: Places) -> NDArray[np.bool_]:
    return np.isin(numbers, theirs)


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "copies",
        "Copies",
        "A person's row would stand in the synthetic table, as it is or nearly so, because they were in the table.",
        "Rows that have an equal or nearly equal synthetic row; common rows have one by chance, in the hold-out too.",
        copies,
    ),
)
