"""A distribution from a list of overlapping marginals: made consistent, drawn one after the other, then raked.

Where the marginals form a tree of overlaps the draws follow them all. Where they close cycles, no order of draws can;
the drawn rows then get weights, by iterative proportional fitting to every marginal, and are drawn again by weight.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.conditional import ConditionalTable, product, resample
from understudy.inference.graphical.graphical_model import GraphicalModel, marginalise, spread, unflatten
from understudy.inference.model import CodeColumns
from understudy.inference.noisy_table import estimate_total, keep_every_value
from understudy.inference.sampling import draw_given, draw_rows

CONSISTENCY_ROUNDS = 3
RAKING_PASSES = 20
FEWEST_PARTICLES = 50_000
LARGEST_FACTOR = 100.0
"""No weight is multiplied by more than this in one step: a noisy cell that few particles reach must not rule."""


@dataclass(frozen=True)
class MarginalModel:
    """Consistent, non-negative marginals over a domain, and an order in which to draw them."""

    domain: Domain
    marginals: Mapping[ColumnSet, NDArray[np.float64]]
    total: float

    @classmethod
    def fit(cls, domain: Domain, measurements: Sequence[Measurement]) -> MarginalModel:
        total = estimate_total(measurements)
        counted = [m for m in measurements if m.columns]
        tables = {m.columns: m.counts.astype(np.float64) for m in counted}
        variances = {m.columns: m.variance for m in counted}
        # In turn, as PriView does (Qardaji, Yang & Li 2014): each step undoes a little of the other.
        for _ in range(CONSISTENCY_ROUNDS):
            make_consistent(tables, variances)
            tables = {columns: keep_every_value(t, total, variances[columns]) for columns, t in tables.items()}
        return cls(domain, tables, total)

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        order = drawing_order(list(self.marginals))
        if all(step.faithful for step in order):
            return self._draw(order, rows, rng)
        particles = self._draw(order, max(rows, FEWEST_PARTICLES), rng)
        # Like rows next to each other: a systematic draw then keeps joint counts, and not only their expectation.
        alike = np.lexsort([particles[c] for c in reversed(self.domain.names)])
        chosen = alike[draw_rows(self._rake(particles)[alike], rows, rng)]
        return {column: codes[chosen] for column, codes in particles.items()}

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        if self.graph is None:
            return resample(self, given, rng)
        return self.graph.complete(given, rng)

    @cached_property
    def graph(self) -> GraphicalModel | None:
        """The distribution that `sample` draws from, with as many particles as there could be, on a junction tree.

        None where that would be too large. Raking weighs each particle by one factor per marginal, so the cliques of
        a tree that hold all marginals can be raked instead.
        """
        order = drawing_order(list(self.marginals))
        sizes = {coding.name: coding.size for coding in self.domain}
        factors = [ConditionalTable(s.given, s.new, self._table(s)) for s in order if s.new]
        graph = product(sizes, factors, self.total, list(self.marginals))
        if graph is not None and not all(step.faithful for step in order):
            self._rake_graph(graph)
        return graph

    def _table(self, step: DrawStep) -> NDArray[np.float64]:
        return marginalise(self.marginals[step.columns], step.columns, step.given + step.new)

    def _rake_graph(self, graph: GraphicalModel) -> None:
        homes = {columns: graph.tree.home(columns) for columns in self.marginals}
        for _ in range(RAKING_PASSES):
            for clique in graph.tour():
                for columns in (c for c, home in homes.items() if home == clique):
                    factor = _raking_factor(self.marginals[columns], graph.marginal(columns))
                    graph.tables[clique] *= spread(factor, columns, graph.tree.cliques[clique])
        for _ in graph.tour():  # what was changed last reaches the cliques that were visited first
            pass

    def _draw(self, order: Sequence[DrawStep], rows: int, rng: np.random.Generator) -> CodeColumns:
        drawn: CodeColumns = {}
        for step in order:
            if not step.new:
                continue
            shape = self.domain.shape(step.new)
            parents = self._cells(drawn, step.given, rows)
            cells = draw_given(parents, self._table(step).reshape(self.domain.cells(step.given), -1), rng)
            drawn |= dict(zip(step.new, unflatten(cells, shape), strict=True))
        return drawn

    def _rake(self, particles: CodeColumns) -> NDArray[np.float64]:
        rows = len(next(iter(particles.values())))
        weights = np.full(rows, self.total / rows)
        cells = {columns: self._cells(particles, columns, rows) for columns in self.marginals}
        # Iterative proportional fitting (Deming & Stephan 1940), on rows instead of on cells.
        for _ in range(RAKING_PASSES):
            for columns, wanted in self.marginals.items():
                held = np.bincount(cells[columns], weights, minlength=wanted.size).astype(np.float64)
                weights *= _raking_factor(wanted.ravel(), held)[cells[columns]]
        return weights

    def _cells(self, codes: CodeColumns, columns: ColumnSet, rows: int) -> NDArray[np.intp]:
        if not columns:
            return np.zeros(rows, dtype=np.intp)
        return np.ravel_multi_index([codes[c] for c in columns], self.domain.shape(columns))


@dataclass(frozen=True)
class DrawStep:
    """Draw the `new` columns of a marginal given those of its columns that are drawn already.

    `faithful` says that the drawn rows then follow this marginal: what is given was drawn from one marginal together.
    """

    columns: ColumnSet
    given: ColumnSet
    new: ColumnSet
    faithful: bool


def drawing_order(sets: Sequence[ColumnSet]) -> list[DrawStep]:
    """Each marginal once, next the one that shares most with what is drawn; ties in the order given."""
    left, done, steps = list(sets), set[str](), list[DrawStep]()
    while left:
        # The more is given, the fewer columns are new: relations are drawn before they could be contradicted.
        columns = max(left, key=lambda s: (len(done & set(s)), -left.index(s)))
        left.remove(columns)
        given = tuple(c for c in columns if c in done)
        together = any(set(given) <= set(s.columns) for s in steps) or not given
        steps.append(DrawStep(columns, given, tuple(c for c in columns if c not in done), together))
        done |= set(columns)
    return steps


def make_consistent(tables: dict[ColumnSet, NDArray[np.float64]], variances: Mapping[ColumnSet, float]) -> None:
    """Makes tables agree on what they share: the inverse-variance mean, spread evenly over the cells that sum to it.

    Smaller overlaps first, so that a later step keeps what an earlier one settled (Qardaji, Yang & Li 2014).
    """
    for shared in overlaps(list(tables)):
        holders = [columns for columns in tables if set(shared) <= set(columns)]
        margins = [marginalise(tables[c], c, shared) for c in holders]
        merged = [tables[c].size / m.size for c, m in zip(holders, margins, strict=True)]
        # A margin's cell adds up n cells and their noise: its variance is n times theirs.
        weights = np.array([1.0 / (variances[c] * n) for c, n in zip(holders, merged, strict=True)])
        mean = sum(w * m for w, m in zip(weights / weights.sum(), margins, strict=True))
        for columns, margin, cells in zip(holders, margins, merged, strict=True):
            tables[columns] = tables[columns] + spread((mean - margin) / cells, shared, columns)


def overlaps(sets: Sequence[ColumnSet]) -> list[ColumnSet]:
    """All sets of columns that two or more marginals share, smallest first; the empty one stands for the total.

    Closed under intersection: settling a larger overlap must not undo a smaller one that lies in several of them.
    """
    found = {frozenset(a) & frozenset(b) for a, b in itertools.combinations(sets, 2)}
    fresh = found
    while fresh:
        fresh = {a & b for a in fresh for b in found} - found
        found = found | fresh
    order = {c: i for i, c in enumerate(dict.fromkeys(c for s in sets for c in s))}
    named = (tuple(sorted(s, key=order.__getitem__)) for s in found)
    return sorted(named, key=lambda s: (len(s), [order[c] for c in s]))


def _raking_factor(wanted: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
    factor = np.divide(wanted, held, out=np.ones(wanted.shape), where=held > 0)
    return np.clip(factor, 1 / LARGEST_FACTOR, LARGEST_FACTOR)
