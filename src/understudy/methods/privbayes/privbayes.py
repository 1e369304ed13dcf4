"""`privbayes`: a Bayesian network chosen privately, then its noisy conditionals (after Zhang et al. 2017).

The exponential mechanism first picks a tree of pairs, which gives the columns their order and each its first parent;
then a second parent for each column that gains by one. Tables are as large as *θ-usefulness* lets them be: the average
cell must hold at least θ times its noise. Unlike in the paper, columns that are too fine for it are not passed over
but taken at a coarser level; and one-way counts are sharpened by the margins of all joint tables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.exponential import OneOfEach
from understudy.boundary.privacy.mechanisms.score import Candidate, Dependence
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.grouping import Grouping
from understudy.inference.model import Model
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import NoisyTable, estimate_total, keep_every_value
from understudy.methods.forecast.spending import Public, Spending, after_columns, spend_equally
from understudy.methods.method import CHOOSES_SEVERAL, Method, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.one_ways import (
    FIRST_SHARE,
    MORE_SHARE,
    NOISY,
    denoised,
    error_weights,
    measure_each,
    public_rows,
)
from understudy.methods.parts.select_measure import Acyclic
from understudy.methods.privbayes.levels import LevelledNetwork, Levels, Table, grid_of, sharpened

TREE_SHARE, PARENTS_SHARE = 0.15, 0.15
USEFULNESS = 1.0
"""θ. The paper has 4 to 6; here a conditional is shrunk towards independence as far as its noise demands."""
SMALLEST_TABLE = 4
"""Two groups by two: a relation can't be said with less."""
FEWEST_GROUPS = 16
"""A second parent must leave every column this many groups, or all its values."""
LARGEST_SLIP = 0.02
"""Second parents are chosen only where the choice is likely to miss the best by no more than this share of the rows."""
CONDITIONAL_SWEEPS = 10
SETTLED = 0.1
"""The share of a one-way variance that is left when the margins of the joint tables have been taken in."""


@dataclass(frozen=True)
class PrivBayesParams(Params):
    """The options of `privbayes`."""

    usefulness: float = parameter(USEFULNESS, "θ: how many times its noise a cell must hold", low=0.01, high=1_000.0)


@dataclass(frozen=True)
class PrivBayes:
    """The recipe. `more_share` of the budget measures columns again where the first counts were mostly noise."""

    usefulness: float = USEFULNESS
    more_share: float = MORE_SHARE

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedPrivBayes:
        return CalibratedPrivBayes(domain, amount, self)


@dataclass(frozen=True)
class CalibratedPrivBayes:
    domain: Domain
    amount: Amount
    recipe: PrivBayes

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        counts = PrivBayesState.begin(self.domain, curator)
        if len(self.domain.names) == 1:
            return counts.unrelated(self.amount)
        counts.measure_columns(self.amount.part(FIRST_SHARE))
        if counts.expected_error() > NOISY:
            counts.measure_columns(self.amount.part(self.recipe.more_share))
        largest = self._largest_table(counts.total, curator)
        if largest < SMALLEST_TABLE:
            return counts.unrelated(curator.remaining())
        structure = Structure(Levels(self.domain, counts.weights(), largest), curator, counts.total)
        families = structure.widen(structure.tree())
        # The root has no table of its own: its one-way counts were measured before.
        counts.measure_tables([structure.levels.grid(f) for f in families if len(f) > 1])
        return counts.network(families)

    def _largest_table(self, total: float, curator: Queryable) -> float:
        """θ-usefulness: rows/cells ≥ θ × noise, for the noise that one of d−1 equal parts of the rest buys."""
        # The tables will share what the structure leaves by their sizes, which are not known yet.
        part = curator.remaining().part(1 - TREE_SHARE).split([1.0] * (len(self.domain.names) - 1))[0]
        noise = part.noise_scale(curator.count_sensitivity(part)) * (1.0 if part.pure else math.sqrt(2 / math.pi))
        return total / (self.recipe.usefulness * noise)


