"""The step that AIM and MWEM share: find the set of columns that the model gets most wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.graphical.junction import JunctionTree
from understudy.inference.graphical.marginals import Joints, every_pair, every_triple_with
from understudy.methods.parts.groundwork import Groundwork
from understudy.methods.parts.workload import Workload, triples_with

Estimate = NDArray[np.float64]

MOST_TRIPLE_CELLS = 20_000_000
"""How many numbers the estimates of all triples may hold together, and their counts as many again."""
MOST_HARM = 0.8
"""The most error, in rows, that the noise of a large set is held to do: a fitted table is shrunk, never pure noise."""


def find_worst(
    ground: Groundwork,
    workload: Workload,
    amount: Amount,
    *,
    noise: float,
    cells: float,
    targets: ColumnSet = (),
    count: int = 1,
) -> list[ColumnSet]:
    """The exponential mechanism over every pair, every triple with a target and every wanted one, by weighted error.

    `noise` is what measuring would cost per cell: it is taken off the score, so that large sets must be worth it.
    Sets that would make the model hold more than `cells` numbers are passed over, but for those that join separate
    parts of it.
    """
    allowed = max(cells, ground.model.tree.cells(ground.sizes))
    estimates = expectations(ground, workload, targets, allowed)
    sets = list(estimates)
    candidates = [_candidate(ground, s, e, workload.weight(s), noise) for s, e in estimates.items()]
    room = ModelSizeLimit(sets, ground.sizes, tuple(ground.estimator.sets), ground.model.tree, allowed)
    chosen = ground.curator.ask(Select(ground.domain, candidates, amount, k=count, rule=room))
    return [sets[i] for i in chosen]


@dataclass(frozen=True)
class ModelSizeLimit:
    """The rule that the model stays small: a set fits in if its cells do, or if it joins separate parts.

    One that joins parts may make the model larger than `allowed`, which then is its new size; and another set may fit
    in there that did not before. (Nor need a model of more sets be larger: its cliques are found greedily.) So a set is
    admitted only if it fits in now *and* fitted in before every pick of this selection. What is admissible
    therefore only shrinks. A set that was refused has its chance again in the next selection.
    """

    candidates: Sequence[ColumnSet]
    sizes: Mapping[str, int]
    held: tuple[ColumnSet, ...]
    """The sets that the model has to hold: those measured, and those picked."""
    tree: JunctionTree
    allowed: float
    """How many numbers the model may hold."""
    before: ModelSizeLimit | None = None
    """The same rule before the last pick."""
    _known: dict[int, bool] = field(default_factory=dict, repr=False, compare=False)
    """Verdicts reached so far: a tree takes long to find. They don't depend on the order in which they were asked."""

    def admits(self, candidate: int) -> bool:
        if candidate not in self._known:
            self._known[candidate] = self._admits(candidate)
        return self._known[candidate]

    def _admits(self, candidate: int) -> bool:
        if self.before is None:
            return self._fits(candidate)
        refused = self.before._known.get(candidate) is False  # then no tree need be found
        return not refused and self._fits(candidate) and self.before.admits(candidate)

    def after(self, picked: int) -> ModelSizeLimit:
        tree = self._with(picked)
        allowed = max(self.allowed, tree.cells(self.sizes))
        held = (*self.held, self.candidates[picked])
        return ModelSizeLimit(self.candidates, self.sizes, held, tree, allowed, before=self)

    def _fits(self, candidate: int) -> bool:
        tree = self._with(candidate)
        return tree.parts < self.tree.parts or tree.cells(self.sizes) <= self.allowed

    def _with(self, candidate: int) -> JunctionTree:
        return JunctionTree.over([*self.held, self.candidates[candidate]], self.sizes)


def _candidate(ground: Groundwork, columns: ColumnSet, expected: Estimate, weight: float, noise: float) -> Candidate:
    harm = min(noise * expected.size, MOST_HARM * ground.total)
    return Candidate(columns, expected, weight, offset=-weight * harm, grid=ground.compression.grid(columns))


def expectations(
    ground: Groundwork, workload: Workload, targets: ColumnSet, allowed: float
) -> dict[ColumnSet, Estimate]:
    """What the model expects of every candidate, each set once, and no triple of more cells than are allowed.

    A target that every clique holds has all its triples at once; those of any other are found one by one.
    """
    found = every_pair(ground.model)
    central = [t for t in targets if all(t in clique for clique in ground.model.tree.cliques)]
    for i, target in enumerate(central):
        triples = every_triple_with(ground.model, target, allowed)
        found |= {t: table for t, table in triples.items() if not set(central[:i]) & set(t)}
    others = triples_with(workload.columns, tuple(t for t in targets if t not in central))
    wanted = _affordable(ground, workload, dict.fromkeys((*workload.triples(), *others)), allowed)
    joints = Joints(ground.model)
    return found | {t: joints.table(t) for t in wanted if not set(central) & set(t)}


def _affordable(
    ground: Groundwork, workload: Workload, triples: Iterable[ColumnSet], allowed: float
) -> list[ColumnSet]:
    """Those that the model could hold; the heaviest, then the smallest, as far as memory goes.

    The sizes of tables follow from public facts and earlier answers alone.
    """
    cells = {t: ground.cells(t) for t in triples}
    order = sorted((t for t in cells if cells[t] <= allowed), key=lambda t: (-workload.weight(t), cells[t]))
    totals = itertools.accumulate(cells[t] for t in order)
    return [t for t, total in zip(order, totals, strict=True) if total <= MOST_TRIPLE_CELLS]
