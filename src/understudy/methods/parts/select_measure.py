"""What MST, AIM and MWEM are made of: one-way marginals, merged values, a model, and which sets it gets most wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree
from understudy.inference.graphical.marginals import Joints, every_pair, every_triple_with
from understudy.inference.noisy_table import NoisyTable, estimate_total
from understudy.inference.structural_zeros import Mask, Zeros, structural_zeros
from understudy.methods.parts.compression import Compression, OpenedGraph
from understudy.methods.parts.one_ways import denoised, measure_columns, public_rows
from understudy.methods.parts.workload import Workload, triples_with

FIRST_SWEEPS = 5
FINAL_SWEEPS = 30
MOST_ZERO_CELLS = 500_000


@dataclass
class SelectMeasureState:
    """The state of a select–measure–generate method: what was merged, and the model so far."""

    domain: Domain
    curator: Queryable
    compression: Compression
    estimator: GraphicalEstimator

    @classmethod
    def begin(cls, domain: Domain, curator: Queryable, amount: Amount) -> SelectMeasureState:
        rows = public_rows(curator)
        one_ways = measure_columns(domain, curator, amount, rows)
        total = estimate_total(rows + one_ways)
        smoothed = []
        for m in one_ways:
            counts = denoised(m.counts.astype(np.float64), m.variance, domain[m.columns[0]])
            smoothed.append(replace(m, counts=np.rint(counts).astype(np.int64)))
        one_ways = smoothed
        compression = Compression.of(one_ways, total)
        zeros = _affordable_zeros(compression.zeros(structural_zeros(domain)), compression.sizes)
        estimator = GraphicalEstimator(compression.sizes, compression.base(), total, curator.public_rows, zeros)
        estimator.observe([compression.merge(m) for m in one_ways])
        # A few sweeps: single columns alone are fitted almost at once, and every later step goes on from here.
        estimator.fit(FIRST_SWEEPS)
        return cls(domain, curator, compression, estimator)

    @property
    def signal(self) -> float:
        """How many times the rows exceed the noise that all that is left of the budget would put on one count."""
        left = self.curator.remaining()
        return self.total / left.noise_scale(self.curator.count_sensitivity(left))

    @property
    def sizes(self) -> dict[str, int]:
        return self.compression.sizes

    @property
    def total(self) -> float:
        return self.estimator.total

    @property
    def model(self) -> GraphicalModel:
        return self.estimator.model

    def measure(self, sets: list[ColumnSet], amount: Amount, sweeps: int) -> list[Measurement]:
        """Measures sets of columns by group, and fits them in."""
        grids = [self.compression.grid(s) for s in sets]
        weights = [float(g.cells) ** 0.5 for g in grids]
        measured = self.curator.ask(Partitions(self.domain, grids, amount, weights))
        self.estimator.observe([NoisyTable.of(m) for m in measured])
        self.estimator.fit(sweeps)
        return measured

    def finish(self) -> OpenedGraph:
        return OpenedGraph(self.estimator.fit(FINAL_SWEEPS).settled(), self.compression)


def _affordable_zeros(zeros: Zeros, sizes: dict[str, int]) -> Zeros:
    """Those that a small model can hold, the smallest first; other rules are kept by redrawing the rows."""
    # Without noise in them they cost nothing but size. A rule is kept in any case: a row that breaks it is drawn again.
    held: dict[ColumnSet, Mask] = {}
    for columns in sorted(zeros, key=lambda s: zeros[s].size):
        if JunctionTree.over([*held, columns], sizes).cells(sizes) <= MOST_ZERO_CELLS:
            held[columns] = zeros[columns]
    return held


@dataclass(frozen=True)
class Acyclic:
    """The rule that no pair closes a cycle with those picked before.

    What is admissible only shrinks: a pick joins two parts into one, so two columns of one part stay in one part.

    >>> Acyclic([("a", "b"), ("b", "c"), ("a", "c")]).after(0).after(1).admits(2)
    False
    """

    pairs: Sequence[ColumnSet]
    part: Mapping[str, str] = field(default_factory=dict)
    """Of each column that was picked: the name of its part, which is that of one column in it."""

    def admits(self, candidate: int) -> bool:
        one, other = self._parts(candidate)
        return one != other

    def after(self, picked: int) -> Acyclic:
        gone, kept = self._parts(picked)
        joined = {c: kept if p == gone else p for c, p in self.part.items()}
        return replace(self, part=joined | {gone: kept, kept: kept})

    def _parts(self, candidate: int) -> tuple[str, str]:
        one, other = self.pairs[candidate]
        return self.part.get(one, one), self.part.get(other, other)


def select_tree(
    state: SelectMeasureState, amount: Amount, weight: Callable[[ColumnSet], float] = lambda pair: 1.0
) -> list[ColumnSet]:
    """A maximum spanning tree of all columns, by private selection: pairs far from what independent columns expect."""
    names = state.domain.names
    pairs = list(itertools.combinations(names, 2))
    single = {c: state.model.marginal((c,)) for c in names}
    candidates = [
        Candidate(
            pair,
            np.outer(single[pair[0]], single[pair[1]]) / state.total,
            weight(pair),
            grid=state.compression.grid(pair),
        )
        for pair in pairs
    ]
    # One ask for all edges: keys are drawn once, and as what the rule admits only shrinks, each pick has the law of an
    # exponential mechanism of its own (docs/mechanisms/exponential.md, Several picks by a rule).
    chosen = state.curator.ask(Select(state.domain, candidates, amount, k=len(names) - 1, rule=Acyclic(pairs)))
    return [pairs[i] for i in chosen]


Estimate = NDArray[np.float64]

MOST_TRIPLE_CELLS = 20_000_000
"""How many numbers the estimates of all triples may hold together, and their counts as many again."""
MOST_HARM = 0.8
"""The most error, in rows, that the noise of a large set is held to do: a fitted table is shrunk, never pure noise."""


def find_worst(
    state: SelectMeasureState,
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
    # The model may be larger than `cells` already, by a set that joined parts; sets inside its cliques still fit in.
    allowed = max(cells, state.model.tree.cells(state.sizes))
    estimates = expectations(state, workload, targets, allowed)
    sets = list(estimates)
    candidates = []
    for columns, expected in estimates.items():
        weight = workload.weight(columns)
        # Noise × cells alone kept large tables out even where two columns determine each other (decision 7).
        harm = min(noise * expected.size, MOST_HARM * state.total)
        grid = state.compression.grid(columns)
        candidates.append(Candidate(columns, expected, weight, offset=-weight * harm, grid=grid))
    room = ModelSizeLimit(sets, state.sizes, tuple(state.estimator.sets), state.model.tree, allowed)
    chosen = state.curator.ask(Select(state.domain, candidates, amount, k=count, rule=room))
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


def expectations(
    state: SelectMeasureState, workload: Workload, targets: ColumnSet, allowed: float
) -> dict[ColumnSet, Estimate]:
    """What the model expects of every candidate, each set once, and no triple of more cells than are allowed.

    A target that every clique holds has all its triples at once; those of any other are found one by one.
    """
    found = every_pair(state.model)
    central = [t for t in targets if all(t in clique for clique in state.model.tree.cliques)]
    for i, target in enumerate(central):
        triples = every_triple_with(state.model, target, allowed)
        found |= {t: table for t, table in triples.items() if not set(central[:i]) & set(t)}
    others = triples_with(workload.columns, tuple(t for t in targets if t not in central))
    wanted = _affordable_triples(state, workload, dict.fromkeys((*workload.triples(), *others)), allowed)
    # One by one, by variable elimination: dearer than all at once, but a target that not every clique holds has no
    # smaller model of the same shape to walk (see `every_triple_with`).
    joints = Joints(state.model)
    return found | {t: joints.table(t) for t in wanted if not set(central) & set(t)}


def _affordable_triples(
    state: SelectMeasureState, workload: Workload, triples: Iterable[ColumnSet], allowed: float
) -> list[ColumnSet]:
    """Those that the model could hold; the heaviest, then the smallest, as far as memory goes.

    The sizes of tables follow from public facts and earlier answers alone.
    """
    cells = {t: state.compression.grid(t).cells for t in triples}
    order = sorted((t for t in cells if cells[t] <= allowed), key=lambda t: (-workload.weight(t), cells[t]))
    totals = itertools.accumulate(cells[t] for t in order)
    return [t for t, total in zip(order, totals, strict=True) if total <= MOST_TRIPLE_CELLS]