@dataclass(frozen=True)
class Structure:
    """The choice of the network: families are columns with their parents, in an order in which parents come first."""

    levels: Levels
    curator: Queryable
    total: float

    def tree(self) -> list[ColumnSet]:
        """Pairs by their distance from independence, in one selection that never closes a cycle.

        The distance is from what the noisy one-way counts expect: one row moves it by one, and the paper's score R,
        which is half of it but takes the exact margins, by nearly three.
        """
        domain = self.levels.domain
        pairs = list(itertools.combinations(domain.names, 2))
        chosen = self.curator.ask(
            Select(
                domain,
                [self._distance(pair) for pair in pairs],
                self.curator.remaining().part(TREE_SHARE),
                k=len(domain.names) - 1,
                rule=Acyclic(pairs),
            )
        )
        return _rooted(domain.names, [pairs[i] for i in chosen])

    def widen(self, tree: Sequence[ColumnSet]) -> list[ColumnSet]:
        """Each column with its first parent and, where R, the score of the paper, is larger with one, a second.

        All columns choose in one pass over the rows. The first of a column's families in the noisy order is its
        best one by noisy score, so this is one exponential mechanism for each column, and as many are paid.
        """
        choices = [self._wider(family, [f[0] for f in tree[:i]]) for i, family in enumerate(tree)]
        choices = [c for c in choices if len(c) > 1]
        amount = self.curator.remaining().part(PARENTS_SHARE)
        if not choices or self._slip(amount, choices) > LARGEST_SLIP * self.total:
            return list(tree)
        families = list(itertools.chain(*choices))
        scores = [Dependence(f, self.levels.grid(f)) for f in families]
        # R moves by up to 8/3 where a row comes or goes, and the score of the tree by 1; but that would need noisy
        # counts of both parents together, which are not there yet (docs/mechanisms/selection-scores.md, Dependence).
        one_family_each = OneOfEach([f[0] for f in families])
        chosen = self.curator.ask(Select(self.levels.domain, scores, amount, k=len(choices), rule=one_family_each))
        wider = {families[i][0]: families[i] for i in chosen}
        return [wider.get(f[0], f) for f in tree]

    def _distance(self, pair: ColumnSet) -> Candidate:
        grid = self.levels.grid(pair)
        one, other = (Grouping.of(g).sums(self.levels.weights[c]) for c, g in zip(pair, grid.groups, strict=True))
        expected = np.outer(one, other) / self.total
        # Independent columns differ from their expectation, too, and a fine table by more than a coarse one.
        chance = math.sqrt(2 / math.pi) * float(np.sqrt(expected).sum())
        return Candidate(pair, expected, offset=-chance, grid=grid)

    def _wider(self, family: ColumnSet, before: Sequence[str]) -> list[ColumnSet]:
        """The family itself, and with every further parent that leaves its table fine enough."""
        if len(family) == 1:
            return [family]
        found = [family]
        for wider in ((*family, c) for c in before if c not in family):
            finest = max(self.levels.domain.shape(wider))
            if self.levels.resolution(wider) >= min(FEWEST_GROUPS, finest):
                found.append(wider)
        return found

    def _slip(self, amount: Amount, choices: Sequence[Sequence[ColumnSet]]) -> float:
        """By how much, in rows, a choice is likely to miss the best score: 2Δ·ln(families)/ε."""
        # McSherry & Talwar (2007): with k candidates a score misses the best by more than 2Δ·(ln k + t)/ε with a
        # probability of at most e^−t.
        epsilon = amount.split([1.0] * len(choices))[0].selection_epsilon()
        sensitivity = Dependence(()).sensitivity(self.curator.schema.rows_per_unit, self.curator.replaced)
        return 2 * sensitivity * math.log(max(map(len, choices))) / epsilon


def _rooted(columns: ColumnSet, pairs: Sequence[ColumnSet]) -> list[ColumnSet]:
    """A spanning tree as families, from the column with most links outwards."""
    links: dict[str, list[str]] = {c: [] for c in columns}
    for a, b in pairs:
        links[a].append(b)
        links[b].append(a)
    # Which column is the root changes no relation of the tree; a hub keeps the chains of conditionals short.
    root = max(columns, key=lambda c: len(links[c]))
    families: list[ColumnSet] = [(root,)]
    for column, *above in families:  # which grows while it is walked: first come, first served
        families += [(c, column) for c in links[column] if c not in above]
    return families


