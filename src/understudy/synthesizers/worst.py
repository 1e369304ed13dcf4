"""The step that AIM and MWEM share: find the set of columns that the model gets most wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.models.junction import JunctionTree
from understudy.models.pairwise import Pairwise
from understudy.privacy.budget import Amount
from understudy.privacy.score import Candidate
from understudy.schema.domain import ColumnSet
from understudy.synthesizers.groundwork import Groundwork
from understudy.synthesizers.workload import Workload

Estimate = NDArray[np.float64]

MOST_HARM = 0.8
"""The most error, in rows, that the noise of a large set is held to do: a fitted table is shrunk, never pure noise."""


def find_worst(
    ground: Groundwork, workload: Workload, amount: Amount, *, noise: float, cells: float, target: str | None = None
) -> ColumnSet:
    """The exponential mechanism over every pair (and every triple with the target), by weighted L1 error.

    `noise` is what measuring would cost per cell: it is taken off the score, so that large sets must be worth it.
    Sets that would make the model hold more than `cells` numbers are passed over, but for pairs that join two
    separate parts of it.
    """
    estimates = expectations(ground, target)
    sets = list(estimates)
    candidates = [_candidate(ground, s, e, workload.weight(s), noise) for s, e in estimates.items()]
    sizes, present = ground.sizes, ground.model.tree
    allowed = max(cells, present.cells(sizes))
    observed = list(ground.estimator.observations)

    def small_enough(i: int) -> bool:
        tree = JunctionTree.over([*observed, sets[i]], sizes)
        return tree.parts < present.parts or tree.cells(sizes) <= allowed

    (index,) = ground.curator.select(ground.domain, candidates, amount, admits=small_enough)
    return sets[index]


def _candidate(ground: Groundwork, columns: ColumnSet, expected: Estimate, weight: float, noise: float) -> Candidate:
    harm = min(noise * expected.size, MOST_HARM * ground.total)
    return Candidate(columns, expected, weight, offset=-weight * harm, grid=ground.compression.grid(columns))


def expectations(ground: Groundwork, target: str | None) -> dict[ColumnSet, Estimate]:
    """What the model expects of every candidate. With a target, every column must share a clique with it."""
    pairwise, names = Pairwise(ground.model), ground.domain.names
    found: dict[ColumnSet, Estimate] = {}
    for i, a in enumerate(names):
        joints = pairwise.joints((a,), names[i + 1 :])
        found |= {(a, b): joints[b] for b in names[i + 1 :]}
    if target is None:
        return found
    others = [c for c in names if c != target]
    for i, a in enumerate(others):
        joints = pairwise.joints((a, target), others[i + 1 :])
        shape = (ground.sizes[a], ground.sizes[target])
        found |= {(a, target, b): joints[b].reshape(*shape, -1) for b in others[i + 1 :]}
    return found