@dataclass
class PrivBayesState:
    """All that was measured: single columns, and tables of families."""

    domain: Domain
    curator: Queryable
    measured: list[Measurement]
    columns: dict[str, NoisyTable] = field(default_factory=dict)
    tables: dict[ColumnSet, Measurement] = field(default_factory=dict)

    @classmethod
    def begin(cls, domain: Domain, curator: Queryable) -> PrivBayesState:
        return cls(domain, curator, public_rows(curator))

    @property
    def total(self) -> float:
        return estimate_total(self.measured)

    def measure_columns(self, amount: Amount) -> None:
        """Every single column, once more where that was done before."""
        for m in measure_each(self.domain, self.curator, amount):
            self.measured.append(m)
            new = NoisyTable.of(m)
            known = self.columns.get(m.columns[0])
            self.columns[m.columns[0]] = new if known is None else known.averaged_with(new)

    def measure_tables(self, grids: Sequence[Grid]) -> None:
        """The tables of all families, with all that is left."""
        amount = self.curator.remaining()
        weights = error_weights([g.cells for g in grids], amount.pure)
        tables = self.curator.ask(Partitions(self.domain, grids, amount, weights))
        self.measured += tables
        self.tables = {m.columns: m for m in tables}

    def expected_error(self) -> float:
        """The mean total variation that noise alone puts between a column's measured and true distribution."""
        # 0.4 is about ½·√(2/π): half of the L1 distance, and the mean absolute value of Gaussian noise in each cell.
        noise = [0.4 * o.counts.size * math.sqrt(float(o.variance)) for o in self.columns.values()]
        return float(np.mean(noise)) / self.total

    def weights(self) -> dict[str, Table]:
        """The distribution of each column, from everything that tells of it."""
        margins: dict[str, list[NoisyTable]] = {c: [] for c in self.domain.names}
        for table in map(NoisyTable.of, self.tables.values()):
            for c in table.columns:
                margins[c].append(table.margin(c))
        return {
            c: keep_every_value(denoised(sharpened(o, margins[c]), o.variance, self.domain[c]), self.total, o.variance)
            for c, o in self.columns.items()
        }

    def unrelated(self, amount: Amount) -> Model:
        """No table is useful: single columns get the rest."""
        self.measure_columns(amount)
        return IndependentModel(self.weights(), self.total)

    def network(self, families: Sequence[ColumnSet]) -> Model:
        weights, total, network = self.weights(), self.total, LevelledNetwork()
        for column, *parents in families:
            if parents:
                measured = self.tables[column, *parents]
                network.add_child(weights[column], grid_of(measured), self._joint(measured, weights, total))
            else:
                network.add_root(column, weights[column])
        return network.finish(self.domain.names, total)

    def _joint(self, measured: Measurement, weights: Mapping[str, Table], total: float) -> Table:
        """A family's noisy table, shrunk towards independence as far as noise demands; its one-way margins are kept."""
        grid = grid_of(measured)
        # A model of one clique: what is used is its shrinkage, not its inference.
        single = {c: Grouping.of(g).sums(weights[c]) for c, g in zip(grid.columns, grid.groups, strict=True)}
        estimator = GraphicalEstimator({c: w.size for c, w in single.items()}, single, total, fixed_total=True)
        known = [NoisyTable((c,), w, SETTLED * float(self.columns[c].variance)) for c, w in single.items()]
        # A sweep goes through them in this order: the margins have the last word.
        estimator.observe([NoisyTable.of(measured), *known])
        return estimator.fit(CONDITIONAL_SWEEPS).marginal(grid.columns)


def spending(public: Public) -> Spending:
    first, left = after_columns(public, most=False)
    measuring = left.part(1 - TREE_SHARE).part(1 - PARENTS_SHARE)
    return spend_equally(public, first, measuring, len(public.domain.names) - 1)


METHOD = Method(
    name="privbayes",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="relations of two or three columns, also of fine columns at a coarser level",
    limits="one order of columns; at most two parents each",
    build=lambda options, params: PrivBayes(params.usefulness),
    params=PrivBayesParams,
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL, selects_wide=True),),
)
